"""Rows of a table whose columns are features: pairs of columns, the constant, duplicates. As ``csr_rows.close_row``."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.text.csr_rows import add_duplicates, is_wanted
from gaussfold.engine.text.murmur import combine


@compiled
def interact_table(interactions: np.ndarray, initials: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Pairs (left, right) of columns to multiply, the one with the smaller hash left."""
    n = initials.size
    groups = np.zeros((n, 4), np.int64)
    groups[:, 1] = initials
    groups[:, 2] = seeds
    pairs = np.empty((n * (n + 1) // 2, 2), np.int64)
    count = 0
    for g in range(n):
        for h in range(g, n):
            if is_wanted(interactions, groups, g, h):
                swap = seeds[g] > seeds[h]
                pairs[count, 0] = h if swap else g
                pairs[count, 1] = g if swap else h
                count += 1
    return pairs[:count].copy()


@compiled
def merge_rows(
    hashes: np.ndarray, values: np.ndarray, pairs: np.ndarray, mask: np.uint32, constant: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """CSR arrays of rows of features (hash, value), their wanted products and the constant."""
    n, width = hashes.shape
    most = width + pairs.shape[0] + 1
    indptr = np.zeros(n + 1, np.int32)
    indices = np.empty(n * most, np.int32)
    data = np.empty(n * most)
    size = 4
    while size < 2 * most:
        size *= 2
    table = np.zeros(size, np.int64)
    stamps = np.full(4096, -1, np.int32)
    end = 0
    for i in range(n):
        first = end
        for k in range(width):
            indices[end] = hashes[i, k] & mask
            data[end] = values[i, k]
            end += 1
        for p in range(pairs.shape[0]):
            a, b = pairs[p, 0], pairs[p, 1]
            if a == b and values[i, a] == 1.0:
                continue
            indices[end] = combine(hashes[i, a], hashes[i, b]) & mask
            data[end] = values[i, a] * values[i, b]
            end += 1
        if constant >= 0:
            indices[end] = constant
            data[end] = 1.0
            end += 1
        end = add_duplicates(indices, data, first, end, 0, table, stamps)
        indptr[i + 1] = end
    return indptr, indices[:end].copy(), data[:end].copy()
