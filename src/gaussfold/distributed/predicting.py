"""Predictions of many rows by several processes, in the order of the rows: the same as by one."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import NamedTuple, Protocol

import numpy as np

from gaussfold.data.chunks import Chunk
from gaussfold.data.intake import Intake
from gaussfold.data.messages import BrokenInputError, DataError
from gaussfold.data.reading import Reading
from gaussfold.data.units import Unit, read_unit
from gaussfold.distributed.rounds import ShardError

ATTEMPTS = 5
"""So often the processes may end before the run does."""
AHEAD = 2
"""Units a process may be ahead of what was written: predictions wait in memory."""


class Predicts(Protocol):
    """A model, and what is wanted of it."""

    def __call__(self, chunk: Chunk) -> dict[str, np.ndarray]:
        """Columns of numbers, one row each."""
        ...


class Predicted(NamedTuple):
    """What is said of the rows of a unit, and which records were left out."""

    columns: dict[str, np.ndarray]
    tags: list[str]
    bad: list[str]
    refused: str | None = None
    """What is wrong with the data, where that ends the run: told, since errors do not always travel."""
    broken: bool = False


class Work(NamedTuple):
    """How units are read and predicted."""

    open: Callable[[], Predicts]
    """Makes the model, once a process."""
    reading: Reading
    max_bad: int
    tags: bool


_opened: dict[str, Predicts] = {}


def predict_unit(work: Work, unit: Unit) -> Predicted:
    """Read and predict one unit."""
    if "model" not in _opened:
        _opened["model"] = work.open()
    intake = Intake(work.reading, max_bad=work.max_bad, tags=work.tags, ring=2, refuse_nul=True)
    found: list[dict[str, np.ndarray]] = []
    tags, bad = list[str](), list[str]()
    try:
        for chunk in read_unit(unit, intake):
            bad += [str(record) for record in chunk.bad]
            if len(chunk):
                found.append(_opened["model"](chunk))
                tags += chunk.tags or [""] * len(chunk)
    except DataError as error:
        return Predicted({}, [], [], f"{error}", isinstance(error, BrokenInputError))
    columns = {name: np.concatenate([part[name] for part in found]) for name in (found[0] if found else {})}
    return Predicted(columns, tags, bad)


def predict_units(work: Work, units: Sequence[Unit], workers: int) -> Iterator[Predicted]:
    """What is said of each unit, in their order. A process that dies costs what it had begun."""
    at, lost = 0, 0
    while at < len(units):
        try:
            for predicted in _in_order(work, units[at:], workers):
                if predicted.refused is not None:
                    raise (BrokenInputError if predicted.broken else DataError)(predicted.refused)
                at, lost = at + 1, 0
                yield predicted
        except BrokenProcessPool as error:
            lost += 1
            if lost >= ATTEMPTS:
                msg = f"{units[at]}: its process ended {ATTEMPTS} times; is there enough memory? Give fewer --workers"
                raise ShardError(msg) from error


def _in_order(work: Work, units: Sequence[Unit], workers: int) -> Iterator[Predicted]:
    waiting: deque[Future[Predicted]] = deque()
    pool = ProcessPoolExecutor(workers, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))
    try:
        for unit in units:
            waiting.append(pool.submit(predict_unit, work, unit))
            if len(waiting) > AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
