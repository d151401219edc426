"""White noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gaussfold.gp.covariances.constant import ConstantSpace
from gaussfold.gp.covariances.scaled import Flat
from gaussfold.gp.covariances.state_space import StateSpace
from gaussfold.types import Array


class WhiteSpace(ConstantSpace):
    """One state that is drawn anew at every step, and kept over a step of no length."""

    def transition(self, dt: Array) -> Array:
        """Nothing is kept, unless the step has no length."""
        return np.where(dt == 0.0, 1.0, 0.0)[:, None, None]


@dataclass(frozen=True)
class White(Flat):
    """A fresh random number at every distinct input; equal inputs share it.

    Parameters
    ----------
    variance : float
        Positive.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0]])
    >>> White(0.3)(X, X)
    array([[0.3, 0. ],
           [0. , 0.3]])
    """

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """The variance where two rows are equal, else zero."""
        rows = X if Z is None else np.vstack([X, Z])
        labels = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
        left, right = labels[: len(X)], labels if Z is None else labels[len(X) :]
        return np.asarray(self.variance * (left[:, None] == right))

    def state_space(self) -> StateSpace:
        """One state that is drawn anew at every step."""
        return WhiteSpace(self.variance)
