"""`fit`: rows are visited until nothing moves, at the width of the prior that suits them.

At a width τ that is given, visits descend to one optimum (the likelihood is log-concave), fast. Where rows are many
sites and width may as well move in turn. Elsewhere, as where classes can be separated, they would chase each other for
hundreds of visits; there the width is a search in one dimension, each of whose steps settles. What is looked for:

- **evidence**: the slope of the evidence bound by log τ is that of sites which stand still (they are optimal, so their
  own change counts nothing), and with a prior ``log τ ~ N(0, reach²)`` it is 0 at the width of most evidence;
- **held-out rows**, where there are less than `FEW` rows a weight, but `ENOUGH`: the bound is then too low, the more so
  the wider the prior, for the posterior under separated classes is a cone and no Gaussian. There the log predictive
  density of rows that were left out (five parts in turn) stands in for the evidence; a width that is not 1 is taken
  only if it is better by more than its standard error. A row's part depends on its features alone, so that neither the
  order of rows matters nor whether a row counts twice or comes twice.

Uphill from width 1 either way, where there are several summits.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.estimators import gaussians
from gaussfold.estimators.coordinates import Coordinates, Ways
from gaussfold.estimators.folded import FoldOptions
from gaussfold.estimators.priors import AnyBelief
from gaussfold.folding import FoldResult
from gaussfold.likelihoods import Bernoulli
from gaussfold.protocols import Likelihood
from gaussfold.rows import Block, Rows
from gaussfold.sweeping import sweep
from gaussfold.types import Array, Moments

SETTLED = 1e-8
"""Part of its standard deviation by which a weight may still move, from one visit of all rows to the next."""
STILL = 1e-5
"""The same, where visits bring it no further down: rounding, in problems of a large condition."""
PATIENCE = 10
"""Visits without a smaller move than before."""
MOST_VISITS = 300
QUICKLY = 20
"""Visits in which sites and width may settle together, as they do where rows are many."""
NEARLY = 1e-7
"""As `SETTLED`, where a part of the rows is left out to be predicted."""
ROUGHLY = 0.1
"""As both, in a stream, where the width alone is wanted and rows are visited again anyway."""
A_FEW_VISITS = 30
FEW = 20.0
"""Rows a weight below which a width is chosen by rows that are left out."""
ENOUGH = 100.0
"""Rows from which on what is left out says more than chance: among fewer the evidence chooses better."""
DEAR = 500
"""Weights from which on that takes too long."""
PARTS = 5
FEWER = 3.0
"""Rows a weight below which a stream leaves rows out as well."""
NARROWER = 4
"""Halvings of the width at a look of a stream, at most."""
REACH = 3.0
"""Standard deviation of log τ before the data speak, where left-out rows do."""
STEP = math.log(2.0)
FARTHEST = math.log(1000.0)
"""Widths are looked for between a thousandth and a thousand."""


class Standing(NamedTuple):
    """A belief with its sites, and the prior that it has."""

    belief: AnyBelief
    sites: FoldResult
    coordinates: Coordinates


class Care(NamedTuple):
    """How long rows are visited."""

    settled: float
    """Part of its standard deviation by which a weight may still move."""
    left_out: float
    """The same, where a part of the rows is left out."""
    visits: int
    """At most."""
    told: bool
    """Whether a user is told who did not settle by then."""
    mistakes: float
    """Rows of the other class that are thought to be there besides, where none was seen among those left out."""


OF_A_BATCH = Care(SETTLED, NEARLY, MOST_VISITS, told=True, mistakes=0.25)
OF_A_STREAM = Care(ROUGHLY, ROUGHLY, A_FEW_VISITS, told=False, mistakes=0.5)
"""Of which there is more to come."""


@dataclass(frozen=True)
class Visits:
    """All rows, as one belief sees them."""

    likelihood: Likelihood
    design: Rows | Block
    target: Array
    options: FoldOptions

    def weight(self) -> Array:
        """What each row counts; nothing without a label."""
        given = self.options["sample_weight"]
        return np.where(np.isnan(self.target), 0.0, 1.0 if given is None else given)

    def once(self, belief: AnyBelief, sites: FoldResult) -> FoldResult:
        """Visit every row, in place."""
        return sweep(belief, self.likelihood, self.design, self.target, sites, tolerance=0.0, **self.options)

    def settled(
        self, belief: AnyBelief, sites: FoldResult, care: Care = OF_A_BATCH, within: float | None = None
    ) -> tuple[AnyBelief, FoldResult]:
        """The same after visits until nothing moves, or by less than ``within`` (``care.settled``)."""
        moves, belief, near = [math.inf], belief.copy(), care.settled if within is None else within
        for _ in range(care.visits):
            before = [each.copy() for each in gaussians.dense([belief])]
            sites = self.once(belief, sites)
            moves.append(gaussians.farthest(gaussians.dense([belief]), before))
            stalled = min(moves) <= STILL and min(moves[-PATIENCE:]) > min(moves)
            if moves[-1] <= near or stalled:
                return belief, sites
        if care.told:
            warn_unsettled(moves[-1])
        return belief, sites


@dataclass(frozen=True)
class WidthSearch:
    """The prior's width for one belief, and the belief under it."""

    visits: Visits
    design: Block
    """Of these visits."""
    ways: Ways
    care: Care = OF_A_BATCH

    def best(self, start: Standing) -> Standing:
        """Settled at the width that suits the rows."""
        return self._by_held_out_rows(start) if self._has_few_rows(start) else self._by_evidence(start)

    def _has_few_rows(self, start: Standing, a_weight: float = FEW) -> bool:
        """Whether rows left out choose the width: there are enough of them, but few for each weight."""
        dim, count = gaussians.dense([start.belief])[0].dim, float(self.visits.weight().sum())
        return ENOUGH <= count < a_weight * dim and dim <= DEAR and len(start.coordinates.priors) == 1

    def again(self, start: Standing) -> Standing:
        """After one more visit of the rows, the belief changed in place; or under the prior that rows left out ask for.

        Under a width that is given the visits of ``care``, which are then all there is to do.

        In a stream: the whole search of `best` takes as long as some hundred visits, and only rows that are told apart
        without a mistake, of whose evidence least is known, are worth it. A narrower prior is tried anyway.
        """
        if not self.ways.learns_width:
            return Standing(*self.visits.settled(start.belief, start.sites, self.care), start.coordinates)
        now = start._replace(sites=self.visits.once(start.belief, start.sites))
        if self._has_few_rows(now) and self._told_apart(now):
            return self._by_held_out_rows(now)
        return self.narrowed(now)

    def _told_apart(self, now: Standing) -> bool:
        """Whether all labels of two classes lie on their side."""
        if not isinstance(self.visits.likelihood, Bernoulli):
            return False
        mean, _ = now.belief.marginal(self.design.array)
        return bool(((self.visits.target - 0.5) * mean > 0.0).all())

    def narrowed(self, start: Standing) -> Standing:
        """A few steps to a narrower prior, as long as rows left out speak for it: for a stream that has few rows.

        Of few rows the evidence, sites standing still, sees too little that most weights are near zero. A row is left
        out by taking its site away while the others stand still; each width has two visits, and is better if its sum
        over the rows is so by more than a standard error. Wider priors are not tried: while the classes can still be
        told apart without a mistake, these sums speak for any width, and what they promise is not kept.
        """
        if not self._has_few_rows(start, FEWER):
            return start
        now, here = start, self._left_out(start)
        for _ in range(NARROWER):
            width = 0.5 * float(now.coordinates.widths()[0]) / self._unit(now)
            belief, sites, coordinates = self._with_width(now, width)
            for _ in range(2):
                sites = self.visits.once(belief, sites)
            narrower = Standing(belief, sites, coordinates)
            scores = self._left_out(narrower)
            if not is_better(scores, here, self.visits.weight()):
                break
            now, here = narrower, scores
        return now

    def _unit(self, now: Standing) -> float:
        """What a width of 1 is."""
        return float(now.coordinates.prior(self.ways).std[0])

    def _left_out(self, now: Standing) -> Array:
        """Log predictive density of each row by the belief without its site; and a share of the width's log prior."""
        mean, variance = now.belief.marginal(self.design.array)
        precision, shift = now.sites.site_precision, now.sites.site_shift
        with np.errstate(divide="ignore", invalid="ignore"):  # a row that is all that is known has no score
            left = 1.0 / (1.0 / variance - precision)
        scores = self._score(self.visits.target, Moments(left * (mean / variance - shift), left))
        return np.asarray(scores + self._share_of_prior(now))

    def at(self, now: Standing, log_width: float) -> Standing:
        """Settled under another width."""
        belief, sites, coordinates = self._with_width(now, math.exp(log_width))
        return Standing(*self.visits.settled(belief, sites, self.care), coordinates)

    def _with_width(self, now: Standing, width: float | None) -> Standing:
        """The same sites under another width; None: the one of most evidence."""
        beliefs = [now.belief]
        coordinates, found, _, _ = now.coordinates.exchanged(
            self.ways, gaussians.dense(beliefs), [], gaussians.groups(beliefs), 1.0, width
        )
        (belief,) = gaussians.put_back(beliefs, found, coordinates)
        return Standing(belief, now.sites, coordinates)

    def _by_evidence(self, start: Standing) -> Standing:
        quick = self._together(start)
        if quick is not None:
            return quick
        now = self.at(start, 0.0)

        def slope(log_width: float) -> float:
            nonlocal now
            now = self.at(now, log_width)
            evidence = now.coordinates.slope(self.ways, gaussians.dense([now.belief]))
            return evidence - log_width / self.ways.reach**2

        here, there = 0.0, 0.0
        uphill = math.copysign(STEP, slope(0.0))
        while abs(there) < FARTHEST:
            here, there = there, there + uphill
            if slope(there) * uphill <= 0.0:
                found = brentq(slope, here, there, xtol=1e-10)
                return self.at(now, float(found))
        return now

    def _together(self, now: Standing) -> Standing | None:
        """Sites and width in turn; None where they do not settle soon."""
        for _ in range(QUICKLY):
            before, belief = gaussians.dense([now.belief]), now.belief.copy()
            sites = self.visits.once(belief, now.sites)
            now = self._with_width(Standing(belief, sites, now.coordinates), None)
            if gaussians.farthest(gaussians.dense([now.belief]), before) <= SETTLED:
                return now
        return None

    def _by_held_out_rows(self, start: Standing) -> Standing:
        """Uphill from width 1, as long as the sum over the rows is larger by more than its standard error."""
        places, weight = parts_of(self.design.array), self.visits.weight()
        known: dict[int, Standing] = {0: self.at(start, 0.0)}
        found: dict[int, Array] = {}

        def scores(step: int) -> Array:
            if step not in found:
                if step not in known:
                    nearest = min(known, key=lambda each: abs(each - step))
                    known[step] = self.at(known[nearest], step * STEP)
                found[step] = self._held_out(known[step], places)
            return found[step]

        def better(step: int, than: int) -> bool:
            return is_better(scores(step), scores(than), weight)

        place = summit(better, math.floor(FARTHEST / STEP))
        left, top, right = (float(weight @ scores(place + way)) for way in (-1, 0, 1))
        bend = left - 2.0 * top + right
        away = 0.5 * (left - right) / bend if bend < 0.0 else 0.0
        # in whole thousandths: what is left of visits and rounding must not show
        return self.at(known[place], round(STEP * (place + min(max(away, -0.5), 0.5)), 3))

    def _held_out(self, now: Standing, places: np.ndarray) -> Array:
        """Log predictive density of each row by the other parts, and its share of the width's log prior."""
        weight = self.visits.weight()
        scores = np.zeros(weight.size)
        (prior,) = now.coordinates.priors
        for part in range(PARTS):
            out = (places == part) & (weight > 0.0)
            if not out.any() or out.sum() == np.count_nonzero(weight):
                continue
            kept = self._without(out)
            sites = FoldResult(*(column[~out] for column in now.sites))
            start = _with_sites(prior.belief(), self.design.array[~out], sites)
            belief, _ = kept.settled(start, sites, self.care, self.care.left_out)
            moments = Moments(*belief.marginal(self.design.array[out]))
            scores[out] = self._score(self.visits.target[out], moments)
        return scores + self._share_of_prior(now)

    def _score(self, target: Array, moments: Moments) -> Array:
        """Log predictive density; of two classes, with a share of `Care.mistakes`.

        Rows that are all told apart speak for any width, as long as no other row comes. That none came among n is no
        proof: as in the rule of succession, a part of a row of the other class is added, spread over all.
        """
        likelihood = self.visits.likelihood
        scores = np.asarray(likelihood.log_predictive(target, moments))
        if isinstance(likelihood, Bernoulli):
            share = self.care.mistakes / self.visits.weight().sum()
            scores = scores + share * likelihood.log_predictive(1.0 - target, moments)
        return np.asarray(scores)

    def _share_of_prior(self, now: Standing) -> float:
        """Log prior of the width, for each row of weight 1."""
        width = math.log(float(now.coordinates.widths()[0]) / self._unit(now))
        return float(-0.5 * (width / REACH) ** 2 / self.visits.weight().sum())

    def _without(self, out: np.ndarray) -> Visits:
        """Visits of the other rows."""
        weight, options = self.visits.options["sample_weight"], self.visits.options.copy()
        options["sample_weight"] = None if weight is None else weight[~out]
        return replace(
            self.visits, design=Block(self.design.array[~out]), target=self.visits.target[~out], options=options
        )


