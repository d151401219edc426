"""What a posterior over networks says at some inputs: an average over networks drawn from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from gaussfold.deep import broadened, likelihoods
from gaussfold.deep.families import Likelihood, form_of
from gaussfold.deep.forms import Outputs
from gaussfold.deep.noise import LearnedGaussian
from gaussfold.types import Array, ArrayLike


@dataclass(frozen=True)
class Prediction:
    """Outputs of S networks at n inputs, and what they say about y.

    Attributes
    ----------
    mean
        Mean of y: averaged outputs, rates or class probabilities.
    std
        Standard deviation of y, its noise included where a likelihood is known.
    epistemic_std
        Standard deviation of E[y | network] over networks: what more data would remove.
    outputs
        Outputs of each network, shape (S, n, ...).
    noise
        With learned noise, log standard deviations of each network, shape (S,); otherwise None.
    likelihood
        The likelihood, or None: then mean and std are those of the outputs.
    variance
        Of the outputs around ``outputs[0]``, where the network was linearised; otherwise None.
    noise_variance
        With learned noise, of y given linearised outputs.
    """

    mean: Array
    std: Array
    epistemic_std: Array
    outputs: Array
    noise: Array | None
    likelihood: Likelihood | None
    variance: Array | None = None
    noise_variance: float | None = None

    def log_prob(self, y: ArrayLike) -> Array:
        """Log predictive density of each row's label: the log of the mean over networks, (B.7)."""
        if self.likelihood is None:
            msg = "likelihood: none is known, so outputs have no density; give predict(..., likelihood=...)"
            raise ValueError(msg)
        if self.variance is not None:
            eta, noise = jnp.asarray(self.outputs[0]), None if self.noise_variance is None else self.noise_variance
            found = broadened.log_prob(self.likelihood, jnp.asarray(y), eta, jnp.asarray(self.variance), noise)
            return np.asarray(found, dtype=np.float64)
        packed = jnp.asarray(self.outputs)
        every = packed if self.noise is None else (packed, jnp.asarray(self.noise))
        labels, log_prob = jnp.asarray(y), form_of(self.likelihood).log_prob
        each = jax.vmap(lambda outputs: log_prob(labels, outputs))(every)
        return np.asarray(logsumexp(each, axis=0) - math.log(len(self.outputs)), dtype=np.float64)

    def entropy(self) -> Array:
        """Entropy of the predicted class, in nats, of each row (softmax and Bernoulli only)."""
        entropy = None if self.likelihood is None else form_of(self.likelihood).entropy
        if entropy is None:
            msg = f"likelihood={self.likelihood!r}: classes have an entropy, so only softmax and Bernoulli do"
            raise ValueError(msg)
        return entropy(self.mean)


def prediction(likelihood: Likelihood | None, outputs: Outputs) -> Prediction:
    """Average over networks; ``outputs`` are those of :func:`likelihoods.forward`, stacked."""
    noise = None
    if isinstance(likelihood, LearnedGaussian):
        outputs, noise = outputs
        each, spread = likelihoods.conditional(likelihood, (outputs, noise.reshape((-1,) + (1,) * (outputs.ndim - 1))))
    else:
        each, spread = likelihoods.conditional(likelihood, outputs)
    each, spread = np.asarray(each, dtype=np.float64), np.asarray(spread, dtype=np.float64)
    epistemic = each.var(axis=0)
    return Prediction(
        mean=each.mean(axis=0),
        std=np.sqrt(spread.mean(axis=0) + epistemic),
        epistemic_std=np.sqrt(epistemic),
        outputs=np.asarray(outputs),
        noise=None if noise is None else np.asarray(noise),
        likelihood=likelihood,
    )


def together(looks: Sequence[Prediction]) -> Prediction:
    """Predictions at the same inputs as one, every network counting the same."""
    family, outputs = looks[0].likelihood, np.concatenate([look.outputs for look in looks])
    if looks[0].noise is None:
        return prediction(family, outputs)
    return prediction(family, (outputs, np.concatenate([np.asarray(look.noise) for look in looks])))
