"""One prediction from those of K lanes: a small Gaussian belief over how much each lane counts, learned row by row.

Lane c says that x'θ is N(m_c, v_c). Averaged over, that is one number, h_c = (m_c + s v_c)/√(1 + c v_c), with which the
likelihood says of y what it says on average (``families.marginalised``; for the logit c = π/8, s = 0). The *stack* is
the model with the latent

    f = Σ a_c h_c + Σ a_r h_r + b,    (a, b) ~ N(μ, P)

where each h_r is that of a *follower*: a lane that sees the constant only, and forgets. One that follows the labels
knows how they have been of late; one that follows what is left over (its latent is added to Σ μ_c h_c) knows by how
much the lanes have been off. The posterior is conditioned on every row by one site, P -= uu' (-H)/(1 - v₀H), μ += uJ
(docs/architecture.md, "The update").

The stack predicts with N(h'μ, h'Ph), in which the lanes' uncertainty is averaged away. What it reports of x'θ has the
spread that the lanes have together, which see the same rows and err together: V = h'Ph + (Σ μ_c √v_c)², and M such that
N(M, V) says on average what N(h'μ, h'Ph) does. Marginals of K lanes have K + 2 columns: the stack's prediction is the
last but one, its report the last.

Lanes and stack are weighed by what they predicted (Bayes' rule), and a share of SHARE/(t+1) of the weight is handed out
anew after row t, by the prior weights: what was useless for long can so come back, and all shares together cost
SHARE log t nats. Reference twin: ``tests/reference/stacking.py``.

Rows of P are padded with zeros to whole groups of four, so that sums and updates go in lanes (``simd.lanes``).
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_fused, part
from gaussfold.engine.families import Family, has_soft_labels, marginalised
from gaussfold.engine.scalar.expectations import log_predictive
from gaussfold.engine.scalar.sites import make_site
from gaussfold.engine.simd.lane_memory import load4, store
from gaussfold.engine.simd.lanes import lanes4, total
from gaussfold.engine.sparse.logit_series import logit_sites
from gaussfold.types import Program

SHARE = 0.1
LEFT_OVER, FORGETTING, PRIOR_VARIANCE = range(3)
"""Columns of what is said of those who follow."""
Marginals: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Means and variances, (n, K + 2)."""
Averaging: TypeAlias = tuple[float, float]
"""(c, s): a likelihood averaged over N(m, v) is that of the latent (m + s v)/√(1 + c v); see ``programs.averaging``."""


@compiled
def averaging_of(family: Family) -> Averaging:
    """(c, s) of a family, from what it says of a variance of 1."""
    _, k, shift = marginalised(family, 1.0)
    return 1.0 / (k * k) - 1.0, shift


@part
def _averaged(averaging: Averaging, m: float, v: float) -> float:
    """The latent that says of y what N(m, v) says."""
    c, s = averaging
    return (m + s * v) / math.sqrt(1.0 + c * v)


@part
def _spread_out(averaging: Averaging, m: float, v: float, wider: float) -> float:
    """The mean that says with the variance ``wider`` what m says with v."""
    c, s = averaging
    return _averaged(averaging, m, v) * math.sqrt(1.0 + c * wider) - s * wider


