"""Learning hyperparameters and inducing inputs by gradient descent on the energy.

At fixed sites the energy is an ordinary function of the hyperparameters, whose exact gradient every prior gives. For vi
and power ep with exact curvature the energy is moreover stationary in the sites once these have settled, so its total
derivative is that of -log Z alone: there the optimiser sees the *profile*, inference run to convergence inside every
evaluation. Otherwise a few optimiser steps at fixed sites alternate with inference. Searches start where `restarts`
says, and large sparse models learn from a subset of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gaussfold.checks import one_of, whole
from gaussfold.gp import hyper, linear_parts
from gaussfold.gp.differences import by_log_parameter
from gaussfold.gp.inference import settle, start
from gaussfold.gp.restarts import chosen, twin
from gaussfold.gp.site_updates import likelihood_cavity, settled_slopes, slopes
from gaussfold.gp.weighted import Weighted
from gaussfold.likelihoods import Gaussian
from gaussfold.progress import Progress
from gaussfold.rules import VI, Exact, Gaussians, SiteRecipe, likelihood_energy
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess

INNER_LIMIT = 200
INNER_TOLERANCE = 1e-8
BOUND = 16.0  # of a log hyperparameter, either way
LEAP = 8.0  # and how far from the start one search may take it


class Learned(NamedTuple):
    """How learning went."""

    energy: float
    evaluations: int
    converged: bool
    history: tuple[float, ...]
    """Energy at every evaluation (profile) or after every round of inference (alternating)."""
    parameters: dict[str, float]


class Gradient(NamedTuple):
    """Derivatives of the energy at fixed sites."""

    parameters: dict[str, float]
    """With respect to the logarithm of every hyperparameter."""
    inducing: Array | None


def energy_gradient(model: GaussianProcess, *, settled: bool = False) -> Gradient:
    """The energy's gradient at fixed sites; ``settled`` says that the sites are stationary, which saves a pass."""
    recipe = model.recipe
    now = model.marginals_
    chain = settled_slopes(recipe, now, model.sites_) if settled else None
    if chain is None and not (settled and now.inner is now.cov):
        chain = slopes(recipe, model.labels, now, model.sites_)
    found = model.prior_.gradient(model.sites_, chain)
    names = hyper.parameters(model.covariances, model.likelihood)
    by_likelihood = _likelihood_gradient(model, recipe)
    values = [*found.log_parameters.tolist(), *by_likelihood.values()]
    return Gradient(dict(zip(names, values, strict=True)), found.inducing)


def _likelihood_gradient(model: GaussianProcess, recipe: SiteRecipe) -> dict[str, float]:
    """``-∂/∂log φ`` of the likelihood's share at fixed marginals, by a five-point difference (error about 1e-12)."""
    cavity = likelihood_cavity(recipe, model.marginals_, model.sites_)
    now = model.marginals_

    def share(values: dict[str, float]) -> float:
        _, changed = hyper.replaced(model.covariances, model.likelihood, values)
        likelihood = changed if model.extras_.weights is None else Weighted(changed)
        other = recipe._replace(likelihood=likelihood)
        value = likelihood_energy(other, model.labels, Gaussians(now.mean, now.cov), model.sites_, cavity)
        return -float(value.sum())

    mine = {f"likelihood.{k}": v for k, v in hyper.likelihood_parameters(model.likelihood).items()}
    return by_log_parameter(share, mine)


