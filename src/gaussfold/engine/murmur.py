"""MurmurHash3 (32 bits, x86) over bytes, bit for bit ``sklearn.utils.murmurhash3_32(..., positive=True)``.

A feature is the pair (namespace or column, value): its hash is ``murmur(value, seed=murmur(namespace))``, so a
namespace costs one hash a line, not one a feature. Reference twin: scikit-learn itself.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_FIVE = np.uint32(5)
_ADD = np.uint32(0xE6546B64)
_MIX1 = np.uint32(0x85EBCA6B)
_MIX2 = np.uint32(0xC2B2AE35)
_PRIME = np.uint32(16777619)


@compiled
def _rotate(value: np.uint32, by: int) -> np.uint32:
    return np.uint32(np.uint32(value << np.uint32(by)) | np.uint32(value >> np.uint32(32 - by)))


@compiled
def _scramble(block: np.uint32) -> np.uint32:
    return np.uint32(_rotate(np.uint32(block * _C1), 15) * _C2)


@compiled
def finish(h: np.uint32) -> np.uint32:
    """Spread every input bit over all 32 (Murmur's final mix)."""
    h = np.uint32(h ^ (h >> np.uint32(16)))
    h = np.uint32(h * _MIX1)
    h = np.uint32(h ^ (h >> np.uint32(13)))
    h = np.uint32(h * _MIX2)
    return np.uint32(h ^ (h >> np.uint32(16)))


@compiled
def murmur(buffer: np.ndarray, start: int, stop: int, seed: np.uint32) -> np.uint32:
    """Hash ``buffer[start:stop]`` (uint8)."""
    h = np.uint32(seed)
    at = start
    while at + 4 <= stop:
        block = np.uint32(
            np.uint32(buffer[at])
            | np.uint32(np.uint32(buffer[at + 1]) << np.uint32(8))
            | np.uint32(np.uint32(buffer[at + 2]) << np.uint32(16))
            | np.uint32(np.uint32(buffer[at + 3]) << np.uint32(24))
        )
        h = np.uint32(_rotate(np.uint32(h ^ _scramble(block)), 13) * _FIVE + _ADD)
        at += 4
    if at < stop:
        tail = np.uint32(buffer[at])
        if at + 1 < stop:
            tail = np.uint32(tail | np.uint32(np.uint32(buffer[at + 1]) << np.uint32(8)))
        if at + 2 < stop:
            tail = np.uint32(tail | np.uint32(np.uint32(buffer[at + 2]) << np.uint32(16)))
        h = np.uint32(h ^ _scramble(tail))
    return finish(np.uint32(h ^ np.uint32(stop - start)))


@compiled
def combine(first: np.uint32, second: np.uint32) -> np.uint32:
    """Hash of a pair of features, from their hashes (FNV step, then Murmur's mix); order matters."""
    return finish(np.uint32(np.uint32(first * _PRIME) ^ second))


@compiled
def murmur_each(buffer: np.ndarray, offsets: np.ndarray, seed: np.uint32, out: np.ndarray) -> None:
    """Hash the strings ``buffer[offsets[i]:offsets[i + 1]]``, one after the other."""
    for i in range(out.size):
        out[i] = murmur(buffer, offsets[i], offsets[i + 1], seed)
