"""The memory of a sparse belief: one cell per feature, and what time does to it.

A cell holds the K means, then the K variances of one feature (K components of a mixture, often one), so that whoever
visits the feature touches one cache line. ``cells`` has shape (d, 2, K), float64 or float32; arithmetic is in float64.
The loops that learn take the cells of a row out into small local arrays (``take``), work there and put them back
(``put``). A feature must not stand twice in a row: the second visit would not see the first
(``text.merge_duplicates`` adds up those that do).

Time passes for all features at every row, and is applied to a feature when it is next visited. ``seen[j]`` is what the
clock showed when cell j was last written; what has passed since, ``now - seen[j]``, means one of

- STILL: nothing, there is no clock;
- FORGETS: the clock counts -log γ. With g = e^-(now - then): 1/v ← g/v + (1-g)/v₀, and the same for m/v;
- WALKS: the clock counts variance. v ← v + (now - then).

``prior`` has shape (1, 2, K) when all features share it, else (d, 2, K). Large beliefs are not written before they are
used: ``written`` tells which pages of 2^shift cells hold anything, any other is all ``blank`` cells. Reference twin:
``tests/reference/diagonal.py``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_fused, compiled_inline
from gaussfold.engine.scalar.exponential import exp_nonpositive
from gaussfold.engine.simd.lane_memory import gather4, pick4, store
from gaussfold.engine.simd.lanes import choose
from gaussfold.engine.simd.types import Pointer
from gaussfold.types import ArrayLike

STILL, FORGETS, WALKS = range(3)


@compiled_inline
def aged(m: float, v: float, elapsed: float, kind: int, m0: float, v0: float) -> tuple[float, float]:
    """Mean and variance after ``elapsed`` on the clock."""
    if kind == WALKS:
        v = v + elapsed
    elif elapsed > 0.0:
        keep = math.exp(-elapsed)
        lose = -math.expm1(-elapsed)
        old = keep / v
        new = lose / v0
        v = 1.0 / (old + new)
        m = v * (old * m + new * m0)
    return m, v


@compiled
def take(
    cells: np.ndarray, seen: np.ndarray, now: float, kind: int, prior: np.ndarray, indices: np.ndarray, start: int,
    stop: int, m: np.ndarray, v: np.ndarray,
) -> None:  # fmt: skip
    """Copy the cells of a row, time applied: feature t's component c to position t K + c."""
    k = cells.shape[2]
    for q in range(start, stop):
        j = np.uint64(indices[q])
        at = (q - start) * k
        for c in range(k):
            m[at + c] = cells[j, 0, c]
            v[at + c] = cells[j, 1, c]
        if kind != STILL:
            p = j if prior.shape[0] > 1 else np.uint64(0)
            for c in range(k):
                m[at + c], v[at + c] = aged(
                    m[at + c], v[at + c], now - seen[j], kind,
                    np.float64(prior[p, 0, c]), np.float64(prior[p, 1, c]),
                )  # fmt: skip


@compiled_fused
def take_forgetting(
    cells: Pointer, seen: Pointer, now: float, m0: float, v0: float, indices: Pointer, start: int, stop: int,
    m: Pointer, v: Pointer,
) -> None:  # fmt: skip
    """As :func:`take` for one component that forgets towards N(m0, v0), four features at a time.

    What is left over goes one by one. With one division: v ← v v₀/(g v₀ + (1-g) v), and the same for m.
    """
    n = stop - start
    for i in range(0, n & ~3, 4):
        mean, variance = gather4(cells, indices, start + i)
        elapsed = now - pick4(seen, indices, start + i)
        keep = exp_nonpositive(0.0 - elapsed)
        old = keep * v0
        new = (1.0 - keep) * variance
        inverse = 1.0 / (old + new)
        passed = elapsed > 0.0
        store(m, i, choose(passed, (old * mean + new * m0) * inverse, mean))
        store(v, i, choose(passed, (variance * v0) * inverse, variance))
    for i in range(n & ~3, n):
        j = np.int64(indices[start + i])
        m[i], v[i] = aged(np.float64(cells[2 * j]), np.float64(cells[2 * j + 1]), now - seen[j], FORGETS, m0, v0)


@compiled
def put(cells: Pointer, k: int, indices: Pointer, start: int, stop: int, m: Pointer, v: Pointer) -> None:
    """Write the cells of a row; all arrays flat, or pointers to them."""
    for q in range(start, stop):
        at = (q - start) * k
        j = np.int64(indices[q]) * (2 * k)
        for c in range(k):
            cells[j + c] = m[at + c]
            cells[j + k + c] = v[at + c]


@compiled
def note(
    log_cells: np.ndarray, log_seen: np.ndarray, log_at: np.ndarray, size: int, cells: np.ndarray, seen: np.ndarray,
    indices: np.ndarray, start: int, stop: int,
) -> int:  # fmt: skip
    """Write down the cells of a row as they are before it is learned, for :func:`undo`; returns the log's new size."""
    k = cells.shape[2]
    for q in range(start, stop):
        j = np.uint64(indices[q])
        log_at[size] = j
        for c in range(k):
            log_cells[size, 0, c] = cells[j, 0, c]
            log_cells[size, 1, c] = cells[j, 1, c]
        if seen.size > 0:
            log_seen[size] = seen[j]
        size += 1
    return size


