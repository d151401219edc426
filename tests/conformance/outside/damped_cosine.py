"""A covariance from outside: oscillations that lose their phase, with a state-space form of two states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive
from gaussfold.gp.covariances.base import Covariance, difference
from gaussfold.gp.covariances.state_space import Adjoints, StateSpace, block_rotations
from gaussfold.types import Array

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


class DampedCosineSpace(StateSpace):
    """A rotation that decays while noise comes in: ``F = -I/lengthscale + frequency · TURN``."""

    def __init__(self, variance: float, lengthscale: float, frequency: float) -> None:
        self._decay, self._turn = -np.eye(2) / lengthscale, frequency * TURN
        self._frequency, self._lengthscale = frequency, lengthscale
        super().__init__(self._decay + self._turn, np.array([1.0, 0.0]), variance * np.eye(2))

    def transition(self, dt: Array) -> Array:
        """The two parts of F commute."""
        return np.exp(-dt / self._lengthscale)[:, None, None] * block_rotations(self._frequency * dt[:, None])

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """The variance scales P∞; the two others move F, each in its own part: ``dA = dF dt A``."""
        by_variance = np.vdot(adjoints.covariance, self.covariance)
        return np.array([by_variance, -np.vdot(self._decay, adjoints.flow), np.vdot(self._turn, adjoints.flow)])


@dataclass(frozen=True)
class DampedCosine(Covariance):
    """``variance · e^{-|r|/lengthscale} cos(frequency · r)``, ``r = x - z``; its derivatives by differences."""

    variance: float = 1.0
    lengthscale: float = 1.0
    frequency: float = 1.0
    learned: ClassVar[tuple[str, ...]] = ("variance", "lengthscale", "frequency")

    def __post_init__(self) -> None:
        for name in self.learned:
            object.__setattr__(self, name, positive(name, vars(self)[name], owner="DampedCosine"))

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all pairs of rows."""
        r = difference(self, X, Z)
        return np.asarray(self.variance * np.exp(-np.abs(r) / self.lengthscale) * np.cos(self.frequency * r))

    def state_space(self) -> StateSpace:
        """Two states."""
        return DampedCosineSpace(self.variance, self.lengthscale, self.frequency)
