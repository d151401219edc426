"""The constant covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gaussfold.gp.covariances.scaled import Flat
from gaussfold.gp.covariances.state_space import Adjoints, StateSpace
from gaussfold.types import Array


class ConstantSpace(StateSpace):
    """One state that never moves."""

    def __init__(self, variance: float) -> None:
        super().__init__(np.zeros((1, 1)), np.ones(1), np.array([[variance]]))

    def transition(self, dt: Array) -> Array:
        """One."""
        return np.ones((len(dt), 1, 1))

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """Through P∞."""
        return np.array([np.vdot(adjoints.covariance, self.covariance)])


# Like every covariance it says what its one parameter is, though ``White`` says the same: help() shows a class alone.


@dataclass(frozen=True)
class Constant(Flat):
    """The same random number everywhere: an unknown offset, or the scale of a product.

    Parameters
    ----------
    variance : float
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0]])
    >>> Constant(4.0)(X, X)
    array([[4., 4.],
           [4., 4.]])
    """

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """The variance."""
        return np.full((len(X), len(X if Z is None else Z)), self.variance)

    def state_space(self) -> StateSpace:
        """One state that stays."""
        return ConstantSpace(self.variance)
