"""Steps that cannot run away: each is checked, and shortened until it leaves a posterior and lowers what it should.

A step mixes old and new sites, (9). With C the posterior covariance *before* it, its first move is ``C (J - K⁻¹m)`` in
the mean and, for exact curvature, ``-C (Λ + H) C`` in the covariance. So there is a quantity that every short enough
step lowers,

- the energy (16) for vi with exact curvature: (9) is its natural gradient;
- ``-log p(y | m) + m'K⁻¹m/2`` for newton with any curvature: (9) is a Newton step preconditioned by C;

and steps are halved until it falls. Power ep, pl, pl2, taylor and the curvatures that are not the target's own have no
such quantity: they look for a fixed point. Their steps are halved until there is a posterior with a finite energy, and
become shorter as long as the moves (in standard deviations, per unit of step) do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gaussfold.gp.discrete import AsSummed, is_summed
from gaussfold.gp.mixing import Mixer
from gaussfold.gp.priors import Marginals
from gaussfold.gp.site_updates import energy_parts, summed_parts, update_sites
from gaussfold.linalg.small import non_positive
from gaussfold.rules import SiteRecipe, SiteUpdate
from gaussfold.rules.bfgs import QuasiNewtonMemory
from gaussfold.rules.site_updates import missing_rows
from gaussfold.types import Array, Sites

HALVINGS = 40
GROWTH = 1.4
"""Of a step that lowered what it should at once, for the next."""
SLACK = 1e-11
"""Relative rise that is rounding."""
CANCELLED = 1e-8
ROUNDING = 1e-13
"""Of the energy's terms, that may not reach a nat: an energy that is rounding can be as low as one likes."""
EXPLOSION = 0.2
"""Rise above the lowest energy so far, relative to its size and the number of labels, beyond which a walk runs off."""
RESOLVED = 1e-9
"""Shorter steps change energies by rounding only."""
SHORTEST = 2.0**-10
"""Of the longest step, for rules without a quantity to lower."""
MOST = 200.0
"""However large the energy is, what is to come of it counts in nats: 2e-4 of them at the default ``tol``."""
PATIENCE = 3
"""Steps without a smaller move than any before."""
HONEST = 100.0
"""Times the tolerance: what a full step may promise of the energy where inference is called settled."""
NEAR = 0.003
"""Standard deviations that a full step may still move when a fixed point counts as found."""


class Problem(NamedTuple):
    """What stays the same from step to step."""

    recipe: SiteRecipe
    Y: Array
    posterior: Callable[[Sites], Marginals]
    sums: bool = False
    """Whether every row's energy and slopes come from the same sum over nodes."""

    @property
    def has_merit(self) -> bool:
        """Whether short steps lower something."""
        return self.recipe.descends or self.recipe.rule.finds_mode


class Point(NamedTuple):
    """Where the walk stands."""

    sites: Sites
    memory: QuasiNewtonMemory | None
    marginals: Marginals
    energy: float
    merit: float
    """What a step lowers; the energy where there is nothing better."""
    bad: tuple[int, int] = (0, -1)
    """Number of sites that are not positive, and the first."""
    noise: float = 0.0
    """What the energy's terms round to."""
    slopes: tuple[Array, Array] | None = None
    """Of the likelihood's share of the energy in mean and covariance, where they came with it."""


class NoPosteriorError(ValueError):
    """Sites whose posterior has no finite energy."""


def at_sites(problem: Problem, sites: Sites, memory: QuasiNewtonMemory | None) -> Point:
    """Posterior and energies at these sites; a ValueError if there are none."""
    return measured(problem, sites, memory, problem.posterior(sites))


