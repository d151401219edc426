"""What a stack does with its lanes: let them learn side by side, draw from them, leave out what they predict with."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import NamedTuple

import numpy as np

from gaussfold.beliefs.diagonal import passes
from gaussfold.beliefs.diagonal.base import NO_SECOND_VISIT
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.beliefs.diagonal.passes import Sparse
from gaussfold.beliefs.diagonal.stack_numbers import StackNumbers
from gaussfold.beliefs.diagonal.state import State
from gaussfold.dynamics import moving
from gaussfold.engine.programs import can_be_marginalised
from gaussfold.trace import Pass, Trace
from gaussfold.types import Array, ArrayLike, Moments, Program

SIDE_BY_SIDE = 1 << 14
"""So many entries are worth a thread of their own."""
_threaded = ContextVar("threaded", default=True)


@contextlib.contextmanager
def one_after_the_other() -> Iterator[None]:
    """Let lanes learn in the caller's thread: where other processes have work for the other cores. The numbers stay."""
    before = _threaded.set(False)
    try:
        yield
    finally:
        _threaded.reset(before)


def away(cells: Array, k: int, rng: np.random.Generator) -> Array:
    """How far a draw of some parameters is from their means, under lane k or the stack."""
    return np.asarray(np.sqrt(cells[:, 1, k]) * rng.standard_normal(len(cells)))


def without_predictions(mean: Array, variance: Array) -> Moments:
    """Lanes, and of the stack what it reports."""
    return Moments(np.delete(mean, -2, axis=1), np.delete(variance, -2, axis=1))


def beside(mets: Sequence[passes.Met | Moments], start: int, stop: int) -> Moments:
    """Marginals of some rows, of all who met them."""
    return Moments(
        np.concatenate([met.mean[start:stop] for met in mets], axis=1),
        np.concatenate([met.variance[start:stop] for met in mets], axis=1),
    )


Tell = Callable[[int], None]
"""Hears how many rows are done."""


class Lane(NamedTuple):
    """Cells that learn, and by what rate their clock runs; and which are to predict, if not they themselves."""

    state: State
    rate: float
    predicting: State | None = None

    def predicts(self, data: Sparse, met: passes.Met) -> passes.Met | Moments:
        """Marginals of all rows: those that will have been ``met``, or what another's cells say."""
        return met if self.predicting is None else passes.look_at(self.predicting, data.rows)

    def learn(
        self, data: Sparse, program: Program, met: passes.Met, tell: Tell, *, logged: bool, parts: bool
    ) -> tuple[State, passes.Learned]:
        """Learn the rows and tell, of each of their ``parts`` or of all; returns how that is taken back."""
        done = passes.learn(self.state, data, program, self.rate, logged=logged, met=met, tell=tell if parts else None)
        if not parts and done.failed < 0:
            tell(data.y.size)
        return self.state, done


def visit(
    lanes: Sequence[Lane], stack: StackNumbers, data: Sparse, program: Program,
    learned: list[tuple[State, passes.Learned]], *, logged: bool, evidence: Array | None,
) -> Trace | int:  # fmt: skip
    """Lanes learn the rows side by side, and the stack behind them; what it predicted, or the first row that failed.

    ``learned`` gets how each lane is taken back, ``evidence`` what `StackNumbers.learn` adds.
    """
    mets = [passes.Met.room(lane.state, data.y.size) for lane in lanes]
    seen = [lane.predicts(data, met) for lane, met in zip(lanes, mets, strict=True)]
    told: list[Trace | int] = []

    def worker(lane: Lane, met: passes.Met) -> Callable[[Tell], None]:
        # evidence is added up in one piece: its last bit must not depend on who is how far
        return lambda tell: learned.append(lane.learn(data, program, met, tell, logged=logged, parts=evidence is None))

    def follow(start: int, stop: int) -> None:
        if not told or isinstance(told[-1], Trace):
            outcome = stack.learn(beside(seen, start, stop), data, slice(start, stop), program, evidence)
            told.append(outcome if isinstance(outcome, Trace) else start + outcome)

    abreast([worker(lane, met) for lane, met in zip(lanes, mets, strict=True)], follow, data)
    return _outcome([done.failed for _, done in learned], told)


def _outcome(failed: list[int], told: list[Trace | int]) -> Trace | int:
    """The first row at which anybody failed, or what was told of all."""
    wrong = [row for row in failed if row >= 0] + [row for row in told if not isinstance(row, Trace)]
    return min(wrong) if wrong else Trace.joined([trace for trace in told if isinstance(trace, Trace)])


def abreast(workers: Sequence[Callable[[Tell], None]], follow: Callable[[int, int], None], data: Sparse) -> None:
    """Let workers go through the same rows at the same time, and one who follows take what all of them have done.

    ``follow(start, stop)`` is called in this thread. A worker that ends before it has told of all rows ends the work.
    """
    n = data.y.size
    if data.rows.data.size < SIDE_BY_SIDE or not _threaded.get():  # not worth a thread
        line = _Line(len(workers), n)
        for k, work in enumerate(workers):
            line.run(work, k)
        line.follow(follow)
        line.check()
        return
    line = _Line(len(workers), n)
    threads = [threading.Thread(target=line.run, args=(work, k)) for k, work in enumerate(workers)]
    for thread in threads:
        thread.start()
    try:
        line.follow(follow)
    finally:
        for thread in threads:
            thread.join()
    line.check()


class _Line:
    """How far each worker is."""

    def __init__(self, workers: int, rows: int) -> None:
        self._done, self._left, self._rows = [0] * workers, workers, rows
        self._news = threading.Condition()
        self._errors: list[BaseException] = []

    def run(self, work: Callable[[Tell], None], k: int) -> None:
        """Do the k-th worker's work."""

        def tell(rows: int) -> None:
            with self._news:
                self._done[k] = rows
                self._news.notify()

        try:
            work(tell)
        except BaseException as error:
            self._errors.append(error)
        finally:
            with self._news:
                self._left -= 1
                self._news.notify()

    def follow(self, take: Callable[[int, int], None]) -> None:
        """Take rows as soon as all workers have done them."""
        at = 0
        while at < self._rows:
            with self._news:
                while min(self._done) == at and self._left:
                    self._news.wait()
                stop = min(self._done)
            if stop == at:
                return
            take(at, stop)
            at = stop

    def check(self) -> None:
        """Raise what a worker has raised."""
        if self._errors:
            raise self._errors[0]


def log_density(cells: Array, log_weights: Array, coupling: Coupling, theta: ArrayLike) -> Array:
    """Log density of a mixture of diagonal Gaussians, whose cells are given, at each row of theta."""
    parts = [
        log_weights[k] + DiagonalGaussian(cells[:, 0, k], cells[:, 1, k], coupling).log_prob(theta)
        for k in range(cells.shape[2])
    ]
    return np.asarray(np.logaddexp.reduce(parts, axis=0))


def check_pass(state: State, program: Program, how: Pass) -> None:
    """Refuse what lanes cannot learn by."""
    if how.sites is not None:
        raise ValueError(NO_SECOND_VISIT)
    if moving(how.dynamics) is not None:
        msg = "dynamics: the lanes of a DiagonalStack stand still or forget as they were told; use a DiagonalMixture"
        raise ValueError(msg)
    if not can_be_marginalised(program):
        msg = "belief: a DiagonalStack averages likelihoods over Gaussians, which a Student-t has no form for"
        raise ValueError(msg)
    passes.check(state, program)
