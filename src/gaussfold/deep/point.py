"""One network and no doubt about it: what plain training leaves, as a belief, so that it can stand beside others."""

from __future__ import annotations

from typing import Self

import numpy as np

from gaussfold import schema
from gaussfold.checks import finite_entries
from gaussfold.types import Array, ArrayLike

PARTS = (schema.Part("mean", ("d",), "stored"),)


class PointMass:
    """All probability at one vector of parameters.

    Examples
    --------
    >>> PointMass([1.0, 2.0]).variance()
    array([0., 0.])
    """

    def __init__(self, mean: ArrayLike) -> None:
        self.mean: Array = np.array(mean, dtype=np.float64)
        finite_entries("mean", self.mean)

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self.mean.size

    def variance(self) -> Array:
        """None."""
        return np.zeros(self.dim)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """The same vector n times; nothing is drawn."""
        del rng
        return np.repeat(self.mean[None], n, axis=0)

    def log_prob(self, theta: ArrayLike) -> Array:
        """A point has no density."""
        msg = f"theta: a point mass has no density, at {np.shape(theta)} or anywhere; use VIFA, SWAG or LRVGA for one"
        raise ValueError(msg)

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays."""
        return {"mean": self.mean.copy()}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """Undo :meth:`state`."""
        schema.check(state, PARTS)
        return cls(state["mean"])
