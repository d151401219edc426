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


BLOCK = 256
"""Rows whose columns are put side by side at a time: they stay in the caches until they are closed."""


@compiled
def _place(
    hashes: np.ndarray, values: np.ndarray, mask: np.uint32, start: int, stop: int, step: int, indices: np.ndarray,
    data: np.ndarray,
) -> None:  # fmt: skip
    """Write rows ``start:stop`` of all columns, (width, n), each row ``step`` places after the one before."""
    for k in range(hashes.shape[0]):
        at = start * step + k
        for i in range(start, stop):
            indices[at] = hashes[k, i] & mask
            data[at] = values[k, i]
            at += step


@compiled
def merge_rows(
    hashes: np.ndarray, values: np.ndarray, pairs: np.ndarray, mask: np.uint32, constant: int, indptr: np.ndarray,
    indices: np.ndarray, data: np.ndarray,
) -> int:  # fmt: skip
    """Rows of features (hash, value), given column by column, (width, n), with their wanted products and the constant.

    They are written in CSR form; there must be room for width + pairs + 1 entries a row. Returns how many there are.
    """
    width, n = hashes.shape
    most = width + pairs.shape[0] + 1
    size = 4
    while size < 2 * most:
        size *= 2
    table = np.zeros(size, np.int64)
    stamps = np.full(4096, -1, np.int32)
    indptr[0] = 0
    end = 0
    for start in range(0, n, BLOCK):
        stop = min(start + BLOCK, n)
        _place(hashes, values, mask, start, stop, most, indices, data)
        for i in range(start, stop):
            first = end
            if end < i * most:  # rows before were shorter
                for k in range(width):
                    indices[end + k] = indices[i * most + k]
                    data[end + k] = data[i * most + k]
            end += width
            for p in range(pairs.shape[0]):
                a, b = pairs[p, 0], pairs[p, 1]
                if a == b and values[a, i] == 1.0:
                    continue
                indices[end] = combine(hashes[a, i], hashes[b, i]) & mask
                data[end] = values[a, i] * values[b, i]
                end += 1
            if constant >= 0:
                indices[end] = constant
                data[end] = 1.0
                end += 1
            end = add_duplicates(indices, data, first, end, 0, table, stamps)
            indptr[i + 1] = end
    return end
