"""The half of the model that fits: options, a prior for the data, and iterations until the energy settles.

`model.GaussianProcess` is the other half, and what users see: hyperparameters, predictions, streams, files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

import numpy as np

from gaussfold.checks import between, not_negative, whole
from gaussfold.gp import checks, times
from gaussfold.gp.covariances import Covariance
from gaussfold.gp.dense import DensePrior
from gaussfold.gp.inference import FitResult, iterate, start
from gaussfold.gp.markov import MarkovPrior
from gaussfold.gp.online import Online
from gaussfold.gp.priors import Marginals, Prior
from gaussfold.gp.site_updates import energy, update_sites
from gaussfold.gp.sparse import SparsePrior
from gaussfold.gp.stochastic import fit_in_batches
from gaussfold.gp.threads import fitting_threads
from gaussfold.likelihoods import as_vector
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.protocols import Likelihood
from gaussfold.rules import Curvature, SiteRecipe, SiteRule, check_pair, resolve_local
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.types import Array, ArrayLike, Sites


class Fitting:
    """Options, data, sites and posterior of a Gaussian process; see `GaussianProcess`."""

    def __init__(
        self,
        covariance: Covariance | Sequence[Covariance],
        likelihood: str | Likelihood | VectorLikelihood,
        rule: str | SiteRule = "vi",
        curvature: str | Curvature | None = None,
        structure: str = "dense",
        *,
        inducing: int | ArrayLike | None = None,
        damping: float = 1.0,
        max_iter: int = 100,
        tol: float = 1e-6,
        start_precision: float | None = None,
        cubature: AnyCubature = None,
        batch_size: int | None = None,
        time_unit: str | None = None,
        verbose: bool | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.likelihood = checks.likelihood_of(likelihood)
        self.rule = resolve_local(rule)
        self.curvature = checks.curvature_of(curvature, self.rule, self.likelihood, in_batches=batch_size is not None)
        check_pair(self.rule, self.curvature)
        self.structure = checks.structure_of(structure)
        self.covariances = checks.covariances_of(covariance, as_vector(self.likelihood).latents)
        if self.structure == "markov":
            for each in self.covariances:
                each.state_space()
        self.inducing = inducing
        self.damping = between("damping", damping, 0, 1, "(]")
        self.max_iter = whole("max_iter", max_iter)
        self.tol = between("tol", tol, 0, 1)
        self.start_precision = None if start_precision is None else not_negative("start_precision", start_precision)
        self.cubature = cubature
        self.batch_size = None if batch_size is None else whole("batch_size", batch_size)
        if self.batch_size is not None and self.structure != "sparse":
            msg = f"batch_size={batch_size!r}: only structure='sparse' learns from batches; leave it None"
            raise ValueError(msg)
        self.time_unit = times.unit_of(time_unit)
        self.clock_: times.Clock | None = None
        self.verbose = verbose
        self.rng = np.random.default_rng(random_state)
        self.memory_: QuasiNewtonMemory | None = None
        self.marginals_: Marginals
        self.sites_: Sites
        self._online: Online | None = None
        self._is_stale = False

    # Fitting

    @property
    def recipe(self) -> SiteRecipe:
        """What decides how a site is made: rule, curvature, likelihood and cubature."""
        return SiteRecipe(self.rule, self.curvature, self.likelihood, self.cubature)

    def fit(self, X: ArrayLike, Y: ArrayLike, *, iterations: int | None = None) -> Self:
        """Forget what was, and iterate until the energy settles (or for exactly ``iterations``).

        A fit that fails leaves the model as it was before; to keep the last iteration that worked, call
        ``fit(X, Y, iterations=0)`` and then `step`.

        Parameters
        ----------
        X : array of shape (N, d), or (N,) for one column
            Inputs; any order, repetitions allowed. Dates are inputs too, see ``time_unit``.
        Y : array of shape (N,) or (N, P)
            Labels; NaN is missing.
        iterations : int, default=None
            Run exactly so many instead.
        """
        numbers, clock = times.read(X, "X", self.time_unit, None)
        rows = checks.inputs(numbers)
        values = checks.labels(Y, len(rows), self.likelihood)
        before = dict(vars(self))
        try:
            self.clock_ = clock
            self.prior_: Prior = self.prior_at(rows)
            self.X_, self.Y_ = rows, values
            self._online, self._is_stale = None, False
            with fitting_threads(self.matrix_rows):
                start(self, chosen=iterations is None and self.batch_size is None)
                if self.batch_size is not None:
                    return self._fit_batches(iterations)
                return self.resume(iterations=iterations)
        except BaseException:  # whole or not at all; nothing above writes into arrays that were there before
            vars(self).clear()
            vars(self).update(before)
            raise

    def resume(self, *, iterations: int | None = None) -> Self:
        """Go on with the iterations from the sites of the last fit."""
        self._fitted()
        self.result_ = iterate(self, iterations)
        return self

    def step(self, damping: float | None = None) -> tuple[int, int]:
        """One iteration: sites by (9), then the posterior; returns the number of non-positive sites, and the first."""
        damping = self.damping if damping is None else damping
        update = update_sites(self.recipe, self.Y_, self.marginals_, self.sites_, self.memory_, damping)
        marginals = self.prior_.update(update.sites)
        self.sites_, self.memory_, self.marginals_ = update.sites, update.memory, marginals
        return update.non_positive, update.first_non_positive

    def _fit_batches(self, iterations: int | None) -> Self:
        limit = self.max_iter if iterations is None else iterations
        self.tied_, history, bad = fit_in_batches(self, self._sparse, limit)
        self.result_ = FitResult(limit, history[-1], False, tuple(history), *bad)
        return self

    def energy(self) -> float:
        """Minus the approximate log marginal likelihood: VFE (16), Laplace (17) = (18), PEP (27), as the rule says."""
        self._fitted()
        if self.batch_size is not None:
            return self.result_.energy
        return energy(self.recipe, self.Y_, self.marginals_, self.sites_)

    def prior_at(self, X: Array) -> Prior:
        """Return the prior of this structure at other inputs, inducing inputs drawn anew."""
        if self.structure == "markov":
            return MarkovPrior(self.covariances, X)
        if self.structure == "sparse":
            return SparsePrior(self.covariances, X, checks.inducing_of(self.inducing, X, self.rng))
        return DensePrior(self.covariances, X)

    @property
    def _sparse(self) -> SparsePrior:
        """The prior, where it is known to be sparse: batches are refused for others."""
        return cast("SparsePrior", self.prior_)

    @property
    def matrix_rows(self) -> int:
        """Of the largest matrix that a fit factors."""
        Z = self.prior_.Z
        return len(self.covariances) * len(self.X_ if Z is None else Z) if self.structure != "markov" else 1

    @property
    def is_fitted(self) -> bool:
        """Whether there is a posterior, or only options."""
        return "prior_" in vars(self)

    def _fitted(self) -> None:
        """Refuse a model without data; gather what a stream has brought since the last time somebody asked."""
        if self._is_stale and self._online is not None:
            points = self._online.points()
            self.X_, self.Y_ = points.times[:, None], points.labels
            self.sites_ = Sites(points.precision, points.shift)
            self.prior_ = MarkovPrior(self.covariances, self.X_)
            self.marginals_ = self.prior_.update(self.sites_)
            self.memory_, self._is_stale = None, False
        if not self.is_fitted:
            msg = "this GaussianProcess has seen no data; call fit(X, Y) first"
            raise ValueError(msg)

    def _inputs(self, X: ArrayLike, *, columns: int, may_be_empty: bool = False) -> Array:
        """New inputs as numbers: dates in the unit of those that the model has seen."""
        numbers, clock = times.read(X, "X", self.time_unit, self.clock_)
        if np.size(X):
            times.check_kind(clock, self.clock_, "X")
        return checks.inputs(numbers, columns=columns, may_be_empty=may_be_empty)