@compiled
def undo(
    cells: np.ndarray, seen: np.ndarray, log_cells: np.ndarray, log_seen: np.ndarray, log_at: np.ndarray, size: int
) -> None:
    """Put everything back that a log holds, last entry first."""
    k = cells.shape[2]
    for t in range(size - 1, -1, -1):
        j = log_at[t]
        for c in range(k):
            cells[j, 0, c] = log_cells[t, 0, c]
            cells[j, 1, c] = log_cells[t, 1, c]
        if seen.size > 0:
            seen[j] = log_seen[t]


@compiled
def look_still(
    cells: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> None:
    """X'm and Σ x² v for every row and component of cells that stand still: the sums of :func:`look`, in registers."""
    wide = np.uint64(1 if cells.shape[0] > 1 else 0)
    k = cells.shape[2]
    for c in range(0, k - k % 4, 4):
        _look_at_four(cells, wide, c, indptr, indices, data, mean, variance)
    for c in range(k - k % 4, k):
        _look_at_one(cells, wide, c, indptr, indices, data, mean, variance)


@compiled_inline
def _look_at_one(
    cells: np.ndarray, wide: np.uint64, c: int, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray,
    mean: np.ndarray, variance: np.ndarray,
) -> None:  # fmt: skip
    for r in range(indptr.size - 1):
        m, v = 0.0, 0.0
        for q in range(indptr[r], indptr[r + 1]):
            j = np.uint64(indices[q]) * wide
            x = np.float64(data[q])
            m += x * np.float64(cells[j, 0, c])
            v += x * x * np.float64(cells[j, 1, c])
        mean[r, c], variance[r, c] = m, v


@compiled_inline
def _look_at_four(
    cells: np.ndarray, wide: np.uint64, c: int, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray,
    mean: np.ndarray, variance: np.ndarray,
) -> None:  # fmt: skip
    for r in range(indptr.size - 1):
        m0, m1, m2, m3 = 0.0, 0.0, 0.0, 0.0
        v0, v1, v2, v3 = 0.0, 0.0, 0.0, 0.0
        for q in range(indptr[r], indptr[r + 1]):
            j = np.uint64(indices[q]) * wide
            x = np.float64(data[q])
            square = x * x
            m0 += x * np.float64(cells[j, 0, c])
            m1 += x * np.float64(cells[j, 0, c + 1])
            m2 += x * np.float64(cells[j, 0, c + 2])
            m3 += x * np.float64(cells[j, 0, c + 3])
            v0 += square * np.float64(cells[j, 1, c])
            v1 += square * np.float64(cells[j, 1, c + 1])
            v2 += square * np.float64(cells[j, 1, c + 2])
            v3 += square * np.float64(cells[j, 1, c + 3])
        mean[r, c], mean[r, c + 1], mean[r, c + 2], mean[r, c + 3] = m0, m1, m2, m3
        variance[r, c], variance[r, c + 1], variance[r, c + 2], variance[r, c + 3] = v0, v1, v2, v3


@compiled
def look(
    cells: np.ndarray, seen: np.ndarray, now: float, kind: int, prior: np.ndarray, indptr: np.ndarray,
    indices: np.ndarray, data: np.ndarray, mean: np.ndarray, variance: np.ndarray,
) -> None:  # fmt: skip
    """X'm and Σ x² v for every row and component, nothing written; no feature may repeat in a row."""
    k = cells.shape[2]
    wide = np.uint64(1 if cells.shape[0] > 1 else 0)
    wide_prior = np.uint64(1 if prior.shape[0] > 1 else 0)
    for r in range(indptr.size - 1):
        for c in range(k):
            mean[r, c] = 0.0
            variance[r, c] = 0.0
        for q in range(indptr[r], indptr[r + 1]):
            column = np.uint64(indices[q])
            j = column * wide
            x = np.float64(data[q])
            for c in range(k):
                m: float = np.float64(cells[j, 0, c])
                v: float = np.float64(cells[j, 1, c])
                if kind != STILL:
                    p = column * wide_prior
                    m, v = aged(m, v, now - seen[column], kind, np.float64(prior[p, 0, c]), np.float64(prior[p, 1, c]))
                mean[r, c] += x * m
                variance[r, c] += x * x * v


@compiled
def write_pages(cells: np.ndarray, blank: np.ndarray, written: np.ndarray, shift: int, indices: np.ndarray) -> int:
    """Fill the pages (of 2^shift cells) of these features with blank cells where that was not done; count them."""
    count = 0
    for q in range(indices.size):
        page = np.int64(indices[q]) >> shift
        if not written[page]:
            for j in range(page << shift, min((page + 1) << shift, cells.shape[0])):
                for c in range(cells.shape[2]):
                    cells[j, 0, c] = blank[0, 0, c]
                    cells[j, 1, c] = blank[0, 1, c]
            written[page] = True  # last: whoever looks from another thread meanwhile fills it too, with the same
            count += 1
    return count


@compiled
def list_touched(
    cells: np.ndarray, blank: ArrayLike, written: np.ndarray, shift: int, start: int, stop: int, touched: np.ndarray
) -> int:
    """List the cells from ``start`` to ``stop`` that differ from a blank one, and count them; it takes a place more."""
    count = 0
    for page in range(start >> shift, (stop - 1 >> shift) + 1):
        if written[page]:
            for j in range(max(start, page << shift), min(stop, (page + 1) << shift)):
                differs = False
                for c in range(cells.shape[2]):
                    differs |= (cells[j, 0, c] != blank[0, 0, c]) | (cells[j, 1, c] != blank[0, 1, c])
                touched[count] = j  # no branch: it would often be guessed wrong
                count += differs
    return count
