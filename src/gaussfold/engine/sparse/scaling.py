"""Features in units of their own spread, which is learned as they come.

Columns of numbers are standardised: z = (x - mean)/std of what the column has held so far, this row included (Welford).
Features of sparse rows keep their zero: z = x/rms of the feature's values so far. A value of exactly 1 says that
something is there, and is no measurement: it does not count, so rows without other values need no scales at all.
Rows that are not to be learned are scaled by what is known. Reference twin: ``tests/reference/scaling.py``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_fused
from gaussfold.engine.simd.lane_memory import gather4_last, load4_last, scatter4_last, store, store_first
from gaussfold.engine.simd.lanes import bits_of, choose, lanes4, magnitude, root, smaller

MOST = 16777216.0
"""Rows that a count in single precision can tell apart; from there on the oldest fade."""


@compiled
def standardise(
    slots: np.ndarray, moments: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray,
    learn: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    """Scale the features of some slots (sorted), (k, 3) ``moments``: count, mean, sum of squares around it."""
    for r in range(indptr.size - 1):
        for q in range(indptr[r], indptr[r + 1]):
            x = data[q]
            out[q] = x
            at = np.searchsorted(slots, indices[q])
            if at == slots.size or slots[at] != indices[q]:
                continue
            if learn[r]:
                moments[at, 0] += 1.0
                away = x - moments[at, 1]
                moments[at, 1] += away / moments[at, 0]
                moments[at, 2] += away * (x - moments[at, 1])
            spread = math.sqrt(moments[at, 2] / max(moments[at, 0], 1.0))
            out[q] = (x - moments[at, 1]) / spread if spread > 0.0 else 0.0


@compiled
def divide(
    scales: np.ndarray, indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, learn: np.ndarray, out: np.ndarray
) -> None:
    """Scale the features of all slots, (width, 2) ``scales``: count and root mean square, in single precision."""
    for r in range(indptr.size - 1):
        if indptr[r + 1] > indptr[r]:
            _divide_row(scales, indices, data, indptr[r], indptr[r + 1], learn[r], out)


@compiled_fused
def _divide_row(
    scales: np.ndarray, indices: np.ndarray, data: np.ndarray, start: int, stop: int, learn: bool, out: np.ndarray
) -> None:
    """One row, which has a feature; four at a time, where what is too much repeats the last one."""
    i = start
    while i < stop:
        x = load4_last(data, i, stop - 1)
        count, size = gather4_last(scales, indices, i, stop - 1)
        # The value is neither 0 nor 1.
        measured = magnitude(x * (x - 1.0)) > 0.0
        if learn and bits_of(measured) != 0:
            more = smaller(count + 1.0, MOST)
            square = size * size
            grown = root(square + (x * x - square) / more)
            scatter4_last(scales, indices, i, stop - 1, choose(measured, more, count), choose(measured, grown, size))
            count, size = gather4_last(scales, indices, i, stop - 1)  # rounded as it is kept
        # A value of a feature of which none is known says its sign.
        unknown = choose(measured, choose(x > 0.0, 1.0, lanes4(-1.0)), x)
        known = count > 0.0
        scaled = choose(known, x / choose(known, size, 1.0), unknown)
        if i + 4 <= stop:
            store(out, i, scaled)
        else:
            store_first(out, i, stop - i, scaled)
        i += 4
