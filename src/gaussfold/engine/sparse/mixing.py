"""Scores of the predictions, and the Bayesian mixture of K beliefs that watched the same rows.

Learning does not look at the components' weights, so this follows it, from the marginals that it left behind.
The weight of component c is the product of its predictive probabilities so far, kept as a logarithm. With uniform
weights at the start the mixture's total log loss is at most log K above that of the best component in hindsight
(weights of rows not above 1).
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_fused
from gaussfold.engine.families import Family, has_soft_labels
from gaussfold.engine.scalar.expectations import log_predictive
from gaussfold.engine.scalar.exponential import exp_nonpositive
from gaussfold.engine.simd.lane_memory import load8, store
from gaussfold.engine.simd.lanes import peak, total


@compiled
def any_scores(family: Family, y: np.ndarray, means: np.ndarray, variances: np.ndarray, scores: np.ndarray) -> None:
    """Log predictive probability of every row under every component; NaN without a label."""
    for r in range(y.size):
        for c in range(means.shape[1]):
            scores[r, c] = log_predictive(family, y[r], means[r, c], variances[r, c])


@compiled
def _log_sum(log_weights: np.ndarray, scores: np.ndarray) -> float:
    top = -math.inf
    for c in range(scores.size):
        top = max(top, log_weights[c] + scores[c])
    if top == -math.inf:
        return top
    summed = 0.0
    for c in range(scores.size):
        summed += math.exp(log_weights[c] + scores[c] - top)
    return top + math.log(summed)


@compiled
def _soft_score(
    family: Family, y: float, log_weights: np.ndarray, means: np.ndarray, variances: np.ndarray, sides: np.ndarray
) -> float:
    """A soft label: the cross-entropy of the averaged probability, by averaging each side."""
    score = 0.0
    for side in (0.0, 1.0):
        for c in range(sides.size):
            sides[c] = log_predictive(family, side, means[c], variances[c])
        score += (y if side == 1.0 else 1.0 - y) * _log_sum(log_weights, sides)
    return score


@compiled
def _mix_row(
    log_weights: np.ndarray, means: np.ndarray, variances: np.ndarray, scores: np.ndarray, w: float
) -> tuple[float, float, float]:
    """Mean, variance and score of the mixture, then new weights unless ``w`` is 0 or there is no label."""
    mean = 0.0
    for c in range(means.size):
        mean += math.exp(log_weights[c]) * means[c]
    variance = 0.0
    for c in range(means.size):
        variance += math.exp(log_weights[c]) * (variances[c] + (means[c] - mean) ** 2)
    if math.isnan(scores[0]):
        return mean, variance, math.nan
    score = _log_sum(log_weights, scores)
    if w != 0.0:
        for c in range(scores.size):
            log_weights[c] += w * scores[c]
        shift = _log_sum(log_weights, np.zeros(scores.size))
        for c in range(scores.size):
            log_weights[c] -= shift
    return mean, variance, score


@compiled_fused
def _mix_eight(
    log_weights: np.ndarray, means: np.ndarray, variances: np.ndarray, scores: np.ndarray, r: int, w: float
) -> tuple[float, float, float]:
    """As ``_mix_row``, in lanes."""
    log_weight = load8(log_weights, 0)
    score8 = load8(scores, r * 8)
    m = load8(means, r * 8)
    weight = exp_nonpositive(log_weight)
    mean = total(weight * m)
    away = m - mean
    variance = total(weight * (load8(variances, r * 8) + away * away))
    if math.isnan(scores[r, 0]):
        return mean, variance, math.nan
    joint = log_weight + score8
    top = peak(joint)
    score = top + math.log(total(exp_nonpositive(joint - top)))
    if w == 1.0:
        store(log_weights, 0, joint - score)
    elif w != 0.0:
        joint = log_weight + w * score8
        top = peak(joint)
        store(log_weights, 0, joint - (top + math.log(total(exp_nonpositive(joint - top)))))
    return mean, variance, score


@compiled
def mix(
    family: Family,
    y: np.ndarray,
    w: np.ndarray,
    log_weights: np.ndarray,
    means: np.ndarray,
    variances: np.ndarray,
    scores: np.ndarray,
    out_mean: np.ndarray,
    out_variance: np.ndarray,
    out_score: np.ndarray,
) -> None:
    """Go through the rows in order: the mixture's mean, variance and score before each, then the new weights."""
    k = means.shape[1]
    sides = np.empty(k)
    eight = k == 8
    soft = has_soft_labels(family)
    for r in range(y.size):
        if soft and 0.0 < y[r] < 1.0:
            mixed = _soft_score(family, y[r], log_weights, means[r], variances[r], sides)
        else:
            mixed = math.nan
        if eight:
            out_mean[r], out_variance[r], out_score[r] = _mix_eight(log_weights, means, variances, scores, r, w[r])
        else:
            out_mean[r], out_variance[r], out_score[r] = _mix_row(log_weights, means[r], variances[r], scores[r], w[r])
        if not math.isnan(mixed):
            out_score[r] = mixed
