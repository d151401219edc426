"""The default of sparse classification, made to vectorise: marginal coupling, logit, Newton and curvature.

For every active feature i with the others integrated out, sparse-online (11): k = 1/√(1 + π σ₋ᵢ²/8), a₀ = k μ_t, and
the mode of (13) in a = k (μ₋ᵢ + xᵢ wᵢ) is the root of

    a - a₀ = V (y - σ(a)),    V = w k² xᵢ² σᵢ²                                   (15) times k xᵢ

found by Halley's steps from a₀, all features of the row at once. A last step δ so small that its error is below
rounding also carries σ over by Taylor's series, so that a settled feature costs one exponential. Then (15) and (19):

    μᵢ += w k xᵢ σᵢ² (y - σ(a)),    σᵢ² ← σᵢ²/(1 + V σ'(a)).

What Halley does not settle (a wide prior meeting a surprise) goes to the bracketed search of ``engine.logistic``.
The same numbers, slowly and for any rule: ``engine.diagonal``; reference twin: ``tests/reference/diagonal.py``.

All scratch lives in one array at constant offsets: the compiler can then prove that the columns do not overlap.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gaussfold.engine.cells import note, put_back, take_many, take_one
from gaussfold.engine.compiled import compiled_fused, compiled_inline
from gaussfold.engine.evaluate import APPROXIMATE, log_predictive
from gaussfold.engine.exponential import exp_nonpositive
from gaussfold.engine.families import LOGIT
from gaussfold.engine.logistic import logistic_root
from gaussfold.engine.mixing import mixed_moments, mixed_score, reweigh
from gaussfold.engine.special import sigmoid

SCALE = math.pi / 8.0
WIDTH = 512
"""Features per round of scratch; longer rows take several."""
LANES = 4
THIRD = 1.0 / 3.0
ROUNDS = 8
PITCH = WIDTH + 8
"""Distance of two columns: not a multiple of 4096 bytes, or all of them would compete for one set of the cache."""
X, M, V, MEAN, VARIANCE, START, PULL, GAP, UP, DOWN, SHRINK = (PITCH * i for i in range(11))
COLUMNS = 11


@compiled_inline
def halley(a: Any, gap: Any, pull: Any, y: Any, not_y: Any) -> Any:
    """One step on a - a₀ = pull·(y - σ(a)), where gap = a - a₀; and σ(a), σ(-a) after the step."""
    t = exp_nonpositive(-abs(a))
    large = 1.0 / (1.0 + t)
    small = t * large
    up = large if a >= 0.0 else small
    down = small if a >= 0.0 else large
    residual = pull * (y * down - not_y * up) - gap
    slope = up * down
    bend = slope * (down - up)
    rise = 1.0 + pull * slope
    step = residual * rise / (rise * rise + 0.5 * residual * pull * bend)
    change = step * (slope + 0.5 * step * (bend + THIRD * step * (slope * (1.0 - 6.0 * slope))))
    return step, up + change, down - change


@compiled_inline
def unsettled(pull: Any, step: Any) -> Any:
    """1 if the next step could matter: Halley's error is at most 0.03·pull·step³, Taylor's step⁴/24."""
    size = abs(step)
    return np.int64((pull * size * size * size > 1e-13) | (size > 1e-3))


@compiled_fused
def _search(a0: Any, pull: Any, y: Any, w: Any) -> Any:
    a, _, _ = logistic_root(w * y, w, a0, pull / w, False)
    return sigmoid(a), sigmoid(-a)


@compiled_inline
def score(p0: Any, y: Any, mean: Any, variance: Any) -> Any:
    """Log p(y), sparse-online (8), or its exact integral."""
    if p0 == APPROXIMATE:
        f = mean / math.sqrt(1.0 + SCALE * variance)
        return y * f - max(f, 0.0) - math.log1p(exp_nonpositive(-abs(f)))
    return log_predictive(LOGIT, p0, 0.0, y, mean, variance)


@compiled_fused
def solve(s: Any, n: Any, y: Any, w: Any, tiny: Any, huge: Any) -> Any:
    """Update the lanes 0..n of the scratch: columns X, M, V, MEAN and VARIANCE in, M and V out.

    MEAN and VARIANCE are those of the whole row. Returns how many lanes left the range of the stored numbers.
    """
    padded = (n + LANES - 1) & ~(LANES - 1)
    for i in range(n, padded):
        s[i + X] = 0.0
        s[i + M] = 0.0
        s[i + V] = 1.0
        s[i + MEAN] = 0.0
        s[i + VARIANCE] = 0.0
    not_y = 1.0 - y
    open_lanes: Any = 0
    for i in range(padded):
        x = s[i + X]
        own = x * x * s[i + V]
        k2 = 1.0 / (1.0 + SCALE * max(s[i + VARIANCE] - own, 0.0))
        k = math.sqrt(k2)
        pull = w * k2 * own
        a = k * s[i + MEAN]
        step, up, down = halley(a, 0.0, pull, y, not_y)
        s[i + START] = a
        s[i + PULL] = pull
        s[i + GAP] = step
        s[i + UP] = up
        s[i + DOWN] = down
        s[i + SHRINK] = k
        open_lanes += unsettled(pull, step)
    rounds = 1
    while open_lanes > 0 and rounds < ROUNDS:
        rounds += 1
        open_lanes = 0
        for i in range(padded):
            pull = s[i + PULL]
            gap = s[i + GAP]
            step, up, down = halley(s[i + START] + gap, gap, pull, y, not_y)
            s[i + GAP] = gap + step
            s[i + UP] = up
            s[i + DOWN] = down
            open_lanes += unsettled(pull, step)
    if open_lanes > 0:
        for i in range(n):
            step, _, _ = halley(s[i + START] + s[i + GAP], s[i + GAP], s[i + PULL], y, not_y)
            if not abs(step) <= 1e-9:
                s[i + UP], s[i + DOWN] = _search(s[i + START], s[i + PULL], y, w)
    wild: Any = 0
    for i in range(padded):
        v = s[i + V]
        up = s[i + UP]
        down = s[i + DOWN]
        m = s[i + M] + w * s[i + SHRINK] * s[i + X] * v * (y * down - not_y * up)
        v = v / (1.0 + s[i + PULL] * up * down)
        s[i + M] = m
        s[i + V] = v
        wild += 1 - np.int64((abs(m) <= huge) & (v >= tiny))
    return wild


@compiled_fused
def absorb_logit(
    cells: Any, time: Any, log: Any, indptr: Any, indices: Any, data: Any, y: Any, w: Any, p0: Any, limits: Any,
    longest: Any, out_mean: Any, out_variance: Any, out_score: Any,
) -> Any:  # fmt: skip
    """Visit the rows in order, K = 1. Returns the first row that failed or -1, and the log's size."""
    seen, clock, kind, rate, prior = time
    log_cells, log_seen, log_at = log
    tiny, huge = limits
    index = np.empty(longest, dtype=np.uint64)
    raw = np.empty(longest)
    long_x = np.empty(longest)
    long_m = np.empty(longest)
    long_v = np.empty(longest)
    s = np.empty(COLUMNS * PITCH)
    short_x = s[X : X + WIDTH]
    short_m = s[M : M + WIDTH]
    short_v = s[V : V + WIDTH]
    size = 0
    for r in range(y.size):
        label = y[r]
        weight = w[r]
        learn = not math.isnan(label) and weight != 0.0
        if learn:
            clock[0] += rate
        short = indptr[r + 1] - indptr[r] <= WIDTH
        if short:  # straight into the scratch
            row_x, row_m, row_v = short_x, short_m, short_v
        else:
            row_x, row_m, row_v = long_x, long_m, long_v
        count, mean, variance = take_one(
            cells, seen, clock[0], kind, prior, indices, data, indptr[r], indptr[r + 1], index, row_x, raw, row_m, row_v
        )
        out_mean[r] = mean
        out_variance[r] = variance
        out_score[r] = math.nan
        wild: Any = np.int64(not (abs(mean) < math.inf and variance < math.inf))
        if not math.isnan(label):
            out_score[r] = score(p0, label, mean, variance)
        if not learn or wild > 0:
            put_back(cells, count, index, raw)
            if wild > 0:
                return r, size
            continue
        if log_at.size > 0:
            size = note(log_cells, log_seen, log_at, size, cells, seen, count, index, raw)
        for start in range(0, count, WIDTH):
            n = min(count - start, WIDTH)
            if not short:
                for i in range(n):
                    s[i + X] = row_x[start + i]
                    s[i + M] = row_m[start + i]
                    s[i + V] = row_v[start + i]
            for i in range(n):
                s[i + MEAN] = mean
                s[i + VARIANCE] = variance
            wild += solve(s, n, label, weight, tiny, huge)
            if not short:
                for i in range(n):
                    row_m[start + i] = s[i + M]
                    row_v[start + i] = s[i + V]
        if wild > 0:
            put_back(cells, count, index, raw)
            return r, size
        for i in range(count):
            j = index[i]
            cells[j, 0, 0] = row_m[i]
            cells[j, 1, 0] = row_v[i]
        if kind != 0:
            for i in range(count):
                seen[index[i]] = clock[0]
    return -1, size


