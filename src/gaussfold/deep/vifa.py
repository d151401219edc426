"""VIFA: variational inference with a factor analysis posterior (factor-analysis, Algorithm 3)."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Self, TypedDict, Unpack

import jax
import jax.numpy as jnp
import numpy as np

from gaussfold.beliefs.factor import FactorGaussian
from gaussfold.beliefs.lowrank.options import check_rank
from gaussfold.checks import not_negative, positive, whole
from gaussfold.deep.draws import check as check_draws
from gaussfold.deep.evidence import first, told
from gaussfold.deep.method import Method
from gaussfold.deep.options import Training
from gaussfold.deep.scales import spread
from gaussfold.deep.steps import Optimiser, planned
from gaussfold.deep.types import Arrays, Document, Hyper, Inner, LogLikelihoodFunction, Rates, Spread, Tree
from gaussfold.deep.variational import VIFAProgram
from gaussfold.types import ArrayLike

RATES = {"mean": 1e-2, "factors": 1e-3, "log_psi": 5e-2}
"""Usual rates of Adam: factors at a tenth of the mean's, or their noise drowns what they find; log ψ has no units."""
GROUPS = tuple(RATES)
START = 0.1
"""Standard deviations to start from, in units of a leaf's scale."""
GENTLE = 0.3
"""By which the mean's rate is multiplied where it starts from a trained network."""
SHORT = 30.0
"""Epochs that are enough there."""


class VIFAOptions(TypedDict, total=False):
    """Keywords of :class:`VIFA` that :meth:`VIFA.from_trained` passes on."""

    prior_precision: Spread
    prior_mean: Spread
    n_samples: int
    batch_size: int | None
    share_batch: bool
    samples: str
    optimizer: Optimiser
    learning_rate: Rates
    max_grad_norm: float | None
    init_std: float | None
    init_factors: ArrayLike | None
    average: float
    temperature: float | str
    max_bad_steps: int
    seed: int