def measured(problem: Problem, sites: Sites, memory: QuasiNewtonMemory | None, marginals: Marginals) -> Point:
    """Energies at these sites, whose posterior is known."""
    recipe = problem.recipe
    slopes = None
    if problem.sums:
        site, likelihood, slopes = summed_parts(recipe, problem.Y, marginals, sites)
    else:
        site, likelihood = energy_parts(recipe, problem.Y, marginals, sites)
    energy = site - likelihood - marginals.log_z
    size = abs(site) + abs(likelihood) + abs(marginals.log_z)  # what cancels, and how well
    merit = energy
    if recipe.rule.finds_mode:
        pull = sites.shift - np.einsum("nde,ne->nd", sites.precision, marginals.mean)  # K⁻¹m, row by row
        merit = 0.5 * float(np.vdot(marginals.mean, pull)) - likelihood
    if not (np.isfinite(merit) and ROUNDING * size < 1.0 and _is_sound(marginals, sites)):
        msg = f"these sites leave no posterior that double precision can hold (energy {energy!r})"
        raise NoPosteriorError(msg)
    return Point(sites, memory, marginals, energy, merit, noise=100.0 * np.finfo(float).eps * size, slopes=slopes)


def _is_sound(marginals: Marginals, sites: Sites) -> bool:
    """Whether marginals among negative sites are positive by more than what is lost where such sites nearly cancel."""
    if not non_positive(sites.precision).any():
        return True
    if marginals.cov.shape[-1] == 1:
        return bool((marginals.cov > 0.0).all())
    values = np.linalg.eigvalsh(marginals.cov)
    return bool((values[:, 0] > CANCELLED * values[:, -1]).all())


