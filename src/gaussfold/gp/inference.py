"""Iterations until the energy settles: sites from marginals, marginals from sites, every step checked (see `walk`)."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gaussfold.checks import whole
from gaussfold.gp.site_updates import energy, update_sites
from gaussfold.gp.starts import START_PRECISION, mode_sites, no_less, plain_sites
from gaussfold.gp.walk import MOST, Point, Problem, Walk, at_sites, measured
from gaussfold.likelihoods import Gaussian
from gaussfold.linalg.small import applied
from gaussfold.progress import Progress
from gaussfold.rules import VI, Exact, GaussNewton, SiteRecipe
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.site_updates import missing_rows
from gaussfold.types import Sites

if TYPE_CHECKING:
    from gaussfold.gp.fitting import Fitting


ROUNDABOUT = GaussNewton()
LOOKS, MODE_LOOKS = 20, 100
LOOKED = 1e-4
"""Steps with another curvature before the first exact one, and the change of the energy at which to stop them."""


SAME = 1e-12
"""Sites that differ relatively by no more than this have the same posterior."""


ANOTHER = 1e-3
"""Nats by which another fixed point must lie lower than the first."""


class NotConvergedWarning(UserWarning):
    """A fit, or learning, that ended before the energy had settled."""


class FitResult(NamedTuple):
    """How the last fit went."""

    iterations: int
    energy: float
    converged: bool
    """Whether the energy's last change was within ``tol``; False too if an exact number of iterations was asked for."""
    history: tuple[float, ...]
    """Energy after every iteration."""
    non_positive: int
    """How many sites of the last iteration have a negative precision (``curvature="exact"`` and "riemannian" only)."""
    first_non_positive: int
    """The first of them in the order of the data, or -1."""


def problem_of(model: Fitting) -> Problem:
    """The model's rule, labels and prior; under normal noise all rules agree, and vi is there in one step."""
    recipe = model.recipe
    if isinstance(model.likelihood, Gaussian):
        recipe = recipe._replace(rule=VI(), curvature=Exact())
    return Problem(recipe, model.labels, model.prior_.update)


def start(model: Fitting, *, chosen: bool) -> None:
    """Give the model its first sites and their posterior: chosen by the likelihood, or plain ones."""
    precision = model.start_precision
    plain = plain_sites(model.labels, model.latents, START_PRECISION if precision is None else precision)
    best = _best_start(model, plain) if chosen and precision is None else None
    model.memory_ = None
    if best is None:
        model.sites_, model.marginals_ = plain, model.prior_.update(plain)
    else:
        model.sites_, model.marginals_ = best.sites, best.marginals
        model.memory_ = _first_memory(model)


def _least_precision(model: Fitting) -> float:
    """Of a site that must have one: little beside what the prior knows, on whatever scale the latents are."""
    largest = float(model.prior_moments(model.X_, None)[1].max())
    return START_PRECISION / largest if largest > 0.0 else START_PRECISION


def _first_memory(model: Fitting) -> QuasiNewtonMemory | None:
    """What a curvature that learns remembers of a chosen start: its gradients, and the precisions of its sites."""
    if not model.curvature.needs_each_site:
        return None
    try:
        visit = update_sites(model.recipe, model.labels, model.marginals_, model.sites_, None, 1.0)
    except (ValueError, np.linalg.LinAlgError):
        return None
    return model.curvature.informed(model.rule, visit.memory, no_less(model.sites_.precision, _least_precision(model)))


def _best_start(model: Fitting, plain: Sites) -> Point | None:
    """Of the rows' own modes and the plain sites, where there may be several valleys; None where neither will do.

    A rule that has nothing to lower may run off from far away: it starts where a few steps of vi lead to.
    """
    own = problem_of(model)
    problem = own if own.has_merit else _by_vi(own)
    floor = _least_precision(model) if model.curvature.bends_with_step else 0.0
    points = _points(problem, _candidates(model, own.recipe, plain, floor))
    if not points:
        return None
    if problem is not own:
        where = (_raised(problem, each, floor) for each in (_approached(problem, points[0]), *points))
        return next((each for each in where if _can_step(own, each)), None)
    if not own.recipe.model.log_concave:
        points = sorted((_looked_around(model, each) for each in points), key=_merit)
    return _raised(problem, points[0], floor)


