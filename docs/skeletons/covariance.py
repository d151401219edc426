"""Skeleton of a covariance function: one with heavy tails. Copy, rename, replace the formula.

In the package: this file in ``gp/covariances/`` and one line in its ``__init__.py``. From outside: this file and
``gaussfold.registry.register("covariance", HeavyTailed)``. The values are enough: derivatives are then taken by
differences. Write ``diagonal``, ``vjp``, ``input_vjp`` for speed, and ``state_space`` if it has one, for
``structure="markov"``: ``gaussfold.gp.covariances.cosine`` is a short example.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from gaussfold.checks import positive
from gaussfold.gp.covariances.base import Covariance
from gaussfold.types import Array


@dataclass(frozen=True)
class HeavyTailed(Covariance):
    """``variance · (1 + r²/(2 shape lengthscale²))^-shape``."""

    variance: float = 1.0
    lengthscale: float = 1.0
    shape: float = 1.0
    learned: ClassVar[tuple[str, ...]] = ("variance", "lengthscale", "shape")  # all positive, learned as logarithms

    def __post_init__(self) -> None:
        for name in self.learned:
            object.__setattr__(self, name, positive(name, vars(self)[name], owner="HeavyTailed"))

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Values for all rows of X (n, d) and Z (m, d)."""
        r2 = cdist(X, X if Z is None else Z, "sqeuclidean") / self.lengthscale**2
        return np.asarray(self.variance * (1.0 + 0.5 * r2 / self.shape) ** -self.shape)
