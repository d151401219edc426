"""One prediction of a class from those of L lanes: a small Gaussian belief over how much each lane counts.

Lane l says that the latent of class c is N(m_lc, v_lc). Averaged over, that is about the one number h_lc = m_lc/√(1 + π
v_lc/8), as for two classes. The *stack* is the softmax of the latents

    f_c = Σ_l a_l h_lc,    a ~ N(μ, Λ⁻¹),

conditioned on every row by newton at the posterior: the mode of p(y | a) N(a; μ, Λ⁻¹), and the curvature there,
Λ += w h (diag(p) - pp') h'. It is convex in a and has L unknowns.

The stack predicts with f̂_c = f_c/√(1 + π q_c/8), q_c the variance of f_c, in which the lanes' uncertainty is averaged
away. What it reports of a latent has the spread of the lanes, which see the same rows and err together: V_c = q_c +
(Σ_l μ_l √v_lc)², and the mean f̂_c √(1 + π V_c/8), which says on average what f̂_c says. As
``engine.sparse.stacking``, for classes. Reference twin: ``tests/reference/class_stacking.py``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.softmax.joint import lower_root, solve_lower, solve_turned

AVERAGED = math.pi / 8.0
STEPS = 40
HALVINGS = 30
TOLERANCE = 1e-18
"""Of what a step promises to gain, in nats; the square of how far it goes in standard deviations."""


@compiled
def _inputs(
    means: np.ndarray, variances: np.ndarray, mean: np.ndarray, root: np.ndarray, h: np.ndarray, column: np.ndarray,
    told: np.ndarray, told_mean: np.ndarray, told_variance: np.ndarray,
) -> None:  # fmt: skip
    """What the lanes say to ``h`` (L, K), f̂ to ``told``, and what is reported of the latents."""
    lanes, k = means.shape
    for c in range(k):
        f = 0.0
        spread = 0.0
        for i in range(lanes):
            h[i, c] = means[i, c] / math.sqrt(1.0 + AVERAGED * variances[i, c])
            f += mean[i] * h[i, c]
            spread += mean[i] * math.sqrt(variances[i, c])
            column[i] = h[i, c]
        solve_lower(root, column)
        own = 0.0
        for i in range(lanes):
            own += column[i] * column[i]
        told[c] = f / math.sqrt(1.0 + AVERAGED * own)
        told_variance[c] = own + spread * spread
        told_mean[c] = told[c] * math.sqrt(1.0 + AVERAGED * told_variance[c])


@compiled
def _log_total(f: np.ndarray) -> float:
    """The log of Σ exp f."""
    top = f.max()
    total = 0.0
    for c in range(f.size):
        total += math.exp(f[c] - top)
    return float(top + math.log(total))


@compiled
def _objective(
    h: np.ndarray, label: int, weight: float, a: np.ndarray, mean: np.ndarray, precision: np.ndarray, f: np.ndarray
) -> float:
    """½ (a - μ)'Λ(a - μ) - w log p(y | a); ``f`` receives the latents."""
    lanes, k = h.shape
    for c in range(k):
        f[c] = 0.0
        for i in range(lanes):
            f[c] += a[i] * h[i, c]
    value = weight * (_log_total(f) - f[label])
    for i in range(lanes):
        for j in range(lanes):
            value += 0.5 * (a[i] - mean[i]) * precision[i, j] * (a[j] - mean[j])
    return float(value)


@compiled
def _bend(h: np.ndarray, weight: float, f: np.ndarray, centre: np.ndarray, curvature: np.ndarray) -> None:
    """Curvature w h (diag(p) - pp') h' to ``curvature``, h p to ``centre``; ``f`` becomes p."""
    lanes, k = h.shape
    total = _log_total(f)
    centre[:] = 0.0
    for c in range(k):
        f[c] = math.exp(f[c] - total)
        for i in range(lanes):
            centre[i] += h[i, c] * f[c]
    curvature[:] = 0.0
    for c in range(k):
        for i in range(lanes):
            away = weight * f[c] * (h[i, c] - centre[i])
            for j in range(i + 1):
                curvature[i, j] += away * (h[j, c] - centre[j])
    for i in range(lanes):
        for j in range(i):
            curvature[j, i] = curvature[i, j]


