"""A stack learned apart by the shards of a round: its lanes as a mixture's, the rest by what comes last, or adds up.

The stack learns how much lanes count from what they predict. In a shard these are predictions of all that was known
when the round began, not of the tempered lanes that learn there. The shares are a small dense Gaussian, which many rows
have told of before anything is learned apart: its natural parameters add. The lane that forgets remembers a hundred
rows; a shard has hundreds of times as many, so each begins it anew, and the last one's is what the round leaves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from gaussfold.beliefs.dense.delta import MatrixDelta
from gaussfold.beliefs.diagonal.apart import Cells
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.delta import fixed_evidence
from gaussfold.beliefs.diagonal.stack_delta import StackDelta, Tail
from gaussfold.beliefs.diagonal.stack_numbers import StackNumbers
from gaussfold.beliefs.diagonal.state import State
from gaussfold.engine.sparse.deltas import BITS
from gaussfold.linalg.small import inverse, lower_roots, symmetrised
from gaussfold.observations import Observations
from gaussfold.rows import sparse_rows
from gaussfold.trace import Pass, Trace
from gaussfold.types import Array, Program

if TYPE_CHECKING:
    from gaussfold.beliefs.diagonal.stack import DiagonalStack

IN_ORDER_UNTIL_ERROR = Pass(whole=False)


class Known(NamedTuple):
    """What a shard of several predicts with, and how well."""

    lanes: State | None
    """Of the round's beginning; None: the shard is alone, and its own lanes predict."""
    evidence: Array
    """Logarithms of what each lane, and the stack, has said of the labels: added to."""


@final
class StackCells:
    """A stack apart; see `gaussfold.beliefs.diagonal.apart.Apart`."""

    def __init__(self, stack: DiagonalStack, shards: int, least: float) -> None:
        self._stack, self._alone = stack, shards == 1
        self._lanes = Cells(stack.parts(), shards, least)
        self._fresh = stack.returns_to.copy()
        self._now = stack

    def begin(self, index: int) -> None:
        """The next shard. The first of a round goes on with the lane that forgets, others begin it anew."""
        self._lanes.begin(index)
        moving = self._stack.follower.copy() if index == 0 else self._fresh
        known = Known(None if self._alone else self._lanes.known, np.zeros(self._stack.numbers.weights.size))
        self._now = self._stack.shard(self._lanes.now, moving, known)

    def learn(self, data: Observations, program: Program) -> Trace:
        """Learn rows."""
        self._lanes.note(sparse_rows(data.X, self._stack.dim).indices)
        return self._now.absorb_stream(data, program, IN_ORDER_UNTIL_ERROR)

    def slots(self) -> np.ndarray:
        """Features that the shard's rows have met, in increasing order."""
        return self._lanes.slots()

    def delta(self, *, last: bool) -> StackDelta:
        """What the shard has learned, which ends it."""
        now, before, slots = self._now.numbers, self._stack.numbers, self.slots()
        moving = self._now.follower.parts()
        tail = _tail(moving, slots, now.recent) if last else None
        _put_back(moving, self._stack.returns_to, slots)
        assert self._now.known is not None
        return StackDelta(
            self._lanes.delta(last=last),
            MatrixDelta.between(_shares(before), _shares(now)),
            fixed_evidence(before.evidence_for(now) if self._alone else self._now.known.evidence),
            round(float(now.learned[0] - before.learned[0])),
            now.averaging.copy(),
            tail,
        )


def _shares(numbers: StackNumbers) -> tuple[Array, Array]:
    """Natural parameters of the few shares: by NumPy, for SciPy's linear algebra takes a tenth of a second to load."""
    precision = symmetrised(inverse(numbers.cov))
    return precision, precision @ numbers.mean


def _tail(state: State, slots: np.ndarray, recent: Array) -> Tail:
    if state.alike or state.still:  # no row has come
        return Tail(slots[:0], np.empty((0, *state.cells.shape[1:]), state.cells.dtype), np.empty(0), recent.copy())
    return Tail(slots, state.cells[slots], state.clock[0] - state.seen[slots], recent.copy())


def _put_back(state: State, fresh: DiagonalGaussian, slots: np.ndarray) -> None:
    """As before any row."""
    if not (state.alike or state.still):
        state.cells[slots] = fresh.stored_cells()[slots if not fresh.uniform else slice(None)]
        state.seen[slots] = 0.0
        state.clock[:] = 0.0


def applied(numbers: StackNumbers, change: StackDelta) -> StackNumbers:
    """Shares and weights after a round."""
    if change.learned == 0:
        return numbers.copied()
    parts = zip(_shares(numbers), change.shares.natural(), strict=True)
    precision, shift = (known + more for known, more in parts)
    lower_roots(precision, "delta: shares' precision")  # refuses what is no Gaussian
    cov = symmetrised(inverse(precision))
    gained = np.ldexp(change.evidence.astype(float), -BITS)
    recent = numbers.recent if change.tail is None else change.tail.recent
    return StackNumbers(
        cov @ shift,
        cov,
        recent.copy(),
        numbers.weights_after(gained, change.learned),
        np.maximum(numbers.averaging, change.averaging),
        numbers.learned + change.learned,
    )


def remember(moving: DiagonalGaussian, tail: Tail | None, passed: float) -> None:
    """Time passes for the lane that forgets; then it remembers what came last. Its clock runs."""
    state = moving.parts()
    state.clock[0] += passed
    if tail is not None and tail.slots.size:
        state.widen(tail.slots)
        state.cells[tail.slots] = tail.cells
        state.seen[tail.slots] = np.maximum(state.clock[0] - tail.age, 0.0)
