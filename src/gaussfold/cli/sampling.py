"""Thompson sampling over hashed features: one draw of all weights, without drawing them all."""

from __future__ import annotations

import numpy as np
import scipy

from gaussfold.beliefs.diagonal.base import DiagonalBelief, sum_draws
from gaussfold.rows import Rows
from gaussfold.types import Array


def sampled_latent(belief: DiagonalBelief, rows: Rows, seed: int) -> Array:
    """x'θ of every row under one draw of θ; the same draw for all chunks, by the seed and the slot."""
    columns, place = np.unique(rows.indices, return_inverse=True)
    weights = np.exp(belief.log_weights)
    k = int(np.random.default_rng(seed).choice(weights.size, p=weights))
    away = np.sqrt(belief.cells(columns)[:, 1, k]) * _normals(columns, seed)
    return np.asarray(belief.reports(rows).mean[:, k] + sum_draws(rows, place, [away])[0])


def _normals(columns: np.ndarray, seed: int) -> Array:
    """Return a standard normal number per slot that depends on the slot and the seed alone (SplitMix64)."""
    with np.errstate(over="ignore"):
        z = columns.astype(np.uint64) + np.uint64(seed % 2**32) * np.uint64(0x9E3779B97F4A7C15)
        z = (z + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
    return np.asarray(scipy.special.ndtri(((z >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53))
