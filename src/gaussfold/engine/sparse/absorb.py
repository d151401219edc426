"""Sequential updates of independent Gaussians, one mean and variance per feature and component: the row loop.

What happens at a row is in ``visit_logit`` (the default of sparse classification, in lanes) and
``visit_any`` (everything). The predictions' scores and the mixture of components need nothing but the marginals
that are written here: they follow in ``mixing``. A row is learned whole or not at all.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_inline
from gaussfold.engine.simd.lane_memory import prefetch
from gaussfold.engine.simd.lanes import lanes4, lanes8
from gaussfold.engine.simd.pointers import pointer
from gaussfold.engine.sparse.cells import FORGETS, STILL, note, take, take_forgetting
from gaussfold.engine.sparse.visit_any import Form, visit_any
from gaussfold.engine.sparse.visit_logit import visit_one, visit_several
from gaussfold.types import Program

Time: TypeAlias = tuple[np.ndarray, np.ndarray, int, float, np.ndarray]
"""When each feature was last seen, the clock, what time does (``cells.STILL`` ...), its rate, and the prior's cells."""
Log: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""What was overwritten, to be put back if a row fails: cells, when they were seen, and where they were."""

AHEAD = 8
"""Rows between asking for a cell and using it: memory takes as long as a few rows do."""


@compiled
def _ask(cells: np.ndarray, step: int, jump: int, indices: np.ndarray, start: int, stop: int) -> None:
    """Ask for the cells of a row, of ``step`` numbers each, at most two cache lines of ``jump`` numbers."""
    for q in range(start, stop):
        prefetch(cells, np.int64(indices[q]) * step)
    if step > jump:
        for q in range(start, stop):
            prefetch(cells, np.int64(indices[q]) * step + jump)


@compiled_inline
def _mark(seen: np.ndarray, now: float, indices: np.ndarray, start: int, stop: int) -> None:
    for q in range(start, stop):
        seen[indices[q]] = now


# The two loops have the same head and keep time in the same way, written out in both: a record of the arrays would be
# looked through by Numba at every call from Python, and calls with arrays count references to them at every row.


@compiled
def absorb_logit(
    cells: np.ndarray,
    time: Time,
    log: Log,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    limits: tuple[float, float],
    longest: int,
    far: bool,
    mean: np.ndarray,
    variance: np.ndarray,
) -> tuple[int, int]:
    """Visit the rows in order, K = 1, 4 or 8, marginal logit. Returns the row that failed or -1, and the log's size.

    ``far``: the cells do not fit into the caches. Here working memory is made and held while `_visit_rows` has pointers
    into it; that must be another function's memory than its own (``simd.pointers``).
    """
    most = (longest + 4) * cells.shape[2]
    row = np.empty(longest + 4), np.empty(longest + 12, np.int64), np.empty(64)
    components = np.empty(most), np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    return _visit_rows(
        cells, time, log, (indptr, indices, data), (y, w), limits, far, (mean, variance), row, components
    )


@compiled
def _visit_rows(
    cells: np.ndarray,
    time: Time,
    log: Log,
    rows: tuple[np.ndarray, ...],
    labels: tuple[np.ndarray, ...],
    limits: tuple[float, float],
    far: bool,
    marginals: tuple[np.ndarray, ...],
    row: tuple[np.ndarray, ...],
    components: tuple[np.ndarray, ...],
) -> tuple[int, int]:
    """The loop of `absorb_logit`, in working memory that it holds: ``row`` and ``components``."""
    seen, clock, kind, rate, prior = time
    log_cells, log_seen, log_at = log
    indptr, indices, data = rows
    (y, w), (mean, variance) = labels, marginals
    tiny, huge = limits
    k = cells.shape[2]
    xs, hard, spare = row
    ms, vs, old_m, old_v, gains = components
    # Pointers, because calls with arrays count references to them.
    here, places, values, p_mean, p_variance = (
        pointer(cells), pointer(indices), pointer(data), pointer(mean), pointer(variance),
    )  # fmt: skip
    p_xs, p_ms, p_vs = pointer(xs), pointer(ms), pointer(vs)
    p_gains, p_spare, p_hard, p_seen = pointer(gains), pointer(spare), pointer(hard), pointer(seen)
    # What cells were before a row: where no time passes, that is what is taken from them.
    p_old_m, p_old_v = (pointer(old_m), pointer(old_v)) if kind != STILL else (p_ms, p_vs)
    jump = 64 // cells.itemsize
    in_lanes = k == 1 and kind == FORGETS and prior.shape[0] == 1
    m0, v0 = np.float64(prior[0, 0, 0]), np.float64(prior[0, 1, 0])
    now = clock[0]
    size = 0
    for r in range(y.size):
        start, stop, label, weight = indptr[r], indptr[r + 1], y[r], w[r]
        learn = not math.isnan(label) and weight != 0.0
        if far and r + AHEAD < y.size:
            _ask(here, 2 * k, jump, places, indptr[r + AHEAD], indptr[r + AHEAD + 1])
        if learn:
            now += rate
            if log_at.size > 0:
                size = note(log_cells, log_seen, log_at, size, cells, seen, indices, start, stop)
        if in_lanes:
            take_forgetting(here, p_seen, now, m0, v0, places, start, stop, p_ms, p_vs)
        elif kind != STILL:
            take(cells, seen, now, kind, prior, indices, start, stop, ms, vs)
        if k == 1:
            ok = visit_one(
                here, places, values, start, stop, label, weight, learn, kind != STILL, tiny, huge,
                p_xs, p_ms, p_vs, p_old_m, p_old_v, p_gains, p_spare, p_hard, p_mean, p_variance, r,
            )  # fmt: skip
        elif k == 4:
            ok = visit_several(
                lanes4(0.0), here, places, values, start, stop, label, weight, learn, kind != STILL, tiny, huge,
                p_ms, p_vs, p_old_m, p_old_v, p_gains, p_spare, p_hard, p_mean, p_variance, r,
            )  # fmt: skip
        else:
            ok = visit_several(
                lanes8(0.0), here, places, values, start, stop, label, weight, learn, kind != STILL, tiny, huge,
                p_ms, p_vs, p_old_m, p_old_v, p_gains, p_spare, p_hard, p_mean, p_variance, r,
            )  # fmt: skip
        if not ok:
            return r, size
        if learn:
            clock[0] = now  # a row that failed takes no time
            if kind != STILL:
                _mark(seen, now, indices, start, stop)
    return -1, size


@compiled
def absorb_any(
    cells: np.ndarray,
    time: Time,
    log: Log,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    limits: tuple[float, float],
    longest: int,
    mean: np.ndarray,
    variance: np.ndarray,
    program: Program,
    form: Form,
    site_precision: np.ndarray,
    site_shift: np.ndarray,
) -> tuple[int, int]:
    """As ``absorb_logit`` for any K, likelihood, rule, at and coupling."""
    seen, clock, kind, rate, prior = time
    log_cells, log_seen, log_at = log
    tiny, huge = limits
    ms, vs = np.empty(longest * cells.shape[2]), np.empty(longest * cells.shape[2])
    now = clock[0]
    size = 0
    for r in range(y.size):
        start, stop, label, weight = indptr[r], indptr[r + 1], y[r], w[r]
        learn = not math.isnan(label) and weight != 0.0
        if learn:
            now += rate
            if log_at.size > 0:
                size = note(log_cells, log_seen, log_at, size, cells, seen, indices, start, stop)
        take(cells, seen, now, kind, prior, indices, start, stop, ms, vs)
        ok = visit_any(
            cells, indices, data, start, stop, label, weight, learn, tiny, huge, ms, vs, mean, variance, r,
            program, form, site_precision, site_shift,
        )  # fmt: skip
        if not ok:
            return r, size
        if learn:
            clock[0] = now
            if kind != STILL:
                _mark(seen, now, indices, start, stop)
    return -1, size
