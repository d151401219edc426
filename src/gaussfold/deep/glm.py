"""Predictions without drawing networks: around its mean a network is linear in its parameters, so outputs are normal.

Their mean is the mean network's output, their variance J Σ J', with one backward pass per output and row and never a
D×D array: Σ is diag(d) + LL' for a factor Gaussian, and diag(d) - LL' for a low-rank precision (Woodbury).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold import likelihoods
from gaussfold.beliefs.factor import FactorGaussian
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.deep import broadened
from gaussfold.deep.families import Likelihood, form_of
from gaussfold.deep.likelihoods import forward
from gaussfold.deep.noise import LearnedGaussian
from gaussfold.deep.point import PointMass
from gaussfold.deep.prediction import Prediction, prediction
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Apply, Tree
from gaussfold.types import Array

ROWS = 64
"""Rows whose Jacobians are held together."""


class Spread(NamedTuple):
    """diag(d) + sign·LL', the covariance of a flat vector."""

    d: jax.Array
    L: jax.Array
    sign: float


def spread_of(belief: FactorGaussian | LowRankGaussian | PointMass, dtype: np.dtype[np.floating]) -> Spread:
    """A belief's covariance."""
    if isinstance(belief, PointMass):
        return Spread(jnp.zeros(belief.dim, dtype), jnp.zeros((belief.dim, 0), dtype), 1.0)
    if isinstance(belief, FactorGaussian):
        return Spread(jnp.asarray(belief.psi, dtype), jnp.asarray(belief.F, dtype), 1.0)
    scaled = belief.W / belief.psi[:, None]
    lower = np.linalg.cholesky(np.eye(scaled.shape[1]) + belief.W.T @ scaled)
    L = np.linalg.solve(lower, scaled.T).T
    return Spread(jnp.asarray(1.0 / belief.psi, dtype), jnp.asarray(L, dtype), -1.0)


@partial(jax.jit, static_argnums=(0, 1, 2))
def moments(
    apply: Apply, likelihood: Likelihood | None, layout: Layout, mean: jax.Array, spread: Spread, X: Tree
) -> tuple[jax.Array, jax.Array]:
    """Mean and variance of the outputs at each row, both of the outputs' shape."""

    def outputs(flat: jax.Array, x: Tree) -> jax.Array:
        found = forward(likelihood, apply, layout.unflatten(flat), jax.tree.map(lambda a: a[None], x))
        return (found[0] if isinstance(found, tuple) else found)[0]

    def row(x: Tree) -> tuple[jax.Array, jax.Array]:
        eta, pull = jax.vjp(lambda flat: outputs(flat, x), mean)
        unit = jnp.eye(eta.size, dtype=eta.dtype).reshape(eta.size, *eta.shape)
        (J,) = jax.vmap(pull)(unit)
        across = J @ spread.L
        variance = (J * J) @ spread.d + spread.sign * (across * across).sum(axis=1)
        return eta, jnp.maximum(variance, 0.0).reshape(eta.shape)

    found: tuple[jax.Array, jax.Array] = jax.lax.map(row, X, batch_size=ROWS)
    return found


def predicted(
    likelihood: Likelihood | None,
    eta: Array,
    variance: Array,
    noise: float | None,
    rng: np.random.Generator,
    draws: int,
) -> Prediction:
    """What normal outputs say of y: in closed form, or by ``draws`` of them where there is none."""
    epistemic = np.sqrt(variance)
    if likelihood is None or isinstance(likelihood, LearnedGaussian | likelihoods.Gaussian):
        known = 0.0 if noise is None else noise
        if isinstance(likelihood, likelihoods.Gaussian):
            known = likelihood.std**2
        return Prediction(eta, np.sqrt(variance + known), epistemic, eta[None], None, likelihood, variance, noise)
    if not broadened.is_closed(likelihood):
        outputs = eta + epistemic * rng.standard_normal((draws, *eta.shape))
        return prediction(likelihood, jnp.asarray(outputs, jnp.float32))
    form = form_of(likelihood)
    pulled = broadened.pulled(likelihood, jnp.asarray(eta), jnp.asarray(variance))
    mean, own = (np.asarray(part, dtype=np.float64) for part in form.conditional(pulled))
    return Prediction(mean, np.sqrt(own), own * epistemic, eta[None], None, likelihood, variance, None)


def linearised(
    belief: FactorGaussian | LowRankGaussian | PointMass,
    layout: Layout,
    apply: Apply,
    X: Tree,
    likelihood: Likelihood | None,
    rng: np.random.Generator,
    draws: int,
) -> Prediction:
    """The prediction of a network that is linear around the mean."""
    mean = jnp.asarray(belief.mean, layout.dtype)
    spread = spread_of(belief, layout.dtype)
    eta, variance = moments(apply, likelihood, layout, mean, spread, jax.tree.map(jnp.asarray, X))
    noise = None
    if isinstance(likelihood, LearnedGaussian):
        noise = float(np.exp(2.0 * np.asarray(layout.unflatten(mean)["log_std"])))
    found = np.asarray(eta, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    return predicted(likelihood, *found, noise, rng, draws)