class _Problem:
    """The model's free hyperparameters as one vector, and the energy as a function of it."""

    def __init__(self, model: GaussianProcess, fixed: Sequence[str], learn_inducing: bool) -> None:
        self.model = model
        values = model.parameters()
        known = [*values, *linear_parts.names(model)]
        for name in fixed:
            if name not in known:
                msg = f"fixed: {name!r} is not one of {', '.join(map(repr, known))}"
                raise ValueError(msg)
        self.names = [name for name in values if name not in fixed]
        self.linear = linear_parts.LinearParts(model, fixed)
        self.moves_inducing = learn_inducing and model.prior_.Z is not None
        if not self.names and self.linear.is_empty and not self.moves_inducing:
            msg = f"fixed={list(fixed)!r} leaves nothing to learn; free at least one hyperparameter"
            raise ValueError(msg)
        self.recipe = model.recipe
        if isinstance(model.likelihood, Gaussian):  # all rules agree, and the variational energy is stationary
            self.recipe = model.recipe._replace(rule=VI(), curvature=Exact())
        if not self.linear.is_empty and not self.recipe.is_stationary:
            msg = (
                f"rule={model.rule.name!r} with curvature={model.curvature.name!r}: a mean or a mixture is learned "
                f"with rule 'vi' or 'ep' and exact curvature; use these, or fixed={linear_parts.names(model)!r}"
            )
            raise ValueError(msg)
        self.evaluations = 0

    def get(self) -> Array:
        values = self.model.parameters()
        free = [np.log(values[name]) for name in self.names]
        Z = self.model.prior_.Z
        return np.concatenate([free, self.linear.get(), Z.ravel() if self.moves_inducing and Z is not None else []])

    def at(self, values: Mapping[str, float]) -> Array:
        """The vector with these hyperparameters, inducing inputs where they are."""
        x = self.get()
        x[: len(self.names)] = np.log([values[name] for name in self.names])
        return x

    def set(self, x: Array) -> None:
        model, count = self.model, len(self.names)
        values = dict(zip(self.names, np.exp(x[:count]), strict=True))
        covariances, likelihood = hyper.replaced(model.covariances, model.likelihood, values)
        moved = count + len(self.linear.get())
        Z = x[moved:].reshape(-1, model.X_.shape[1]) if self.moves_inducing else None
        prior = self.linear.set(x[count:moved], model.prior_.with_covariances(covariances, Z))
        model.covariances, model.likelihood, model.prior_ = covariances, likelihood, prior
        try:
            model.marginals_ = prior.update(model.sites_)
        except ValueError:  # negative sites that another prior could bear
            start(model, chosen=True)

    def infer(self) -> float:
        """Iterate until the energy settles."""
        return settle(self.model, INNER_LIMIT, INNER_TOLERANCE, quiet=True).energy

    def gradient(self, *, settled: bool) -> Array:
        found = energy_gradient(self.model, settled=settled)
        free = [found.parameters[name] for name in self.names]
        inducing = found.inducing if self.moves_inducing and found.inducing is not None else np.empty(0)
        return np.concatenate([free, self.linear.gradient(), inducing.ravel()])

    def profile(self, x: Array) -> tuple[float, Array]:
        self.evaluations += 1
        self.set(x)
        value = self.infer()
        return value, self.gradient(settled=True)

    def at_fixed_sites(self, x: Array) -> tuple[float, Array]:
        self.evaluations += 1
        self.set(x)
        return self.model.energy(), self.gradient(settled=False)


class Options(NamedTuple):
    """How to learn, as `GaussianProcess.learn_hyperparameters` says."""

    max_iter: int
    fixed: Sequence[str]
    learn_inducing: bool
    restarts: int | None
    subset: int | None


def learn(model: GaussianProcess, optimizer: str, options: Options) -> Learned:
    """Minimise the energy over the free hyperparameters and inducing inputs; the model stays at the best found."""
    one_of("optimizer", optimizer, ("lbfgs",))
    if options.restarts is not None:
        whole("restarts", options.restarts, least=0)
    if model.batch_size is not None:
        msg = (
            f"batch_size={model.batch_size!r}: hyperparameters are learned from all rows; fit with batch_size=None "
            "(on a subset, if there are too many)"
        )
        raise ValueError(msg)
    subset = options.subset
    if model.prior_.Z is not None and subset is not None and len(model.X_) > 2 * whole("subset", subset):
        return _staged(model, subset, options)
    problem = _Problem(model, options.fixed, options.learn_inducing)
    rule, curvature = model.rule, model.curvature
    model.rule, model.curvature = problem.recipe.rule, problem.recipe.curvature
    search = _profile if problem.recipe.is_stationary else _alternate
    try:
        return _best_of(problem, search, chosen(model, problem.names, options.restarts), options.max_iter)
    finally:
        model.rule, model.curvature = rule, curvature


