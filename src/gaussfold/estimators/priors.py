"""Which belief an estimator keeps: one name, one class."""

from __future__ import annotations

from typing import Any

from gaussfold.beliefs.dense import DenseGaussian
from gaussfold.beliefs.lowrank import LowRankGaussian
from gaussfold.types import Array

BELIEFS: dict[str, Any] = {"full": DenseGaussian, "lowrank": LowRankGaussian}
LARGEST_BLOCK = 32
"""Rows per projection of a low-rank belief, unless it has fewer factors or is told otherwise."""


def make_belief(covariance: str, mean: Array, std: Array, *, rank: int = 1, block_size: int | None = None) -> Any:
    """Build the belief before any data: N(mean, diag(std²)) in the shape that ``covariance`` names."""
    if covariance == "lowrank":
        return LowRankGaussian.independent(mean, std, rank, block_size=lowrank_block(rank, block_size))
    return DenseGaussian.independent(mean, std)


def lowrank_block(rank: int, block_size: int | None) -> int:
    """Rows per projection: as asked, or as many as there are factors: waiting rows at most double the memory."""
    return min(LARGEST_BLOCK, rank) if block_size is None else block_size
