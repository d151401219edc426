"""What a worker does with a shard: read its units, learn them from the base, and say what was learned."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import pickle
import platform
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits

import gaussfold
from gaussfold.beliefs.diagonal.apart import AnyDelta
from gaussfold.beliefs.diagonal.delta import CellDelta
from gaussfold.beliefs.diagonal.stack_delta import StackDelta
from gaussfold.beliefs.diagonal.stack_lanes import one_after_the_other
from gaussfold.data.chunks import Chunk
from gaussfold.data.intake import Intake
from gaussfold.data.messages import BrokenInputError, DataError
from gaussfold.data.reading import Reading
from gaussfold.data.units import Unit, read_unit
from gaussfold.distributed.learning import Gained, Learner, LearnerApart
from gaussfold.distributed.plan import Shard
from gaussfold.trace import RowError, Trace

SHOWN = 5
"""Bad records of a shard that are told one by one."""


class StoppedError(RuntimeError):
    """Somebody asked to stop; the belief is that of the last round."""


def never() -> bool:
    """Nobody asks to stop."""
    return False


class Base:
    """The model that a round begins with; as bytes that travel, and their digest, if anybody asks for them."""

    def __init__(self, model: Learner) -> None:
        self.model = model

    @cached_property
    def raw(self) -> bytes:
        """The model, taken apart."""
        return pickle.dumps((type(self.model), self.model.store_header(), self.model.state()), protocol=5)

    @cached_property
    def key(self) -> str:
        """What it is known by."""
        return hashlib.sha256(self.raw).hexdigest()[:16]

    @property
    def sent(self) -> int:
        """Bytes of it that have travelled to whoever learns a shard."""
        return len(self.raw) if "raw" in vars(self) else 0


@dataclass(frozen=True)
class Task:
    """A shard and how it is learned."""

    shard: Shard
    reading: Reading
    least: float
    """See ``beliefs.diagonal``: cells known less than this are not tempered."""
    skip_bad: int
    version: str = field(default_factory=lambda: own_version())


@dataclass
class Learned:
    """What came of a shard; or why nothing did."""

    index: int
    gained: Gained | None = None
    rows: int = 0
    n_bad: int = 0
    bad: list[str] = field(default_factory=list)
    log_square: float = 0.0
    """Sum of log x² over the entries of the rows, and their number: how large features are, in the first round."""
    entries: int = 0
    seconds: float = 0.0
    """Of processor time."""
    refused: str | None = None
    """What is wrong with the data, where that ends the run."""
    broken: bool = False
    """Whether the input is damaged, and not only strange."""
    others: list[Learned] = field(default_factory=list)
    """Shards whose deltas are in this one's: see `together`."""


def together(found: Sequence[Learned]) -> Learned:
    """What came of several shards as one, their deltas added up: less to send, and less for the driver to add.

    Numbers are whole, so it is all the same who adds up what; what is counted in the order of the shards stays apart.
    ``found`` is left as it is: an engine may ask for it again.
    """
    refused = next((one for one in found if one.refused is not None), None)
    if refused is not None:
        return refused
    shards = [one for each in found for one in (each, *each.others)]
    gained = [one.gained for one in shards if one.gained is not None]
    total = functools.reduce(merged, [part.delta for part in gained if part.delta is not None])
    first, *others = [
        replace(one, gained=replace(own, delta=None), others=[]) for one, own in zip(shards, gained, strict=True)
    ]
    return replace(first, gained=replace(gained[0], delta=total), others=others)


def together_of(*found: Learned) -> Learned:
    """The same for engines that look for results among the arguments."""
    return together(found)


def groups(tasks: Sequence[Task]) -> list[Sequence[Task]]:
    """Shards that are added up by whoever has them, before the driver adds up what is left: a tree of two levels."""
    size = max(1, math.isqrt(len(tasks)))
    return [tasks[at : at + size] for at in range(0, len(tasks), size)]


def merged(one: AnyDelta, other: AnyDelta) -> AnyDelta:
    """Both together: they come from one belief, so they are of one kind."""
    if isinstance(one, StackDelta):
        assert isinstance(other, StackDelta)
        return one.merge(other)
    assert isinstance(other, CellDelta)
    return one.merge(other)


def own_version() -> str:
    """What workers and driver must have in common for the same numbers."""
    return f"gaussfold {gaussfold.__version__}, numpy {np.__version__}, Python {platform.python_version()}"


