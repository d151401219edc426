"""Diagonal beliefs that travel: the base of a worker, what it has learned, and putting that into the whole.

A worker that starts where the others start learns what all of them see, the constant above all, as well as they do;
added up, M workers move it M times too far. A base with the same means and a precision M times smaller lets each of
them say its own part, and what they say adds up to the whole. Cells of which little is known keep their precision:
there the prior holds, and few workers meet them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from gaussfold.beliefs.diagonal import storage
from gaussfold.beliefs.diagonal.delta import SCALE, CellDelta, fixed_evidence
from gaussfold.beliefs.diagonal.lazy_cells import MARKED
from gaussfold.beliefs.diagonal.state import STRETCH, State
from gaussfold.checks import same_dim
from gaussfold.engine.sparse.deltas import FixedCells, add_fixed, list_changed, temper, to_fixed

WHOLE = 62
"""Logarithm of the cells of a page that is all of memory."""
LOOKS_AGAIN = "belief: rows that are kept for a second look are learned in order, in one process; leave out second_look"
STANDS_STILL = "a belief over which time passes learns in order; learn it in one process, or without forgetting"


def tempered(state: State, shards: int, least: float) -> State:
    """The base of one of so many shards: 1/v becomes max(1/(v·s), min(1/v, max(1/v₀, least))), means stay."""
    _check_still(state)
    if state.kept is not None:
        raise ValueError(LOOKS_AGAIN)
    out = twin(state)
    if shards == 1 or out.alike:
        return out
    at_least = np.full(out.cells.shape[2], float(least))
    if out.blank is not None:
        at_least = np.maximum(at_least, 1.0 / out.blank[0, 1].astype(float))
    columns = out.touched()
    cells = out.cells[columns]
    temper(cells, at_least, float(shards))
    out.cells[columns] = cells
    return out


def changed(state: State, base: State) -> np.ndarray:
    """Features whose cells differ, in increasing order."""
    if state.alike:
        state, base = base, state  # if they differ at all, then where the other has been
    if state.alike:
        same = np.array_equal(state.cells, base.cells)
        return np.arange(0 if same else state.dim, dtype=np.uint32)
    pages, page = _pages(state, base)
    where = np.flatnonzero(pages) << page if page < WHOLE else None
    for each in (state, base):
        if not each.alike:
            each.write(where)
    room = np.empty(min(state.dim, STRETCH) + 1, np.uint32)
    found = []
    for start in range(0, state.dim, STRETCH):
        n = list_changed(state.cells, base.cells, pages, page, start, min(start + STRETCH, state.dim), room)
        found.append(room[:n].copy())
    return np.concatenate(found)


def _pages(state: State, base: State) -> tuple[np.ndarray, int]:
    """Where the two may differ: on pages that either has met, if both began with the same blank cell."""
    began = base.cells if base.alike else base.blank
    if began is not None and state.blank is not None and np.array_equal(began, state.blank):
        pages, page = state.pages()
        if base.alike:
            return pages, page
        others, other_page = base.pages()
        if page == other_page and pages.size == others.size:
            return pages | others, page
    return np.ones(1, bool), WHOLE


def delta(state: State, base: State) -> CellDelta:
    """Natural parameters of the one less those of the other, where they differ."""
    same_dim("base", base.dim, state.dim)
    for each in (state, base):
        _check_still(each)
    if base.cells.shape[2] != state.cells.shape[2]:
        msg = f"base: {base.cells.shape[2]} components, the belief has {state.cells.shape[2]}; take the one it began as"
        raise ValueError(msg)
    slots = changed(state, base)
    n, k = slots.size, state.cells.shape[2]
    numbers = np.empty((2, n, k), np.int64)
    out = FixedCells(slots, np.empty((n, k), np.int16), numbers[0], numbers[1])
    large = to_fixed(some(state, slots), some(base, slots), out)
    if large >= 0:
        msg = f"delta: feature {slots[large]} has learned more than 64 bits hold; {SCALE}"
        raise ValueError(msg)
    with np.errstate(invalid="ignore"):  # of components that are ruled out
        return CellDelta(state.dim, out, fixed_evidence(state.log_weights - base.log_weights))


def some(state: State, columns: np.ndarray) -> np.ndarray:
    """Cells of some features, in the precision they are stored in."""
    if state.alike:
        return np.repeat(state.cells, columns.size, axis=0)
    state.write(columns)
    return np.asarray(state.cells[columns])


def apply(state: State, change: CellDelta) -> None:
    """Multiply what others have learned into the belief; whole or not at all."""
    same_dim("delta", change.dim, state.dim)
    _check_still(state)
    if change.evidence.size != state.log_weights.size:
        msg = f"delta: {change.evidence.size} components, the belief has {state.log_weights.size}"
        raise ValueError(msg)
    slots = change.cells.slots
    cells = some(state, slots).astype(np.float64)
    info = np.finfo(state.cells.dtype)
    bad = add_fixed(cells, change.cells, (float(info.tiny), float(info.max)))
    if bad >= 0:
        msg = f"delta: feature {slots[bad]} would no longer be a Gaussian; learn with fewer shards, or rescale it"
        raise ValueError(msg)
    if slots.size:
        state.widen(slots, sparingly=True)
        state.cells[slots] = cells
    if state.log_weights.size > 1:
        weights = state.log_weights + change.log_evidence()
        state.log_weights[:] = weights - np.logaddexp.reduce(weights)


def combine(prior: State, shards: Iterable[State]) -> State:
    """Prior × Π (shard / prior), in floating point, by the features that any shard has met."""
    parts = list(shards)
    for part in parts:
        same_dim("shards", part.dim, prior.dim)
    still = all(each.still for each in (prior, *parts))
    every = np.empty(0, np.uint32) if still else np.arange(prior.dim, dtype=np.uint32)
    columns = [changed(part, prior) if still else every for part in parts]
    slots = np.unique(np.concatenate([np.empty(0, np.uint32), *columns]))
    base = 1.0 / prior.each(slots)[:, 1]
    base_shift = base * prior.each(slots)[:, 0]
    precision, shift = base.copy(), base_shift.copy()
    for part, own in zip(parts, columns, strict=True):
        at = np.searchsorted(slots, own)
        cells = part.each(own)
        precision[at] += 1.0 / cells[:, 1] - base[at]
        shift[at] += cells[:, 0] / cells[:, 1] - base_shift[at]
    out = twin(prior) if still else State.start(prior.each().astype(prior.cells.dtype), prior.dim, prior.coupling)
    out.kept = None  # what its rows have said is no part of the prior
    if slots.size:
        with np.errstate(over="ignore", under="ignore"):
            cells = np.stack([shift / precision, 1.0 / precision], axis=1).astype(prior.cells.dtype)
        _check_cells(cells, slots)
        out.widen(slots, sparingly=True)
        out.cells[slots] = cells
    return out


def twin(state: State) -> State:
    """The same in memory of its own; of a large belief only what was met is looked at."""
    if state.alike or state.cells.nbytes >= MARKED:
        return storage.from_arrays(storage.to_arrays(state, copy=False), copy=True)
    state.write()
    return replace(
        state, cells=state.cells.copy(), log_weights=state.log_weights.copy(), seen=state.seen.copy(),
        clock=state.clock.copy(), prior=state.prior.copy(), lazy=None,
        kept=None if state.kept is None else state.kept.copy(),
    )  # fmt: skip


def _check_cells(cells: np.ndarray, slots: np.ndarray) -> None:
    """Refuse cells that are no Gaussians."""
    info = np.finfo(cells.dtype)
    good = np.isfinite(cells[:, 0]) & (cells[:, 1] >= info.tiny) & (cells[:, 1] <= info.max)
    if not good.all():
        t = int(np.argmin(good.all(axis=1)))
        msg = (
            f"shards: feature {slots[t]} would have mean {cells[t, 0, 0]} and variance {cells[t, 1, 0]}; finite means "
            f"and variances from {info.tiny:.2g} to {info.max:.2g} are allowed"
        )
        raise ValueError(msg)


def _check_still(state: State) -> None:
    if not state.still:
        msg = f"belief: {STANDS_STILL}"
        raise ValueError(msg)
