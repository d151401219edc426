"""What a likelihood says when its network's outputs are themselves uncertain: η ~ N(m, v), output by output.

Closed forms: normal noise adds up; a logistic output is pulled towards zero by k = 1/√(1 + πv/8), a probit one by
1/√(1 + v), and a softmax takes the first for each of its outputs. Other families have none here, and look at the mean.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from gaussfold import likelihoods
from gaussfold.deep.families import Likelihood, form_of


def pulled(likelihood: Likelihood, mean: jax.Array, variance: jax.Array) -> jax.Array:
    """Outputs that stand for uncertain ones in the likelihood's mean and derivatives."""
    if isinstance(likelihood, likelihoods.Softmax):
        return mean / jnp.sqrt(1.0 + (math.pi / 8.0) * variance)
    if isinstance(likelihood, likelihoods.Bernoulli):
        return mean / jnp.sqrt(1.0 + (math.pi / 8.0 if likelihood.link == "logit" else 1.0) * variance)
    return mean


def is_closed(likelihood: Likelihood | None) -> bool:
    """Whether the predictive density is known in closed form."""
    return isinstance(likelihood, likelihoods.Softmax | likelihoods.Bernoulli | likelihoods.Gaussian)


def log_prob(
    likelihood: Likelihood, y: jax.Array, mean: jax.Array, variance: jax.Array, noise: jax.Array | float | None = None
) -> jax.Array:
    """Log predictive density of each row's labels, for outputs (n, C) or (n,); ``noise`` is a learned variance."""
    if noise is None and not isinstance(likelihood, likelihoods.Gaussian):
        return form_of(likelihood).log_prob(y, pulled(likelihood, mean, variance))
    known = jnp.asarray(likelihood.std**2 if isinstance(likelihood, likelihoods.Gaussian) else noise, mean.dtype)
    total = variance + known
    # the family's own density, at labels in units of the noise that is wanted; it aligns shapes and leaves NaN out
    unit = form_of(likelihoods.Gaussian(1.0))
    root = jnp.sqrt(total)
    labels = jnp.asarray(y, mean.dtype).reshape(mean.shape)
    shift = jnp.where(jnp.isnan(labels), 0.0, jnp.log(root))
    return unit.log_prob(labels / root, mean / root) - shift.reshape(shift.shape[0], -1).sum(axis=1)
