"""Sparse rows with classes meet independent Gaussians, one mean and variance per feature and class: the row loop.

The cells are those of ``engine.sparse``, a component for each class. Latent k is N(Σ x m_k, Σ x² v_k); its site
(λ_k, J_k) comes from ``independent``, and every feature of the row takes its part of the diagonal of what
follows, rvga (3)-(4) among independent parameters:

    m_k += x v_k J_k,    1/v_k += x² λ_k.

Reference twin: ``tests/reference/softmax.py``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.softmax.independent import independent_site
from gaussfold.engine.softmax.largest import class_log_average, room_for
from gaussfold.engine.sparse.cells import STILL, note, put, take

Time: TypeAlias = tuple[np.ndarray, np.ndarray, int, float, np.ndarray]
"""As in ``engine.sparse.absorb``, and the log as well."""
Log: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


@compiled
def absorb_classes(
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
    nodes: np.ndarray,
    table: np.ndarray,
    scored: bool,
    mean: np.ndarray,
    variance: np.ndarray,
    score: np.ndarray,
    site_precision: np.ndarray,
    site_shift: np.ndarray,
) -> tuple[int, int]:
    """Visit the rows in order; the row that failed or -1, and the log's size. A row is learned whole or not at all.

    Scores are left out where nobody asks for them: a stack scores itself.
    """
    seen, clock, kind, rate, prior = time
    log_cells, log_seen, log_at = log
    tiny, huge = limits
    k = cells.shape[2]
    ms, vs = np.empty(longest * k), np.empty(longest * k)
    work, small = np.empty((k + 2, nodes.shape[1])), np.empty((8, k))
    gradient, room = np.empty(k), room_for(k, table)
    flat = cells.reshape(-1)
    now = clock[0]
    size = 0
    for r in range(y.size):
        start, stop = indptr[r], indptr[r + 1]
        learn = not math.isnan(y[r]) and w[r] != 0.0
        if learn:
            now += rate
            if log_at.size > 0:
                size = note(log_cells, log_seen, log_at, size, cells, seen, indices, start, stop)
        take(cells, seen, now, kind, prior, indices, start, stop, ms, vs)
        _marginals(data, start, stop, k, ms, vs, mean[r], variance[r])
        if math.isnan(y[r]):
            score[r] = math.nan
            continue
        if scored:
            score[r] = class_log_average(mean[r], variance[r], int(y[r]), table, room, small[:3])
        if not (math.isfinite(mean[r].sum() + variance[r].sum()) and (math.isfinite(score[r]) or not scored)):
            return r, size
        if not learn:
            continue
        independent_site(mean[r], variance[r], int(y[r]), w[r], nodes, work, small, site_precision[r], gradient)
        if not _step(data, start, stop, k, ms, vs, site_precision[r], gradient, tiny, huge):
            return r, size
        for c in range(k):
            site_shift[r, c] = gradient[c] + site_precision[r, c] * (mean[r, c] + variance[r, c] * gradient[c])
        put(flat, k, indices, start, stop, ms, vs)
        clock[0] = now
        if kind != STILL:
            for q in range(start, stop):
                seen[indices[q]] = now
    return -1, size


@compiled
def _marginals(
    data: np.ndarray,
    start: int,
    stop: int,
    k: int,
    ms: np.ndarray,
    vs: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
) -> None:
    for c in range(k):
        mean[c] = 0.0
        variance[c] = 0.0
    for q in range(start, stop):
        x = np.float64(data[q])
        at = (q - start) * k
        for c in range(k):
            mean[c] += x * ms[at + c]
            variance[c] += x * x * vs[at + c]


@compiled
def _step(
    data: np.ndarray, start: int, stop: int, k: int, ms: np.ndarray, vs: np.ndarray, precision: np.ndarray,
    gradient: np.ndarray, tiny: float, huge: float,
) -> bool:  # fmt: skip
    """Move the row's cells; False where one leaves the numbers."""
    good = True
    for q in range(start, stop):
        x = np.float64(data[q])
        at = (q - start) * k
        for c in range(k):
            v = vs[at + c]
            ms[at + c] += x * v * gradient[c]
            vs[at + c] = v / (1.0 + x * x * precision[c] * v)
            good = good & (abs(ms[at + c]) <= huge) & (vs[at + c] >= tiny) & (vs[at + c] <= huge)
    return good
