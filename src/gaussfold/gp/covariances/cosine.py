"""The cosine, on one input column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive
from gaussfold.gp.covariances.base import Covariance, difference
from gaussfold.gp.covariances.state_space import Adjoints, StateSpace, block_rotations
from gaussfold.types import Array


class CosineSpace(StateSpace):
    """A rotation with constant frequency; no noise enters."""

    def __init__(self, frequency: float) -> None:
        self._frequency = frequency
        super().__init__(np.array([[0.0, -frequency], [frequency, 0.0]]), np.array([1.0, 0.0]), np.eye(2))

    def transition(self, dt: Array) -> Array:
        """Rotations by ``frequency · dt``."""
        return block_rotations(self._frequency * dt[:, None])

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """The frequency is a speed of time."""
        return np.array([np.vdot(self.feedback, adjoints.flow)])


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
        return np.cos(self.frequency * difference(self, X, Z))

    def diagonal(self, X: Array) -> Array:
        """One."""
        return np.ones(len(X))

    def vjp(self, X: Array, Z: Array | None, bar: Array) -> Array:
        """``-ωr sin ωr``."""
        phase = self.frequency * difference(self, X, Z)
        return np.array([-float(np.vdot(bar, phase * np.sin(phase)))])

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:
        """Nothing."""
        del X, bar
        return np.zeros(1)

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """``-ω sin ωr``."""
        slope = -self.frequency * np.sin(self.frequency * difference(self, X, Z))
        return np.asarray((bar * slope).sum(axis=1)[:, None])

    def state_space(self) -> StateSpace:
        """A rotation in the plane."""
        return CosineSpace(self.frequency)