@compiled
def _inputs(
    averaging: Averaging, lane_mean: np.ndarray, lane_variance: np.ndarray, recent: np.ndarray, mean: np.ndarray,
    h: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Write the inputs to h; returns what the lanes say by the mean shares, and the variance they have together."""
    k = lane_mean.size
    spread = 0.0
    together = 0.0
    for c in range(k):
        h[c] = _averaged(averaging, lane_mean[c], lane_variance[c])
        together += mean[c] * h[c]
        spread += mean[c] * math.sqrt(lane_variance[c])
    for i in range(recent.shape[0]):
        h[k + i] = _averaged(averaging, recent[i, 0], recent[i, 1])
    h[k + recent.shape[0]] = 1.0
    return together, spread * spread


@compiled_fused
def _look(cov: np.ndarray, d: int, h: np.ndarray, mean: np.ndarray, u: np.ndarray) -> tuple[float, float]:
    """Ph to u, where ``cov`` is the flat P, padded as h, mean and u are; returns h'μ and h'Ph."""
    m4 = lanes4(0.0)
    v4 = lanes4(0.0)
    for at in range(0, h.size, 4):
        u4 = lanes4(0.0)
        for j in range(d):
            u4 = u4 + load4(cov, j * h.size + at) * h[j]
        store(u, at, u4)
        m4 = m4 + load4(h, at) * load4(mean, at)
        v4 = v4 + load4(h, at) * u4
    return total(m4), max(total(v4), 0.0)


@compiled_fused
def _condition(
    gradient: float, curvature: float, v0: float, d: int, u: np.ndarray, mean: np.ndarray, cov: np.ndarray
) -> bool:
    """Condition the shares on a site, P -= uu' (-H)/(1 - v₀H) and μ += uJ; whether all is finite."""
    shrink = -curvature / (1.0 - v0 * curvature)
    for at in range(0, u.size, 4):
        u4 = load4(u, at)
        store(mean, at, load4(mean, at) + u4 * gradient)
        for i in range(d):
            store(cov, i * u.size + at, load4(cov, i * u.size + at) - shrink * (u4 * u[i]))
    return abs(gradient) < math.inf and abs(shrink) < math.inf


@compiled
def _padded(mean: np.ndarray, cov: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and flat covariance with rows of whole groups of four."""
    d = mean.size
    width = d + 3 & ~3
    wide_mean, wide_cov = np.zeros(width), np.zeros(d * width)
    for i in range(d):
        wide_mean[i] = mean[i]
        for j in range(d):
            wide_cov[i * width + j] = cov[i, j]
    return wide_mean, wide_cov


@compiled
def _take_over(wide_mean: np.ndarray, wide_cov: np.ndarray, mean: np.ndarray, cov: np.ndarray) -> None:
    """Undo :func:`_padded`."""
    for i in range(mean.size):
        mean[i] = wide_mean[i]
        for j in range(mean.size):
            cov[i, j] = wide_cov[i * wide_mean.size + j]


@part
def _write(averaging: Averaging, m0: float, v0: float, spread: float, means: np.ndarray, variances: np.ndarray) -> None:
    """What the stack predicts, and what it reports."""
    means[-2], variances[-2] = m0, v0
    means[-1], variances[-1] = _spread_out(averaging, m0, v0, v0 + spread), v0 + spread


@compiled
def _passing(followers: np.ndarray) -> np.ndarray:
    """Of each that follows: what a row leaves of its precision, g = e^-forgetting, and (1 - g)/v₀."""
    passing = np.empty((2, followers.shape[0]))
    for i in range(followers.shape[0]):
        passing[0, i] = math.exp(-followers[i, FORGETTING])
        passing[1, i] = -math.expm1(-followers[i, FORGETTING]) / followers[i, PRIOR_VARIANCE]
    return passing


@compiled
def _age(recent: np.ndarray, passing: np.ndarray) -> None:
    """Time passes for those who follow, as in ``cells.aged``; ``passing`` is of :func:`_passing`."""
    for i in range(recent.shape[0]):
        old = passing[0, i] / recent[i, 1]
        recent[i, 1] = 1.0 / (old + passing[1, i])
        recent[i, 0] = recent[i, 1] * (old * recent[i, 0])


@compiled
def _all_finite(recent: np.ndarray) -> bool:
    finite = True
    for i in range(recent.shape[0]):
        finite &= abs(recent[i, 0]) < math.inf
    return finite


@compiled
def _learn_each(
    program: Program, y: float, w: float, stack: tuple[float, float], together: float, recent: np.ndarray,
    followers: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Those who follow see the label; returns gradient and curvature of the stack's own site."""
    family, rule, at = program
    for i in range(recent.shape[0]):
        offset = together if followers[i, LEFT_OVER] != 0.0 else 0.0
        _, _, m, recent[i, 1], _ = make_site(family, rule, at, y, w, recent[i, 0] + offset, recent[i, 1])
        recent[i, 0] = m - offset
    gradient, curvature, _, _, _ = make_site(family, rule, at, y, w, *stack)
    return gradient, curvature


@compiled_fused
def _learn_four(
    y: float, w: float, stack: tuple[float, float], together: float, recent: np.ndarray, followers: np.ndarray,
    room: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """As ``_learn_each`` for three who follow, by Newton's rule at the posterior of the logit: four sites in lanes."""
    for i in range(3):
        room[i] = recent[i, 0] + (together if followers[i, LEFT_OVER] != 0.0 else 0.0)
        room[4 + i] = recent[i, 1]
    room[3], room[7] = stack
    gradient, curvature = logit_sites(load4(room, 0), load4(room, 4), y, w, room)
    store(room, 0, gradient)
    store(room, 4, curvature)
    for i in range(3):
        v = recent[i, 1]
        recent[i, 0], recent[i, 1] = recent[i, 0] + v * room[i], v / (1.0 - v * room[4 + i])
    return room[3], room[7]


@compiled
def stack_rows(
    program: Program, averaging: Averaging, fast: bool, y: np.ndarray, w: np.ndarray, marginals: Marginals,
    recent: np.ndarray, followers: np.ndarray, mean: np.ndarray, cov: np.ndarray,
) -> int:  # fmt: skip
    """Go through rows of K lanes' marginals: the stack's to the last two columns before each, then learn it.

    ``recent``: mean and variance of each that follows; ``followers``: whether it follows what is left over, forgets by
    e^-.. a row, and towards which variance. ``fast``: Newton's rule at the posterior of the logit. Returns the row at
    which a number is no longer finite, or -1.
    """
    means, variances = marginals
    k, d = means.shape[1] - 2, mean.size
    shares, padded = _padded(mean, cov)
    h, u, room = np.zeros(shares.size), np.zeros(shares.size), np.empty(16)
    in_lanes = fast and recent.shape[0] == 3
    passing = _passing(followers)
    failed = -1
    for r in range(y.size):
        together, spread = _inputs(averaging, means[r, :k], variances[r, :k], recent, shares, h)
        m0, v0 = _look(padded, d, h, shares, u)
        _write(averaging, m0, v0, spread, means[r], variances[r])
        if not (abs(means[r, k + 1]) < math.inf and variances[r, k + 1] < math.inf):
            failed = r
            break
        if math.isnan(y[r]) or w[r] == 0.0:
            continue
        _age(recent, passing)
        if in_lanes:
            gradient, curvature = _learn_four(y[r], w[r], (m0, v0), together, recent, followers, room)
        else:
            gradient, curvature = _learn_each(program, y[r], w[r], (m0, v0), together, recent, followers)
        if not (_condition(gradient, curvature, v0, d, u, shares, padded) and _all_finite(recent)):
            failed = r
            break
    _take_over(shares, padded, mean, cov)
    return failed


@compiled
def look_stacked(
    averaging: Averaging, means: np.ndarray, variances: np.ndarray, recent: np.ndarray, mean: np.ndarray,
    cov: np.ndarray,
) -> None:  # fmt: skip
    """As :func:`stack_rows`, and nothing is learned."""
    k = means.shape[1] - 2
    shares, padded = _padded(mean, cov)
    h, u = np.zeros(shares.size), np.zeros(shares.size)
    for r in range(means.shape[0]):
        _, spread = _inputs(averaging, means[r, :k], variances[r, :k], recent, shares, h)
        m0, v0 = _look(padded, mean.size, h, shares, u)
        _write(averaging, m0, v0, spread, means[r], variances[r])


@compiled
def _soft_score(family: Family, y: float, weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> float:
    """A soft label: the cross-entropy of the averaged probability."""
    sides = np.zeros(2)
    for side in range(2):
        for c in range(weights.size):
            sides[side] += weights[c] * math.exp(log_predictive(family, np.float64(side), means[c], variances[c]))
    return (1.0 - y) * math.log(sides[0]) + y * math.log(sides[1])


@compiled
def _report(weights: np.ndarray, means: np.ndarray, variances: np.ndarray) -> tuple[float, float]:
    """Mean and variance of x'θ: lanes, and of the stack what it reports."""
    k = weights.size - 1
    mean = weights[k] * means[k + 1]
    for c in range(k):
        mean += weights[c] * means[c]
    away = means[k + 1] - mean
    variance = weights[k] * (variances[k + 1] + away * away)
    for c in range(k):
        away = means[c] - mean
        variance += weights[c] * (variances[c] + away * away)
    return mean, variance


@compiled
def _weigh(
    w: float, scores: np.ndarray, top: float, likely: np.ndarray, share: float, prior: np.ndarray, weights: np.ndarray
) -> None:
    """Bayes' rule, then the share that is handed out anew; ``likely`` is e^(score - top)."""
    evidence = 0.0
    for c in range(weights.size):
        weights[c] *= likely[c] if w == 1.0 else math.exp(w * (scores[c] - top))
        evidence += weights[c]
    for c in range(weights.size):
        weights[c] = (1.0 - share) * (weights[c] / evidence) + share * prior[c]


@compiled
def weigh_rows(
    family: Family, y: np.ndarray, w: np.ndarray, marginals: Marginals, scores: np.ndarray, prior: np.ndarray,
    weights: np.ndarray, learned: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Mean, variance and score of the mixture before each row to ``out`` (3, n); ``weights`` become those after.

    ``learned[0]`` is the number of rows learned before. Rows of weight 0 or without a label change nothing.
    """
    means, variances = marginals
    soft = has_soft_labels(family)
    likely = np.empty(weights.size)
    for r in range(y.size):
        out[0, r], out[1, r] = _report(weights, means[r], variances[r])
        out[2, r] = math.nan
        if math.isnan(y[r]):
            continue
        top = scores[r].max()
        evidence = 0.0
        for c in range(weights.size):
            likely[c] = math.exp(scores[r, c] - top)
            evidence += weights[c] * likely[c]
        out[2, r] = top + math.log(evidence) if abs(top) < math.inf else top
        if soft and 0.0 < y[r] < 1.0:
            out[2, r] = _soft_score(family, y[r], weights, means[r], variances[r])
        if w[r] != 0.0 and abs(top) < math.inf:  # else nobody explains it
            learned[0] += 1.0
            _weigh(w[r], scores[r], top, likely, SHARE / (learned[0] + 1.0), prior, weights)
