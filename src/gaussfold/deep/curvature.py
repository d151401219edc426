"""Curvature of a batch's log likelihood as columns: the negative Hessian is approximated by Σ v v'.

Every example is looked at on its own, by ``vmap``, hence any architecture whose rows do not see each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import jax
import jax.numpy as jnp

from gaussfold.checks import one_of, refuse
from gaussfold.deep.batches import total
from gaussfold.deep.likelihoods import LogLikelihood, forward, log_prob
from gaussfold.deep.noise import LearnedGaussian
from gaussfold.deep.trees import Layout
from gaussfold.deep.types import Batch, LogLikelihoodFunction
from gaussfold.rules import GaussNewton

Columns: TypeAlias = Callable[[jax.Array, Batch], tuple[jax.Array, jax.Array, jax.Array]]
"""At parameters (D,) and a batch: the sum over its log likelihoods, the gradient of it, and the columns (·, D)."""


@dataclass(frozen=True)
class FisherColumns:
    """The empirical Fisher matrix (3.7), with a plus: v is the gradient of one example's log likelihood."""

    log_likelihood: LogLikelihoodFunction
    layout: Layout

    def __call__(self, theta: jax.Array, batch: Batch) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Sum over the batch, its gradient, and the columns (M, D)."""

        def one(flat: jax.Array, row: Batch) -> jax.Array:
            alone = jax.tree.map(lambda a: a[None], row)
            return total(self.log_likelihood, self.layout.unflatten(flat), alone).astype(flat.dtype)

        values, slopes = jax.vmap(jax.value_and_grad(one), in_axes=(None, 0))(theta, batch)
        return values.sum(), slopes.sum(axis=0), slopes


@dataclass(frozen=True)
class GaussNewtonColumns:
    """J'HJ: H the negative Hessian of the log likelihood in the network's outputs, J their Jacobian.

    With RR' = H the columns are J'R. Positive semidefinite for log-concave likelihoods; a negative eigenvalue of
    another one counts as zero, which keeps this a curvature.
    """

    log_likelihood: LogLikelihood
    layout: Layout

    def __call__(self, theta: jax.Array, batch: Batch) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Sum over the batch, its gradient, and the columns (M·C, D) of C outputs."""
        likelihood, apply = self.log_likelihood.likelihood, self.log_likelihood.apply

        def one(row: Batch) -> tuple[jax.Array, jax.Array, jax.Array]:
            x, y = jax.tree.map(lambda a: a[None], row)
            outputs, pull = jax.vjp(lambda flat: forward(likelihood, apply, self.layout.unflatten(flat), x), theta)

            def score(flat: jax.Array) -> jax.Array:
                return log_prob(likelihood, y, flat.reshape(outputs.shape))[0]

            def back(direction: jax.Array) -> jax.Array:
                return pull(direction.reshape(outputs.shape).astype(outputs.dtype))[0]

            flat = outputs.ravel()
            value, slope = jax.value_and_grad(score)(flat)
            weights, vectors = jnp.linalg.eigh(-jax.hessian(score)(flat))
            roots = (vectors * jnp.sqrt(jnp.maximum(weights, 0.0))).T
            return value, back(slope), jax.vmap(back)(roots)

        values, slopes, columns = jax.vmap(one)(batch)
        return values.sum(), slopes.sum(axis=0), columns.reshape(-1, self.layout.dim)


def columns_of(
    curvature: str | GaussNewton, log_likelihood: LogLikelihoodFunction, layout: Layout
) -> tuple[str, Columns]:
    """The name of a curvature and how its columns are made."""
    name = curvature.name if isinstance(curvature, GaussNewton) else curvature
    if one_of("curvature", name, ("fisher", GaussNewton.name)) == "fisher":
        return name, FisherColumns(log_likelihood, layout)
    if not isinstance(log_likelihood, LogLikelihood) or isinstance(log_likelihood.likelihood, LearnedGaussian):
        remedy = "make it with gaussfold.deep.log_likelihood(apply, likelihood), the noise not learned, or use 'fisher'"
        refuse("curvature", name, "a log_likelihood whose network's outputs can be seen", remedy)
    return name, GaussNewtonColumns(log_likelihood, layout)
