"""Sequential updates of independent Gaussians, one mean and variance per feature, for every likelihood, rule and at.

Joint coupling: one site for the row, (J, H) from ``engine.sites.visit`` on N(x'm, Σ x² v), the diagonal kept:

    mᵢ += xᵢ vᵢ J,    vᵢ ← vᵢ (1 - (v₀ - xᵢ² vᵢ) H)/(1 - v₀ H),    v₀ = Σ x² v.

DimGauss (sparse-online D.1) is rule newton, ADF (D.2) is ep, the EKF is taylor at the prior, R-VGA is vi.

Marginal coupling: every active feature by itself, the others integrated out of the likelihood (``engine.excluding``);
(15) and (19) are rule newton, D.3 is vi. All features look at the row as it was before it, so their order is
irrelevant. (17) and (18) are options of newton. Reference twin: ``tests/reference/diagonal.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gaussfold.engine.cells import note, put_back, take_many
from gaussfold.engine.compiled import compiled
from gaussfold.engine.evaluate import APPROXIMATE, log_predictive
from gaussfold.engine.excluding import excluding
from gaussfold.engine.families import LOGIT, derivatives, log_density
from gaussfold.engine.mixing import mixed_moments, mixed_score, reweigh
from gaussfold.engine.sites import visit

JOINT, MARGINAL = range(2)
SOLVED, ONE_STEP = range(2)
CURVATURE, HEIGHT = range(2)


@compiled
def coordinate(program: Any, form: Any, y: Any, w: Any, x: Any, m: Any, v: Any, mean: Any, variance: Any) -> Any:
    """Update one feature with the others integrated out; ``mean`` and ``variance`` are those of the row."""
    code, p0, p1, rule, alpha, at = program
    _, mean_form, variance_form = form
    own = x * x * v
    if not own > 0.0:
        return m, v
    code, p0, k, shift = excluding(code, p0, max(variance - own, 0.0))
    m0 = k * (mean + shift)
    v0 = k * k * own
    if mean_form == SOLVED:
        j, h, new, _, _ = visit(code, p0, p1, rule, alpha, at, y, w, m0, v0)
    else:  # (17), (30): the gradient's expansion at the old mean, then the curvature at the new one
        d1, d2, _, _ = derivatives(code, p0, p1, y, m0)
        j = w * d1 / (1.0 - v0 * w * d2)
        new = m0 + v0 * j
        _, d2, _, _ = derivatives(code, p0, p1, y, new)
        h = w * d2
    if variance_form == HEIGHT:  # (18): where the peaks are equally high
        scale = APPROXIMATE if code == LOGIT else p0  # (8) is the normaliser that goes with (11)
        fall = log_predictive(code, scale, p1, y, m0, v0) - log_density(code, p0, p1, y, new)
        return m + k * x * v * j, v * math.exp(2.0 * w * fall + (new - m0) * (new - m0) / v0)
    return m + k * x * v * j, v / (1.0 - v0 * h)


@compiled
def absorb_any(
    cells: Any, time: Any, log: Any, indptr: Any, indices: Any, data: Any, y: Any, w: Any, program: Any, form: Any,
    limits: Any, longest: Any, log_weights: Any, means: Any, variances: Any, out_mean: Any, out_variance: Any,
    out_score: Any, site_precision: Any, site_shift: Any,
) -> Any:  # fmt: skip
    """Visit the rows in order, any K. Returns the first row that failed or -1, and the log's size."""
    seen, clock, kind, rate, prior = time
    log_cells, log_seen, log_at = log
    tiny, huge = limits
    code, p0, p1, rule, alpha, at = program
    k = cells.shape[2]
    index = np.empty(longest, dtype=np.uint64)
    row_x = np.empty(longest)
    row_raw = np.empty(longest)
    row_m = np.empty((longest, k))
    row_v = np.empty((longest, k))
    scores = np.empty(k)
    size = 0
    for r in range(y.size):
        label = y[r]
        weight = w[r]
        learn = not math.isnan(label) and weight != 0.0
        if learn:
            clock[0] += rate
        count = take_many(
            cells, seen, clock[0], kind, prior, indices, data, indptr[r], indptr[r + 1],
            index, row_x, row_raw, row_m, row_v, means, variances,
        )  # fmt: skip
        wild: Any = 0
        for c in range(k):
            wild += 1 - np.int64((abs(means[c]) < math.inf) & (variances[c] < math.inf))
        out_mean[r], out_variance[r] = mixed_moments(log_weights, means, variances)
        out_score[r] = math.nan
        if not math.isnan(label) and wild == 0:
            out_score[r] = mixed_score(code, p0, p1, label, log_weights, means, variances, scores)
        if not learn or wild > 0:
            put_back(cells, count, index, row_raw)
            if wild > 0:
                return r, size
            continue
        if log_at.size > 0:
            size = note(log_cells, log_seen, log_at, size, cells, seen, count, index, row_raw)
        for c in range(k):
            if form[0] == JOINT:
                j, h, m, _, _ = visit(code, p0, p1, rule, alpha, at, label, weight, means[c], variances[c])
                grown = 1.0 - variances[c] * h
                for t in range(count):
                    x = row_x[t]
                    v = row_v[t, c]
                    rest = max(variances[c] - x * x * v, 0.0)
                    row_m[t, c] += x * v * j
                    row_v[t, c] = v * (1.0 - rest * h) / grown
                site_precision[r] = -h
                site_shift[r] = j - h * m
            else:
                for t in range(count):
                    row_m[t, c], row_v[t, c] = coordinate(
                        program, form, label, weight, row_x[t], row_m[t, c], row_v[t, c], means[c], variances[c]
                    )
            for t in range(count):
                wild += 1 - np.int64((abs(row_m[t, c]) <= huge) & (row_v[t, c] >= tiny) & (row_v[t, c] <= huge))
        if wild > 0:
            put_back(cells, count, index, row_raw)
            return r, size
        reweigh(log_weights, scores, weight)
        for t in range(count):
            column = index[t]
            for c in range(k):
                cells[column, 0, c] = row_m[t, c]
                cells[column, 1, c] = row_v[t, c]
        if kind != 0:
            for t in range(count):
                seen[index[t]] = clock[0]
    return -1, size
