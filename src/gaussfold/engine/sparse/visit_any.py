"""A visit to one row of a diagonal belief, for every likelihood, rule, at and coupling.

Joint coupling: one site for the row, (J, H) from ``scalar.sites.make_site`` on N(x'm, Σ x² v), the diagonal kept:

    mᵢ += xᵢ vᵢ J,    vᵢ ← vᵢ (1 - (v₀ - xᵢ² vᵢ) H)/(1 - v₀ H),    v₀ = Σ x² v.

DimGauss (sparse-online D.1) is rule newton, by its mode or (42)-(46) in one step, ADF (D.2) is ep, the EKF is taylor
at the prior, R-VGA is vi.

Marginal coupling: every active feature by itself, the others integrated out (``families.marginalised``);
(15) and (19) are rule newton, D.3 is vi. All features look at the row as it was before it, so their order is
irrelevant. (17) and (18) are options of newton. Each feature moves as if it alone had to explain the row. Where
integrating the others out widens the likelihood (logit, probit, Gaussian) their steps together do not pass the label;
for counts it only shifts it, and ten features may go ten times as far as one should. A row that is less likely after
such a step than before it is learned by one site instead, as joint coupling does.
Reference twin: ``tests/reference/diagonal.py``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import Family, derivatives, has_spread, log_density, marginalised, only_shifts
from gaussfold.engine.scalar.expectations import height_normaliser
from gaussfold.engine.scalar.sites import make_site
from gaussfold.engine.sparse.cells import put
from gaussfold.types import Program

Form: TypeAlias = tuple[int, int, int]
"""A coupling: joint or marginal, how the mean is found, how the variance is."""
Told: TypeAlias = tuple[float, float, float, float]
"""Label and weight of a row; mean and variance of its latent before it is learned."""
JOINT, MARGINAL = range(2)
SOLVED, ONE_STEP = range(2)
CURVATURE, HEIGHT = range(2)


@compiled
def one_step(family: Family, y: float, w: float, m0: float, v0: float) -> tuple[float, float, float]:
    """(17), (30), (42)-(46): the gradient's expansion at the old mean, the curvature at the new one; (J, H, mean)."""
    d1, d2, _, _ = derivatives(family, y, m0)
    j = w * d1 / (1.0 - v0 * w * d2)
    new = m0 + v0 * j
    _, d2, _, _ = derivatives(family, y, new)
    return j, w * d2, new


@compiled
def _seen_through(
    family: Family, program: Program, form: Form, y: float, w: float, m0: float, v0: float
) -> tuple[float, float, bool]:
    """(J, factor of the variance, whether it multiplies or divides) for one feature whose marginal is N(m0, v0)."""
    _, rule, at = program
    _, mean_form, variance_form = form
    if mean_form == SOLVED:
        j, h, new, _, _ = make_site(family, rule, at, y, w, m0, v0)
    else:
        j, h, new = one_step(family, y, w, m0, v0)
    if variance_form == HEIGHT:  # (18): where the peaks are equally high
        fall = height_normaliser(family, y, m0, v0) - log_density(family, y, new)
        return j, math.exp(2.0 * w * fall + (new - m0) * (new - m0) / v0), True
    return j, 1.0 - v0 * h, False


@compiled
def coordinate(
    program: Program, form: Form, y: float, w: float, x: float, m: float, v: float, mean: float, variance: float
) -> tuple[float, float]:
    """Update one feature with the others integrated out; ``mean`` and ``variance`` are those of the row."""
    own = x * x * v
    if not own > 0.0:
        return m, v
    others = max(variance - own, 0.0)
    if has_spread(program.family, others):
        family, k, shift = marginalised(program.family, others)
        j, factor, grows = _seen_through(family, program, form, y, w, k * (mean + shift), k * k * own)
    else:
        k = 1.0
        j, factor, grows = _seen_through(program.family, program, form, y, w, mean, own)
    return m + k * x * v * j, v * factor if grows else v / factor


@compiled
def _jointly(
    program: Program, form: Form, told: Told, xs: np.ndarray, ms: np.ndarray, vs: np.ndarray
) -> tuple[float, float]:
    """Learn a row by one site and keep the diagonal, one component; returns the site's precision and shift."""
    family, rule, at = program
    y, w, f, s = told
    if form[1] == SOLVED:
        j, h, m, _, _ = make_site(family, rule, at, y, w, f, s)
    else:
        j, h, m = one_step(family, y, w, f, s)
    grown = 1.0 - s * h
    for t in range(xs.size):
        x = np.float64(xs[t])
        v = vs[t]
        rest = max(s - x * x * v, 0.0)
        ms[t] += x * v * j
        vs[t] = v * (1.0 - rest * h) / grown
    return -h, j - h * m


@compiled
def _one_by_one(program: Program, form: Form, told: Told, xs: np.ndarray, ms: np.ndarray, vs: np.ndarray) -> None:
    """Learn a row feature by feature, one component; by one site where their steps together make it less likely."""
    y, w, f, s = told
    old_m, old_v = ms.copy(), vs.copy()
    after = 0.0
    for t in range(xs.size):
        x = np.float64(xs[t])
        ms[t], vs[t] = coordinate(program, form, y, w, x, ms[t], vs[t], f, s)
        after += x * ms[t]
    if only_shifts(program.family) and log_density(program.family, y, after) < log_density(program.family, y, f):
        ms[:] = old_m
        vs[:] = old_v
        _jointly(program, (JOINT, SOLVED, CURVATURE), told, xs, ms, vs)


@compiled
def visit_any(
    cells: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    start: int,
    stop: int,
    y: float,
    w: float,
    learn: bool,
    tiny: float,
    huge: float,
    ms: np.ndarray,
    vs: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    r: int,
    program: Program,
    form: Form,
    site_precision: np.ndarray,
    site_shift: np.ndarray,
) -> bool:
    """Visit one row whose cells are taken, any K: its marginals to ``mean`` and ``variance``; False if it fails."""
    k = cells.shape[2]
    n = stop - start
    out_of_range = np.int64(0)
    for c in range(k):
        f = 0.0
        s = 0.0
        for t in range(n):
            x = np.float64(data[start + t])
            f += x * ms[t * k + c]
            s += x * x * vs[t * k + c]
        mean[r, c] = f
        variance[r, c] = s
        out_of_range += 1 - np.int64((abs(f) < math.inf) & (s < math.inf))
    if out_of_range > 0:
        return False
    if not learn:
        return True
    for c in range(k):
        told = (y, w, mean[r, c], variance[r, c])
        xs, own_m, own_v = data[start:stop], ms[c : n * k : k], vs[c : n * k : k]
        if form[0] == JOINT:
            site_precision[r], site_shift[r] = _jointly(program, form, told, xs, own_m, own_v)
        else:
            _one_by_one(program, form, told, xs, own_m, own_v)
        for t in range(n):
            i = t * k + c
            out_of_range += 1 - np.int64((abs(ms[i]) <= huge) & (vs[i] >= tiny) & (vs[i] <= huge))
    if out_of_range > 0:
        return False
    put(cells.ravel(), k, indices, start, stop, ms, vs)
    return True
