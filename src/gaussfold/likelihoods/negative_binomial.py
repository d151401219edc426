"""Overdispersed counts with a log link: the mean is exp(f), the variance more than that."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np
import scipy

from gaussfold.checks import positive
from gaussfold.likelihoods.base import NEGATIVE_BINOMIAL, ScalarLikelihood, floats
from gaussfold.likelihoods.links import log_sigmoid, logistic_bound, sigmoid, sigmoid_slope
from gaussfold.likelihoods.poisson import Poisson, rate
from gaussfold.protocols import Kernel
from gaussfold.types import Array, ArrayLike, Moments


@dataclass(frozen=True)
class NegativeBinomial(ScalarLikelihood):
    """Counts of mean ``μ = exp(f)`` and variance ``μ + μ²/dispersion``; Poisson as the dispersion grows.

    With ``r = dispersion`` and ``g = f - log r`` it is a logistic likelihood in disguise:
    ``p(y | f) ∝ σ(g)^y σ(-g)^r``, hence log-concave.

    Parameters
    ----------
    dispersion : float
        r > 0, not necessarily whole. Small means overdispersed.

    Examples
    --------
    >>> NegativeBinomial(dispersion=2.5).conditional(0.7)
    Moments(mean=array(2.0138), variance=array(3.6359))
    """

    dispersion: float
    log_concave: ClassVar[bool] = True
    labels: ClassVar[str] = Poisson.labels
    remedy: ClassVar[str] = Poisson.remedy

    def __post_init__(self) -> None:
        object.__setattr__(self, "dispersion", positive("dispersion", self.dispersion, owner="NegativeBinomial"))

    @property
    def kernel(self) -> Kernel:
        """(code, dispersion, unused)."""
        return NEGATIVE_BINOMIAL, self.dispersion, 0.0

    def explains(self, y: Array) -> np.ndarray:
        """``y = 0, 1, 2, ...``."""
        return np.asarray((y >= 0.0) & (np.floor(y) == y))

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``y log σ(g) + r log σ(-g) + log Γ(y + r)/(Γ(r) y!)``."""
        y, f = floats(y, f)
        r, g = self.dispersion, f - log(self.dispersion)
        # The binomial coefficient by way of the beta function: log-gammas cancel when r is large.
        coefficient = -scipy.special.betaln(y + 1.0, r) - np.log(y + r)
        return np.asarray(y * log_sigmoid(g) + r * log_sigmoid(-g) + coefficient)

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``y σ(-g) - r σ(g)`` and ``-(y + r) σ'(g)``."""
        y, f = floats(y, f)
        r, g = self.dispersion, f - log(self.dispersion)
        return np.asarray(y * sigmoid(-g) - r * sigmoid(g)), np.asarray(-(y + r) * sigmoid_slope(g))

    def conditional(self, f: ArrayLike) -> Moments:
        """``exp(f)`` and ``exp(f) + exp(2f)/r``."""
        (f,) = floats(f)
        mu = rate(f)
        return Moments(mu, np.asarray(mu + rate(2.0 * f) / self.dispersion))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """``μ`` and ``μ + 2μ²/r``; ``μ`` and ``μ + 4μ²/r``."""
        (f,) = floats(f)
        mu, square = rate(f), rate(2.0 * f) / self.dispersion
        return Moments(mu, np.asarray(mu + 2.0 * square)), Moments(mu, np.asarray(mu + 4.0 * square))

    def quadratic_bound(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """Slope and curvature of the Jaakkola-Jordan bound with weight ``y + r``."""
        y, m, v = floats(y, *moments)
        weight = y + self.dispersion
        return logistic_bound(y - 0.5 * weight, weight, m - log(self.dispersion), v)
