"""The way of rows into the beliefs: in pieces between which scales and prior are looked at, in `fit` until all settles.

Pieces end at counts of learned rows that depend on the stream alone (`coordinates.Ways`), so however it is cut into
calls, the same rows meet the same coordinates.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gaussfold import rules
from gaussfold.beliefs.bank.belief import Bank
from gaussfold.beliefs.dense.exchange import Independent
from gaussfold.dynamics import Dynamics, Forgetting
from gaussfold.engine.families import is_log_concave
from gaussfold.estimators import classes, early, gaussians, replay, settings, settling
from gaussfold.estimators.coordinates import Coordinates, Ways
from gaussfold.estimators.early import Early
from gaussfold.estimators.folded import Call, Folded, FoldOptions, check_finite, joined
from gaussfold.estimators.noise import NoiseBelief
from gaussfold.estimators.noise_bank import NoiseBank
from gaussfold.estimators.pace import OwnPace
from gaussfold.estimators.priors import AnyBelief
from gaussfold.estimators.readout import Readout
from gaussfold.estimators.settling import OF_A_STREAM, Standing, Visits, WidthSearch
from gaussfold.folding import FoldResult, fold
from gaussfold.likelihoods import Gaussian, Softmax
from gaussfold.lookback import Lookback
from gaussfold.protocols import Likelihood
from gaussfold.rows import AnyRows, Block, Rows, dense_rows
from gaussfold.sweeping import sweep
from gaussfold.trace import RowError
from gaussfold.types import Array

SLICE = 4096
"""Rows that are standardised at a time."""


class Learner(Readout):
    """Folds checked rows into the beliefs. `StreamingEstimator` adds what a user calls."""

    _early: Early | None = None
    """The first rows, while the width of the prior is found: see there."""
    _joint: bool = False
    """Whether the one belief of several classes has what is between them."""
    _likelihood: Likelihood
    _lookbacks: list[Lookback]
    _settings: settings.Settings
    _ways: Ways | None
    n_observations_: int

    @property
    def _family(self) -> Likelihood | Softmax:
        """What explains the labels of a belief."""
        return Softmax(self._together) if self._together > 1 else self._likelihood

    def _score(self, folded: Folded) -> Array:
        """Log predictive density of each learned row before it was learned."""
        return folded.log_predictive()

    def _own_fold(self, belief: AnyBelief, design: Rows | Block, call: Call) -> FoldResult | None:
        """Where an estimator folds rows in a way of its own."""
        del belief, design, call
        return None

    def _own_settle(self, belief: AnyBelief, call: Call) -> AnyBelief | None:
        """And visits them again."""
        del belief, call
        return None

    def _noise_guess(self) -> float:
        """Of the noise's standard deviation, where that is learned."""
        return 1.0

    def _learn(self, X: AnyRows, targets: list[Array], weight: Array | None, refine: int = 0) -> None:
        """Fold the rows in. Everything has been checked; from here on only `fold` could fail."""
        call = Call.of(X, targets, weight)
        beliefs = self._begun(len(targets), copied=len(targets) > 1 or self._ways is not None)
        if refine:  # which visits all rows by the sites of this pass
            self._early = None
        if call.learned.any():
            beliefs, results = self._pass(beliefs, call)
            if refine:  # in the coordinates of the last row: a site is about x'θ, and good for all
                for belief, target, sites in zip(beliefs, targets, results, strict=True):
                    options = self._options(weight)
                    sweep(belief, self._family, self._seen(X), target, sites, n_sweeps=refine, **options)
        else:  # nothing is learned, to the last bit
            call.check_labels(self._family)
        self._beliefs = beliefs

    def _learn_all(self, X: AnyRows, targets: list[Array], weight: Array | None) -> None:
        """Learn rows that are all there is: scales of all of them, one pass in random order, then until it settles."""
        call = Call.of(X, targets, weight)
        call.check_labels(self._family)
        if self._settings.dynamics is None or not self._settings.ticks_per_row:  # else their order means something
            call = call.part(settings.shuffler(self.random_state, self._rng).permutation(X.shape[0]))
        beliefs = self._begun(len(targets), copied=False)
        self._early = None
        if self._ways is not None:
            beliefs = self._start_from(beliefs, call)
        beliefs, results = self._pass(beliefs, call, known=True)
        if self._can_settle():
            beliefs = self._settle_classes(call) if self._together > 1 else self._settle(beliefs, call, results)
        self._beliefs = beliefs

    def _can_settle(self) -> bool:
        """Whether visits come to an end: compiled, and log-concave, for elsewhere there may be several optima."""
        if self._together > 1:
            return self._settings.settles
        family, how = self._likelihood.record, self._settings.rule.record
        return self._settings.settles and family is not None and how is not None and is_log_concave(family)

    def _first_rows(self) -> Early | None:
        """Room for the first rows, where these are worth another look."""
        if self._ways is None or not self._can_settle() or self._linear():
            return None
        return Early() if self._together == 1 or self._ways.learns_width else None

    def _linear(self) -> bool:
        """Whether sites are right at once, whatever the belief."""
        return isinstance(self._likelihood, Gaussian)

    def _begun(self, n_beliefs: int, *, copied: bool) -> list[AnyBelief]:
        """The beliefs to fold into: new ones, or those there are; copies, if folding may fail half way."""
        if self._beliefs:
            return [belief.copy() for belief in self._beliefs] if copied else list(self._beliefs)
        look = self._settings.keeps_rows
        self._lookbacks = [Lookback(look) for _ in range(n_beliefs)] if look else []
        beliefs = self._first_beliefs(n_beliefs)
        if isinstance(self._noise, NoiseBelief) and isinstance(beliefs[0], Bank):
            self._noise = NoiseBank.start(self._noise, beliefs[0])
        if self._ways is None:
            return beliefs
        self._early = self._first_rows()
        self._coordinates = Coordinates.start(self._ways, self.n_features_in_, len(gaussians.dense(beliefs)))
        return gaussians.unlearned(beliefs, self._coordinates)

    def _first_beliefs(self, count: int) -> list[AnyBelief]:
        """New ones that have seen nothing."""
        if self._together > 1:
            return [classes.start(self._settings.prior, self._together, joint=self._joint)]
        return [self._settings.start() for _ in range(count)]

    def _start_from(self, beliefs: list[AnyBelief], call: Call) -> list[AnyBelief]:
        """New beliefs in the coordinates of all rows."""
        ways, start = self._adaptive()
        learned = call.part(call.learned)
        found = start.with_rows(ways, dense_rows(learned.X), learned.targets[0], learned.weight)
        check_finite(found, learned)
        found = replace(found, reference=found.moved(ways))
        found = replace(found, priors=tuple(found.prior(ways) for _ in start.priors))
        guess = found.guess(ways, self._noise_guess())
        self._put_noises([each.from_guess(guess, 2.0 * each.prior_shape) for each in self._noises()])
        self._coordinates = found
        return gaussians.unlearned(beliefs, found)

    def _noises(self) -> list[NoiseBelief]:
        """What is believed of the noise, by each member; nothing where it is known."""
        if isinstance(self._noise, NoiseBank):
            return list(self._noise.members)
        return [] if self._noise is None else [self._noise]

    def _put_noises(self, found: list[NoiseBelief]) -> None:
        if found:
            self._noise = NoiseBank(tuple(found)) if isinstance(self._noise, NoiseBank) else found[0]

    def _pass(
        self, beliefs: list[AnyBelief], call: Call, *, known: bool = False
    ) -> tuple[list[AnyBelief], list[FoldResult]]:
        """Fold rows in, once, and count them."""
        if self._ways is not None:
            return self._fold_pieces(beliefs, call, known=known)
        counts = call.counts()  # room before the deed
        results = self._fold(beliefs, self._seen(call.X), call)
        self._count(beliefs, results, call, counts)
        return beliefs, results

    def _fold_pieces(
        self, beliefs: list[AnyBelief], call: Call, *, known: bool
    ) -> tuple[list[AnyBelief], list[FoldResult]]:
        """Fold rows in, looking at scales and prior where that is due; ``known``: the scales are those of all rows."""
        (ways, _), base, n = self._adaptive(), self.n_observations_, call.learned.size
        places = np.append(np.flatnonzero(call.learned), n)
        if n > 1:
            call.check_labels(self._family)
        pieces: list[list[FoldResult]] = []
        start, done, far = 0, 0, False
        while done < places.size - 1:
            looked = far or ways.due(base + done + 1)
            if looked:
                row = int(places[done])
                beliefs = self._look(beliefs, None if known else call.part(slice(row, row + 1)), row)
                self._look_at_early_rows(beliefs, base + done + 1)
            first, end = done + looked, min(places.size - 1, ways.next_due(base + done + 2) - base - 1, done + SLICE)
            design = self._adaptive()[1].design(dense_rows(call.X[start : places[end]]), intercept=ways.intercept)
            inside = places[first:end] - start
            surprise = None if known else self._adaptive()[1].surprised(ways, design.array, inside, base + first)
            far, end = surprise is not None, end if surprise is None else first + surprise
            piece = call.part(slice(start, stop := int(places[end])))
            if stop > start:
                pieces.append(self._fold_piece(beliefs, Block(design.array[: stop - start]), piece, start))
                if not known:
                    self._remember(piece, looked=looked)
            start, done = stop, end
        return beliefs, joined(pieces)

    def _fold_piece(self, beliefs: list[AnyBelief], design: Block, piece: Call, start: int) -> list[FoldResult]:
        """Fold and count rows that begin at row ``start`` of the call."""
        counts = piece.counts()  # room before the deed
        try:
            results = self._fold(beliefs, design, piece)
        except RowError as error:
            raise RowError(error.row + start) from error
        self._count(beliefs, results, piece, counts)
        if self._early is not None:
            self._early = self._early.with_piece(piece, counts, results if self._together == 1 else [])
        return results

    def _look_at_early_rows(self, beliefs: list[AnyBelief], count: int) -> None:
        """Visit the rows that are kept once more, in place; before the row of number ``count`` there may be enough."""
        ways, coordinates = self._adaptive()
        if self._early is None or not self._early.pieces or not ways.due(count):
            return
        kept, sites = self._early.whole(), list[FoldResult]()
        design = coordinates.design(kept.X, intercept=ways.intercept)
        for k, belief in enumerate(beliefs):
            target, options = kept.targets[k], self._options(kept.weight)
            if self._together > 1:
                rows = replay.Rows(self._family, design, target, options, kept.weight)
                beliefs[k], self._coordinates = replay.best(rows, belief, coordinates, ways)[:2]
                break
            visits = Visits(self._likelihood, design, target, options)
            now = WidthSearch(visits, design, ways, OF_A_STREAM).again(Standing(belief, kept.sites(k), coordinates))
            beliefs[k], self._coordinates, sites = now.belief, now.coordinates, [*sites, now.sites]
        self._early = None if count >= early.ROOM else Early().add(*kept[:3], sites)

    def _remember(self, piece: Call, *, looked: bool) -> None:
        """Moments of rows just learned, the first one's features apart if they have been looked at before."""
        ways, coordinates = self._adaptive()
        learned = piece if piece.learned.all() else piece.part(piece.learned)
        coordinates = coordinates.with_rows(ways, dense_rows(learned.X), learned.targets[0], learned.weight, looked)
        check_finite(coordinates, learned)
        if self._settings.dynamics is not None and self._settings.ticks_per_row:
            coordinates = coordinates.aged(
                gaussians.steps(self._beliefs, self._settings.dynamics), learned.learned.size
            )
        self._coordinates = coordinates

    def _look(self, beliefs: list[AnyBelief], row: Call | None, place: int = 0) -> list[AnyBelief]:
        """New coordinates and prior, with the features of the row that comes next, which has this place in the call."""
        ways, coordinates = self._adaptive()
        if row is not None:
            features = coordinates.features.add(dense_rows(row.X), row.weight)
            if not features.finite:
                raise RowError(place)
            coordinates = replace(coordinates, features=features)
        if self.n_observations_ == 0:  # nothing to take over; a difference of two priors would be rounding
            self._coordinates = replace(coordinates, reference=coordinates.moved(ways))
            return gaussians.unlearned(beliefs, self._coordinates)
        ways = classes.trusted(ways, self._together, self.n_observations_)
        told = self._together > 1 and (self._early is not None or self.n_observations_ >= early.ROOM)
        try:
            after, found, noises, back = coordinates.exchanged(
                ways, gaussians.dense(beliefs), self._noises(), gaussians.groups(beliefs), self._noise_guess(),
                coordinates.width(ways) if told and self._can_settle() else None,
            )  # fmt: skip
        except np.linalg.LinAlgError as problem:  # numbers that are too large for what has to be squared
            raise RowError(place) from problem
        self._put_noises(noises)
        self._lookbacks = [memory.seen_from(back) for memory in self._lookbacks]
        self._coordinates = after
        return gaussians.put_back(beliefs, found, after)

    def _settle_classes(self, call: Call) -> list[AnyBelief]:
        """The batch optimum of a softmax, the width of its prior included."""
        learned = call.part(call.learned)
        design = self._seen(learned.X)
        rows = design.array if isinstance(design, Block) else dense_rows(design)
        prior, reach = Independent(*self._settings.prior.independent()), None
        if self._ways is not None and self._coordinates is not None:
            prior = self._coordinates.prior(self._ways._replace(classes=1))
            reach = self._ways.reach if self._settings.learns_width else None
        found = classes.settled(
            rows, learned.targets[0], learned.weight, self._together, prior, reach, joint=self._joint,
            apart=bool(self.fit_intercept),
        )  # fmt: skip
        if self._coordinates is not None:
            self._coordinates = replace(self._coordinates, priors=found.priors)
        return [found.belief]

    def _settle(self, beliefs: list[AnyBelief], call: Call, results: list[FoldResult]) -> list[AnyBelief]:
        """Visit all rows again, and choose the prior again, until neither moves: the batch optimum."""
        if (settled := self._own_settle(beliefs[0], call)) is not None:
            return [settled]
        if self._linear():
            return beliefs if self._ways is None else self._look(beliefs, None)
        options = self._options(call.weight)
        if self._ways is None or not self._ways.learns_width:
            every = [Visits(self._likelihood, self._seen(call.X), target, options) for target in call.targets]
            return [
                each.settled(*pair)[0] for each, pair in zip(every, zip(beliefs, results, strict=True), strict=True)
            ]
        ways, coordinates = self._adaptive()
        design = coordinates.design(dense_rows(call.X), intercept=ways.intercept)
        parts, start = [], 0
        for target, belief, sites in zip(call.targets, beliefs, results, strict=True):
            visits = Visits(self._likelihood, design, target, options)
            stop = start + len(gaussians.dense([belief]))
            own = replace(coordinates, priors=coordinates.priors[start:stop])
            parts.append(WidthSearch(visits, design, ways).best(Standing(belief, sites, own)))
            start = stop
        found, self._coordinates = settling.joined(parts, coordinates)
        return found

    def _count(self, beliefs: list[AnyBelief], results: list[FoldResult], call: Call, counts: Array) -> None:
        """Add what was predicted and learned to the counters."""
        self._beliefs = beliefs  # which a score may weigh
        score = self._score(Folded(results, call.targets, call.learned, counts))
        self._loss = (self._loss[0] - float(counts @ score), self._loss[1] + float(counts.sum()))
        self.n_observations_ += len(counts)

    def _options(self, weight: Array | None) -> FoldOptions:
        now = self._settings
        rule = rules.resolve("vi") if self._together > 1 else now.rule  # the one that knows classes
        return FoldOptions(rule=rule, at=now.at, sample_weight=weight, block_size=now.block_size)

    def _fold(self, beliefs: list[AnyBelief], design: Rows | Block, call: Call) -> list[FoldResult]:
        """Fold the rows into every belief; what was known of each row before it was learned."""
        if (own := self._own_fold(beliefs[0], design, call)) is not None:
            return [own]
        heads, options = list(zip(beliefs, call.targets, strict=True)), self._options(call.weight)
        if self._lookbacks:
            memories = [memory.copy() for memory in self._lookbacks]
            results = [
                memory.fold(belief, self._likelihood, design, target, **options)
                for memory, (belief, target) in zip(memories, heads, strict=True)
            ]
            self._lookbacks = memories
            return results
        return [
            fold(belief, self._family, design, target, dynamics=self._dynamics(i), **options)
            for i, (belief, target) in enumerate(heads)
        ]

    def _dynamics(self, i: int, *, per_row: bool = True) -> Dynamics | None:
        """How belief ``i`` ages, towards the prior that it has now."""
        dynamics = self._settings.fold_dynamics if per_row else self._settings.dynamics
        if isinstance(dynamics, OwnPace) or dynamics is None:
            return None
        if isinstance(dynamics, Forgetting) and self._together > 1:
            return Forgetting(dynamics.factor, self._priors()[0])
        if isinstance(dynamics, Forgetting) and self._coordinates is not None:
            return Forgetting(dynamics.factor, self._coordinates.priors[i].belief())
        return dynamics

    def _priors(self) -> list[AnyBelief]:
        """What each belief would be without data, in its coordinates."""
        if self._coordinates is None:
            if self._together > 1:
                return self._first_beliefs(1)
            return [self._settings.prior.belief() for _ in self._beliefs]
        found: list[AnyBelief] = [prior.belief() for prior in self._coordinates.priors]
        return [classes.of_priors(found, joint=self._joint)] if self._together > 1 else found

    def _adaptive(self) -> tuple[Ways, Coordinates]:
        """How scales and prior are learned, and what they are now; only asked where they are."""
        if self._ways is None or self._coordinates is None:
            msg = "this model has no scales of its own"
            raise RuntimeError(msg)
        return self._ways, self._coordinates
