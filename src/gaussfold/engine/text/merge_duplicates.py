"""Features that are listed twice in a row: their values add up."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.text.csr_rows import add_duplicates


@compiled
def without_repeats(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same rows with each feature at most once, in the order in which features are first met."""
    longest = 0
    for r in range(indptr.size - 1):
        longest = max(longest, indptr[r + 1] - indptr[r])
    size = 4
    while size < 2 * longest:
        size *= 2
    table = np.zeros(size, np.int64)
    stamps = np.full(4096, -1, np.int32)
    merged = np.empty(indptr.size, np.int64)
    slots = indices.copy()
    values = data.copy()
    merged[0] = 0
    end = 0
    for r in range(indptr.size - 1):
        first = end
        for q in range(indptr[r], indptr[r + 1]):
            slots[end] = indices[q]
            values[end] = data[q]
            end += 1
        end = add_duplicates(slots, values, first, end, 0, table, stamps)
        merged[r + 1] = end
    return merged, slots[:end], values[:end]
