"""Learning hyperparameters and inducing inputs by gradient descent on the energy.

At fixed sites the energy is an ordinary function of the hyperparameters, whose exact gradient every prior gives. For vi
and power ep with exact curvature the energy is moreover stationary in the sites once these have settled, so its total
derivative is that of -log Z alone: there the optimiser sees the *profile*, inference run to convergence inside every
evaluation. Otherwise a few optimiser steps at fixed sites alternate with inference. Searches start where `restarts`
says, and large sparse models learn from a subset of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gaussfold.checks import one_of, whole
from gaussfold.gp.constraints import Constraints
from gaussfold.gp.inference import settle, start
from gaussfold.gp.objective import Objective
from gaussfold.gp.restarts import chosen, twin
from gaussfold.progress import Progress
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess

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


class Options(NamedTuple):
    """How to learn, as `GaussianProcess.learn_hyperparameters` says."""

    max_iter: int
    fixed: Sequence[str]
    learn_inducing: bool
    restarts: int | None
    subset: int | None
    constraints: Constraints = Constraints()


def learn(model: GaussianProcess, optimizer: str, options: Options) -> Learned:
    """Minimise the energy over the free hyperparameters and inducing inputs; the model stays at the best found."""
    one_of("optimizer", optimizer, ("lbfgs",))
    model.refuse_if_gone()
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
    problem = Objective(model, options.fixed, options.learn_inducing, options.constraints)
    rule, curvature = model.rule, model.curvature
    model.rule, model.curvature = problem.recipe.rule, problem.recipe.curvature
    search = _profile if problem.recipe.is_stationary else _alternate
    try:
        starts = [options.constraints.inside(each) for each in chosen(model, problem.names, options.restarts)]
        return _best_of(problem, search, starts, options.max_iter)
    finally:
        model.rule, model.curvature = rule, curvature


def _best_of(
    problem: Objective,
    search: Callable[[Objective, int], Learned],
    starts: Sequence[dict[str, float]],
    max_iter: int,
) -> Learned:
    """One search from each start; the model is left where the lowest one ended."""
    model = problem.model
    best: tuple[Learned, dict[str, object]] | None = None
    lowest = np.inf
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
        value = found.energy + problem.penalty()
        if best is None or value < lowest:
            best, lowest = (found, dict(vars(model))), value
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


def _minimise(fn: Callable[[Array], tuple[float, Array]], problem: Objective, limit: int) -> Found:
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
    least, most = problem.constraints.limits(problem.names, BOUND)
    for _ in range(ceil(2.0 * BOUND / LEAP)):
        low, high = np.maximum(x[:free] - LEAP, least), np.minimum(x[:free] + LEAP, most)
        bounds = [*zip(low, high, strict=True), *[(None, None)] * (x0.size - free)]
        options = {"maxiter": limit, "ftol": 1e-10, "gtol": 1e-6}
        found = minimize(safe, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        at_fence = ((found.x[:free] == low) & (low > least)) | ((found.x[:free] == high) & (high < most))
        limit -= found.nit
        x = found.x
        if limit <= 0 or not at_fence.any():
            break
    return Found(x, bool(found.success))


def _profile(problem: Objective, max_iter: int) -> Learned:
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


def _alternate(problem: Objective, max_iter: int) -> Learned:
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
