"""The shards of a round in one process: learned one after the other, each from the same belief as if it were alone.

What a shard needs of the size of the belief, the tempered base and a copy of it to learn in, is made once. After a
shard the cells that its rows have met are written down as changes and put back, so that a shard costs what it meets.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias, final

import numpy as np

from gaussfold.beliefs.diagonal import passes
from gaussfold.beliefs.diagonal.delta import SCALE, CellDelta, fixed_evidence
from gaussfold.beliefs.diagonal.exchange import tempered, twin
from gaussfold.beliefs.diagonal.stack_delta import StackDelta
from gaussfold.beliefs.diagonal.state import State
from gaussfold.engine.sparse.deltas import FixedCells, list_met, note_slots, take_changes
from gaussfold.observations import Observations
from gaussfold.rows import sparse_rows
from gaussfold.trace import RowError, Trace
from gaussfold.types import Array, Program

AnyDelta: TypeAlias = CellDelta | StackDelta


class Apart(Protocol):
    """Shards of one round, one after the other: made by ``belief.apart(shards)``."""

    def begin(self, index: int) -> None:
        """A shard, by its place in the round; nothing is learned of it yet."""
        ...

    def learn(self, data: Observations, program: Program) -> Trace:
        """Learn rows in order; what was predicted by all that was known when the round began.

        A row that cannot be learned raises `RowError`; those before it stay learned.
        """
        ...

    def slots(self) -> np.ndarray:
        """Features that the shard's rows have met, in increasing order."""
        ...

    def delta(self, *, last: bool) -> AnyDelta:
        """What the shard has learned, which ends it; ``last``: its rows are those that come last in the round."""
        ...


@final
class Cells:
    """Cells that stand still, apart: a Gaussian's, a mixture's, or those of a stack's lanes."""

    def __init__(self, state: State, shards: int, least: float) -> None:
        self.known, self._shards = state, shards
        self._base = tempered(state, shards, least)
        self.now = twin(self._base)
        self._met = np.zeros(state.dim, bool)
        self._slots, self._count = np.empty(0, np.uint32), 0
        self._sorted: np.ndarray | None = None

    def begin(self, index: int) -> None:
        """The next shard: cells are as they were already."""
        del index
        self.now.log_weights[:] = self._base.log_weights

    def note(self, indices: np.ndarray) -> None:
        """Rows with these features will be learned."""
        self._sorted = None
        if self._slots.size < self._count + indices.size:
            self._slots = np.resize(self._slots, 2 * self._count + indices.size)
        kind = np.int32 if indices.dtype == np.int32 else np.int64
        self._count = note_slots(self._met, indices.astype(kind, copy=False), self._slots, self._count)

    def learn(self, data: Observations, program: Program) -> Trace:
        """Learn rows; see `Apart`. One shard alone learns, and predicts, as always."""
        rows = sparse_rows(data.X, self.now.dim)
        sparse = passes.Sparse(rows, data.y, data.weight)
        self.note(rows.indices)
        self.now.widen(rows.indices)
        if self._shards == 1:
            return passes.absorb(self.now, sparse, program, 0.0, whole=False)
        failed = passes.learn(self.now, sparse, program, 0.0, logged=False).failed
        n = data.y.size if failed < 0 else failed
        known, site = passes.look_at(self.known, rows[:n]), np.zeros(n)
        met = passes.Met(known.mean, known.variance, site, site)
        trace = passes.score(self.now, data.y[:n], data.weight[:n], program, met)
        if failed >= 0:
            raise RowError(failed, trace)
        return trace

    def slots(self) -> np.ndarray:
        """Features that the shard's rows have met, in increasing order."""
        if self._sorted is None:
            if 32 * self._count > self._met.size:
                self._sorted = np.empty(self._count + 1, np.int64)
                self._sorted = self._sorted[: list_met(self._met, self._sorted)]
            else:
                self._sorted = np.sort(self._slots[: self._count]).astype(np.int64)
        return self._sorted

    def delta(self, *, last: bool) -> CellDelta:
        """What the shard has learned, in order or not; everything is put back."""
        del last
        slots, k = self.slots(), self.now.cells.shape[2]
        self._count, self._sorted = 0, None
        numbers = np.empty((2, slots.size, k), np.int64)
        out = FixedCells(np.empty(slots.size, np.uint32), np.empty((slots.size, k), np.int16), numbers[0], numbers[1])
        if not self._base.alike:
            self._base.write(slots)
        n, large = (0, -1) if self.now.alike else take_changes(self.now.cells, self._base.cells, slots, self._met, out)
        if large >= 0:
            msg = f"delta: feature {large} has learned more than 64 bits hold; {SCALE}"
            raise ValueError(msg)
        return CellDelta(self.now.dim, FixedCells(*(part[:n] for part in out)), self._evidence())

    def _evidence(self) -> np.ndarray:
        with np.errstate(invalid="ignore"):  # of components that are ruled out
            gained: Array = self.now.log_weights - self._base.log_weights
        return fixed_evidence(gained)
