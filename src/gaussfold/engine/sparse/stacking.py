"""One prediction from those of K lanes: a small Gaussian belief over how much each lane counts, learned row by row.

Lane c says that x'θ is N(m_c, v_c). Averaged over, that is one number, h_c = (m_c + s v_c)/√(1 + c v_c), with which the
likelihood says of y what it says on average (``families.marginalised``; for the logit c = π/8, s = 0). The *stack* is
the model with the latent

    f = Σ a_c h_c + a_r h_r + b,    (a, a_r, b) ~ N(μ, P)

where h_r is a further lane that sees the constant only, and forgets: how labels have been of late. Its posterior is
conditioned on every row by one site, P -= uu' (-H)/(1 - v₀H), μ += uJ (docs/architecture.md, "The update").

The stack predicts with N(h'μ, h'Ph), in which the lanes' uncertainty is averaged away. What it reports of x'θ has the
spread that the lanes have together, which see the same rows and err together: V = h'Ph + (Σ μ_c √v_c)², and M such that
N(M, V) says on average what N(h'μ, h'Ph) does. Marginals of K lanes have K + 2 columns: the stack's prediction is the
last but one, its report the last.

Lanes and stack are weighed by what they predicted (Bayes' rule), and a share of SHARE/(t+1) of the weight is handed out
anew after row t, by the prior weights: what was useless for long can so come back, and all shares together cost
SHARE log t nats. Reference twin: ``tests/reference/stacking.py``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gaussfold.engine.compiled import compiled, part
from gaussfold.engine.families import Family, has_soft_labels, marginalised
from gaussfold.engine.scalar.expectations import log_predictive
from gaussfold.engine.scalar.sites import make_site
from gaussfold.engine.sparse.cells import FORGETS, aged
from gaussfold.types import Program

SHARE = 0.1
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
def _look(
    averaging: Averaging, lane_mean: np.ndarray, lane_variance: np.ndarray, recent: np.ndarray, mean: np.ndarray,
    cov: np.ndarray, h: np.ndarray, u: np.ndarray,
) -> tuple[float, float, float]:  # fmt: skip
    """Inputs to h, Ph to u; returns mean and variance of the stack's latent, and the lanes' spread together."""
    k = lane_mean.size
    spread = 0.0
    for c in range(k):
        h[c] = _averaged(averaging, lane_mean[c], lane_variance[c])
        spread += mean[c] * math.sqrt(lane_variance[c])
    h[k] = _averaged(averaging, recent[0], recent[1])
    h[k + 1] = 1.0
    m0 = 0.0
    v0 = 0.0
    for i in range(k + 2):
        u[i] = 0.0
        for j in range(k + 2):
            u[i] += cov[i, j] * h[j]
        m0 += h[i] * mean[i]
        v0 += h[i] * u[i]
    return m0, max(v0, 0.0), spread * spread


@part
def _write(averaging: Averaging, m0: float, v0: float, spread: float, means: np.ndarray, variances: np.ndarray) -> None:
    """What the stack predicts, and what it reports."""
    means[-2], variances[-2] = m0, v0
    means[-1], variances[-1] = _spread_out(averaging, m0, v0, v0 + spread), v0 + spread


@compiled
def _learn_recent(program: Program, y: float, w: float, recent: np.ndarray, forgets: float, prior: float) -> None:
    """The lane that sees the constant only: time passes, then the label."""
    family, rule, at = program
    m, v = aged(recent[0], recent[1], forgets, FORGETS, 0.0, prior)
    _, _, recent[0], recent[1], _ = make_site(family, rule, at, y, w, m, v)


@compiled
def _learn_shares(
    program: Program, y: float, w: float, m0: float, v0: float, u: np.ndarray, mean: np.ndarray, cov: np.ndarray
) -> bool:
    """Condition the shares on a row; whether all is finite."""
    family, rule, at = program
    gradient, curvature, _, _, _ = make_site(family, rule, at, y, w, m0, v0)
    shrink = -curvature / (1.0 - v0 * curvature)
    for i in range(u.size):
        mean[i] += u[i] * gradient
        for j in range(u.size):
            cov[i, j] -= shrink * (u[i] * u[j])
    return abs(gradient) < math.inf and abs(shrink) < math.inf


@compiled
def stack_rows(
    program: Program, averaging: Averaging, y: np.ndarray, w: np.ndarray, marginals: Marginals,
    recent: np.ndarray, forgets: float, prior: float, mean: np.ndarray, cov: np.ndarray,
) -> int:  # fmt: skip
    """Go through rows of K lanes' marginals: the stack's to the last two columns before each, then learn it.

    ``recent`` is mean and variance of the lane that sees the constant, which forgets by e^-``forgets`` a row towards
    N(0, ``prior``). Returns the row at which a number is no longer finite, or -1.
    """
    means, variances = marginals
    k = means.shape[1] - 2
    h, u = np.empty(k + 2), np.empty(k + 2)
    for r in range(y.size):
        m0, v0, spread = _look(averaging, means[r, :k], variances[r, :k], recent, mean, cov, h, u)
        _write(averaging, m0, v0, spread, means[r], variances[r])
        if not (abs(means[r, k + 1]) < math.inf and variances[r, k + 1] < math.inf):
            return r
        if math.isnan(y[r]) or w[r] == 0.0:
            continue
        learned = _learn_shares(program, y[r], w[r], m0, v0, u, mean, cov)
        _learn_recent(program, y[r], w[r], recent, forgets, prior)
        if not (learned and abs(recent[0]) < math.inf):
            return r
    return -1


@compiled
def look_stacked(
    averaging: Averaging, means: np.ndarray, variances: np.ndarray, recent: np.ndarray, mean: np.ndarray,
    cov: np.ndarray,
) -> None:  # fmt: skip
    """As :func:`stack_rows`, and nothing is learned."""
    k = means.shape[1] - 2
    h, u = np.empty(k + 2), np.empty(k + 2)
    for r in range(means.shape[0]):
        m0, v0, spread = _look(averaging, means[r, :k], variances[r, :k], recent, mean, cov, h, u)
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
def _weigh(w: float, scores: np.ndarray, top: float, share: float, prior: np.ndarray, weights: np.ndarray) -> None:
    """Bayes' rule, then the share that is handed out anew."""
    evidence = 0.0
    for c in range(weights.size):
        weights[c] *= math.exp(w * (scores[c] - top))
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
    for r in range(y.size):
        out[0, r], out[1, r] = _report(weights, means[r], variances[r])
        out[2, r] = math.nan
        if math.isnan(y[r]):
            continue
        top = scores[r].max()
        evidence = 0.0
        for c in range(weights.size):
            evidence += weights[c] * math.exp(scores[r, c] - top)
        out[2, r] = top + math.log(evidence) if abs(top) < math.inf else top
        if soft and 0.0 < y[r] < 1.0:
            out[2, r] = _soft_score(family, y[r], weights, means[r], variances[r])
        if w[r] != 0.0 and abs(top) < math.inf:  # else nobody explains it
            learned[0] += 1.0
            _weigh(w[r], scores[r], top, SHARE / (learned[0] + 1.0), prior, weights)
