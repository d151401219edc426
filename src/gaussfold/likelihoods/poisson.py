"""Counts with a log link: the mean is exp(f)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from gaussfold.likelihoods.base import POISSON, ScalarLikelihood, floats
from gaussfold.protocols import Kernel
from gaussfold.types import Array, ArrayLike, Moments


@dataclass(frozen=True)
class Poisson(ScalarLikelihood):
    """``y | f ~ Poisson(exp(f))``.

    Where exp(f) leaves the range of a double (f > 709.78), so do its results: infinity, without a warning.

    Examples
    --------
    >>> Poisson().derivatives(3, 0.7)
    (array(0.9862), array(-2.0138))
    """

    log_concave: ClassVar[bool] = True
    labels: ClassVar[str] = "whole numbers >= 0"
    remedy: ClassVar[str] = "give counts, not rates, and drop or correct rows that have none"

    @property
    def kernel(self) -> Kernel:
        """(code, unused, unused)."""
        return POISSON, 0.0, 0.0

    def explains(self, y: Array) -> np.ndarray:
        """``y = 0, 1, 2, ...``."""
        return np.asarray((y >= 0.0) & (np.floor(y) == y))

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``y f - exp(f) - log y!``."""
        y, f = floats(y, f)
        return np.asarray(y * f - rate(f) - scipy.special.gammaln(y + 1.0))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``y - exp(f)`` and ``-exp(f)``."""
        y, f = floats(y, f)
        mu = rate(f)
        return np.asarray(y - mu), np.asarray(-mu)

    def conditional(self, f: ArrayLike) -> Moments:
        """``exp(f)``, twice."""
        (f,) = floats(f)
        mu = rate(f)
        return Moments(mu, mu.copy())

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """``exp(f)``, four times."""
        found = self.conditional(f)
        return found, found


def rate(f: Array) -> Array:
    """``exp(f)``; infinity is the rightly rounded value beyond 709.78."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(f))
