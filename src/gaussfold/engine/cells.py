"""Features as cells: the K means and K variances of one feature side by side, so that a visit is one cache line.

``cells`` has shape (d, 2, K), float64 or float32; arithmetic is in float64. A loop takes the active cells of a row out
(``take_one``, ``take_many``), works on small local arrays and puts them back. While a cell is out its first mean is
NaN: that is how a feature listed twice in a row is found without a table of all features, and its values added.

Time is lazy. ``seen[j]`` is the clock when cell j was last written; what passed since is applied when it is taken:

- kind 1, forgetting: the clock counts -log γ. With g = e^-(now - then): 1/v ← g/v + (1-g)/v₀, and the same for m/v.
- kind 2, random walk: the clock counts variance. v ← v + (now - then).

``prior`` has shape (1, 2, K) when all features share it, else (d, 2, K). Reference twin:
``tests/reference/diagonal.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_inline

STILL, FORGETS, WALKS = range(3)


@compiled_inline
def aged(m: Any, v: Any, elapsed: Any, kind: Any, m0: Any, v0: Any) -> Any:
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


@compiled_inline
def take_one(
    cells: Any, seen: Any, now: Any, kind: Any, prior: Any, indices: Any, data: Any, start: Any, stop: Any,
    index: Any, x: Any, raw: Any, m: Any, v: Any,
) -> Any:  # fmt: skip
    """Take the cells of one row, K = 1: fills index, x, raw (means as stored), m, v; returns count, x'm, Σ x² v."""
    count = 0
    total = 0.0
    spread = 0.0
    repeated = False
    for q in range(start, stop):
        j = np.uint64(indices[q])
        value = np.float64(data[q])
        stored = np.float64(cells[j, 0, 0])
        if stored != stored:
            repeated = True
            for t in range(count):
                if index[t] == j:
                    x[t] += value
                    break
            continue
        variance = np.float64(cells[j, 1, 0])
        cells[j, 0, 0] = math.nan
        mean = stored
        if kind != STILL:
            p = j if prior.shape[0] > 1 else np.uint64(0)
            mean, variance = aged(
                stored, variance, now - seen[j], kind, np.float64(prior[p, 0, 0]), np.float64(prior[p, 1, 0])
            )
        index[count] = j
        x[count] = value
        raw[count] = stored
        m[count] = mean
        v[count] = variance
        count += 1
        total += value * mean
        spread += value * value * variance
    if repeated:
        total = 0.0
        spread = 0.0
        for t in range(count):
            total += x[t] * m[t]
            spread += x[t] * x[t] * v[t]
    return count, total, spread


@compiled
def take_many(
    cells: Any, seen: Any, now: Any, kind: Any, prior: Any, indices: Any, data: Any, start: Any, stop: Any,
    index: Any, x: Any, raw: Any, m: Any, v: Any, total: Any, spread: Any,
) -> Any:  # fmt: skip
    """As ``take_one`` for K components: m and v have shape (rows, K), total and spread (K,) are filled."""
    count = 0
    k = cells.shape[2]
    for q in range(start, stop):
        j = np.uint64(indices[q])
        value = np.float64(data[q])
        stored = np.float64(cells[j, 0, 0])
        if stored != stored:
            for t in range(count):
                if index[t] == j:
                    x[t] += value
                    break
            continue
        index[count] = j
        x[count] = value
        raw[count] = stored
        for c in range(k):
            m[count, c] = cells[j, 0, c]
            v[count, c] = cells[j, 1, c]
        if kind != STILL:
            p = j if prior.shape[0] > 1 else np.uint64(0)
            for c in range(k):
                m[count, c], v[count, c] = aged(
                    m[count, c], v[count, c], now - seen[j], kind,
                    np.float64(prior[p, 0, c]), np.float64(prior[p, 1, c]),
                )  # fmt: skip
        cells[j, 0, 0] = math.nan
        count += 1
    for c in range(k):
        total[c] = 0.0
        spread[c] = 0.0
    for t in range(count):
        for c in range(k):
            total[c] += x[t] * m[t, c]
            spread[c] += x[t] * x[t] * v[t, c]
    return count


@compiled
def put_back(cells: Any, count: Any, index: Any, raw: Any) -> Any:
    """Undo a take: nothing was learned."""
    for t in range(count):
        cells[index[t], 0, 0] = raw[t]


@compiled
def note(
    log: Any, log_seen: Any, log_at: Any, size: Any, cells: Any, seen: Any, count: Any, index: Any, raw: Any,
) -> Any:  # fmt: skip
    """Write down the cells of a row as they are before it is learned, for :func:`undo`; returns the log's new size."""
    k = cells.shape[2]
    for t in range(count):
        j = index[t]
        log_at[size + t] = j
        for c in range(k):
            log[size + t, 0, c] = cells[j, 0, c]
            log[size + t, 1, c] = cells[j, 1, c]
        log[size + t, 0, 0] = raw[t]
        if seen.size > 0:
            log_seen[size + t] = seen[j]
    return size + count


@compiled
def undo(cells: Any, seen: Any, log: Any, log_seen: Any, log_at: Any, size: Any) -> Any:
    """Put everything back that a log holds, last entry first."""
    k = cells.shape[2]
    for t in range(size - 1, -1, -1):
        j = log_at[t]
        for c in range(k):
            cells[j, 0, c] = log[t, 0, c]
            cells[j, 1, c] = log[t, 1, c]
        if seen.size > 0:
            seen[j] = log_seen[t]


@compiled
def look(
    cells: Any, seen: Any, now: Any, kind: Any, prior: Any, indptr: Any, indices: Any, data: Any, mean: Any,
    variance: Any,
) -> Any:  # fmt: skip
    """X'm and Σ x² v for every row and component, nothing marked or written; no feature may repeat in a row."""
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
                m = np.float64(cells[j, 0, c])
                v = np.float64(cells[j, 1, c])
                if kind != STILL:
                    p = column * wide_prior
                    m, v = aged(m, v, now - seen[column], kind, np.float64(prior[p, 0, c]), np.float64(prior[p, 1, c]))
                mean[r, c] += x * m
                variance[r, c] += x * x * v