def _best_of(
    problem: _Problem,
    search: Callable[[_Problem, int], Learned],
    starts: Sequence[dict[str, float]],
    max_iter: int,
) -> Learned:
    """One search from each start; the model is left where the lowest one ended."""
    model = problem.model
    best: tuple[Learned, dict[str, object]] | None = None
    failed: ValueError | None = None
    given = {name: model.parameters()[name] for name in problem.names}
    for values in starts:
        if values != given or best is not None:
            problem.set(problem.at(values))
            start(model, chosen=True)
        try:
            found = search(problem, max_iter)
        except ValueError as error:  # another start may do
            failed = error
            continue
        if best is None or found.energy < best[0].energy:
            best = found, dict(vars(model))
    if best is None:
        assert failed is not None  # there is at least one start
        raise failed
    vars(model).update(best[1])
    return best[0]


def _staged(model: GaussianProcess, subset: int, options: Options) -> Learned:
    """Learn from some of the rows, then fit all: M inducing inputs know no more than a few thousand rows tell them."""
    rows = np.sort(np.random.default_rng(0).choice(len(model.X_), subset, replace=False))
    few = model.extras_.of(rows)
    small = twin(model, model.covariances, model.likelihood)
    small.fit(model.X_[rows], model.Y_[rows], offset=few.offset, sample_weight=few.weights)
    learned = learn(small, "lbfgs", options._replace(subset=None))
    model.covariances, model.likelihood = small.covariances, small.likelihood
    model.means, model.mixing = small.means, small.mixing
    model.prior_ = model.prior_at(model.X_, model.extras_, small.prior_.Z)
    start(model, chosen=True)
    model.result_ = settle(model, model.max_iter, model.tol)
    return learned._replace(energy=model.result_.energy)


class Found(NamedTuple):
    """Where a search has ended."""

    x: Array
    success: bool


def _minimise(fn: Callable[[Array], tuple[float, Array]], problem: _Problem, limit: int) -> Found:
    """L-BFGS from where the model is; a point where inference fails counts as very bad.

    No search leaves the box of half-width LEAP around its start, since a long first step may land where the energy is
    all rounding (a noise of 1e-7); one that ends at such a fence is followed by another from there.
    """
    x0 = problem.get()
    first = fn(x0)  # an error here is the caller's to see
    seen = {x0.tobytes(): first}
    worst = [first[0]]

    def safe(x: Array) -> tuple[float, Array]:
        if x.tobytes() in seen:
            return seen.pop(x.tobytes())
        try:
            value, slope = fn(x)
        except ValueError:
            return worst[0] + 1e3 * (1.0 + abs(worst[0])), np.zeros(x.size)
        worst[0] = max(worst[0], value)
        return value, slope

    free, x = len(problem.names), x0
    for _ in range(ceil(2.0 * BOUND / LEAP)):
        low, high = np.maximum(x[:free] - LEAP, -BOUND), np.minimum(x[:free] + LEAP, BOUND)
        bounds = [*zip(low, high, strict=True), *[(None, None)] * (x0.size - free)]
        options = {"maxiter": limit, "ftol": 1e-10, "gtol": 1e-6}
        found = minimize(safe, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        at_fence = ((found.x[:free] == low) & (low > -BOUND)) | ((found.x[:free] == high) & (high < BOUND))
        limit -= found.nit
        x = found.x
        if limit <= 0 or not at_fence.any():
            break
    return Found(x, bool(found.success))


def _profile(problem: _Problem, max_iter: int) -> Learned:
    model = problem.model
    history: list[float] = []
    with Progress("learning", max_iter, 0, model.verbose) as progress:

        def evaluate(x: Array) -> tuple[float, Array]:
            value, slope = problem.profile(x)
            history.append(value)
            progress.show(len(history), f"energy {min(history):.6g}")
            return value, slope

        found = _minimise(evaluate, problem, max_iter)
    problem.set(found.x)
    value = problem.infer()
    return Learned(value, problem.evaluations, found.success, tuple(history), model.parameters())


def _alternate(problem: _Problem, max_iter: int) -> Learned:
    model = problem.model
    history = [problem.infer()]
    converged = False
    with Progress("learning", max_iter, 0, model.verbose) as progress:
        for _ in range(max_iter):
            found = _minimise(problem.at_fixed_sites, problem, 5)
            problem.set(found.x)
            history.append(problem.infer())
            progress.show(len(history) - 1, f"energy {history[-1]:.6g}")
            converged = abs(history[-1] - history[-2]) <= model.tol * (1.0 + abs(history[-1]))
            if converged:
                break
    return Learned(history[-1], problem.evaluations, converged, tuple(history), model.parameters())
