"""Beliefs over the weights of named features, of which more may come with every row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from gaussfold import checks, schema
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.coupling import Coupling, resolve_coupling
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.dynamics import Forgetting
from gaussfold.estimators import mixtures
from gaussfold.estimators.priors import AUTO, Prior, restore_belief
from gaussfold.estimators.river.features import Columns, Entries, Example, Named
from gaussfold.folding import fold, recipe_of
from gaussfold.likelihoods import Bernoulli, Gaussian
from gaussfold.types import Array, Moments

if TYPE_CHECKING:
    from gaussfold.engine.sparse.one_row import RowLoops

Diagonal = DiagonalGaussian | DiagonalMixture
FIRST_ROOM = 64


@dataclass(frozen=True)
class Start:
    """What the weights are before any data, checked."""

    std: float | str
    mean: float
    intercept_std: float | None
    coupling: Coupling
    forgetting: float

    @classmethod
    def checked(
        cls, prior_std: object, prior_mean: object, fit_intercept: object, intercept_std: object,
        coupling: str | Coupling, forgetting: object,
    ) -> Start:  # fmt: skip
        """Refuse parameters that are no prior."""
        if not (isinstance(prior_std, str) and prior_std == AUTO):
            prior_std = checks.positive("prior_std", prior_std, remedy="or 'auto' for eight of them side by side")
        keeps = "1 keeps everything, 0.999 remembers about 1000 rows"
        return cls(
            prior_std,
            checks.number("prior_mean", prior_mean),
            checks.positive("intercept_std", intercept_std) if checks.flag("fit_intercept", fit_intercept) else None,
            resolve_coupling(coupling),
            checks.between("forgetting", forgetting, 0, 1, "(]", remedy=keeps),
        )

    def belief(self, dim: int) -> Diagonal:
        """Room for so many features, the intercept in the first place."""
        std = self.std if isinstance(self.std, str) else np.full(dim, self.std)
        prior = Prior("diagonal", dim, np.full(dim, self.mean), std, self.coupling, self.intercept_std)
        belief = prior.diagonal_belief()  # with a cell for each feature from the start
        if self.intercept_std is None:
            return belief
        state = belief.state()
        state["cells"] = np.ascontiguousarray(state["cells"][::-1])  # a prior has the intercept last
        return belief.from_state(state)


class Weights:
    """One set of columns, and one or more beliefs over their weights (one per class).

    Parameters
    ----------
    start
        The prior.
    likelihood, rule
        Of every belief.
    """

    def __init__(self, start: Start, likelihood: Bernoulli | Gaussian, rule: str, names: Sequence[object] = ()) -> None:
        self.start, self.likelihood, self.rule = start, likelihood, rule
        recipe = recipe_of(likelihood, rule, "posterior")  # refuses an unknown rule here, not at the first row
        if recipe.program is None:
            msg = f"rule={rule!r}: the River adapters need a compiled one; use 'newton', 'vi' or 'ep'"
            raise ValueError(msg)
        self._program = recipe.program
        self.columns = Columns(names, intercept=start.intercept_std is not None)
        self.room = FIRST_ROOM
        while self.room < len(self.columns):
            self.room *= 2
        blank = start.belief(self.room)
        self._unseen = blank.state()["cells"][-1]  # means and variances of a feature before any data
        self._loops = blank.row_loops(recipe.program)
        self._dynamics = self._forgetting(blank)
        self._rate = -math.log(start.forgetting)

    def _forgetting(self, prior: Diagonal) -> Forgetting | None:
        return Forgetting(self.start.forgetting, prior) if self.start.forgetting != 1.0 else None

    def blank(self) -> Diagonal:
        """A belief that has seen nothing; its clock, if there is one, runs."""
        belief = self.start.belief(self.room)
        belief.ticks(self._dynamics)
        return belief

    # Learning.

    def learn_quickly(self, belief: Diagonal, entries: Entries, y: float, w: float) -> tuple[bool, float, float]:
        """One row; whether it was good, and mean and variance of x'θ before. If not, nothing has changed."""
        if self._loops is None:
            return False, 0.0, 0.0
        return belief.learn_entries(self._loops, entries.columns, entries.values, y, w, self._program, self._rate)

    def learn_all(self, beliefs: Sequence[Diagonal], entries: Entries, labels: Sequence[float], w: float) -> bool:
        """One row into all beliefs or, if something is wrong with it, into none."""
        before = [belief.remember(entries.columns) for belief in beliefs]
        for i, (belief, y) in enumerate(zip(beliefs, labels, strict=True)):
            if not self.learn_quickly(belief, entries, y, w)[0]:
                for changed, cells in zip(beliefs[:i], before, strict=False):
                    changed.put_back(entries.columns, cells)
                return False
        return True

    def quick(self, x: Example) -> Entries | None:
        """The row as its entries, where :meth:`learn_quickly` and :meth:`look_quickly` may be asked."""
        return None if self._loops is None else self.columns.quick(x)

    def learn(
        self, beliefs: Sequence[Diagonal], rows: Sequence[Named], labels: Sequence[Array], weights: Array
    ) -> tuple[list[Diagonal], list[Moments]]:
        """Rows in order, into copies of the beliefs, with labels for each: the copies, and what they said before."""
        new = self.columns.learn(rows)
        try:
            room = self.room
            self._make_room()
            grown = [self.grown(belief.copy()) for belief in beliefs]
            design = self.columns.rows(rows, self.room)
            traces = [
                fold(belief, self.likelihood, design, y, self.rule, sample_weight=weights, dynamics=self._dynamics)
                for belief, y in zip(grown, labels, strict=True)
            ]
        except BaseException:
            self.columns.forget(new)
            self.room = room
            raise
        return grown, [Moments(trace.mean, trace.variance) for trace in traces]

    def _make_room(self) -> None:
        if len(self.columns) > self.room:
            while self.room < len(self.columns):
                self.room *= 2
            self._dynamics = self._forgetting(self.start.belief(self.room))

    def grown(self, belief: Diagonal) -> Diagonal:
        """The belief with a place for every column; new ones hold the prior."""
        if belief.dim == self.room:
            return belief
        prior = self.start.belief(self.room)
        state, blank = belief.state(), prior.state()
        state |= {"cells": np.concatenate([state["cells"], blank["cells"][belief.dim :]]), "dim": blank["dim"]}
        if "seen" in state:  # the prior does not age
            state["seen"] = np.concatenate([state["seen"], np.full(self.room - belief.dim, state["clock"][0])])
            state["prior"] = blank["cells"]
        return belief.from_state(state)

    # Looking.

    def look_quickly(self, belief: Diagonal, entries: Entries) -> tuple[float, float]:
        """Mean and variance of x'θ; not finite where the row is not."""
        return belief.look_entries(cast("RowLoops", self._loops), entries.columns, entries.values)

    def two_sides(self, mean: float, variance: float) -> tuple[float, float]:
        """Probabilities of the labels 0 and 1."""
        return cast("RowLoops", self._loops).two_sides(self._program.family, mean, variance)

    def look(self, belief: Diagonal, rows: Sequence[Named]) -> Moments:
        """Moments of x'θ of every row; features never seen add their prior."""
        mean, variance = belief.marginals(self.columns.rows(rows, self.room))
        for r, row in enumerate(rows):
            for name, value in row.items():
                if name not in self.columns.places:
                    mean[r] += value * self._unseen[0]
                    variance[r] += value * value * self._unseen[1]
        if belief.log_weights.size == 1:
            return Moments(mean[:, 0], variance[:, 0])
        return mixtures.mixed(Moments(mean, variance), belief.log_weights)

    # Arrays.

    def restored(self, arrays: Mapping[str, np.ndarray], count: int) -> list[Diagonal]:
        """The beliefs of a file, as many as they must be, of the form of these weights."""
        beliefs, kind = [], type(self.blank())
        for i in range(count):
            belief = restore_belief(schema.part_of(arrays, f"belief{i}."))
            if not isinstance(belief, kind):
                schema.refuse(
                    f"belief{i}", type(belief).__name__, f"prior_std={self.start.std!r} makes it {kind.__name__}"
                )
            schema.equal(f"belief{i}", belief.dim, self.room, "room for all names")
            beliefs.append(belief)
        return beliefs
