"""The periodic covariance, on one input column, and the harmonics that stand for it in state space."""

from __future__ import annotations

from dataclasses import dataclass
from math import pi
from typing import ClassVar

import numpy as np
from scipy.linalg import block_diag
from scipy.special import ive

from gaussfold.checks import positive, whole
from gaussfold.gp.covariances.base import Covariance, difference
from gaussfold.gp.covariances.state_space import Adjoints, StateSpace, block_rotations
from gaussfold.types import Array

FEWEST, ENOUGH, MOST = 6, 60, 100
LEFT_OUT = 1e-5


class PeriodicSpace(StateSpace):
    """Harmonics 0 to ``order`` of a periodic covariance, one rotation each.

    The j-th has variance ``2 I_j(z) e^{-z}`` (j = 0: half of that) with ``z = 1/lengthscale²``.
    """

    def __init__(self, order: int, variance: float, lengthscale: float, period: float) -> None:
        self._angular = 2.0 * pi / period * np.arange(order + 1)
        self._variance, self._z, self._j = variance, lengthscale**-2, np.arange(order + 1)
        F = block_diag(*(w * np.array([[0.0, -1.0], [1.0, 0.0]]) for w in self._angular))
        weight = variance * self._share * ive(self._j, self._z)
        super().__init__(F, np.tile([1.0, 0.0], order + 1), np.diag(np.repeat(weight, 2)))

    @property
    def _share(self) -> Array:
        return np.where(self._j == 0, 1.0, 2.0)

    def transition(self, dt: Array) -> Array:
        """Rotations by ``j · 2π dt/period``."""
        return block_rotations(np.multiply.outer(dt, self._angular))

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """The period slows time down; the lengthscale shares the variance out among the harmonics."""
        j, z = self._j, self._z
        slope = 0.5 * (ive(np.abs(j - 1), z) + ive(j + 1, z)) - ive(j, z)
        by_length = np.repeat(self._variance * self._share * slope * -2.0 * z, 2)
        return np.array(
            [
                np.vdot(adjoints.covariance, self.covariance),
                np.diag(adjoints.covariance) @ by_length,
                -np.vdot(self.feedback, adjoints.flow),
            ]
        )


@dataclass(frozen=True)
class Periodic(Covariance):
    """``variance · exp(-2 sin²(π(x - z)/period)/lengthscale²)``.

    In state space it is cut to its first ``order`` harmonics.

    Parameters
    ----------
    variance, lengthscale, period : float
        Positive; lengthscale is without unit (the distance on a circle of unit radius).
    order : int, default=None
        Number of harmonics of the Markov form, which has 2(order + 1) states. Dense and sparse structures do not
        use it. None takes as many as leave out less than 1e-5 of the variance, at least 6; short length scales need
        many, and one that would need more than 60 is refused.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [3.5], [7.0]])
    >>> Periodic(variance=1.0, lengthscale=0.8, period=7.0)(X, X[:1]).round(4)
    array([[1.    ],
           [0.0439],
           [1.    ]])
    """

    variance: float = 1.0
    lengthscale: float = 1.0
    period: float = 1.0
    order: int | None = None
    learned: ClassVar[tuple[str, ...]] = ("variance", "lengthscale", "period")

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", positive("variance", self.variance, owner="Periodic"))
        object.__setattr__(self, "lengthscale", positive("lengthscale", self.lengthscale, owner="Periodic"))
        object.__setattr__(self, "period", positive("period", self.period, owner="Periodic"))
        if self.order is not None:
            whole("order", self.order, 0, MOST, owner="the expansion in harmonics", remedy="None takes enough")

    def _parts(self, X: Array, Z: Array | None) -> tuple[Array, Array, Array]:
        """Value, phase π r/period, and sin² of it."""
        phase = np.pi / self.period * difference(self, X, Z)
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

    def diagonal_vjp(self, X: Array, bar: Array) -> Array:
        """Only the variance is on the diagonal."""
        del X
        return np.array([self.variance * bar.sum(), 0.0, 0.0])

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """``-k · 2π sin(2πr/period)/(period lengthscale²)``."""
        value, phase, _ = self._parts(X, Z)
        slope = -2.0 * np.pi / (self.period * self.lengthscale**2) * np.sin(2.0 * phase)
        return np.asarray((bar * value * slope).sum(axis=1)[:, None])

    def state_space(self) -> StateSpace:
        """One rotation per harmonic."""
        order = self._enough() if self.order is None else self.order
        return PeriodicSpace(order, self.variance, self.lengthscale, self.period)

    def _enough(self) -> int:
        """Harmonics that hold all but LEFT_OUT of the variance; their shares sum to one."""
        j = np.arange(ENOUGH + 1)
        held = np.cumsum(np.where(j == 0, 1.0, 2.0) * ive(j, self.lengthscale**-2))
        if held[-1] < 1.0 - LEFT_OUT:
            msg = (
                f"lengthscale={self.lengthscale!r}: the Markov form of Periodic would leave out {1.0 - held[-1]:.2g} "
                f"of the variance with {ENOUGH} harmonics; use a longer lengthscale or structure='dense', or give "
                "order= to accept that"
            )
            raise ValueError(msg)
        return max(FEWEST, int(np.argmax(held >= 1.0 - LEFT_OUT)))
