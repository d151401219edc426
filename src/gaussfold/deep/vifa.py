"""VIFA: variational inference with a factor analysis posterior (factor-analysis, Algorithm 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.beliefs.factor import FactorGaussian
from gaussfold.beliefs.lowrank_options import check_rank
from gaussfold.deep import objective, steps
from gaussfold.deep.batches import LogLikelihoodFunction, total
from gaussfold.deep.draws import DRAWS
from gaussfold.deep.draws import check as check_draws
from gaussfold.deep.method import Method, positive, spread, whole
from gaussfold.deep.posterior import Posterior
from gaussfold.deep.trees import Layout, Tree

GROUPS = ("mean", "factors", "log_psi")
_AT_ONCE = 1 << 25
"""Above this many numbers, the networks of a step are drawn one after the other."""


@dataclass(frozen=True)
class VIFAProgram:
    """One step of Algorithm 3, with L networks side by side."""

    log_likelihood: LogLikelihoodFunction
    layout: Layout
    rank: int
    n_samples: int
    shared: bool
    samples: str
    optimizer: steps.Steps
    averaging: bool

    def draw(self, hyper: Any, step: Any) -> Any:
        """The L vectors (h, z) of a step, or only their key where they are too large to hold."""
        key = jax.random.fold_in(jax.random.wrap_key_data(hyper["key"]), step)
        if self._one_by_one:
            return jax.random.key_data(key)
        return jax.vmap(lambda number: self._draw(key, number))(jnp.arange(self.n_samples))

    @property
    def pairs(self) -> int:
        """Draws that look at one batch: both of an antithetic pair, so that the batch's own noise cancels in them."""
        return 2 if self.samples == "antithetic" else 1

    @property
    def _one_by_one(self) -> bool:
        return self.n_samples > 1 and self.n_samples * self.layout.dim > _AT_ONCE

    def _draw(self, key: Any, number: Any) -> tuple[Any, Any]:
        size = self.rank + self.layout.dim
        both = DRAWS[self.samples](key, number, self.n_samples, size, self.layout.dtype)
        return both[: self.rank], both[self.rank :]

    def _loss(self, theta: Any, batch: Any, scale: Any) -> Any:
        return -scale * total(self.log_likelihood, self.layout.unflatten(theta), batch).astype(theta.dtype)

    def likelihood_term(
        self, variables: objective.Variables, batches: Any, draws: Any, scale: Any
    ) -> tuple[Any, objective.Variables]:
        """-E log p(data | θ) and its gradient, averaged over the draws."""
        look = jax.value_and_grad(self._loss)
        if not self._one_by_one:
            h, z = draws
            batch = jax.tree.map(
                lambda a: a[0] if self.shared else jnp.tile(a, (self.pairs,) + (1,) * (a.ndim - 1)), batches
            )
            thetas = objective.networks(variables, h, z)
            values, slopes = jax.vmap(look, in_axes=(0, None if self.shared else 0, None))(thetas, batch, scale)
            return values.mean(), objective.likelihood_gradient(variables, slopes, h, z)
        key = jax.random.wrap_key_data(draws)

        def add(number: Any, sums: Any) -> Any:
            h, z = (part[None] for part in self._draw(key, number))
            batch = jax.tree.map(lambda a: a[0 if self.shared else number % len(a)], batches)
            value, slope = look(objective.networks(variables, h, z)[0], batch, scale)
            gradient = objective.likelihood_gradient(variables, slope[None], h, z)
            return sums[0] + value, objective.add(sums[1], gradient)

        zeros = (jnp.zeros((), self.layout.dtype), jax.tree.map(jnp.zeros_like, variables))
        sums = jax.lax.fori_loop(0, self.n_samples, add, zeros)
        return jax.tree.map(lambda a: a / self.n_samples, sums)  # type: ignore[no-any-return]

    def step(self, inner: Any, hyper: Any, batches: Any, draws: Any, step: Any) -> tuple[Any, Any, Any]:
        """(5.28)-(5.30)."""
        variables = inner["variables"]
        fit, to_fit = self.likelihood_term(variables, batches, draws, hyper["scale"])
        entropy, to_entropy = objective.entropy_term(variables)
        prior, to_prior = objective.prior_term(variables, hyper["precision"], hyper["prior_mean"])
        gradient = objective.add(to_fit, to_entropy, to_prior)
        after, memory, ok = self.optimizer.step(gradient, inner["optimizer"], variables, hyper, step)
        loss = fit + entropy + prior
        new = {"variables": after, "optimizer": memory}
        if self.averaging:
            power = hyper["average"]
            weight = (power + 1.0) / (step + 1.0 + power)
            new["average"] = jax.tree.map(lambda old, now: old + weight * (now - old), inner["average"], after)
        return new, loss, ok & jnp.isfinite(loss)


