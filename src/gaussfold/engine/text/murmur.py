"""MurmurHash3 (32 bits, x86) over bytes, bit for bit ``sklearn.utils.murmurhash3_32(..., positive=True)``.

A feature is the pair (namespace or column, value): its hash is ``murmur(value, seed=murmur(namespace))``, so a
namespace costs one hash a line, not one a feature. Reference twin: scikit-learn itself.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.text.byte_scan import load32

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
def _block(h: np.uint32, block: np.uint32) -> np.uint32:
    return np.uint32(_rotate(np.uint32(h ^ _scramble(block)), 13) * _FIVE + _ADD)


@compiled
def murmur(buffer: np.ndarray, start: int, stop: int, seed: np.uint32) -> np.uint32:
    """Hash ``buffer[start:stop]`` (uint8, with padding)."""
    h = np.uint32(seed)
    at = start
    while at + 4 <= stop:
        h = _block(h, load32(buffer, at))
        at += 4
    if at < stop:
        tail = np.uint32(load32(buffer, at) & np.uint32(0xFFFFFFFF >> np.uint32(32 - 8 * (stop - at))))
        h = np.uint32(h ^ _scramble(tail))
    return finish(np.uint32(h ^ np.uint32(stop - start)))


@compiled
def murmur_short(word: np.uint64, length: int, seed: np.uint32) -> np.uint32:
    """Hash the lowest ``length`` bytes of a word, 0 to 7 of them."""
    h = np.uint32(seed)
    rest = length
    if length >= 4:
        h = _block(h, np.uint32(word & np.uint64(0xFFFFFFFF)))
        word >>= np.uint64(32)
        rest -= 4
    # nothing left: a block of zeros scrambles to zero
    tail = np.uint32(word & ((np.uint64(1) << np.uint64(8 * rest)) - np.uint64(1)))
    return finish(np.uint32(np.uint32(h ^ _scramble(tail)) ^ np.uint32(length)))


@compiled
def combine(first: np.uint32, second: np.uint32) -> np.uint32:
    """Hash of a pair of features, from their hashes (FNV step, then Murmur's mix); order matters."""
    return finish(np.uint32(np.uint32(first * _PRIME) ^ second))


@compiled
def murmur_each(buffer: np.ndarray, offsets: np.ndarray, seed: np.uint32, out: np.ndarray) -> None:
    """Hash the strings ``buffer[offsets[i]:offsets[i + 1]]``, one after the other."""
    for i in range(out.size):
        out[i] = murmur(buffer, offsets[i], offsets[i + 1], seed)
