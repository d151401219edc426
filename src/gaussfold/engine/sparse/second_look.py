"""Rows that are kept for a while and visited once more: take what they said out of the cells, look again, put it back.

What a row said of a feature is the change of its cell's natural parameters, 1/v and m/v: a site of one dimension,
whatever rule and coupling made it. It is noted beside the row. So many learned rows later more is known of everything
else in the row; then the site is taken out, the cells without it are the prior of one more visit by the same rule, and
what that leaves is what stays. (Marginal coupling integrates the other features out as they are known *then*: that is
what the second look repairs.)

A cell without the site must be a Gaussian that is not all rounding: else, or if the second visit has no numbers, the
row stays as the first left it. Rows that say nothing are not kept and let no time pass, so the posterior does not
depend on how a stream is cut. For cells over which no time passes. Reference twin: ``tests/reference/second_look.py``.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_inline
from gaussfold.engine.simd.lanes import lanes4, lanes8
from gaussfold.engine.simd.pointers import pointer
from gaussfold.engine.simd.types import Pointer
from gaussfold.engine.sparse.absorb import Log
from gaussfold.engine.sparse.cells import STILL, note, take
from gaussfold.engine.sparse.visit_any import Form, visit_any
from gaussfold.engine.sparse.visit_logit import visit_one, visit_several
from gaussfold.types import Program

ROUNDING = 64.0
"""A precision that is what is left of one so many roundings as large is no precision."""


class Kept(NamedTuple):
    """Rows in the order they were learned, and room for more; what is kept of them is written by the loops."""

    ends: np.ndarray
    """Row r has the entries from ``ends[r]`` up to ``ends[r + 1]``."""
    y: np.ndarray
    weight: np.ndarray
    indices: np.ndarray
    """int32, as those of text are."""
    data: np.ndarray
    sites: np.ndarray
    """(entries, 2, K): what was added to 1/v and to m/v."""


SparseRows: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Where rows begin, their features, and the values of these."""
Told: TypeAlias = tuple[int, int, float, float, bool]
"""Where a row begins and ends, its label and weight, and whether it is to be learned."""
Span: TypeAlias = tuple[int, int, int, int, int, float]
"""So many rows are kept at most, and no more than one of so many that were learned; where those that are kept begin and
end; how many have been learned; and the relative rounding of a cell."""


@compiled_inline
def _begin(
    cells: np.ndarray, indices: np.ndarray, data: np.ndarray, start: int, stop: int, kept: Kept, last: int
) -> None:
    """Write a row down that is about to be learned, with the cells as they are."""
    at = kept.ends[last]
    for q in range(start, stop):
        j = np.int64(indices[q])
        kept.indices[at] = j
        kept.data[at] = data[q]
        for c in range(cells.shape[2]):
            own = 1.0 / np.float64(cells[j, 1, c])
            kept.sites[at, 0, c] = own
            kept.sites[at, 1, c] = own * np.float64(cells[j, 0, c])
        at += 1
    kept.ends[last + 1] = at


@compiled_inline
def _end(cells: np.ndarray, kept: Kept, last: int, y: float, w: float) -> None:
    """The row is learned: what has been added to its cells."""
    kept.y[last] = y
    kept.weight[last] = w
    for q in range(kept.ends[last], kept.ends[last + 1]):
        j = np.int64(kept.indices[q])
        for c in range(cells.shape[2]):
            own = 1.0 / np.float64(cells[j, 1, c])
            kept.sites[q, 0, c] = own - kept.sites[q, 0, c]
            kept.sites[q, 1, c] = own * np.float64(cells[j, 0, c]) - kept.sites[q, 1, c]


@compiled_inline
def note_if(
    log_cells: np.ndarray, log_seen: np.ndarray, log_at: np.ndarray, size: int, cells: np.ndarray,
    indices: np.ndarray, start: int, stop: int,
) -> int:  # fmt: skip
    """``cells.note`` where a log is kept."""
    if log_at.size > 0:
        size = note(log_cells, log_seen, log_at, size, cells, log_seen, indices, start, stop)
    return size


