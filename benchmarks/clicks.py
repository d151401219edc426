"""Click files with a known truth, in Vowpal Wabbit's format, written by compiled loops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numba import njit

_CHUNK = 50_000


@njit
def _digits(buffer: np.ndarray, at: int, value: int) -> int:
    size, rest = 1, value
    while rest >= 10:
        rest //= 10
        size += 1
    for k in range(size):
        buffer[at + size - 1 - k] = 48 + value % 10
        value //= 10
    return at + size


@njit
def _label(buffer: np.ndarray, at: int, latent: float, u: float) -> int:
    if u < 1.0 / (1.0 + np.exp(-latent)):
        buffer[at] = 49
    else:
        buffer[at], buffer[at + 1] = 45, 49
        at += 1
    return at + 1


@njit
def _few(weights: np.ndarray, present: np.ndarray, u: np.ndarray, buffer: np.ndarray) -> int:
    """Lines ``label |f 3 17 ...``: which of the features are present."""
    at = 0
    for i in range(present.shape[0]):
        latent = -1.0
        for j in range(weights.size):
            latent += weights[j] * present[i, j]
        at = _label(buffer, at, latent, u[i])
        for c in (32, 124, 102):
            buffer[at] = c
            at += 1
        for j in range(weights.size):
            if present[i, j]:
                buffer[at] = 32
                at = _digits(buffer, at + 1, j)
        buffer[at] = 10
        at += 1
    return at


@njit
def _many(weights: np.ndarray, starts: np.ndarray, codes: np.ndarray, u: np.ndarray, buffer: np.ndarray) -> int:
    """Lines ``label |a 17 |b 3 ...``: one feature of every category."""
    at = 0
    for i in range(codes.shape[0]):
        latent = -2.0
        for j in range(starts.size):
            latent += weights[starts[j] + codes[i, j]]
        at = _label(buffer, at, latent, u[i])
        for j in range(starts.size):
            for c in (32, 124, 97 + j, 32):
                buffer[at] = c
                at += 1
            at = _digits(buffer, at, codes[i, j])
        buffer[at] = 10
        at += 1
    return at


def write_few(path: Path, n: int, seed: int = 1) -> None:
    """Examples with about 20 of 200 features."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(0.0, 0.5, 200)
    buffer = np.empty(_CHUNK * 500, np.uint8)
    with path.open("wb") as file:
        for start in range(0, n, _CHUNK):
            size = min(_CHUNK, n - start)
            used = _few(weights, rng.random((size, 200), np.float32) < 0.1, rng.random(size), buffer)
            file.write(buffer[:used].tobytes())


def write_zipf(path: Path, n: int, seed: int = 2) -> None:
    """Examples with one feature out of each of 22 categories, 8 million features in all, popular by Zipf's law."""
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(10, 2_500_000, 22).astype(np.int64)
    sizes[-1] += 8_000_000 - sizes.sum()
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    weights = rng.normal(0.0, 0.5, sizes.sum()).astype(np.float32)
    buffer = np.empty(_CHUNK * 500, np.uint8)
    with path.open("wb") as file:
        for start in range(0, n, _CHUNK):
            size = min(_CHUNK, n - start)
            # P(code < k) = log(k+1)/log(size+1): the inverse of a Zipf law with exponent 1
            codes = (np.exp(rng.random((size, 22)) * np.log(sizes + 1.0)) - 1.0).astype(np.int64)
            used = _many(weights, starts, np.minimum(codes, sizes - 1), rng.random(size), buffer)
            file.write(buffer[:used].tobytes())
