"""Reading predictions off a belief that may be a mixture: each component is read, the readings are averaged."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from gaussfold.beliefs.bank.belief import Bank, BankTrace
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.beliefs.diagonal.stack import DiagonalStack
from gaussfold.beliefs.diagonal.state import mix_moments
from gaussfold.estimators.priors import AnyBelief
from gaussfold.protocols import Likelihood
from gaussfold.trace import Trace
from gaussfold.types import Array, ArrayLike, Moments


class MixedMoments(Moments):
    """Mean and variance of x'θ under a mixture, and behind them those of each component, shape (n, K)."""

    components: Moments
    log_weights: Array


def marginal(belief: AnyBelief, design: ArrayLike) -> Moments:
    """Moments of x'θ for every row; of a mixture with its components."""
    if not isinstance(belief, DiagonalMixture | DiagonalStack | Bank):
        return belief.marginal(design)
    if isinstance(belief, Bank):
        return mixed(belief.marginals(design), belief.log_weights)
    components, latent = belief.readings(design)
    return mixed(components, belief.log_weights, latent)


def mixed(components: Moments, log_weights: Array, latent: Moments | None = None) -> MixedMoments:
    """Moments of a mixture from those of its components, unless they are given."""
    result = MixedMoments(*(_average(components, log_weights) if latent is None else latent))
    result.components, result.log_weights = components, log_weights
    return result


def met(trace: Trace, rows: np.ndarray) -> Moments:
    """Moments of x'θ as a pass met them, at some rows; of a bank with its members and their weights at each row."""
    if not isinstance(trace, BankTrace):
        return Moments(trace.mean[rows], trace.variance[rows])
    result = MixedMoments(trace.mean[rows], trace.variance[rows])
    parts = [(part.mean[rows], part.variance[rows]) for part in trace.members]
    result.components = Moments(*(np.stack(column, axis=1) for column in zip(*parts, strict=True)))
    result.log_weights = np.log(trace.weights[rows])
    return result


def predictive(likelihood: Likelihood, moments: Moments) -> Moments:
    """Mean and variance of y with θ integrated out."""
    if not isinstance(moments, MixedMoments):
        return likelihood.predictive(moments)
    return _average(likelihood.predictive(moments.components), moments.log_weights)


def conditional_mean(likelihood: Likelihood, moments: Moments) -> Moments:
    """Mean and variance of E[y|x'θ]."""
    if not isinstance(moments, MixedMoments):
        return likelihood.conditional_mean(moments)
    return _average(likelihood.conditional_mean(moments.components), moments.log_weights)


def log_predictive(likelihood: Likelihood, y: ArrayLike, moments: Moments) -> Array:
    """Log p(y) with θ integrated out; y one number for all rows."""
    if not isinstance(moments, MixedMoments):
        return likelihood.log_predictive(y, moments)
    return np.asarray(logsumexp(likelihood.log_predictive(y, moments.components) + moments.log_weights, axis=1))


def both_sides(likelihood: Likelihood, moments: Moments) -> Array:
    """P(y = 0) and P(y = 1), shape (n, 2); neither is one minus the other, so that the smaller keeps its digits."""
    mean, variance = moments.components if isinstance(moments, MixedMoments) else moments
    sides = Moments(np.stack([-mean, mean], axis=1), np.expand_dims(variance, 1))
    probability = likelihood.predictive(sides).mean
    return probability @ np.exp(moments.log_weights) if isinstance(moments, MixedMoments) else probability


def _average(parts: Moments, log_weights: Array) -> Moments:
    return mix_moments(log_weights, *parts)