def _by_vi(problem: Problem) -> Problem:
    """The same labels and prior with vi, positive where the likelihood is not log-concave."""
    recipe = problem.recipe
    curvature = Exact() if recipe.model.log_concave else ROUNDABOUT
    return problem._replace(recipe=recipe._replace(rule=VI(), curvature=curvature))


def _candidates(model: Fitting, recipe: SiteRecipe, plain: Sites, floor: float) -> list[Sites]:
    sites = mode_sites(recipe, model.prior_moments(model.X_, model.extras_.offset), model.labels, floor)
    if sites is None:
        return [plain]
    return [sites] if recipe.model.log_concave else [sites, plain]


def _merit(point: Point) -> float:
    return point.merit


def _points(problem: Problem, candidates: list[Sites]) -> list[Point]:
    """Those that leave a posterior, the lowest first."""
    found = []
    for each in candidates:
        with suppress(ValueError, np.linalg.LinAlgError):
            found.append(at_sites(problem, each, None))
    return sorted(found, key=_merit)


def _approached(problem: Problem, best: Point) -> Point:
    """After a few steps of that problem."""
    walk = Walk(problem, best, 1.0)
    with suppress(ValueError, np.linalg.LinAlgError):
        for _ in range(LOOKS):
            walk.step()
            if walk.is_stuck or walk.has_settled(LOOKED):
                break
    return walk.now


def _can_step(problem: Problem, point: Point) -> bool:
    """Whether the rule has numbers there: of labels that the prior can hardly explain vi may lead far."""
    try:
        with np.errstate(all="ignore"):
            update_sites(problem.recipe, problem.Y, point.marginals, point.sites, None, 1.0)
    except (ValueError, np.linalg.LinAlgError):
        return False
    return True


def _raised(problem: Problem, point: Point, floor: float) -> Point:
    """No site below the floor, the mean where it was: ``K⁻¹m = λ - Λm`` stays as Λ and λ change."""
    if floor == 0.0:
        return point
    before, mean = point.sites, point.marginals.mean
    precision = no_less(before.precision, floor)
    precision[missing_rows(problem.Y)] = 0.0
    sites = Sites(precision, before.shift + applied(precision - before.precision, mean))
    return point._replace(sites=sites, marginals=problem.posterior(sites))


def _looked_around(model: Fitting, best: Point) -> Point:
    """A few steps with a curvature that is always positive, where they lower what the model's steps are to lower.

    A likelihood that is not log-concave has several valleys, and negative sites hold the exact steps in the first.
    """
    problem = problem_of(model)
    recipe = problem.recipe
    if ROUNDABOUT.name not in recipe.rule.curvatures:
        return best
    walk = Walk(problem._replace(recipe=recipe._replace(curvature=ROUNDABOUT)), best, model.damping)
    with suppress(ValueError, np.linalg.LinAlgError):
        for _ in range(MODE_LOOKS if recipe.rule.finds_mode else LOOKS):
            walk.step()
            if walk.now.merit < best.merit:
                best = walk.now
            if walk.is_stuck or walk.has_settled(LOOKED):
                break
    return best._replace(memory=None)


def iterate(model: Fitting, iterations: int | None) -> FitResult:
    """Go on from the model's sites until its energy settles, or for exactly so many plain iterations of (9)."""
    if iterations is not None:
        return _plain(model, whole("iterations", iterations, least=0))
    return settle(model, model.max_iter, model.tol)


def settle_anew(model: Fitting) -> FitResult:
    """From a chosen start until the energy settles.

    Linearisations have nothing to lower, and may have several fixed points: they are looked for from plain sites as
    well, and the one of lower energy is kept.
    """
    start(model, chosen=True)
    found = settle(model, model.max_iter, model.tol)
    one_way = model.start_precision is not None or problem_of(model).has_merit or model.rule.looks_at_cavity
    if one_way or not found.converged:
        return found
    first = model.sites_, model.memory_, model.marginals_
    with suppress(ValueError, np.linalg.LinAlgError):
        start(model, chosen=False)
        other = settle(model, model.max_iter, model.tol, quiet=True)
        if other.converged and other.energy < found.energy - ANOTHER:
            return other
    model.sites_, model.memory_, model.marginals_ = first
    return found


def _plain(model: Fitting, iterations: int) -> FitResult:
    history: list[float] = []
    bad = (0, -1)
    with Progress("inference", iterations, 0, model.verbose) as progress:
        for done in range(iterations):
            bad = model.step()
            history.append(model.energy())
            progress.show(done + 1, f"energy {history[-1]:.6g}")
            if not np.isfinite(history[-1]):
                msg = (
                    f"the energy became {history[-1]!r} after {len(history)} iterations; use a smaller damping, "
                    f"now {model.damping!r}, or another curvature, or leave out iterations= to have steps checked"
                )
                raise ValueError(msg)
    return FitResult(len(history), history[-1] if history else model.energy(), False, tuple(history), *bad)


