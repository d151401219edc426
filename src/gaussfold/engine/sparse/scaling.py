"""Features in units of their own spread, which is learned as they come.

Columns of numbers are standardised: z = (x - mean)/std of what the column has held so far, this row included (Welford).
Features of sparse rows keep their zero: z = x/rms of the feature's values so far. A value of exactly 1 says that
something is there, and is no measurement: it does not count, so rows without other values need no scales at all.
Rows that are not to be learned are scaled by what is known. Reference twin: ``tests/reference/scaling.py``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled

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
        for q in range(indptr[r], indptr[r + 1]):
            x, j = data[q], indices[q]
            if x != 1.0 and x != 0.0 and learn[r]:
                count = min(np.float64(scales[j, 0]) + 1.0, MOST)
                square = np.float64(scales[j, 1]) ** 2
                scales[j, 0], scales[j, 1] = count, math.sqrt(square + (x * x - square) / count)
            if scales[j, 0] > 0.0:
                out[q] = x / np.float64(scales[j, 1])
            elif x == 1.0 or x == 0.0:
                out[q] = x
            else:  # a value of a feature of which none is known
                out[q] = math.copysign(1.0, x)
