"""The driver: hand out the shards of a round, add up what comes back, put it into the belief, go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from gaussfold.beliefs.diagonal.apart import AnyDelta
from gaussfold.data.messages import BrokenInputError, DataError
from gaussfold.distributed.learning import Learner
from gaussfold.distributed.plan import Scheme, Shard
from gaussfold.distributed.work import Base, Learned, Task, merged, never


class ShardError(RuntimeError):
    """A shard that no worker could learn; the units are named."""


@runtime_checkable
class Engine(Protocol):
    """Who runs shards."""

    def run(self, base: Base, tasks: Sequence[Task], stop: Callable[[], bool]) -> Iterator[Learned]:
        """What came of every task, in any order; a shard may come twice. Raises `ShardError` or `StoppedError`."""
        ...


@dataclass
class Outcome:
    """A round in numbers."""

    round: int
    rounds: int
    shards: int
    rows: int = 0
    n_bad: int = 0
    bad: list[str] = field(default_factory=list)
    worker_seconds: float = 0.0
    """Of processor time."""
    bytes_moved: int = 0
    """Bases once a shard at most, and what came back."""


def learn_rounds(
    model: Learner,
    rounds: Sequence[Sequence[Shard]],
    engine: Engine,
    scheme: Scheme,
    *,
    place: dict[str, int] | None = None,
    skip_bad: int = 0,
    stop: Callable[[], bool] = never,
) -> Iterator[Outcome]:
    """Learn round after round into ``model``, and say so after each, when the model is whole and can be saved.

    ``place`` says where to begin and is kept up to date: ``rounds`` done, ``bad`` rows skipped, and ``size``, the
    features' as the first round found it; a model that is saved with it goes on bit for bit.
    """
    place = {} if place is None else place
    for number in range(place.get("rounds", 0), len(rounds)):
        least = scheme.least * place.get("size", SIZE) / SIZE
        left = max(skip_bad - place.get("bad", 0), 0)
        base = Base(model)
        found = _Sum(Outcome(number, len(rounds), len(rounds[number])))
        for learned in engine.run(base, [Task(shard, model.reading, least, left) for shard in rounds[number]], stop):
            found.add(learned)
        found.check(rounds[number], left, skip_bad)
        found.outcome.bytes_moved += base.sent * len(rounds[number])
        found.put_into(model)
        place.update({"rounds": number + 1, "bad": place.get("bad", 0) + found.outcome.n_bad})
        place.setdefault("size", found.size())
        yield found.outcome


SIZE = 1 << 16
"""What stands for 1 in the size of features, which is kept as a whole number."""


class _Sum:
    """All shards of a round, each counted once, and their sum: one is held, not all of them."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self._total: AnyDelta | None = None
        self._found: dict[int, Learned] = {}

    def add(self, learned: Learned) -> None:
        """Another shard, or several together; or the same again."""
        if learned.refused is not None:
            raise (BrokenInputError if learned.broken else DataError)(learned.refused)
        gained, shards = learned.gained, [learned, *learned.others]
        if gained is None or gained.delta is None or any(one.index in self._found for one in shards):
            return
        delta, gained.delta = gained.delta, None
        self._total = delta if self._total is None else merged(self._total, delta)
        self.outcome.bytes_moved += delta.nbytes
        for one in shards:
            self._found[one.index] = one
            self.outcome.rows += one.rows
            self.outcome.n_bad += one.n_bad
            self.outcome.worker_seconds += one.seconds

    def in_order(self) -> list[Learned]:
        """What came of the shards, in their order."""
        return [self._found[index] for index in sorted(self._found)]

    def check(self, shards: Sequence[Shard], left: int, skip_bad: int) -> None:
        """Refuse a round that is not whole, or has more bad records than may be left out."""
        for shard in shards:
            if shard.index not in self._found:
                msg = f"{shard}: no worker has said what it learned; look at the engine's own log"
                raise ShardError(msg)
        self.outcome.bad = [text for one in self.in_order() for text in one.bad]
        if self.outcome.n_bad > left:
            msg = f"{self.outcome.bad[0]}; more than {skip_bad} bad records; mend them, or allow more (--skip-bad)"
            raise DataError(msg)

    def put_into(self, model: Learner) -> None:
        """Multiply the sum into the belief, and count rows in the order of the shards: losses are no whole numbers."""
        if self._total is not None:
            model.belief.apply(self._total)
        for one in self.in_order():
            if one.gained is not None:
                model.take(one.gained)

    def size(self) -> int:
        """Geometric mean of x²: as large as most features are, whatever the largest do."""
        entries = sum(one.entries for one in self._found.values())
        log_square = math.fsum(one.log_square for one in self._found.values())
        return max(1, min(1 << 60, round(SIZE * math.exp(log_square / entries)))) if entries else SIZE
