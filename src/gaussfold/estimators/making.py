"""From the parameters of an estimator to the belief it starts with: the one place that knows all shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.cellular import Cellular
from gaussfold.beliefs.diagonal.mixture import PRIOR_GRID, DiagonalMixture
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.types import Array

AUTO = "auto"
SHAPES = ("full", "lowrank", "diagonal")
RULES = {"full": "vi", "lowrank": "vi", "diagonal": "newton"}
"""What ``rule=None`` means."""
LARGEST_BLOCK = 32
"""Rows per projection of a low-rank belief, unless it has fewer factors or is told otherwise."""


def make_belief(
    covariance: str,
    dim: int,
    mean: Array,
    std: Array | str,
    coupling: Any = "marginal",
    last_std: float | None = None,
    rank: int = 10,
    block_size: int | None = None,
) -> Any:
    """The belief before any data.

    Parameters
    ----------
    covariance
        "full", "lowrank" or "diagonal".
    dim
        Number of parameters, the intercept included.
    mean, std
        One number for all parameters (0-d: a diagonal belief then takes no memory yet), or one each; ``std`` may be
        "auto" for a diagonal covariance.
    coupling
        Of a diagonal belief.
    last_std
        Standard deviation of the last parameter (the intercept), where that differs.
    rank, block_size
        Of a low-rank belief: its factors, and the rows per projection.
    """
    if covariance == "full":
        return DenseGaussian.independent(_each(mean, dim), _each(std, dim, last_std))
    if covariance == "lowrank":
        means, stds = _each(mean, dim), _each(std, dim, last_std)
        return LowRankGaussian.independent(means, stds, rank, block_size=lowrank_block(rank, block_size))
    grid = PRIOR_GRID if isinstance(std, str) else (std,)
    parts = [
        DiagonalGaussian.isotropic(dim, float(s), float(mean), coupling)
        if np.ndim(s) == 0 and np.ndim(mean) == 0 and last_std is None
        else DiagonalGaussian.independent(_each(mean, dim), _each(s, dim, last_std), coupling)
        for s in grid
    ]
    return DiagonalMixture(parts) if isinstance(std, str) else parts[0]


def lowrank_block(rank: int, block_size: int | None) -> int:
    """Rows per projection: as asked, or as many as there are factors: waiting rows at most double the memory."""
    return min(LARGEST_BLOCK, rank) if block_size is None else block_size


def restore_belief(state: dict[str, np.ndarray]) -> Any:
    """The belief whose ``state`` this is; its shape is told by the names of its arrays."""
    if "W" in state:
        return LowRankGaussian.from_state(state)
    if "cells" not in state:
        return DenseGaussian.from_state(state)
    kind: type[Cellular] = DiagonalMixture if state["log_weights"].size > 1 else DiagonalGaussian
    return kind.from_state(state)


def _each(value: Any, dim: int, last: float | None = None) -> Array:
    array = np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (dim,)))
    if last is not None:
        array[-1] = last
    return array
