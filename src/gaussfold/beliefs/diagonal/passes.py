"""Rows meet the cells of a diagonal belief: they are looked at, or learned, whole or not at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from gaussfold.beliefs.diagonal.kept_rows import SHARE, KeptRows
from gaussfold.beliefs.diagonal.state import State
from gaussfold.engine.programs import can_be_marginalised, is_fast, is_newton_at_posterior, mix_rows, score_rows
from gaussfold.engine.sparse.absorb import Log, absorb_any, absorb_logit
from gaussfold.engine.sparse.cells import look, look_still, undo
from gaussfold.engine.sparse.second_look import absorb_twice_any, absorb_twice_logit
from gaussfold.engine.sparse.visit_any import HEIGHT, JOINT, MARGINAL, ONE_STEP
from gaussfold.rows import Rows
from gaussfold.trace import RowError, Trace
from gaussfold.types import Array, Moments, Program

LANES = (1, 4, 8)
"""Numbers of components that the fast loop is written for."""
NEAR = 1 << 20
"""Cells of fewer bytes are in the caches: asking for them ahead of time only costs."""
LOOKED_AT, SCATTERED = 1024, 256
"""So many entries of the rows are looked at, and are all over the memory if they lie in more cache lines than this."""

PART = 1 << 15
"""So many entries make a part of the rows that others wait for: a part costs some ten microseconds to begin."""
IMPOSSIBLE = math.log(5e-324)
"""Log probability of what a double calls impossible."""


class Met(NamedTuple):
    """What a pass writes per row: the components' marginals (n×K), and the row's site where it has one."""

    mean: Array
    variance: Array
    site_precision: Array
    site_shift: Array

    @classmethod
    def room(cls, state: State, n: int) -> Met:
        """For n rows. With marginal coupling there is a site per feature, none per row."""
        marginals = np.empty((2, n, state.cells.shape[2]))
        sites = np.empty((2, n))
        sites.fill(0.0 if state.coupling.form[0] == JOINT else math.nan)  # a third of the time of np.full
        return cls(marginals[0], marginals[1], sites[0], sites[1])

    def before(self, row: int) -> Met:
        """Of the rows before this one, in memory of their own."""
        return Met(*(column[:row].copy() for column in self))


def look_at(state: State, rows: Rows) -> Moments:
    """Mean and variance of x'θ per row and component, shape (n, K)."""
    n, k = rows.shape[0], state.cells.shape[2]
    mean, variance = np.empty((n, k)), np.empty((n, k))
    indptr, indices, data = rows.plain()
    if not state.alike:
        state.write(indices)
    if state.still:
        look_still(state.cells, indptr, indices, data, mean, variance)
        return Moments(mean, variance)
    look(
        state.cells, state.seen, state.clock[0], state.kind, state.prior, indptr, indices, data, mean, variance
    )  # fmt: skip
    return Moments(mean, variance)


class Sparse(NamedTuple):
    """Checked rows, their labels and weights."""

    rows: Rows
    y: Array
    weight: Array

    def part(self, rows: slice) -> Sparse:
        """Some of the rows, sharing memory."""
        return Sparse(self.rows[rows], self.y[rows], self.weight[rows])


class Learned(NamedTuple):
    """A pass that is over: what it met, the row that failed or -1, and how it is taken back."""

    met: Met
    failed: int
    undoing: Undo
    size: int

    def take_back(self, state: State) -> None:
        """Put everything back, if a log was kept."""
        self.undoing.restore(state, self.size)