class Walk:
    """A sequence of checked steps; ``now`` is the last point, ``rho`` the last step's length."""

    def __init__(self, problem: Problem, start: Point, longest: float) -> None:
        self._problem = _as_computed(problem)
        self._longest = longest
        self.now, self.rho, self._hint = start, longest, longest
        self.is_stuck = False
        self._steps, self._stalled = 0, 0
        self._move = self._fall = self._least = self._slope = np.inf
        self._ceiling = longest
        self._rate, self._rate_before, self._taken = 0.5, 0.5, 1.0
        self._lowest = start.merit
        self._checked = np.inf
        self._mixer = Mixer() if problem.has_merit else None
        self._has_leapt = False

    def step(self) -> None:
        """Take the longest step that is allowed; none if there is no such (then ``is_stuck``)."""
        with np.errstate(all="ignore"):  # what overflows is not finite, and refused
            self._step()

    def _step(self) -> None:
        problem, now = self._problem, self.now
        target = self._wanted()
        self._has_leapt = self._leapt(target)
        if self._has_leapt:
            return
        rho = self._hint if problem.has_merit else self.rho
        rises, failed = [np.inf], (0.0, np.inf)
        for halving in range(HALVINGS):
            try:
                trial = self._trial(target, rho)
            except (ValueError, np.linalg.LinAlgError):  # no posterior there
                trial = None
            rise = np.inf if trial is None else trial.merit - now.merit
            if trial is not None and rise <= self._allowed:
                self._hint = min(self._longest, _lowest(rho, rise, *failed))
                self._arrive(trial, rho)
                self._look_at_slope(trial, rho)
                return
            rises.append(rise / rho)
            failed = rho, rise
            rho *= 0.5 if halving < 8 else 0.25
        self.is_stuck, self._fall = True, min(rises)

    def _wanted(self) -> SiteUpdate:
        """The sites that the rule makes of where the walk stands."""
        problem, now = self._problem, self.now
        recipe = problem.recipe
        if now.slopes is not None:
            recipe = recipe._replace(curvature=AsSummed(now.slopes))
        return update_sites(recipe, problem.Y, now.marginals, now.sites, now.memory, 1.0)

    def _look_at_slope(self, trial: Point, rho: float) -> None:
        """Note the fall per unit of step; a step whose fall is rounding is the last, and longer ones have shown it."""
        if rho < RESOLVED and self._fall <= CANCELLED * (1.0 + abs(trial.merit)):
            self.is_stuck, self._fall = True, self._slope
        else:
            self._slope = max(self._fall - trial.noise, 0.0) / rho

    def _leapt(self, target: SiteUpdate) -> bool:
        """Whether the last steps' combination (`mixing`) lowers what it should; if not, they are forgotten."""
        if self._mixer is None or self._longest < 1.0:
            return False
        now = self.now
        try:
            sites = self._mixer.proposal(now.sites, target.sites, now.marginals)
            if sites is None:
                return False
            trial = at_sites(self._problem, sites, target.memory)
        except (ValueError, np.linalg.LinAlgError):
            trial = None
        if trial is None or trial.merit > now.merit:
            self._mixer.forget()
            return False
        bad = non_positive(trial.sites.precision)
        self._arrive(trial._replace(bad=(int(bad.sum()), int(np.argmax(bad)) if bad.any() else -1)), 1.0)
        return True

    @property
    def _allowed(self) -> float:
        """How much a step may add: rounding, or, where energies need not fall, whatever is not an explosion."""
        if self._problem.has_merit:
            return SLACK * (1.0 + abs(self.now.merit))
        if not np.isfinite(self._lowest):
            return np.inf
        return self._lowest - self.now.merit + EXPLOSION * (1.0 + abs(self._lowest) + self._problem.Y.size)

    def _trial(self, target: SiteUpdate, rho: float) -> Point:
        problem, now = self._problem, self.now
        if problem.recipe.curvature.bends_with_step and rho != 1.0:
            target = update_sites(problem.recipe, problem.Y, now.marginals, now.sites, now.memory, rho)
            sites = target.sites
        elif rho == 1.0:
            sites = target.sites
        else:
            sites = Sites(*((1.0 - rho) * old + rho * new for old, new in zip(now.sites, target.sites, strict=True)))
        point = at_sites(problem, sites, target.memory)
        return point._replace(bad=(target.non_positive, target.first_non_positive))

    def _arrive(self, new: Point, rho: float) -> None:
        old, self.now, self.rho = self.now, new, rho
        self._lowest = min(self._lowest, new.merit)
        before, self._fall = self._fall, abs(new.energy - old.energy)
        self._rate_before = self._rate
        self._rate = min(self._fall / before, 0.999) if np.isfinite(before) and before > 0.0 else 0.5
        self._taken, steps_before = rho, self._steps
        self._steps += 1
        move = _moved(old.marginals, new.marginals) / rho
        if not self._problem.has_merit and steps_before:
            self._pace(move, rho)
        self._move = move

    def _pace(self, move: float, rho: float) -> None:
        """Shorter steps where the moves per unit of step have stopped shrinking (they swing), longer where they do."""
        if move < self._least:
            self._least, self._stalled = move, 0
            if move < (1.0 - 0.3 * rho) * self._move:
                self.rho = min(1.4 * rho, self._ceiling)
            return
        self._stalled += 1
        if self._stalled >= PATIENCE or move > 2.0 * self._move:
            self._ceiling = max(0.7 * rho, SHORTEST * self._longest)
            self.rho, self._least, self._stalled = max(0.5 * rho, SHORTEST * self._longest), move, 0

    @property
    def to_come(self) -> float:
        """What the energy may still change by: a geometric series with the last changes' ratio, a full step at least.

        Where a search ended without a step it is the slope of the energy along it.
        """
        if self.is_stuck:
            return self._fall
        rate = max(self._rate, self._rate_before)
        return self._fall * max(1.0, rate / (1.0 - rate), 1.0 / self._taken)

    def has_settled(self, tol: float) -> bool:
        """Whether the last change and those to come are within tol."""
        size = 1.0 + abs(self.now.energy)
        if self._steps == 1 and self._fall <= SLACK * size and self._move <= np.sqrt(SLACK):
            return True  # the start was the answer, as with normal noise
        if self.to_come > tol * min(size, MOST):
            return False
        if self._mixer is not None:
            return self._has_stepped(self._mixer) and not self._is_at_a_kink(tol * min(size, MOST))
        if self.is_stuck or self._steps < 2 or self._move > NEAR:
            return False
        return not self._problem.recipe.curvature.bends_with_step or self._holds_for_shorter_steps(tol, size)

    def _is_at_a_kink(self, tol: float) -> bool:
        """Whether a full step would still lead far from where steps have stopped lowering the energy.

        Near a smooth minimum the energy to come is about half the squared move of every row, in standard deviations;
        where a likelihood has kinks, sums over nodes have them too, and steps can stop at one. HONEST is generous.
        """
        to_come = 0.5 * self._problem.Y.shape[0] * self._move**2
        return self._problem.recipe.descends and not self.is_stuck and to_come > HONEST * tol

    def is_rounding(self, tol: float) -> bool:
        """Whether the energy is the rest of terms so large that their rounding is more than the tolerance.

        A likelihood that is not log-concave may have spikes (a noise that goes to zero at one row): the mode may sit
        on any of them, and energies there say nothing.
        """
        spiked = not self._problem.recipe.model.log_concave
        return spiked and self.now.noise > HONEST * tol * min(1.0 + abs(self.now.energy), MOST)

    def _has_stepped(self, mixer: Mixer) -> bool:
        """Whether a plain step has ended here too: a combination of steps can repeat itself where one would go on."""
        if self._has_leapt:
            mixer.forget()
            return False
        return self.is_stuck or self._steps > 1

    def _holds_for_shorter_steps(self, tol: float, size: float) -> bool:
        """Whether the energy was the same where longer steps had settled; if not, see where steps of half that do.

        Retractions keep a site positive whose target is not, at a precision that the length of the step decides: such
        a place is no fixed point of the rule.
        """
        before, self._checked = self._checked, self.now.energy
        if abs(self._checked - before) <= tol * min(size, MOST):
            return True
        self._ceiling = self.rho = max(0.5 * self.rho, SHORTEST * self._longest)
        self._least, self._stalled = np.inf, 0
        return False