@compiled_fused
def absorb_logit_grid(
    cells: Any, time: Any, log: Any, indptr: Any, indices: Any, data: Any, y: Any, w: Any, p0: Any, limits: Any,
    longest: Any, log_weights: Any, means: Any, variances: Any, out_mean: Any, out_variance: Any, out_score: Any,
) -> Any:  # fmt: skip
    """As ``absorb_logit`` for K components that see the same rows and are mixed: see ``engine.mixing``."""
    seen, clock, kind, rate, prior = time
    log_cells, log_seen, log_at = log
    tiny, huge = limits
    k = cells.shape[2]
    index = np.empty(longest, dtype=np.uint64)
    row_x = np.empty(longest)
    row_raw = np.empty(longest)
    row_m = np.empty((longest, k))
    row_v = np.empty((longest, k))
    scores = np.empty(k)
    s = np.empty(COLUMNS * PITCH)
    step = WIDTH // k
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
        if not math.isnan(label):
            out_score[r] = mixed_score(LOGIT, p0, 0.0, label, log_weights, means, variances, scores)
        if not learn or wild > 0:
            put_back(cells, count, index, row_raw)
            if wild > 0:
                return r, size
            continue
        if log_at.size > 0:
            size = note(log_cells, log_seen, log_at, size, cells, seen, count, index, row_raw)
        for start in range(0, count, step):
            n = min(count - start, step)
            for t in range(n):
                x = row_x[start + t]
                for c in range(k):
                    i = t * k + c
                    s[i + X] = x
                    s[i + M] = row_m[start + t, c]
                    s[i + V] = row_v[start + t, c]
                    s[i + MEAN] = means[c]
                    s[i + VARIANCE] = variances[c]
            wild += solve(s, n * k, label, weight, tiny, huge)
            for t in range(n):
                for c in range(k):
                    row_m[start + t, c] = s[t * k + c + M]
                    row_v[start + t, c] = s[t * k + c + V]
        if wild > 0:
            put_back(cells, count, index, row_raw)
            return r, size
        reweigh(log_weights, scores, weight)
        for t in range(count):
            j = index[t]
            for c in range(k):
                cells[j, 0, c] = row_m[t, c]
                cells[j, 1, c] = row_v[t, c]
        if kind != 0:
            for t in range(count):
                seen[index[t]] = clock[0]
    return -1, size
