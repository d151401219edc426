"""Brownian motion: a random walk in continuous time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gaussfold.gp.covariances.base import one_column
from gaussfold.gp.covariances.scaled import Scaled
from gaussfold.gp.covariances.state_space import Adjoints, StateSpace, not_stationary
from gaussfold.types import Array


class BrownianSpace(StateSpace):
    """One state that moves by noise of variance ``variance · dt``; it never forgets its start."""

    is_stationary = False
    own_adjoints = True

    def __init__(self, variance: float, origin: float) -> None:
        self._variance, self._origin = variance, origin
        super().__init__(np.zeros((1, 1)), np.ones(1), np.full((1, 1), np.nan))

    def transition(self, dt: Array) -> Array:
        """One."""
        return np.ones((len(dt), 1, 1))

    def noise(self, dt: Array, A: Array) -> Array:
        """``variance · dt``."""
        del A
        return np.asarray(self._variance * dt[:, None, None])

    def initial(self, start: float) -> Array:
        """What has come together since the origin."""
        return np.array([[self._variance * max(start - self._origin, 0.0)]])

    def adjoints(self, dt: Array, A: Array, bar_A: Array, bar_Q: Array) -> Adjoints:
        """``Σ dt bar_Q`` in the place of P∞'s adjoint: A does not depend on anything."""
        del A, bar_A
        none = np.zeros((1, 1))
        return Adjoints(none, none, np.array([[float(np.vdot(dt, bar_Q[:, 0, 0]))]]))

    def vjp(self, adjoints: Adjoints, start: float, bar_P: Array) -> Array:
        """Through every noise, and through the first covariance."""
        moved = self._variance * adjoints.covariance[0, 0]
        return np.array([moved + float(np.vdot(bar_P, self.initial(start)))])

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """A walk does not forget where it started."""
        del adjoints
        raise not_stationary()


@dataclass(frozen=True)
class Brownian(Scaled):
    """``variance · min(x - origin, z - origin)``: a walk that starts from zero at the origin, on one input column.

    Inputs before the origin have no variance: the walk has not begun there.

    Parameters
    ----------
    variance : float
        Per unit of the input, > 0.
    origin : float
        Where the walk starts; not learned.

    Examples
    --------
    >>> Brownian(2.0)(np.array([[1.0], [3.0]]))
    array([[2., 2.],
           [2., 6.]])
    """

    origin: float = 0.0

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all pairs of rows."""
        left = self._since(X)
        return np.asarray(self.variance * np.minimum(left[:, None], left if Z is None else self._since(Z)))

    def _since(self, X: Array) -> Array:
        return np.maximum(one_column(self, X) - self.origin, 0.0)

    def diagonal(self, X: Array) -> Array:
        """``variance (x - origin)``."""
        return np.asarray(self.variance * self._since(X))

    def input_vjp(self, X: Array, Z: Array, bar: Array) -> Array:
        """The variance where x is the smaller one."""
        left, right = self._since(X), self._since(Z)
        slope = self.variance * ((left[:, None] < right) & (left > 0.0)[:, None])
        return np.asarray((bar * slope).sum(axis=1)[:, None])

    def state_space(self) -> StateSpace:
        """One state."""
        return BrownianSpace(self.variance, self.origin)
