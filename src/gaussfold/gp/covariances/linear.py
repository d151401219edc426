"""The linear covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gaussfold.gp.covariances.scaled import Scaled
from gaussfold.gp.covariances.state_space import Adjoints, StateSpace, not_stationary
from gaussfold.types import Array


class LinearSpace(StateSpace):
    """Value and slope of a random line; not stationary, no noise enters."""

    is_stationary = False

    def __init__(self, variance: float, centre: float) -> None:
        self._variance, self._centre = variance, centre
        super().__init__(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0]), np.full((2, 2), np.nan))

    def transition(self, dt: Array) -> Array:
        """The value moves by slope times dt."""
        out = np.tile(np.eye(2), (len(dt), 1, 1))
        out[:, 0, 1] = dt
        return out

    def noise(self, dt: Array, A: Array) -> Array:
        """None."""
        del A
        return np.zeros((len(dt), 2, 2))

    def initial(self, start: float) -> Array:
        """The line at the first input."""
        x = start - self._centre
        return self._variance * np.array([[x * x, x], [x, 1.0]])

    def vjp(self, adjoints: Adjoints, start: float, bar_P: Array) -> Array:
        """Through the first covariance."""
        del adjoints
        return np.array([np.vdot(bar_P, self.initial(start))])

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """A line does not forget where it started."""
        del adjoints
        raise not_stationary()


@dataclass(frozen=True)
class Linear(Scaled):
    """``variance · (x - centre)'(z - centre)``: a line (a plane) through the centre with a random slope.

    Parameters
    ----------
    variance : float
        Of the slope, > 0.
    centre : float
        Where the line passes through zero; not learned.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0]])
    >>> Linear(variance=0.5)(X, X)
    array([[0.5, 1. ],
           [1. , 2. ]])
    """

    centre: float = 0.0

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all pairs of rows."""
        left = X - self.centre
        return np.asarray(self.variance * left @ (left if Z is None else Z - self.centre).T)

    def diagonal(self, X: Array) -> Array:
        """``variance |x - centre|²``."""
        return np.asarray(self.variance * ((X - self.centre) ** 2).sum(axis=1))

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """``variance (z - centre)``."""
        del X
        return np.asarray(self.variance * bar @ (Z - self.centre))

    def state_space(self) -> StateSpace:
        """Value and slope."""
        return LinearSpace(self.variance, self.centre)