@compiled
def without(
    cells: np.ndarray, kept: Kept, row: int, rounding: float, limits: tuple[float, float], ms: np.ndarray,
    vs: np.ndarray,
) -> bool:  # fmt: skip
    """The cells of a kept row without its sites, to ``ms`` and ``vs``; False if one of them is no Gaussian."""
    tiny, huge = limits
    k = cells.shape[2]
    at = 0
    wrong = np.int64(0)
    for q in range(kept.ends[row], kept.ends[row + 1]):
        j = np.int64(kept.indices[q])
        for c in range(k):
            own = 1.0 / np.float64(cells[j, 1, c])
            rest = own - kept.sites[q, 0, c]
            good = rest > ROUNDING * rounding * own
            v = 1.0 / (rest if good else own)
            m = v * (own * np.float64(cells[j, 0, c]) - kept.sites[q, 1, c])
            wrong += 1 - np.int64(good & (v >= tiny) & (v <= huge) & (abs(m) <= huge))
            ms[at] = m
            vs[at] = v
            at += 1
    return bool(wrong == 0)


@compiled_inline
def _visit(
    zero_of: int, where: tuple[Pointer, Pointer, Pointer], told: Told, aged: bool, limits: tuple[float, float],
    room: tuple[Pointer, ...], out: tuple[Pointer, Pointer, int],
) -> bool:  # fmt: skip
    """A visit to one row by ``visit_logit``, for one, four or eight components (``zero_of``)."""
    cells, indices, data = where
    start, stop, y, w, learn = told
    tiny, huge = limits
    xs, ms, vs, old_m, old_v, gains, spare, beyond = room
    mean, variance, r = out
    before_m, before_v = (old_m, old_v) if aged else (ms, vs)  # where cells are taken as they are
    if zero_of == 1:
        return visit_one(
            cells, indices, data, start, stop, y, w, learn, aged, tiny, huge,
            xs, ms, vs, before_m, before_v, gains, spare, beyond, mean, variance, r,
        )  # fmt: skip
    if zero_of == 4:
        return visit_several(
            lanes4(0.0), cells, indices, data, start, stop, y, w, learn, aged, tiny, huge,
            ms, vs, before_m, before_v, gains, spare, beyond, mean, variance, r,
        )  # fmt: skip
    return visit_several(
        lanes8(0.0), cells, indices, data, start, stop, y, w, learn, aged, tiny, huge,
        ms, vs, before_m, before_v, gains, spare, beyond, mean, variance, r,
    )  # fmt: skip


# As in ``absorb`` the two loops keep the same books, written out in both.


@compiled
def absorb_twice_logit(
    cells: np.ndarray,
    log: Log,
    rows: SparseRows,
    labels: tuple[np.ndarray, np.ndarray],
    limits: tuple[float, float],
    longest: int,
    marginals: tuple[np.ndarray, np.ndarray],
    kept: Kept,
    span: Span,
) -> tuple[int, int, int, int]:
    """As ``absorb.absorb_logit``, and every row that is due is visited again.

    Returns the row that failed or -1, the log's size, and where the rows begin and end that are kept now. ``longest``
    counts rows that are kept as well.
    """
    k = cells.shape[2]
    most = (longest + 4) * k
    row = np.empty(longest + 4), np.empty(longest + 12, np.int64), np.empty(64)
    components = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    spare = np.empty((1, k)), np.empty((1, k))
    return _visit_rows(cells, log, rows, labels, limits, marginals, kept, span, (row, components, spare))


