"""What a model must be for its rows to be learned by shards, and what a shard says of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from gaussfold.beliefs.diagonal.apart import AnyDelta, Apart
from gaussfold.beliefs.diagonal.base import DiagonalBelief
from gaussfold.data.chunks import Chunk
from gaussfold.data.reading import Reading
from gaussfold.folding import recipe_of
from gaussfold.likelihoods.base import ScalarLikelihood
from gaussfold.observations import check as check_rows
from gaussfold.rows import Rows
from gaussfold.rules.base import StreamRule
from gaussfold.trace import Trace
from gaussfold.types import Array


@dataclass
class Gained:
    """What a shard has learned: its delta, and what is counted in the order of the shards."""

    delta: AnyDelta | None
    totals: Array
    names: dict[int, str] | None
    more: dict[str, np.ndarray] = field(default_factory=dict)
    """Whatever else the model learns, by name."""


class LearnerApart(Protocol):
    """Shards of a round in one process, one after the other; rows are counted beside."""

    def begin(self, index: int) -> None:
        """A shard, by its place in the round."""
        ...

    def learn(self, chunk: Chunk) -> Trace:
        """Learn rows; what was predicted of them by what was known when the round began."""
        ...

    def add(self, chunk: Chunk, trace: Trace, start: int, stop: int) -> None:
        """Count rows in the progressive loss."""
        ...

    def sizes(self, chunk: Chunk) -> np.ndarray:
        """How large features are, that are learned as they come."""
        ...

    def gained(self, *, last: bool) -> Gained:
        """What the shard has learned, which ends it; ``last``: its rows come last in the round."""
        ...


class Learner(Protocol):
    """A model that learns chunks of rows into a diagonal belief: what `cli.model.StreamModel` is."""

    belief: DiagonalBelief
    reading: Reading
    names: dict[int, str] | None

    def apart(self, shards: int, least: float) -> LearnerApart:
        """What the shards of a round, so many, are learned by in one process; ``least`` as in `Task`."""
        ...

    def take(self, gained: Gained) -> None:
        """Count what a shard has counted; the belief's deltas are added up elsewhere."""
        ...

    def state(self) -> dict[str, np.ndarray]:
        """Everything numeric."""
        ...

    def store_header(self) -> dict[str, Any]:
        """Everything else."""
        ...

    @classmethod
    def from_store(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        """Undo ``state`` and ``store_header``."""
        ...


def learn_apart(
    apart: Apart, likelihood: ScalarLikelihood, rule: str | StreamRule, rows: Rows, label: Array, weight: Array
) -> Trace:
    """Check rows as ``fold`` does, and learn them apart."""
    program = recipe_of(likelihood, rule, "posterior").program
    assert program is not None  # whoever learns files has likelihoods that are compiled
    return apart.learn(check_rows(likelihood, rows, label, rows.width, weight), program)
