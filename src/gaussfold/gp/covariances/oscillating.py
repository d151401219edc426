"""Cosine and periodic covariances, on one input column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive, whole
from gaussfold.gp.covariances.base import Covariance
from gaussfold.gp.spaces import CosineSpace, PeriodicSpace
from gaussfold.gp.statespace import StateSpace
from gaussfold.types import Array


def _difference(owner: Covariance, X: Array, Z: Array | None) -> Array:
    if X.shape[1] != 1:
        msg = f"X has {X.shape[1]} columns: {type(owner).__name__} is defined on one; give it that column alone"
        raise ValueError(msg)
    return np.asarray(X - (X if Z is None else Z)[:, 0])


@dataclass(frozen=True)
class Cosine(Covariance):
    """``cos(frequency · (x - z))``: a sinusoid of random phase and amplitude, unit variance.

    Parameters
    ----------
    frequency : float
        In radians per unit of x, > 0.
    """

    frequency: float = 1.0
    learned: ClassVar[tuple[str, ...]] = ("frequency",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "frequency", positive("frequency", self.frequency, owner="Cosine"))

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all pairs of rows."""
        return np.cos(self.frequency * _difference(self, X, Z))

    def diagonal(self, X: Array) -> Array:
        """One."""
        return np.ones(len(X))

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """``-ωr sin ωr``."""
        phase = self.frequency * _difference(self, X, Z)
        return np.array([-float(np.vdot(bar, phase * np.sin(phase)))])

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:  # noqa: ARG002
        """Nothing."""
        return np.zeros(1)

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """``-ω sin ωr``."""
        slope = -self.frequency * np.sin(self.frequency * _difference(self, X, Z))
        return np.asarray((bar * slope).sum(axis=1)[:, None])

    def state_space(self) -> StateSpace:
        """A rotation in the plane."""
        return CosineSpace(self.frequency)


@dataclass(frozen=True)
class Periodic(Covariance):
    """``variance · exp(-2 sin²(π(x - z)/period)/lengthscale²)``.

    In state space it is cut to its first ``order`` harmonics.

    Parameters
    ----------
    variance, lengthscale, period : float
        Positive; lengthscale is without unit (the distance on a circle of unit radius).
    order : int
        Number of harmonics of the Markov form, which has 2(order + 1) states. Dense and sparse structures do not
        use it.
    """

    variance: float = 1.0
    lengthscale: float = 1.0
    period: float = 1.0
    order: int = 6
    learned: ClassVar[tuple[str, ...]] = ("variance", "lengthscale", "period")

    def __post_init__(self) -> None:
        for name in self.learned:
            object.__setattr__(self, name, positive(name, getattr(self, name), owner="Periodic"))
        whole("order", self.order, 0, 100, owner="the expansion in harmonics", remedy="6 is the usual choice")

    def _parts(self, X: Array, Z: Array | None) -> tuple[Array, Array, Array]:
        """Value, phase π r/period, and sin² of it."""
        phase = np.pi / self.period * _difference(self, X, Z)
        square = np.sin(phase) ** 2
        return self.variance * np.exp(-2.0 * square / self.lengthscale**2), phase, square

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all pairs of rows."""
        return self._parts(X, Z)[0]

    def diagonal(self, X: Array) -> Array:
        """The variance."""
        return np.full(len(X), self.variance)

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """With respect to variance, lengthscale and period."""
        value, phase, square = self._parts(X, Z)
        weight = bar * value
        to_length = 4.0 * square / self.lengthscale**2
        to_period = 2.0 * phase * np.sin(2.0 * phase) / self.lengthscale**2
        return np.array([weight.sum(), np.vdot(weight, to_length), np.vdot(weight, to_period)])

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:  # noqa: ARG002
        """Only the variance is on the diagonal."""
        return np.array([self.variance * bar.sum(), 0.0, 0.0])

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """``-k · 2π sin(2πr/period)/(period lengthscale²)``."""
        value, phase, _ = self._parts(X, Z)
        slope = -2.0 * np.pi / (self.period * self.lengthscale**2) * np.sin(2.0 * phase)
        return np.asarray((bar * value * slope).sum(axis=1)[:, None])

    def state_space(self) -> StateSpace:
        """One rotation per harmonic."""
        return PeriodicSpace(self.order, self.variance, self.lengthscale, self.period)