@compiled
def _visit_rows(
    cells: np.ndarray,
    log: Log,
    rows: SparseRows,
    labels: tuple[np.ndarray, np.ndarray],
    limits: tuple[float, float],
    marginals: tuple[np.ndarray, np.ndarray],
    kept: Kept,
    span: Span,
    memory: tuple[tuple[np.ndarray, ...], ...],
) -> tuple[int, int, int, int]:
    """The loop of `absorb_twice_logit`, in working memory that it holds."""
    log_cells, log_seen, log_at = log
    indptr, indices, data = rows
    y, w = labels
    most, share, first, last, learned, rounding = span
    k = cells.shape[2]
    (xs, hard, spare), (ms, vs, old_m, old_v, gains), met = memory
    room = (
        pointer(xs), pointer(ms), pointer(vs), pointer(old_m), pointer(old_v), pointer(gains), pointer(spare),
        pointer(hard),
    )  # fmt: skip
    new = pointer(cells), pointer(indices), pointer(data)
    old = pointer(cells), pointer(kept.indices), pointer(kept.data)
    p_mean, p_variance = pointer(marginals[0]), pointer(marginals[1])
    nowhere = pointer(met[0]), pointer(met[1]), 0
    size = 0
    for r in range(y.size):
        start, stop, learn = indptr[r], indptr[r + 1], not math.isnan(y[r]) and w[r] != 0.0
        if learn:
            size = note_if(log_cells, log_seen, log_at, size, cells, indices, start, stop)
            _begin(cells, indices, data, start, stop, kept, last)
        if not _visit(k, new, (start, stop, y[r], w[r], learn), False, limits, room, (p_mean, p_variance, r)):
            return r, size, first, last
        if learn:
            _end(cells, kept, last, y[r], w[r])
            last += 1
            learned += 1
        while last - first > min(most, learned // share):
            start, stop = kept.ends[first], kept.ends[first + 1]
            if without(cells, kept, first, rounding, limits, ms, vs):
                size = note_if(log_cells, log_seen, log_at, size, cells, kept.indices, start, stop)
                _visit(k, old, (start, stop, kept.y[first], kept.weight[first], True), True, limits, room, nowhere)
            first += 1
    return -1, size, first, last


@compiled
def absorb_twice_any(
    cells: np.ndarray,
    log: Log,
    rows: SparseRows,
    labels: tuple[np.ndarray, np.ndarray],
    limits: tuple[float, float],
    longest: int,
    met: tuple[np.ndarray, ...],
    how: tuple[Program, Form],
    kept: Kept,
    span: Span,
) -> tuple[int, int, int, int]:
    """As ``absorb_twice_logit`` for any K, likelihood, rule, at and coupling; ``met`` has room for sites, too."""
    log_cells, log_seen, log_at = log
    indptr, indices, data = rows
    (y, w), (tiny, huge), (program, form) = labels, limits, how
    mean, variance, site_precision, site_shift = met
    most, share, first, last, learned, rounding = span
    k = cells.shape[2]
    ms, vs = np.empty(longest * k), np.empty(longest * k)
    spare = np.empty((4, 1, k))
    size = 0
    for r in range(y.size):
        start, stop, learn = indptr[r], indptr[r + 1], not math.isnan(y[r]) and w[r] != 0.0
        if learn:
            size = note_if(log_cells, log_seen, log_at, size, cells, indices, start, stop)
            _begin(cells, indices, data, start, stop, kept, last)
        take(cells, log_seen, 0.0, STILL, cells, indices, start, stop, ms, vs)
        if not visit_any(
            cells, indices, data, start, stop, y[r], w[r], learn, tiny, huge, ms, vs, mean, variance, r,
            program, form, site_precision, site_shift,
        ):  # fmt: skip
            return r, size, first, last
        if learn:
            _end(cells, kept, last, y[r], w[r])
            last += 1
            learned += 1
        while last - first > min(most, learned // share):
            start, stop = kept.ends[first], kept.ends[first + 1]
            if without(cells, kept, first, rounding, limits, ms, vs):
                size = note_if(log_cells, log_seen, log_at, size, cells, kept.indices, start, stop)
                visit_any(
                    cells, kept.indices, kept.data, start, stop, kept.y[first], kept.weight[first], True, tiny, huge,
                    ms, vs, spare[0], spare[1], 0, program, form, spare[2, 0], spare[3, 0],
                )  # fmt: skip
            first += 1
    return -1, size, first, last
