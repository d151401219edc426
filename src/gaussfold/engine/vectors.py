"""Reductions that may be reordered, so that they vectorise."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled_reduction


@compiled_reduction
def dot(a: np.ndarray, b: np.ndarray) -> float:
    """a'b, summed in whatever order the machine likes."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total