def _lowest(rho: float, rise: float, longer: float, rise_longer: float) -> float:
    """How long the next step should be: where a parabola through this step's trials is lowest; longer if none failed.

    Steps of a walk resemble each other: to try twice the last one each time, and fail, would cost a posterior a step.
    """
    if longer == 0.0:
        return GROWTH * rho
    if not np.isfinite(rise):  # from nowhere to somewhere: that step says nothing of the next
        return 1.0
    if not np.isfinite(rise_longer):
        return 2.0 * GROWTH * rho
    bend = (rise_longer / longer - rise / rho) / (longer - rho)
    slope = rise / rho - bend * rho
    best = -0.5 * slope / bend if np.isfinite(bend) and bend > 0.0 else rho
    return float(min(max(best, rho), 0.9 * longer))


def _as_computed(problem: Problem) -> Problem:
    """With derivatives of the energy as it is computed, which steps can be held to; see `gaussfold.gp.discrete`."""
    recipe = problem.recipe
    if not recipe.descends:
        return problem
    sums = is_summed(recipe.model, recipe.cubature) and not missing_rows(problem.Y).any()
    return problem._replace(recipe=recipe._replace(curvature=AsSummed()), sums=sums)


def _moved(old: Marginals, new: Marginals) -> float:
    """How far the marginals have moved: root mean square, in standard deviations and in shares of the variance."""
    before = np.maximum(np.diagonal(old.cov, axis1=1, axis2=2), np.finfo(float).tiny)
    after = np.maximum(np.diagonal(new.cov, axis1=1, axis2=2), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        away = (new.mean - old.mean) ** 2 / np.maximum(before, after) + np.log(after / before) ** 2
    return float(np.sqrt(away.mean())) if away.size else 0.0
