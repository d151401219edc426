"""What a stack has learned since another: changes of its lanes, its shares and its weights, and what came last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self, final

import numpy as np

from gaussfold.beliefs.dense.delta import MatrixDelta
from gaussfold.beliefs.diagonal.delta import CellDelta
from gaussfold.types import Array


class Tail(NamedTuple):
    """What those who forget remember of the last rows: they hold it as it is, not as a change."""

    slots: np.ndarray
    cells: np.ndarray
    age: Array
    """Of each cell, on the clock of forgetting."""
    recent: Array
    """See ``StackNumbers.recent``."""

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return sum(part.nbytes for part in self)


@final
@dataclass(frozen=True, eq=False)
class StackDelta:
    """Changes of a `DiagonalStack`, made by the shards of a round (``belief.apart``), merged in any order.

    Lanes that stand still, the shares of the stack and what lanes and stack have predicted add up. The lane that
    forgets, and those who follow labels, are as the last shard leaves them: a shard is many times as long as their
    memory.
    """

    lanes: CellDelta
    shares: MatrixDelta
    evidence: np.ndarray
    """(K + 1,), int64: see ``CellDelta``; of every lane and the stack."""
    learned: int
    """Rows."""
    averaging: Array
    """See ``StackNumbers.averaging``; of no rows: zeros."""
    tail: Tail | None

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.lanes.nbytes + self.shares.nbytes + self.evidence.nbytes + (self.tail.nbytes if self.tail else 0)

    def merge(self, other: Self) -> Self:
        """Both changes together. Refuses, and changes nothing, if they come from different bases."""
        if self.tail is not None and other.tail is not None:
            msg = "other: both came last in their round; each shard is added once"
            raise ValueError(msg)
        return type(self)(
            self.lanes.merge(other.lanes),
            self.shares.merge(other.shares),
            self.evidence + other.evidence,
            self.learned + other.learned,
            np.maximum(self.averaging, other.averaging),
            other.tail if self.tail is None else self.tail,
        )