class Walked(NamedTuple):
    """Energies on the way, whether they have settled, and what ended the walk if not."""

    history: list[float]
    converged: bool
    trouble: str


def settle(model: Fitting, limit: int, tol: float, *, quiet: bool = False) -> FitResult:
    """Checked steps from the model's sites until the energy settles; says so if it does not (unless ``quiet``)."""
    problem = problem_of(model)
    if isinstance(model.likelihood, Gaussian):
        return _at_once(model, problem)
    here = model.sites_, model.memory_, model.marginals_
    first = Point(*here, np.inf, np.inf)  # any step that leaves a finite energy is a better place
    with suppress(ValueError):
        first = measured(problem, *here)
    walk = Walk(problem, first, model.damping)
    with Progress("inference", limit, 0, model.verbose if not quiet else False) as progress:
        history, converged, trouble = _walked(walk, limit, tol, progress)
    now = walk.now
    if not np.isfinite(now.merit):
        raise _too_far(trouble)
    model.sites_, model.memory_, model.marginals_ = now.sites, now.memory, now.marginals
    if converged and walk.is_rounding(tol):
        converged, trouble = False, " (its terms cancel but for rounding, as where a noise goes to zero at some rows)"
    if not converged and not quiet:
        _warn(model, history, walk.to_come, trouble)
    return FitResult(len(history), now.energy, converged, tuple(history), *now.bad)


def _walked(walk: Walk, limit: int, tol: float, progress: Progress) -> Walked:
    history: list[float] = []
    converged = False
    while len(history) < limit and not converged and not walk.is_stuck:
        try:
            walk.step()
        except ValueError as error:
            if not history:
                raise
            return Walked(history, False, f" ({error})")
        history.append(walk.now.energy)
        progress.show(len(history), f"energy {history[-1]:.6g}")
        converged = walk.has_settled(tol)
    return Walked(history, converged, "")


def _at_once(model: Fitting, problem: Problem) -> FitResult:
    """Normal noise, whose sites do not depend on where they are made: one full step, however many were allowed."""
    with np.errstate(all="ignore"):
        found = update_sites(problem.recipe, problem.Y, model.marginals_, model.sites_, None, 1.0)
        if not all(np.allclose(new, old, SAME, 0.0) for new, old in zip(found.sites, model.sites_, strict=True)):
            model.sites_, model.marginals_ = found.sites, problem.posterior(found.sites)
        try:
            value = energy(problem.recipe, problem.Y, model.marginals_, model.sites_)
        except ValueError as error:
            trouble = f" ({error})"
            raise _too_far(trouble) from None
    if not np.isfinite(value):
        raise _too_far()
    model.memory_ = None
    return FitResult(1, value, True, (value,), found.non_positive, found.first_non_positive)


def _too_far(trouble: str = "") -> ValueError:
    msg = (
        "no posterior with a finite energy was found: the labels lie further from what the prior expects than "
        f"double precision can hold{trouble}; check the labels, rescale them, or widen the covariance's variance"
    )
    return ValueError(msg)


def _another_way(model: Fitting) -> str:
    """What else may end sooner."""
    recipe = model.recipe
    if isinstance(recipe.rule, VI) and isinstance(recipe.curvature, Exact):
        sooner = ", or try curvature='gauss-newton', which often gets there sooner where log p bends upwards"
        return "" if recipe.model.log_concave else sooner
    return ", or use rule='vi' with curvature='exact', whose steps always lower the energy"


def _warn(model: Fitting, history: list[float], to_come: float, trouble: str) -> None:
    change = abs(history[-1] - history[-2]) if len(history) > 1 else float("inf")
    msg = (
        f"inference has not converged after {len(history)} iterations{trouble}: the energy, now {history[-1]:.6g}, "
        f"last changed by {change:.3g} and may change by {to_come:.3g} more, where tol={model.tol:g} allows "
        f"{model.tol * min(1.0 + abs(history[-1]), MOST):.3g}; raise max_iter={model.max_iter} or call resume()"
        f"{_another_way(model)}"
    )
    warnings.warn(msg, NotConvergedWarning, stacklevel=5)
