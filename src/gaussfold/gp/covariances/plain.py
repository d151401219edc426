"""Constant, linear and white covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive
from gaussfold.gp.covariances.base import Covariance
from gaussfold.gp.spaces import ConstantSpace, LinearSpace, WhiteSpace
from gaussfold.gp.statespace import StateSpace
from gaussfold.types import Array


@dataclass(frozen=True)
class _Scaled(Covariance):
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


@dataclass(frozen=True)
class Constant(_Scaled):
    """The same random number everywhere: an unknown offset, or the scale of a product.

    Parameters
    ----------
    variance : float
        Positive.
    """

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """The variance."""
        return np.full((len(X), len(X if Z is None else Z)), self.variance)

    def diagonal(self, X: Array) -> Array:
        """The variance."""
        return np.full(len(X), self.variance)

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:  # noqa: ARG002
        """Nothing."""
        return np.zeros_like(X)

    def state_space(self) -> StateSpace:
        """One state that stays."""
        return ConstantSpace(self.variance)


@dataclass(frozen=True)
class Linear(_Scaled):
    """``variance · (x - centre)'(z - centre)``: a line (a plane) through the centre with a random slope.

    Parameters
    ----------
    variance : float
        Of the slope, > 0.
    centre : float
        Where the line passes through zero; not learned.
    """

    centre: float = 0.0

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all pairs of rows."""
        left = X - self.centre
        return np.asarray(self.variance * left @ (left if Z is None else Z - self.centre).T)

    def diagonal(self, X: Array) -> Array:
        """``variance |x - centre|²``."""
        return np.asarray(self.variance * ((X - self.centre) ** 2).sum(axis=1))

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:  # noqa: ARG002
        """``variance (z - centre)``."""
        return np.asarray(self.variance * bar @ (Z - self.centre))

    def state_space(self) -> StateSpace:
        """Value and slope."""
        return LinearSpace(self.variance, self.centre)


@dataclass(frozen=True)
class White(_Scaled):
    """A fresh random number at every distinct input; equal inputs share it.

    Parameters
    ----------
    variance : float
        Positive.
    """

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """The variance where two rows are equal, else zero."""
        rows = X if Z is None else np.vstack([X, Z])
        labels = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        left, right = labels[: len(X)], labels if Z is None else labels[len(X) :]
        return np.asarray(self.variance * (left[:, None] == right))

    def diagonal(self, X: Array) -> Array:
        """The variance."""
        return np.full(len(X), self.variance)

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:  # noqa: ARG002
        """Nothing: it is flat wherever it is smooth."""
        return np.zeros_like(X)

    def state_space(self) -> StateSpace:
        """One state that is drawn anew at every step."""
        return WhiteSpace(self.variance)
