"""Sums over vectors that may be reordered, so that they vectorise, and a short sort."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled_reduction, part


@compiled_reduction
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """a'b, summed in whatever order the machine likes."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@part
def reciprocal(a: np.ndarray) -> None:
    """1/a, in place."""
    for i in range(a.size):
        a[i] = 1.0 / a[i]


@part
def sort_first(x: np.ndarray, count: int) -> None:
    """Sort the first ``count`` in place, by insertion: for some dozens; ``np.sort`` takes a second to compile."""
    for i in range(1, count):
        t = x[i]
        j = i
        while j > 0 and x[j - 1] > t:
            x[j] = x[j - 1]
            j -= 1
        x[j] = t