THESIS: VIFAOptions = {
    "prior_precision": 1.0,
    "n_samples": 10,
    "share_batch": False,
    "learning_rate": 1e-2,
    "init_std": 0.1,
    "average": 0.0,
    "temperature": 1.0,
}
"""Settings of factor-analysis, Algorithm 3, with one rate for all groups."""


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
        α of the prior N(prior_mean, 1/α): "evidence", one per leaf, learned with the posterior as the one that makes
        the bound largest (:mod:`gaussfold.deep.evidence`); "fan-in", where that starts; or numbers > 0: one, one per
        parameter, or a tree like ``params`` of arrays or single numbers.
    prior_mean
        Numbers likewise.
    n_samples
        Networks drawn per step, L.
    batch_size
        Rows per batch, M; by default 100, or fewer where an epoch would have less than 32 steps, but not below 16.
    share_batch
        Let the L networks look at one batch, rather than each at one of its own as in the thesis. An epoch is the same
        number of steps in both.
    samples
        "independent", "antithetic" (pairs with opposite noise that share a batch, L even) or "qmc" (a shifted lattice).
    optimizer
        "adam", "sgd", "rmsprop", or any optax gradient transformation over the groups "mean" (D,), "factors" (K, D)
        and "log_psi" (D,).
    learning_rate
        For an optimiser by name: a number or a schedule (a function of the step), or one per group in a dict; by
        default 0.01 for the mean, 0.001 for factors and 0.05 for log ψ.
    max_grad_norm
        Gradients of a group (of the sum over all data) with a larger norm are shortened to it.
    init_std
        Standard deviation to start from, for each parameter and along each factor; by default a tenth of the scale of
        its leaf (:mod:`gaussfold.deep.scales`).
    init_factors
        Factors to start from, (D, K), instead of random orthogonal ones of length ``init_std``.
    average
        0: the last iterate. Otherwise iterates are averaged with weights that grow like step^average, which takes the
        noise of constant learning rates away.
    temperature
        The likelihood counts 1/temperature times: 1 is Bayes' rule. "auto" is 1 for a likelihood whose noise is known;
        where it is for the network to find (classes, learned noise) a colder 0.1 is tried as well, and taken if it
        predicts a tenth of the rows, held out for that, better by more than a standard error. It triples the work.
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
    version: ClassVar[int] = 2

    def __init__(
        self,
        log_likelihood: LogLikelihoodFunction,
        params: Tree,
        rank: int = 1,
        prior_precision: Spread = "evidence",
        *,
        prior_mean: Spread = 0.0,
        n_samples: int = 4,
        batch_size: int | None = None,
        share_batch: bool = True,
        samples: str = "independent",
        optimizer: Optimiser = "adam",
        learning_rate: Rates = None,
        max_grad_norm: float | None = None,
        init_std: float | None = None,
        init_factors: ArrayLike | None = None,
        average: float = 8.0,
        temperature: float | str = "auto",
        max_bad_steps: int = 10,
        seed: int = 0,
    ) -> None:
        options = Training(prior_precision, prior_mean, batch_size, max_bad_steps, seed, temperature)
        super().__init__(log_likelihood, params, options)
        self.rank = check_rank(rank, self.layout.dim, fewest=0)
        self.n_samples = whole("n_samples", n_samples)
        self.share_batch = bool(share_batch)
        check_draws(samples, self.n_samples)
        self.samples = samples
        self.optimizer = optimizer
        self._plan = planned(optimizer, learning_rate, RATES, max_grad_norm)
        self.init_std = None if init_std is None else positive("init_std", init_std)
        self.average = not_negative("average", average)
        self._first_factors = None if init_factors is None else self._checked_factors(init_factors)

    def _checked_factors(self, factors: ArrayLike) -> jax.Array:
        found = jnp.asarray(factors, dtype=self.layout.dtype)
        if found.shape != (self.layout.dim, self.rank) or not bool(jnp.isfinite(found).all()):
            msg = (
                f"init_factors: shape {found.shape}; finite numbers of shape {(self.layout.dim, self.rank)} are needed"
            )
            raise ValueError(msg)
        return found.T

    @property
    def batches_per_step(self) -> int:
        """One, or one for each network or antithetic pair of them."""
        return 1 if self.share_batch else self.n_samples // self.program().pairs

    @property
    def draws_per_step(self) -> int:
        """H and z of the networks."""
        return self.n_samples * (self.rank + self.layout.dim)

    def program(self) -> VIFAProgram:
        """A step of Algorithm 3."""
        return VIFAProgram(
            self.log_likelihood,
            self.layout,
            self.rank,
            self.n_samples,
            self.share_batch,
            self.samples,
            self._plan.steps,
            self.average > 0.0,
            self.learns_prior,
        )

    def hyper(self, rows: int, size: int) -> Hyper:
        """The prior, the share of the data in a batch, rates and limits."""
        number = partial(jnp.asarray, dtype=self.layout.dtype)
        return self.prior_and_scale(rows, size) | {
            "key": jax.random.key_data(jax.random.key(self.seed)),
            "rates": {name: number(rate) for name, rate in self._plan.rates.items()},
            "max_norm": number(self._plan.limit),
            "average": number(self.average),
            "evidence": told(self.layout, self.scales) if self.learns_prior else {},
        }

    def initial(self) -> Inner:
        """The given parameters, with factors that are given or orthogonal."""
        dim, dtype = self.layout.dim, self.layout.dtype
        scale = START * spread(self.layout, self.scales)
        std = scale if self.init_std is None else jnp.full(dim, self.init_std, dtype)
        factors = self._first_factors
        if factors is None:
            draw = jax.random.normal(jax.random.fold_in(jax.random.key(self.seed), 2**31 - 1), (dim, self.rank), dtype)
            factors = jnp.linalg.qr(draw)[0].T * std if self.rank else draw.T
        variables = {"mean": self.centre, "factors": factors, "log_psi": 2.0 * jnp.log(std)}
        inner = {"variables": variables, "optimizer": self._plan.steps.init(variables)}
        if self.average > 0.0:
            inner["average"] = variables
        if self.learns_prior:
            inner["prior"] = jnp.asarray(first(self.layout, self.scales))
        return inner

    @classmethod
    def from_trained(
        cls, log_likelihood: LogLikelihoodFunction, params: Tree, rank: int = 1, **options: Unpack[VIFAOptions]
    ) -> Self:
        """A posterior around a network that is trained already: the mean starts there, at gentler rates.

        ``fit`` takes 30 epochs then, unless told otherwise; everything else is as usual.
        """
        self = cls(log_likelihood, params, rank, **options)
        if options.get("learning_rate") is None:
            self._plan.rates["mean"] *= GENTLE
        self.usual_epochs = SHORT
        return self

    def precision_learned(self) -> jax.Array:
        """The prior's precision as it stands."""
        if not self.learns_prior:
            return self.prior_precision
        return spread(self.layout, self.variables["prior"])

    def settings(self) -> Document:
        """What shapes the state, and how it is drawn."""
        return {
            "rank": self.rank,
            "n_samples": self.n_samples,
            "share_batch": self.share_batch,
            "samples": self.samples,
            "optimizer": self._plan.name,
            "average": self.average,
            "learning_rate": self._plan.described,
        }

    def upgraded(self, arrays: Arrays, version: int) -> Arrays:
        """Version 1 held factors as (D, K)."""
        if version > 1:
            return arrays
        return {name: value.T if name.endswith("['factors']") else value for name, value in arrays.items()}

    def belief(self, inner: Inner) -> FactorGaussian:
        """N(c, FF' + Ψ), of the last iterate or of their average."""
        found = inner["average" if self.average > 0.0 else "variables"]
        psi = np.exp(np.asarray(found["log_psi"], dtype=np.float64))
        return FactorGaussian(found["mean"], found["factors"].T, psi, dtype=self.layout.dtype)
