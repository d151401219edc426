"""The half of the model that fits: options, a prior for the data, and iterations until the energy settles.

`predicting.Predicting` is the other half, `model.GaussianProcess` what users see: both, learning, streams and files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, cast

import numpy as np

from gaussfold.checks import between, generator, not_negative, whole
from gaussfold.gp import checks, means, times
from gaussfold.gp.affine import Affine, AffineMap
from gaussfold.gp.covariances import Covariance
from gaussfold.gp.covariances.space_time import space_time_terms
from gaussfold.gp.dense import DensePrior
from gaussfold.gp.extras import NONE, Extras, extras_of
from gaussfold.gp.inference import FitResult, iterate, settle_anew, start
from gaussfold.gp.markov import MarkovPrior
from gaussfold.gp.means import Mean, means_of
from gaussfold.gp.online import Online
from gaussfold.gp.origin import GONE, Anchor
from gaussfold.gp.priors import Marginals, Prior
from gaussfold.gp.site_updates import energy, update_sites
from gaussfold.gp.space_time import is_space_time, space_time_prior
from gaussfold.gp.sparse import SparsePrior, Tied
from gaussfold.gp.stochastic import fit_in_batches
from gaussfold.gp.threads import fitting_threads
from gaussfold.gp.weighted import Weighted, observed
from gaussfold.likelihoods import as_vector
from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.protocols import Likelihood
from gaussfold.rules import Curvature, SiteRecipe, SiteRule, check_pair
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.types import Array, ArrayLike, Sites


class Fitting:
    """Options, data, sites and posterior of a Gaussian process; see `GaussianProcess`."""

    def __init__(
        self,
        covariance: Covariance | Sequence[Covariance],
        likelihood: str | Likelihood | VectorLikelihood,
        rule: str | SiteRule | None = None,
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
        mean: Mean | Sequence[Mean | None] | None = None,
        mixing: ArrayLike | None = None,
        verbose: bool | None = None,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.likelihood = checks.likelihood_of(likelihood)
        self.rule = checks.rule_of(rule, curvature, self.likelihood, in_batches=batch_size is not None)
        self.curvature = checks.curvature_of(curvature, self.rule, self.likelihood, in_batches=batch_size is not None)
        check_pair(self.rule, self.curvature)
        self.structure = checks.structure_of(structure)
        self.mixing = checks.mixing_of(mixing, self.latents)
        self.covariances = checks.covariances_of(
            covariance, self.latents if self.mixing is None else self.mixing.shape[1]
        )
        self.means = means_of(mean, self.latents)
        self.in_space = is_space_time(self.covariances)
        if self.structure == "markov":
            for each in (k.time for c in self.covariances for k in space_time_terms(c)):
                each.state_space()
            for each in self.covariances if not self.in_space else ():
                each.state_space()
        self.inducing = inducing
        self.damping = between("damping", damping, 0, 1, "(]")
        self.max_iter = whole("max_iter", max_iter)
        self.tol = between("tol", tol, 0, 1)
        self.start_precision = None if start_precision is None else not_negative("start_precision", start_precision)
        self.cubature = cubature
        plain = self.means is None and self.mixing is None
        self.batch_size = checks.batch_size_of(batch_size, self.structure, plain=plain)
        self.time_unit = times.unit_of(time_unit)
        self.clock_: times.Clock | None = None
        self.verbose = verbose
        self.rng = generator(random_state)
        self.memory_: QuasiNewtonMemory | None = None
        self.extras_ = NONE
        self.marginals_: Marginals
        self.sites_: Sites
        self._online: Online | None = None
        self._is_stale = False

    # Fitting

    @property
    def recipe(self) -> SiteRecipe:
        """What decides how a site is made: rule, curvature, likelihood and cubature."""
        return self.recipe_for(self.extras_)

    def recipe_for(self, extras: Extras) -> SiteRecipe:
        """The recipe for rows that may have weights."""
        likelihood = self.likelihood if extras.weights is None else Weighted(self.likelihood)
        return SiteRecipe(self.rule, self.curvature, likelihood, self.cubature)

    @property
    def latents(self) -> int:
        """How many functions the likelihood looks at."""
        return as_vector(self.likelihood).latents

    @property
    def labels(self) -> Array:
        """Labels as the recipe takes them: with their weights beside them, if they have such."""
        return observed(self.Y_, self.extras_.weights)

    def fit(
        self,
        X: ArrayLike,
        Y: ArrayLike,
        *,
        offset: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        iterations: int | None = None,
    ) -> Self:
        """Forget what was, and iterate until the energy settles (or for exactly ``iterations``).

        A fit that fails leaves the model as it was before; to keep the last iteration that worked, call
        ``fit(X, Y, iterations=0)`` and then `step`.

        Parameters
        ----------
        X : array of shape (N, d), or (N,) for one column
            Inputs; any order, repetitions allowed. Dates are inputs too, in all columns or in some (a dataframe of
            times and places), see ``time_unit``.
        Y : array of shape (N,) or (N, P)
            Labels; NaN is missing.
        offset : array of shape (N,) or (N, D), default=None
            Known parts of the latents: for counts the log of the exposure. `predict` takes that of new rows.
        sample_weight : array of shape (N,), default=None
            How often a row counts, >= 0: its likelihood to that power. A weight of 0 is a missing label.
        iterations : int, default=None
            Run exactly so many instead.
        """
        numbers, clock = times.read(X, "X", self.time_unit, None)
        rows = checks.inputs(numbers)
        values = checks.labels(Y, len(rows), self.likelihood)
        extras = extras_of(offset, sample_weight, len(rows), self.latents, self.rule)
        if extras.offset is not None and self.batch_size is not None:
            msg = f"offset with batch_size={self.batch_size!r}: batches know no offset; fit with batch_size=None"
            raise ValueError(msg)
        before = dict(vars(self))
        try:
            self.clock_ = clock
            self.means = None if self.means is None else tuple(m and m.on(rows.shape[1]) for m in self.means)
            self.prior_: Prior = self.prior_at(rows, extras)
            self.X_, self.Y_, self.extras_ = rows, values, extras
            self._online, self._is_stale = None, False
            with fitting_threads(self.matrix_rows), np.errstate(over="ignore", invalid="ignore"):  # refused at the end
                if iterations is None and self.batch_size is None:
                    self.result_ = settle_anew(self)
                    return self
                start(self, chosen=False)
                return self._fit_batches(iterations) if self.batch_size else self.resume(iterations=iterations)
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
        damping = self.damping if damping is None else between("damping", damping, 0, 1, "(]")
        update = update_sites(self.recipe, self.labels, self.marginals_, self.sites_, self.memory_, damping)
        marginals = self.prior_.update(update.sites)
        self.sites_, self.memory_, self.marginals_ = update.sites, update.memory, marginals
        return update.non_positive, update.first_non_positive

    def _fit_batches(self, iterations: int | None) -> Self:
        limit = self.max_iter if iterations is None else iterations
        self.tied_, history, bad = fit_in_batches(self, self._sparse, limit, chosen=iterations is None)
        self.result_ = FitResult(limit, history[-1], False, history, *bad)
        return self

    def energy(self) -> float:
        """Minus the approximate log marginal likelihood: VFE (16), Laplace (17) = (18), PEP (27), as the rule says."""
        self._fitted()
        if self.batch_size is not None:
            return self.result_.energy
        return energy(self.recipe, self.labels, self.marginals_, self.sites_)

    @property
    def past(self) -> Tied | Anchor | None:
        """What is left of rows that are gone."""
        inner = self.prior_.inner if isinstance(self.prior_, Affine) else self.prior_
        if isinstance(inner, SparsePrior):
            return inner.base
        return inner.origin if isinstance(inner, MarkovPrior) else None

    def refuse_if_gone(self) -> None:
        """Raise where rows are gone whose labels would be needed again."""
        if self.past is not None:
            raise ValueError(GONE)

    @property
    def pulled_sites(self) -> Sites:
        """The sites as sites on the processes."""
        link = self.map_at(self.X_, self.extras_.offset)
        return self.sites_ if link is None else link.pulled(self.sites_)

    def prior_at(
        self, X: Array, extras: Extras = NONE, Z: Array | None = None, past: Tied | Anchor | None = None
    ) -> Prior:
        """Return the prior of this structure at other inputs, with inducing inputs Z or such drawn anew.

        ``past`` is what is left of rows that are gone.
        """
        inner = self.plain_prior(X, self.covariances, Z)
        if isinstance(inner, SparsePrior) and isinstance(past, Tied):
            inner = SparsePrior(self.covariances, X, inner.Z, past)
        if isinstance(inner, MarkovPrior) and isinstance(past, Anchor):
            inner = MarkovPrior(self.covariances, X, origin=past)
        link = self.map_at(X, extras.offset)
        return inner if link is None else Affine(inner, link, self.mean_at)

    def plain_prior(self, X: Array, kernels: tuple[Covariance, ...], Z: Array | None) -> Prior:
        """Independent processes of mean zero with these covariances."""
        if self.structure == "markov" and is_space_time(kernels):
            for each in kernels:
                each.check_columns(X.shape[1])
            return space_time_prior(
                kernels, X, checks.places_of(self.inducing, space_time_terms(kernels[0])[0].split(X)[1])
            )
        inner: Prior | None = MarkovPrior(kernels, X) if self.structure == "markov" else None
        for each in kernels:
            each.check_columns(X.shape[1])
        if self.structure == "sparse":
            inner = SparsePrior(kernels, X, checks.inducing_of(self.inducing, X, self.rng) if Z is None else Z)
        return DensePrior(kernels, X) if inner is None else inner

    def map_at(self, X: Array, offset: Array | None) -> AffineMap | None:
        """How the latents there are made of the processes; None if they are these themselves."""
        shift = self.mean_at(X) if self.means is not None else None
        if offset is not None:
            shift = offset if shift is None else shift + offset
        return None if shift is None and self.mixing is None else AffineMap(self.mixing, shift)

    def mean_at(self, X: Array) -> Array:
        """The mean functions, (n, D)."""
        return np.zeros((len(X), self.latents)) if self.means is None else means.values(self.means, X)

    def prior_moments(self, X: Array, offset: Array | None) -> tuple[Array, Array]:
        """Mean and variance of every latent before any label is seen, (n, D) each."""
        variance = np.stack([c.diagonal(X) for c in self.covariances], axis=1)
        if self.mixing is not None:
            variance = variance @ (self.mixing**2).T
        mean = self.mean_at(X)
        return (mean if offset is None else mean + offset), variance

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
            self.X_, self.Y_, self.extras_ = points.times[:, None], points.labels, self._online.extras()
            self.sites_ = Sites(points.precision, points.shift)
            self.prior_ = self.prior_at(self.X_, self.extras_, past=self._online.origin)
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