@compiled
def _newton_step(
    h: np.ndarray, label: int, weight: float, a: np.ndarray, mean: np.ndarray, precision: np.ndarray, f: np.ndarray,
    step: np.ndarray, centre: np.ndarray, root: np.ndarray,
) -> float:  # fmt: skip
    """Where to go from a, whose latents are ``f``, to ``step``; what that promises to gain, NaN if there is no way."""
    lanes = h.shape[0]
    curvature = np.empty((lanes, lanes))
    _bend(h, weight, f, centre, curvature)
    for i in range(lanes):
        step[i] = weight * (h[i, label] - centre[i])
        for j in range(lanes):
            step[i] -= precision[i, j] * (a[j] - mean[j])
            curvature[i, j] += precision[i, j]
    if not lower_root(curvature, root):
        return math.nan
    solve_lower(root, step)
    gain = 0.0
    for i in range(lanes):
        gain += step[i] * step[i]
    solve_turned(root, step)
    return gain


@compiled
def _go(
    h: np.ndarray, label: int, weight: float, a: np.ndarray, mean: np.ndarray, precision: np.ndarray, f: np.ndarray,
    step: np.ndarray, trial: np.ndarray, value: float,
) -> float:  # fmt: skip
    """As much of the step as goes down from ``value``; the value there, NaN if no part of it does: rounding."""
    for _ in range(HALVINGS):
        for i in range(a.size):
            trial[i] = a[i] + step[i]
        reached = _objective(h, label, weight, trial, mean, precision, f)
        if reached <= value:
            a[:] = trial
            return reached
        for i in range(a.size):
            step[i] *= 0.5
    return math.nan


@compiled
def _condition(
    h: np.ndarray, label: int, weight: float, mean: np.ndarray, precision: np.ndarray, f: np.ndarray,
    small: np.ndarray, root: np.ndarray,
) -> bool:  # fmt: skip
    """Condition the shares on a row, by Newton's method; whether all is finite. ``small``: (4, L)."""
    a, step, centre, trial = small[0], small[1], small[2], small[3]
    a[:] = mean
    value = _objective(h, label, weight, a, mean, precision, f)
    for _ in range(STEPS):
        if not _newton_step(h, label, weight, a, mean, precision, f, step, centre, root) > TOLERANCE:
            break
        reached = _go(h, label, weight, a, mean, precision, f, step, trial, value)
        if math.isnan(reached):
            break
        value = reached
    value = _objective(h, label, weight, a, mean, precision, f)
    curvature = np.empty_like(precision)
    _bend(h, weight, f, centre, curvature)
    mean[:] = a
    precision += curvature
    return lower_root(precision, root) and abs(value) < math.inf


@compiled
def stack_classes(
    means: np.ndarray, variances: np.ndarray, y: np.ndarray, w: np.ndarray, mean: np.ndarray, precision: np.ndarray,
    told_mean: np.ndarray, told_variance: np.ndarray, score: np.ndarray,
) -> int:  # fmt: skip
    """Go through rows of the lanes' marginals, (n, L, K): report and score before each, then learn what lanes count.

    ``mean`` (L) and ``precision`` (L, L) are those of the shares. Returns the row at which a number is no longer
    finite, or -1. Rows of weight 0 or without a label change nothing.
    """
    n, lanes, k = means.shape
    h, told, root = np.empty((lanes, k)), np.empty(k), np.empty((lanes, lanes))
    small = np.empty((4, lanes))
    if not lower_root(precision, root):
        return 0
    for r in range(n):
        _inputs(means[r], variances[r], mean, root, h, small[0], told, told_mean[r], told_variance[r])
        for c in range(k):
            if not (abs(told_mean[r, c]) < math.inf and told_variance[r, c] < math.inf):
                return r
        score[r] = math.nan
        if math.isnan(y[r]):
            continue
        label = int(y[r])
        score[r] = told[label] - _log_total(told)
        if w[r] != 0.0 and not _condition(h, label, w[r], mean, precision, told, small, root):
            return r
    return -1


@compiled
def look_classes(
    means: np.ndarray, variances: np.ndarray, mean: np.ndarray, precision: np.ndarray, told: np.ndarray,
    told_mean: np.ndarray, told_variance: np.ndarray,
) -> None:  # fmt: skip
    """As :func:`stack_classes`, and nothing is learned; f̂ to ``told``, (n, K)."""
    n, lanes, k = means.shape
    h, column, root = np.empty((lanes, k)), np.empty(lanes), np.empty((lanes, lanes))
    lower_root(precision, root)
    for r in range(n):
        _inputs(means[r], variances[r], mean, root, h, column, told[r], told_mean[r], told_variance[r])
