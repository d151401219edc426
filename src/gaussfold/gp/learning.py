"""Learning hyperparameters and inducing inputs by gradient descent on the energy.

At fixed sites the energy is an ordinary function of the hyperparameters, whose exact gradient every prior gives. For vi
and power ep with exact curvature the energy is moreover stationary in the sites once these have settled, so its total
derivative is that of -log Z alone: there the optimiser sees the *profile*, inference run to convergence inside every
evaluation. Otherwise a few optimiser steps at fixed sites alternate with inference. Searches start where `restarts`
says; large sparse models learn from a subset of the rows and then from batches of all of them (`batch_learning`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize

from gaussfold.checks import one_of, whole
from gaussfold.gp import hyper
from gaussfold.gp.batch_learning import STEPS, learn_in_batches, rows_of_batch
from gaussfold.gp.constraints import Constraints
from gaussfold.gp.inference import FitResult, NotConvergedWarning, settle, start
from gaussfold.gp.objective import BOUND, LEAP, Objective
from gaussfold.gp.restarts import chosen, twin
from gaussfold.gp.sparse import SparsePrior, Tied
from gaussfold.gp.stochastic import full_energy
from gaussfold.likelihoods import Gaussian
from gaussfold.progress import Progress
from gaussfold.rules import VI
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.gp.model import GaussianProcess

FIRST_STAGE = 10
"""Steps on the subset of a large sparse model before batches of all rows take over."""


LOOK_BACK = 5
"""Evaluations over which the pace of a search is measured."""
FALLING = 0.1
"""Nats over so many evaluations: a search that is cut short while it still gains more than this warns."""
HOPE = 2.0
"""Times its pace: a later search that would not reach the best one before it even so, in what is left of it, ends."""
SAME = 0.1
"""Log hyperparameters all nearer than this to where the best search ended, at a higher energy: the same valley."""


class Learned(NamedTuple):
    """How learning went."""

    energy: float
    evaluations: int
    converged: bool
    history: tuple[float, ...]
    """Energy at every evaluation (profile) or after every round of inference (alternating)."""
    parameters: dict[str, float]


class Rival(NamedTuple):
    """Where the best search so far has ended."""

    energy: float
    x: Array


class BehindError(Exception):
    """A search that will not come below where an earlier one has ended."""


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
    whole("max_iter", options.max_iter, least=1)
    if options.restarts is not None:
        whole("restarts", options.restarts, least=0)
    if model.batch_size is not None:
        return _from_batches(model, options)
    subset = options.subset
    if model.prior_.Z is not None and subset is not None and len(model.X_) > 2 * whole("subset", subset):
        return _staged(model, subset, options)
    learned = _searched(model, options)
    _warn_if_falling(learned, options.max_iter)
    return learned


def _warn_if_falling(learned: Learned, max_iter: int) -> None:
    """Say that a search was cut short while it still found better hyperparameters."""
    lowest = np.minimum.accumulate(learned.history)
    fallen = float(lowest[max(len(lowest) - 1 - LOOK_BACK, 0)] - lowest[-1])
    if learned.converged or fallen <= FALLING:
        return
    msg = (
        f"learning has not converged after max_iter={max_iter} steps: the energy, now {lowest[-1]:.6g}, fell by "
        f"{fallen:.3g} over the last {min(LOOK_BACK, len(lowest) - 1)} evaluations; raise max_iter (estimators: "
        "learning_steps), or call learn_hyperparameters again, which goes on from here"
    )
    warnings.warn(msg, NotConvergedWarning, stacklevel=4)


def _searched(model: GaussianProcess, options: Options) -> Learned:
    """The best of some searches over all rows."""
    problem = Objective(model, options.fixed, options.learn_inducing, options.constraints)
    rule, curvature = model.rule, model.curvature
    model.rule, model.curvature = problem.recipe.rule, problem.recipe.curvature
    search = _profile if problem.recipe.is_stationary else _alternate
    try:
        means = None if options.restarts == 0 else problem.linear.suggested()
        found = chosen(model, problem.names, options.restarts, means)
        starts = [options.constraints.inside(each) for each in found]
        return _best_of(problem, search, starts, options.max_iter)
    finally:
        model.rule, model.curvature = rule, curvature


def _best_of(
    problem: Objective,
    search: Callable[[Objective, int, Rival], Learned],
    starts: Sequence[dict[str, float]],
    max_iter: int,
) -> Learned:
    """One search from each start; the model is left where the lowest one ended."""
    model = problem.model
    best: tuple[Learned, dict[str, object]] | None = None
    rival = Rival(np.inf, np.empty(0))
    failed: ValueError | None = None
    given = {name: model.parameters()[name] for name in problem.names}
    for values in starts:
        if values != given or best is not None:
            problem.begin(problem.at(values))
        try:
            found = search(problem, max_iter, rival)
        except BehindError:
            continue
        except ValueError as error:  # another start may do
            failed = error
            continue
        value = found.energy + problem.penalty()
        if best is None or value < rival.energy:
            best, rival = (found, dict(vars(model))), Rival(value, problem.get())
    if best is None:
        assert failed is not None  # there is at least one start
        raise failed
    vars(model).update(best[1])
    problem.end()
    return best[0]


def _staged(model: GaussianProcess, subset: int, options: Options) -> Learned:
    """Learn from some of the rows, with vi also from batches of all of them, then fit all."""
    rows = np.sort(np.random.default_rng(0).choice(len(model.X_), subset, replace=False))
    few = model.extras_.of(rows)
    small = twin(model, model.covariances, model.likelihood)
    small.fit(model.X_[rows], model.Y_[rows], offset=few.offset, sample_weight=few.weights)
    goes_on = isinstance(small.prior_, SparsePrior) and _learns_in_batches(small)
    limit = min(options.max_iter, FIRST_STAGE) if goes_on else options.max_iter
    learned = _searched(small, options._replace(subset=None, max_iter=limit))
    if not goes_on:
        _warn_if_falling(learned, limit)
    model.covariances, model.likelihood = small.covariances, small.likelihood
    model.means, model.mixing = small.means, small.mixing
    model.prior_ = model.prior_at(model.X_, model.extras_, small.prior_.Z)
    if isinstance(small.prior_, SparsePrior) and isinstance(model.prior_, SparsePrior) and goes_on:
        found, scale = small.prior_.total(small.sites_), len(model.X_) / subset
        tied = Tied(scale * found.precision, scale * found.shift)
        steps, size = STEPS * options.max_iter, rows_of_batch(len(model.prior_.Z))
        problem = Objective(model, options.fixed, options.learn_inducing, options.constraints)
        model.prior_, _ = learn_in_batches(problem, model.prior_, tied, steps, size)
        learned = learned._replace(evaluations=learned.evaluations + steps, converged=False)
    start(model, chosen=True)
    model.result_ = settle(model, model.max_iter, model.tol)
    return learned._replace(energy=model.result_.energy, parameters=model.parameters())


def _from_batches(model: GaussianProcess, options: Options) -> Learned:
    """Learn while the tied factor is learned; the memory needed does not grow with the number of rows."""
    if not _learns_in_batches(model):
        msg = (
            f"rule={model.rule.name!r} with batch_size={model.batch_size!r}: batches learn hyperparameters with rule "
            "'vi'; use that, or batch_size=None"
        )
        raise ValueError(msg)
    prior = model.prior_
    assert isinstance(prior, SparsePrior)  # no other takes batches
    problem = Objective(model, options.fixed, options.learn_inducing, options.constraints)
    values = options.constraints.inside(chosen(model, problem.names, options.restarts)[0])
    model.covariances, model.likelihood = hyper.replaced(model.covariances, model.likelihood, values)
    steps = STEPS * options.max_iter
    model.prior_, model.tied_ = learn_in_batches(problem, prior, model.tied_, steps, model.batch_size or 1)
    value = full_energy(model.recipe, model.X_, model.labels, model.prior_, model.tied_)
    model.result_ = FitResult(steps, value, False, (value,), 0, -1)
    return Learned(value, steps, False, (value,), model.parameters())


def _learns_in_batches(model: GaussianProcess) -> bool:
    """Whether the energy is (16), which batches estimate without bias."""
    return isinstance(model.rule, VI) or isinstance(model.likelihood, Gaussian)


class Found(NamedTuple):
    """Where a search has ended."""

    x: Array
    success: bool


def _minimise(fn: Callable[[Array], tuple[float, Array]], problem: Objective, limit: int) -> Found:
    """L-BFGS from where the model is; a point where inference fails counts as very bad.

    No search leaves the box of half-width LEAP around its start, since a long first step may land where the energy is
    all rounding (a noise of 1e-7); one that ends at such a fence is followed by another from there. One that moves
    inducing inputs is followed by one in which they stay: the energy of a rough process has a kink wherever one of them
    meets a row, as it does where they were drawn from the rows, and the first step may already end at such a kink.
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
    least, most = problem.limits
    held = x0.size  # from here on nothing moves
    for _ in range(ceil(2.0 * BOUND / LEAP)):
        low, high = np.maximum(x[:free] - LEAP, least), np.minimum(x[:free] + LEAP, most)
        bounds = [*zip(low, high, strict=True), *[(None, None)] * (held - free), *[(v, v) for v in x[held:]]]
        options = {"maxiter": limit, "ftol": 1e-10, "gtol": 1e-6}
        found = minimize(safe, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        at_fence = ((found.x[:free] == low) & (low > least)) | ((found.x[:free] == high) & (high < most))
        limit -= found.nit
        x = found.x
        moved = problem.moves_inducing and held == x.size and problem.first_inducing > 0
        held = problem.first_inducing if moved else held
        if limit <= 0 or not (at_fence.any() or moved):
            break
    return Found(x, bool(found.success))


def _refuse_behind(history: Sequence[float], left: int, rival: float) -> None:
    """Give up a search whose pace, doubled, would leave it above the rival's energy at its end."""
    if len(history) <= LOOK_BACK or not np.isfinite(rival):
        return
    now = min(history)
    pace = (min(history[:-LOOK_BACK]) - now) / LOOK_BACK
    if now - HOPE * pace * max(left, LOOK_BACK) > rival:
        raise BehindError


def _profile(problem: Objective, max_iter: int, rival: Rival) -> Learned:
    model = problem.model
    history: list[float] = []
    with Progress("learning", max_iter, 0, model.verbose) as progress:

        def evaluate(x: Array) -> tuple[float, Array]:
            value, slope = problem.profile(x)
            history.append(value)
            _refuse_behind(history, max_iter - len(history), rival.energy)
            if value > rival.energy and len(problem.names) == x.size and np.abs(x - rival.x).max() < SAME:
                raise BehindError  # on its way to the same place
            progress.show(len(history), f"energy {min(history):.6g}")
            return value, slope

        found = _minimise(evaluate, problem, max_iter)
    value = problem.arrive(found.x)
    return Learned(value, problem.evaluations, found.success, tuple(history), model.parameters())


def _alternate(problem: Objective, max_iter: int, rival: Rival) -> Learned:
    model = problem.model
    history = [problem.infer()]
    converged = False
    with Progress("learning", max_iter, 0, model.verbose) as progress:
        for _ in range(max_iter):
            found = _minimise(problem.at_fixed_sites, problem, 5)
            problem.set(found.x)
            history.append(problem.infer())
            _refuse_behind(history, max_iter - len(history), rival.energy - problem.penalty())
            progress.show(len(history) - 1, f"energy {history[-1]:.6g}")
            converged = abs(history[-1] - history[-2]) <= model.tol * (1.0 + abs(history[-1]))
            if converged:
                break
    return Learned(history[-1], problem.evaluations, converged, tuple(history), model.parameters())