def learn(
    state: State, data: Sparse, program: Program, rate: float, *, logged: bool, met: Met | None = None,
    tell: Callable[[int], None] | None = None,
) -> Learned:  # fmt: skip
    """Visit rows in order, each once, and say nothing of how they were predicted.

    ``met``: where to write what is met. ``tell`` hears how many rows are done: of all, or part by part without a log.
    """
    undoing = Undo(state, state.written_over(data.rows.data.size) if logged else 0)
    met = Met.room(state, data.y.size) if met is None else met
    if tell is None or logged:
        failed, size = _run(state, data, program, rate, undoing, met)
        if tell is not None and failed < 0:
            tell(data.y.size)
        return Learned(met, failed, undoing, size)
    step = max(1, data.y.size * PART // max(data.rows.data.size, 1))
    for start in range(0, data.y.size, step):
        part = slice(start, start + step)
        failed, _ = _run(state, data.part(part), program, rate, undoing, Met(*(column[part] for column in met)))
        if failed >= 0:
            return Learned(met, start + failed, undoing, 0)
        tell(min(start + step, data.y.size))
    return Learned(met, -1, undoing, 0)


def absorb(state: State, data: Sparse, program: Program, rate: float, *, whole: bool) -> Trace:
    """Visit rows in order, each once; ``rate`` is what the clock counts per learned row.

    ``whole=False``: on an error the rows before the one that failed stay learned (``RowError.trace``); no copy of what
    is overwritten has to be kept then.
    """
    learned = learn(state, data, program, rate, logged=whole)
    met, failed = learned.met, learned.failed
    if failed >= 0 and whole:
        learned.take_back(state)
        raise RowError(failed)
    try:
        if failed < 0:
            return score(state, data.y, data.weight, program, met)
        trace = score(state, data.y[:failed], data.weight[:failed], program, met.before(failed))
    except BaseException:
        if whole:
            learned.take_back(state)
        raise
    raise RowError(failed, trace)


def check(state: State, program: Program) -> None:
    """Refuse what the coupling is not defined for."""
    coupling, mean, variance = state.coupling.form
    if coupling == MARGINAL and not can_be_marginalised(program):
        msg = "coupling='marginal': a Student-t likelihood cannot be integrated over; use coupling='joint'"
        raise ValueError(msg)
    if (mean == ONE_STEP or variance == HEIGHT) and not is_newton_at_posterior(program):
        usual = type(state.coupling).__name__
        msg = f"coupling={state.coupling!r} goes with rule='newton', at='posterior'; use {usual}() for others"
        raise ValueError(msg)


class Undo:
    """How a pass over rows of so many entries is taken back: by what was written over, or by a copy of all cells.

    Where the cells are fewer than the entries a copy of them is the cheaper log. No entries: it is not.
    """

    def __init__(self, state: State, entries: int) -> None:
        copied = 0 < state.dim <= entries
        logged = 0 if copied else entries
        self.log = (
            np.empty((logged, *state.cells.shape[1:]), dtype=state.cells.dtype),
            np.empty(logged if state.seen.size else 0),
            np.empty(logged, dtype=np.uint64),
        )
        self._clock, self._log_weights = float(state.clock[0]), state.log_weights.copy()
        self._kept = state.kept
        self._copy = (state.cells.copy(), state.seen.copy()) if copied else None

    def restore(self, state: State, size: int) -> None:
        """Put everything back; ``size`` entries of the log were used."""
        if self._copy is not None:
            state.cells[:], state.seen[:] = self._copy
        else:
            undo(state.cells, state.seen, *self.log, size)
        state.clock[0] = self._clock
        state.log_weights[:] = self._log_weights
        state.kept = self._kept


def _run(state: State, data: Sparse, program: Program, rate: float, undoing: Undo, met: Met) -> tuple[int, int]:
    """Choose the loop; returns the row that failed or -1, and the size of the log."""
    if state.kept is not None:
        return _run_twice(state, state.kept, data, program, undoing, met)
    form = state.coupling.form
    time = (state.seen, state.clock, state.kind, rate, state.prior)
    rows = data.rows
    shared = (
        state.cells,
        time,
        undoing.log,
        *rows.plain(),
        data.y,
        data.weight,
        _limits(state.cells.dtype),
        rows.longest,
    )
    if is_fast(program, form) and state.cells.shape[2] in LANES:
        failed, size = absorb_logit(*shared, _far(state.cells, rows.indices), met.mean, met.variance)
    else:
        failed, size = absorb_any(*shared, met.mean, met.variance, program, form, met.site_precision, met.site_shift)
    return int(failed), int(size)


def _run_twice(
    state: State, kept: KeptRows, data: Sparse, program: Program, undoing: Undo, met: Met
) -> tuple[int, int]:
    """The same, some rows at a time, and rows that were kept long enough are visited again."""
    total = 0
    step = max(1, data.y.size * max(PART, kept.entries) // max(data.rows.data.size, 1))
    for start in range(0, data.y.size, step):
        part = slice(start, start + step)
        cells, seen, at = undoing.log
        log = cells[total:], seen[total:], at[total:]
        here = Met(*(column[part] for column in met))
        failed, size, kept = _look_twice(state, kept, data.part(part), program, log, here)
        state.kept = kept
        total += size
        if failed >= 0:
            return start + failed, total
    return -1, total


def _look_twice(
    state: State, kept: KeptRows, data: Sparse, program: Program, log: Log, met: Met
) -> tuple[int, int, KeptRows]:
    rows, form = data.rows, state.coupling.form
    kept = kept.with_room(data.y.size, rows.data.size)
    span = (kept.rows, SHARE, kept.first, kept.last, kept.learned, float(np.finfo(state.cells.dtype).eps))
    shared = (
        state.cells, log, rows.plain(), (data.y, data.weight), _limits(state.cells.dtype),
        max(rows.longest, kept.longest),
    )  # fmt: skip
    if is_fast(program, form) and state.cells.shape[2] in LANES:
        failed, size, first, last = absorb_twice_logit(*shared, (met.mean, met.variance), kept.room, span)
    else:
        failed, size, first, last = absorb_twice_any(*shared, tuple(met), (program, form), kept.room, span)
    return int(failed), int(size), kept.after(int(first), int(last))


@cache
def _limits(dtype: np.dtype[np.float64]) -> tuple[float, float]:
    """The smallest number that has all digits, and the largest."""
    info = np.finfo(dtype)
    return float(info.tiny), float(info.max)


def _far(cells: np.ndarray, indices: np.ndarray) -> bool:
    """Whether the rows' cells are too many for the caches, and are to be asked for ahead of time."""
    if cells.nbytes <= NEAR:
        return False
    some = indices[:: max(1, indices.size // LOOKED_AT)]
    lines = some.astype(np.int64) * cells[0].nbytes >> 6
    return np.unique(lines).size > SCATTERED


def score(state: State, y: Array, weight: Array, program: Program, met: Met) -> Trace:
    """What was predicted from the marginals that were met; the components' weights follow from it."""
    scores = np.empty_like(met.mean)
    score_rows(program, y, met.mean, met.variance, scores)
    if scores.shape[1] == 1:
        return Trace(met.mean[:, 0], met.variance[:, 0], scores[:, 0], met.site_precision, met.site_shift)
    before = state.log_weights.copy()
    mixed = mix_rows(program, y, weight, state.log_weights, met.mean, met.variance, scores)
    if not np.isfinite(state.log_weights).all():  # a row that none of them thinks possible tells nothing of them
        state.log_weights[:] = before
        lost = np.isneginf(scores)
        least = np.where(lost, 0.0, scores).min(axis=1, keepdims=True)
        scores = np.where(lost, least + IMPOSSIBLE, scores)
        mixed = mix_rows(program, y, weight, state.log_weights, met.mean, met.variance, scores)
    return Trace(mixed[0], mixed[1], mixed[2], met.site_precision, met.site_shift)