class VIFA(Method):
    """A factor Gaussian N(c, FF' + Ψ) over a network's parameters that maximises the evidence lower bound.

    Parameters
    ----------
    log_likelihood
        ``log_likelihood(params, batch)``: one value per row of the batch, or their sum. Any JAX function, such as
        :func:`gaussfold.deep.log_likelihood` makes.
    params
        Tree of parameters with floating point leaves: the mean starts there. float64 leaves give a float64 training.
    rank
        Number of factors K, 0 to D; 0 is mean-field variational inference.
    prior_precision
        α of the prior N(prior_mean, 1/α), > 0: a number, one per parameter, or a tree like ``params``.
    prior_mean
        Likewise.
    n_samples
        Networks drawn per step, L.
    batch_size
        Rows per batch, M; 100 by default, or all if there are fewer.
    share_batch
        Let the L networks look at one batch, rather than each at one of its own as in the thesis.
    samples
        "independent", "antithetic" (pairs with opposite noise that share a batch, L even) or "qmc" (a shifted lattice).
    optimizer
        "adam", "sgd", "rmsprop", or any optax gradient transformation over the groups "mean", "factors", "log_psi".
    learning_rate
        For an optimiser by name: a number or a schedule (a function of the step), or one per group in a dict.
    max_grad_norm
        Gradients of a group (of the sum over all data) with a larger norm are shortened to it.
    init_std
        Standard deviation to start from, for each parameter and along each factor.
    init_factors
        Factors to start from, (D, K), instead of random orthogonal ones of length ``init_std``.
    average
        0: the last iterate. Otherwise iterates are averaged with weights that grow like step^average, which takes the
        noise of constant learning rates away; 3 and 8 are usual.
    max_bad_steps
        Give up after so many steps in a row whose likelihood or gradient is not finite; single ones are skipped.
    seed
        Of the batches, the draws and the first factors: the same seed, the same posterior.

    Examples
    --------
    >>> import gaussfold as gf, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2)).astype(np.float32)
    >>> y = X @ [1.0, -2.0] + 0.5 * rng.standard_normal(200)
    >>> apply = lambda params, X: X @ params["w"]
    >>> function = gf.deep.log_likelihood(apply, gf.likelihoods.Gaussian(std=0.5))
    >>> posterior = VIFA(function, {"w": np.zeros(2, np.float32)}, rank=1).fit((X, y), steps=600)
    >>> print(posterior.mean["w"].round(1))
    [ 1. -2.]
    """

    kind: ClassVar[str] = "VIFA"

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        rank: int = 1,
        prior_precision: Any = 1.0,
        *,
        prior_mean: Any = 0.0,
        n_samples: int = 10,
        batch_size: int | None = None,
        share_batch: bool = False,
        samples: str = "independent",
        optimizer: Any = "adam",
        learning_rate: Any = None,
        max_grad_norm: float | None = None,
        init_std: float = 0.1,
        init_factors: Any = None,
        average: float = 0.0,
        max_bad_steps: int = 10,
        seed: int = 0,
    ) -> None:
        super().__init__(log_likelihood, params, batch_size=batch_size, max_bad_steps=max_bad_steps, seed=seed)
        self.rank = check_rank(rank, self.layout.dim, fewest=0)
        self.prior_precision = spread("prior_precision", prior_precision, self.layout, above_zero=True)
        self.prior_mean = spread("prior_mean", prior_mean, self.layout)
        self.n_samples = whole("n_samples", n_samples)
        self.share_batch = bool(share_batch)
        check_draws(samples, self.n_samples)
        self.samples = samples
        self.optimizer = optimizer
        self._steps, self._rates = steps.resolve(optimizer, learning_rate, GROUPS)
        self._limit = steps.norm_limit(max_grad_norm)
        self.init_std = positive("init_std", init_std)
        if not 0.0 <= average < np.inf:
            msg = f"average={average!r}: a finite number >= 0 is needed"
            raise ValueError(msg)
        self.average = float(average)
        self._first_factors = None if init_factors is None else self._checked_factors(init_factors)

    def _checked_factors(self, factors: Any) -> Any:
        found = jnp.asarray(factors, dtype=self.layout.dtype)
        if found.shape != (self.layout.dim, self.rank) or not bool(jnp.isfinite(found).all()):
            msg = (
                f"init_factors: shape {found.shape}; finite numbers of shape {(self.layout.dim, self.rank)} are needed"
            )
            raise ValueError(msg)
        return found

    @property
    def _batches_per_step(self) -> int:
        return 1 if self.share_batch else self.n_samples // self._program().pairs

    @property
    def _draws_per_step(self) -> int:
        return self.n_samples * (self.rank + self.layout.dim)

    def _program(self) -> VIFAProgram:
        return VIFAProgram(
            self.log_likelihood,
            self.layout,
            self.rank,
            self.n_samples,
            self.share_batch,
            self.samples,
            self._steps,
            self.average > 0.0,
        )

    def _hyper(self, rows: int, size: int) -> dict[str, Any]:
        number = partial(jnp.asarray, dtype=self.layout.dtype)
        return {
            "key": jax.random.key_data(jax.random.key(self.seed)),
            "precision": self.prior_precision,
            "prior_mean": self.prior_mean,
            "scale": number(rows / size),
            "rates": {name: number(rate) for name, rate in self._rates.items()},
            "max_norm": number(self._limit),
            "average": number(self.average),
        }

    def _initial(self) -> Any:
        dim, dtype = self.layout.dim, self.layout.dtype
        factors = self._first_factors
        if factors is None:
            draw = jax.random.normal(jax.random.fold_in(jax.random.key(self.seed), 2**31 - 1), (dim, self.rank), dtype)
            factors = jnp.linalg.qr(draw)[0] * self.init_std if self.rank else draw
        variables = {
            "mean": self._centre,
            "factors": factors,
            "log_psi": jnp.full(dim, 2.0 * np.log(self.init_std), dtype),
        }
        inner = {"variables": variables, "optimizer": self._steps.init(variables)}
        return inner | ({"average": variables} if self.average > 0.0 else {})

    def _settings(self) -> dict[str, Any]:
        optimizer = self.optimizer if isinstance(self.optimizer, str) else "optax"
        return {
            "rank": self.rank,
            "n_samples": self.n_samples,
            "share_batch": self.share_batch,
            "samples": self.samples,
            "optimizer": optimizer,
            "batch_size": self.batch_size,
            "average": self.average,
            "seed": self.seed,
        }

    def _posterior(self, inner: Any) -> Posterior:
        found = inner["average" if self.average > 0.0 else "variables"]
        psi = np.exp(np.asarray(found["log_psi"], dtype=np.float64))
        belief = FactorGaussian(found["mean"], found["factors"], psi, dtype=self.layout.dtype)
        return Posterior(belief, self.layout, getattr(self.log_likelihood, "likelihood", None))
