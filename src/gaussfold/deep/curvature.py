"""Curvature of a batch's log likelihood as columns: the negative Hessian is approximated by Σ v v'.

Every example is looked at on its own, by ``vmap``, hence any architecture whose rows do not see each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from gaussfold.deep.batches import LogLikelihoodFunction, total
from gaussfold.deep.likelihoods import LearnedGaussian, LogLikelihood, forward, log_prob
from gaussfold.deep.trees import Layout


@dataclass(frozen=True)
class Fisher:
    """The empirical Fisher matrix (3.7), with a plus: v is the gradient of one example's log likelihood."""

    log_likelihood: LogLikelihoodFunction
    layout: Layout

    def __call__(self, theta: Any, batch: Any) -> tuple[Any, Any, Any]:
        """Sum over the batch, its gradient, and the columns (M, D)."""

        def one(flat: Any, row: Any) -> Any:
            alone = jax.tree.map(lambda a: a[None], row)
            return total(self.log_likelihood, self.layout.unflatten(flat), alone).astype(flat.dtype)

        values, slopes = jax.vmap(jax.value_and_grad(one), in_axes=(None, 0))(theta, batch)
        return values.sum(), slopes.sum(axis=0), slopes


@dataclass(frozen=True)
class GaussNewton:
    """J'HJ: H the negative Hessian of the log likelihood in the network's outputs, J their Jacobian.

    With RR' = H the columns are J'R. Positive semidefinite for log-concave likelihoods; a negative eigenvalue of
    another one counts as zero, which keeps this a curvature.
    """

    log_likelihood: Any
    layout: Layout

    def __post_init__(self) -> None:
        function = self.log_likelihood
        if not isinstance(function, LogLikelihood) or isinstance(function.likelihood, LearnedGaussian):
            msg = (
                "curvature='gauss-newton': it needs to see the network's outputs; make log_likelihood with "
                "gaussfold.deep.log_likelihood(apply, likelihood), the noise not learned, or use 'fisher'"
            )
            raise ValueError(msg)  # noqa: TRY004 - every bad argument is one kind of error

    def __call__(self, theta: Any, batch: Any) -> tuple[Any, Any, Any]:
        """Sum over the batch, its gradient, and the columns (M·C, D) of C outputs."""
        likelihood, apply = self.log_likelihood.likelihood, self.log_likelihood.apply

        def one(row: Any) -> tuple[Any, Any, Any]:
            x, y = jax.tree.map(lambda a: a[None], row)
            outputs, pull = jax.vjp(lambda flat: forward(likelihood, apply, self.layout.unflatten(flat), x), theta)

            def score(flat: Any) -> Any:
                return log_prob(likelihood, y, flat.reshape(outputs.shape))[0]

            def back(direction: Any) -> Any:
                return pull(direction.reshape(outputs.shape).astype(outputs.dtype))[0]

            flat = outputs.ravel()
            value, slope = jax.value_and_grad(score)(flat)
            weights, vectors = jnp.linalg.eigh(-jax.hessian(score)(flat))
            roots = (vectors * jnp.sqrt(jnp.maximum(weights, 0.0))).T
            return value, back(slope), jax.vmap(back)(roots)

        values, slopes, columns = jax.vmap(one)(batch)
        return values.sum(), slopes.sum(axis=0), columns.reshape(-1, self.layout.dim)
