"""Covariances with nothing to learn but their scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive
from gaussfold.gp.covariances.base import Covariance
from gaussfold.types import Array


@dataclass(frozen=True)
class Scaled(Covariance):
    """``variance`` times something without hyperparameters."""

    variance: float = 1.0
    learned: ClassVar[tuple[str, ...]] = ("variance",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive("variance", self.variance, owner=type(self).__name__))

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """Itself."""
        return np.array([float(np.vdot(bar, self(X, Z)))])

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:
        """Itself."""
        return np.array([float(bar @ self.diagonal(X))])


class Flat(Scaled):
    """The same variance everywhere, and no slope wherever there is one."""

    def diagonal(self, X: Array) -> Array:
        """The variance."""
        return np.full(len(X), self.variance)

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """Nothing."""
        del Z, bar
        return np.zeros_like(X)