def is_better(scores: Array, others: Array, weight: Array) -> bool:
    """Whether the rows' sum is larger, by more than its standard error; a weight counts as so many rows."""
    gain = scores - others
    total = weight @ gain
    return bool(total > math.sqrt(weight @ np.square(gain - total / weight.sum())))


def warn_unsettled(move: float) -> None:
    """Say by how much of a standard deviation a weight still moves."""
    msg = (
        f"fit has not settled: after {MOST_VISITS} visits of all rows the posterior still moves by {move:.1e} standard "
        "deviations; it is a posterior of one pass and more, or give refine=0 for one pass"
    )
    warnings.warn(msg, ConvergenceWarning, stacklevel=3)


def summit(better: Callable[[int, int], bool], farthest: int) -> int:
    """The first step uphill from 0 that is not worse than the next; ``better(a, b)`` compares two steps."""
    place, way = 0, 1 if better(1, 0) else -1
    while abs(place) < farthest and better(place + way, place):
        place += way
    return place


def _with_sites(prior: DenseGaussian, design: Array, sites: FoldResult) -> DenseGaussian:
    """The prior and some sites multiplied."""
    precision, shift = prior.natural()
    precision = precision + (design.T * sites.site_precision) @ design
    return DenseGaussian.from_natural(precision, shift + design.T @ sites.site_shift)


def parts_of(design: Array) -> np.ndarray:
    """A part for each row by its standardised features, as far as rounding leaves them: the same for the same rows."""
    with np.errstate(invalid="ignore", over="ignore"):
        cells = np.round(design * 2.0**20).astype(np.int64).astype(np.uint64)
        factors = np.random.default_rng(0).integers(1, 2**63, size=design.shape[1], dtype=np.uint64) | np.uint64(1)
        mixed = (cells * factors).sum(axis=1, dtype=np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return np.asarray((mixed >> np.uint64(33)) % np.uint64(PARTS))


def joined(parts: list[Standing], whole: Coordinates) -> tuple[list[AnyBelief], Coordinates]:
    """The beliefs, and coordinates with the priors of them all."""
    priors = tuple(prior for part in parts for prior in part.coordinates.priors)
    return [part.belief for part in parts], replace(whole, priors=priors)
