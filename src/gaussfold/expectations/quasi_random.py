"""Nodes for averages over many independent normal numbers: a lattice in place of chance.

The points of a Kronecker sequence, ``frac(i/φ^c)`` with φ the root of ``φ^(d+1) = φ + 1`` that generalises the golden
ratio, cover the cube evenly in any dimension and are made by arithmetic alone: the same on every machine, and no
generator to store. Through the normal quantile they become points for N(0, I); with each goes its mirror image, and a
linear map makes the second moments exact, so that E 1, E f, E f² (and all odd moments) are right to rounding.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy

from gaussfold.types import Array


@lru_cache(maxsize=64)
def normal_nodes(dim: int, size: int) -> Array:
    """Points for N(0, I), shape (dim, size), read-only; ``size`` is even and at least 2 dim."""
    half = size // 2
    root = 1.5
    for _ in range(200):
        root = (1.0 + root) ** (1.0 / (dim + 1.0))
    steps = root ** -np.arange(1.0, dim + 1.0)
    lattice = np.mod(0.5 + np.arange(1, half + 1)[:, None] * steps, 1.0)
    points = scipy.special.ndtri(lattice)
    second = np.linalg.cholesky(points.T @ points / half)
    points = scipy.linalg.solve_triangular(second, points.T, lower=True)
    nodes = np.ascontiguousarray(np.concatenate([points, -points], axis=1))
    nodes.flags.writeable = False
    return nodes


def enough_nodes(dim: int, least: int) -> int:
    """How many to take for so many latents: ``least``, or what makes the second moments exact, in lanes of eight."""
    return max(least, -(-(2 * dim + 8) // 8) * 8)
