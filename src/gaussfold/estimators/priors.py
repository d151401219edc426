"""From the parameters of an estimator to the belief it starts with: the one place that knows all shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from gaussfold.beliefs.bank.belief import Bank
from gaussfold.beliefs.blocks import BlockGaussian
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.blocks import DiagonalBlocks
from gaussfold.beliefs.diagonal.class_stack import CLASS_LANE_STDS, DiagonalClassStack
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.beliefs.diagonal.mixture import PRIOR_GRID, DiagonalMixture
from gaussfold.beliefs.diagonal.stack import LANE_STDS, MOVING_STD, DiagonalStack
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.beliefs.lowrank.options import CALIBRATED
from gaussfold.beliefs.restoring import restore_single
from gaussfold.checks import whole
from gaussfold.schema import equal
from gaussfold.types import Array, ArrayLike

AnyBelief: TypeAlias = (
    DenseGaussian
    | LowRankGaussian
    | DiagonalGaussian
    | DiagonalMixture
    | DiagonalStack
    | Bank
    | BlockGaussian
    | DiagonalBlocks
    | DiagonalClassStack
)
"""What an estimator may hold."""
AUTO = "auto"
SHAPES = ("full", "lowrank", "diagonal")
RULES = {"full": "vi", "lowrank": "vi", "diagonal": "newton"}
"""What ``rule=None`` means."""
FACTORS = 10
"""Factors of a low-rank belief, unless it has fewer parameters or is told otherwise."""


@dataclass(frozen=True)
class Prior:
    """What is believed before any data; the belief itself is made on demand, so that it costs no memory afterwards."""

    covariance: str
    """One of `SHAPES`."""
    dim: int
    """Number of parameters, the intercept included."""
    mean: Array
    """One number for all parameters (0-d: a diagonal belief then takes no memory yet), or one each."""
    std: Array | str
    """The same; or `AUTO`, for a diagonal covariance."""
    coupling: Coupling
    """Of a diagonal belief."""
    last_std: float | None = None
    """Standard deviation of the last parameter (the intercept), where that differs."""
    rank: int = FACTORS
    """Factors of a low-rank belief."""
    block_size: int | None = None
    """Rows per projection of a low-rank belief; None: as many as suit."""
    projection: str = CALIBRATED
    """Of a low-rank belief."""
    stacked: bool = False
    """Whether the lanes of `AUTO` are stacked; else they are mixed, as they have to be where the model says how time
    passes."""

    def check_kind(self, beliefs: Sequence[AnyBelief], *, banks: bool) -> None:
        """Refuse beliefs, of a model file, that do not have this form; or, if so, are not banks of such."""
        spread = (DiagonalStack, DiagonalMixture) if isinstance(self.std, str) else (DiagonalGaussian,)
        needed = {"full": (DenseGaussian,), "lowrank": (LowRankGaussian,), "diagonal": spread}[self.covariance]
        for belief in beliefs:
            equal("belief", isinstance(belief, Bank), banks, "as 'auto' for drift_std or forgetting says")
        members = [each for belief in beliefs for each in (belief.members if isinstance(belief, Bank) else [belief])]
        for member in members:
            kind = type(member) if isinstance(member, needed) else needed[0]  # older files have mixtures
            equal("belief", type(member).__name__, kind.__name__, f"as covariance={self.covariance!r} says")

    def belief(self) -> DenseGaussian | LowRankGaussian | DiagonalGaussian | DiagonalMixture | DiagonalStack:
        """A new belief that has seen nothing."""
        if self.covariance == "full":
            return DenseGaussian.independent(self._means(), self._stds(self.std))
        if self.covariance == "lowrank":
            stds = self._stds(self.std)
            return LowRankGaussian.independent(
                self._means(), stds, self.rank, block_size=self.block_size, projection=self.projection
            )
        if isinstance(self.std, str) and self.stacked:
            return DiagonalStack([self._diagonal(std) for std in LANE_STDS], self._diagonal(MOVING_STD))
        return self.diagonal_belief()

    def independent(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each parameter, where these are numbers."""
        return self._means(), self._stds(1.0 if isinstance(self.std, str) else self.std)

    def diagonal_belief(self) -> DiagonalGaussian | DiagonalMixture:
        """A new diagonal belief: one Gaussian, or for `AUTO` several that differ in their standard deviation."""
        if isinstance(self.std, str):
            return DiagonalMixture([self._diagonal(std) for std in PRIOR_GRID])
        return self._diagonal(self.std)

    def class_belief(self, classes: int) -> DiagonalBlocks | DiagonalClassStack:
        """A new diagonal belief over the weights of so many classes: one Gaussian each, or for `AUTO` a stack."""
        if isinstance(self.std, str):
            return DiagonalClassStack([self._blocks(classes, std) for std in CLASS_LANE_STDS])
        return self._blocks(classes, self.std)

    def _blocks(self, classes: int, std: ArrayLike) -> DiagonalBlocks:
        return DiagonalBlocks.of([self._diagonal(std)] * classes)

    def _diagonal(self, std: ArrayLike) -> DiagonalGaussian:
        if np.ndim(std) == 0 and np.ndim(self.mean) == 0 and self.last_std is None:
            return DiagonalGaussian.isotropic(self.dim, float(std), float(self.mean), self.coupling)
        return DiagonalGaussian.independent(self._means(), self._stds(std), self.coupling)

    def _means(self) -> Array:
        return _each(self.mean, self.dim)

    def _stds(self, std: ArrayLike) -> Array:
        stds = _each(std, self.dim)
        if self.last_std is not None:
            stds[-1] = self.last_std
        return stds


def factors(rank: int | None, dim: int) -> int:
    """Number of factors: as asked, or `FACTORS` but not more than there are parameters."""
    return min(FACTORS, dim) if rank is None else whole("rank", rank)


def restore_belief(state: dict[str, np.ndarray]) -> AnyBelief:
    """The belief whose ``state`` this is; its shape is told by the names of its arrays."""
    if "blocks" in state:
        return BlockGaussian.from_state(state)
    if "class_lanes" in state:
        return DiagonalClassStack.from_state(state)
    if "classes" in state:
        return DiagonalBlocks.from_state(state)
    return Bank.from_state(state) if "shares" in state else restore_single(state)


def _each(value: ArrayLike, dim: int) -> Array:
    return np.array(np.broadcast_to(np.asarray(value, dtype=np.float64), (dim,)))