class Opened:
    """The model of a round in this process, and what its shards are learned by: as many as there are threads."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self._free: list[tuple[tuple[int, float], LearnerApart]] = []

    @contextlib.contextmanager
    def apart(self, shards: int, least: float) -> Iterator[LearnerApart]:
        """Of the shards before, or anew; one in which a shard was broken off is not used again."""
        try:
            known, found = self._free.pop()
        except IndexError:
            known = None
        apart = found if known == (shards, least) else self.learner.apart(shards, least)
        yield apart
        self._free.append(((shards, least), apart))


_read: list[tuple[object, Intake]] = []
"""Runs over units that are over: their memory, tens of megabytes that have to be cleared first, is used again."""


@contextlib.contextmanager
def _intake(reading: Reading, max_bad: int, *, keep_names: bool) -> Iterator[Intake]:
    """What one shard is read by."""
    kind = (reading, keep_names)
    try:
        known, found = _read.pop()
    except IndexError:
        known = None
    if known == kind:
        intake = found.again(reading, max_bad)
    else:
        intake = Intake(reading, max_bad=max_bad, keep_names=keep_names, ring=2, refuse_nul=True)
    yield intake
    _read.append((kind, intake))


_kept: dict[str, Opened] = {}
"""The base of the present round: one worker learns several of its shards."""
_keeping = threading.Lock()


def open_base(read: Callable[[], bytes], key: str) -> Opened:
    """The model that was taken apart; made once per round and process."""
    with _keeping:
        if key not in _kept:
            _kept.clear()
            kind, header, arrays = pickle.loads(read())
            _kept[key] = Opened(kind.from_store(header, arrays))
        return _kept[key]


def learn_shard(base: Opened, task: Task, stop: Callable[[], bool] = never) -> Learned:
    """Read and learn one shard. Data that cannot be learned are told, not raised: another worker would fail as well.

    ``stop`` is asked after every chunk; `StoppedError` then.
    """
    began = time.thread_time()
    if task.version != own_version():
        msg = f"worker {platform.node()}: it has {own_version()}, the driver {task.version}; install the same on both"
        return Learned(task.shard.index, refused=msg)
    left_out: list[Unit] = []
    while True:
        try:
            with (
                base.apart(task.shard.count, task.least) as apart,
                _intake(task.reading, task.skip_bad, keep_names=base.learner.names is not None) as intake,
                one_after_the_other(),
            ):
                attempt = _Attempt(intake, apart, task, left_out, stop)
                learned = attempt.learn()
            break
        except BrokenInputError as error:  # what came before the damage may be wrong as well: begin anew without
            if task.skip_bad == 0:
                return Learned(task.shard.index, refused=f"{error}", broken=True)
            left_out.append(attempt.unit)
        except DataError as error:
            return Learned(task.shard.index, refused=f"{error}")
    learned.seconds = time.thread_time() - began
    return learned


def learn_shards(base: Opened, tasks: Sequence[Task], stop: Callable[[], bool] = never) -> Learned:
    """Read and learn several, one after the other: see `together`."""
    return together([learn_shard(base, task, stop) for task in tasks])


def learn_bytes(raw: bytes, key: str, task: bytes) -> Learned:
    """On a worker of some engine: a shard that came as bytes, which no engine looks into."""
    with threadpool_limits(1):  # with more threads matrices are multiplied in another order
        return learn_shard(open_base(lambda: raw, key), pickle.loads(task))


class _Attempt:
    """One pass over a shard's units, those left out that are damaged."""

    def __init__(
        self, intake: Intake, apart: LearnerApart, task: Task, left_out: list[Unit], stop: Callable[[], bool]
    ) -> None:
        self._intake, self._stop = intake, stop
        self._apart, self._task, self._left_out = apart, task, left_out
        self._out = Learned(task.shard.index)
        self.unit = task.shard.units[0]

    def learn(self) -> Learned:
        out, task, intake = self._out, self._task, self._intake
        self._apart.begin(task.shard.index)
        for unit in task.shard.units:
            self.unit = unit
            if unit in self._left_out:
                out.n_bad += unit.rows
                out.bad.append(f"{unit}: damaged, {unit.rows} rows left out")
                continue
            for chunk in read_unit(unit, intake):
                out.bad += [str(record) for record in chunk.bad[: max(0, SHOWN - len(out.bad))]]
                self._chunk(chunk)
                if self._stop():
                    raise StoppedError
        out.n_bad += intake.n_bad
        out.gained = self._apart.gained(last=task.shard.index == task.shard.count - 1)
        return out

    def _chunk(self, chunk: Chunk) -> None:
        self._out.rows += len(chunk)
        if self._task.shard.round == 0:
            sizes = self._apart.sizes(chunk)
            sizes = sizes[sizes != 0.0]
            self._out.log_square += 2.0 * float(np.log(sizes).sum())
            self._out.entries += sizes.size
        at = 0
        while at < len(chunk):
            part = chunk.rows(at) if at else chunk
            trace, count = self._rows(part)
            if trace is not None:
                self._apart.add(part, trace, 0, count)
            at += count
            if count < len(part):
                self._bad_row(part, count)
                at += 1

    def _rows(self, chunk: Chunk) -> tuple[Trace | None, int]:
        """Learn rows up to the first that cannot be; what was predicted before, and how many they were."""
        try:
            return self._apart.learn(chunk), len(chunk)
        except RowError as error:
            return error.trace, error.row

    def _bad_row(self, chunk: Chunk, row: int) -> None:
        self._out.n_bad += 1
        msg = f"{chunk.source}:{chunk.line[row]}: the row drives the weights out of range; rescale its features"
        if self._out.n_bad > self._task.skip_bad:
            raise DataError(msg)
        self._out.bad.append(msg)
