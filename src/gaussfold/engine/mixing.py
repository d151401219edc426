"""A Bayesian mixture of K beliefs that watch the same rows: predictions averaged, weights multiplied.

The weight of component c is the product of its predictive probabilities so far, kept as a logarithm. With uniform
weights at the start the mixture's total log loss is at most log K above that of the best component in hindsight
(weights of rows not above 1).
"""

from __future__ import annotations

import math
from typing import Any

from gaussfold.engine.compiled import compiled
from gaussfold.engine.evaluate import log_predictive
from gaussfold.engine.families import LOGIT, PROBIT


@compiled
def mixed_moments(log_weights: Any, means: Any, variances: Any) -> Any:
    """Mean and variance of the mixture of the Gaussian marginals."""
    mean = 0.0
    for c in range(means.size):
        mean += math.exp(log_weights[c]) * means[c]
    variance = 0.0
    for c in range(means.size):
        variance += math.exp(log_weights[c]) * (variances[c] + (means[c] - mean) ** 2)
    return mean, variance


@compiled
def _log_sum(log_weights: Any, scores: Any) -> Any:
    top = -math.inf
    for c in range(scores.size):
        top = max(top, log_weights[c] + scores[c])
    if top == -math.inf:
        return top
    total = 0.0
    for c in range(scores.size):
        total += math.exp(log_weights[c] + scores[c] - top)
    return top + math.log(total)


@compiled
def mixed_score(code: Any, p0: Any, p1: Any, y: Any, log_weights: Any, means: Any, variances: Any, scores: Any) -> Any:
    """Log of the averaged predictive probability of y; ``scores`` is filled with the components' own."""
    for c in range(scores.size):
        scores[c] = log_predictive(code, p0, p1, y, means[c], variances[c])
    if (code in (LOGIT, PROBIT)) and 0.0 < y < 1.0:
        # A soft label: the cross-entropy of the averaged probability, by averaging each side.
        total = 0.0
        for side in (0.0, 1.0):
            for c in range(scores.size):
                scores[c] = log_predictive(code, p0, p1, side, means[c], variances[c])
            total += (y if side == 1.0 else 1.0 - y) * _log_sum(log_weights, scores)
        for c in range(scores.size):
            scores[c] = log_predictive(code, p0, p1, y, means[c], variances[c])
        return total
    return _log_sum(log_weights, scores)


@compiled
def reweigh(log_weights: Any, scores: Any, w: Any) -> Any:
    """Multiply the weights by the predictive probabilities to the power w, and normalise."""
    for c in range(scores.size):
        log_weights[c] += w * scores[c]
    top = -math.inf
    for c in range(scores.size):
        top = max(top, log_weights[c])
    total = 0.0
    for c in range(scores.size):
        total += math.exp(log_weights[c] - top)
    shift = top + math.log(total)
    for c in range(scores.size):
        log_weights[c] -= shift
