"""Positive numbers whose spread grows with their mean: durations, sizes, rates."""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.likelihoods.poisson import rate
from gaussfold.types import Array, ArrayLike, Moments


@dataclass(frozen=True)
class Gamma(ScalarLikelihood):
    """``y | f ~ Gamma`` of mean ``exp(f)`` and variance ``exp(2f)/shape``; shape 1 is the exponential distribution.

    Everything that involves f is ``exp(-f)``, so expectations over a Gaussian have closed forms.

    Parameters
    ----------
    shape
        > 0; large means little noise.

    Examples
    --------
    >>> Gamma(shape=2.0).derivatives(1.5, 0.3)
    (array(0.2225), array(-2.2225))
    """

    shape: float = 1.0
    log_concave: ClassVar[bool] = True
    labels: ClassVar[str] = "numbers > 0"
    remedy: ClassVar[str] = "drop or correct rows that are not; zeros need another likelihood"

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", positive("shape", self.shape, owner="Gamma"))

    def explains(self, y: Array) -> np.ndarray:
        """``y > 0``."""
        return np.asarray(y > 0.0)

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``-a f - a y exp(-f) + (a - 1) log y + a log a - log Γ(a)``."""
        y, f = floats(y, f)
        return self._log_prob(y, f, rate(-f))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``a (y exp(-f) - 1)`` and ``-a y exp(-f)``."""
        y, f = floats(y, f)
        pull = self.shape * y * rate(-f)
        return np.asarray(pull - self.shape), np.asarray(-pull)

    def conditional(self, f: ArrayLike) -> Moments:
        """``exp(f)`` and ``exp(2f)/a``."""
        (f,) = floats(f)
        return Moments(rate(f), rate(2.0 * f) / self.shape)

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """``exp(f)`` and ``2 exp(2f)/a``; ``exp(f)`` and ``4 exp(2f)/a``."""
        mean, variance = self.conditional(f)
        return Moments(mean, 2.0 * variance), Moments(mean, 4.0 * variance)

    def expected_log_prob(self, y: ArrayLike, moments: Moments) -> Array:
        """As the log probability, with ``E exp(-f) = exp(v/2 - m)``."""
        y, m, v = floats(y, *moments)
        return self._log_prob(y, m, rate(0.5 * v - m))

    def expected_derivatives(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """As the derivatives, with ``E exp(-f) = exp(v/2 - m)``."""
        y, m, v = floats(y, *moments)
        return self.derivatives(y, m - 0.5 * v)

    def predictive(self, moments: Moments) -> Moments:
        """``exp(m + v/2)``, and ``E exp(2f)/a + Var exp(f)``."""
        m, v = floats(*moments)
        mean = rate(m + 0.5 * v)
        return Moments(mean, np.asarray(mean**2 * (np.exp(v) / self.shape + np.expm1(v))))

    def _log_prob(self, y: Array, f: Array, inverse: Array) -> Array:
        a = self.shape
        with np.errstate(divide="ignore", invalid="ignore"):
            of_y = (a - 1.0) * np.log(y) if a != 1.0 else 0.0
        return np.asarray(a * log(a) - lgamma(a) + of_y - a * (f + y * inverse))
