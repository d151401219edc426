"""Heavy-tailed noise: an outlier is forgiven. Not log-concave, so a site's precision can be negative."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi, sqrt
from typing import ClassVar

import numpy as np
import scipy

from gaussfold.checks import positive
from gaussfold.likelihoods.base import STUDENT_T, ScalarLikelihood, floats
from gaussfold.protocols import Kernel
from gaussfold.types import Array, ArrayLike, Moments


@dataclass(frozen=True)
class StudentT(ScalarLikelihood):
    """``y = f + scale · noise``, where the noise has Student's distribution with df degrees of freedom.

    Parameters
    ----------
    df : float
        Degrees of freedom, > 0. The variance of y is finite for df > 2 and reported as infinite
        otherwise. For df ≤ 1 there is no mean either; the centre f, which is the median, stands in for it.
    scale : float
        Scale of the noise, > 0; not its standard deviation, which is ``scale √(df/(df - 2))``.

    Examples
    --------
    >>> first, second = StudentT(df=3.5, scale=0.8).derivatives([0.3, 9.0], 0.0)
    >>> first, second
    (array([0.5794, 0.4865]), array([-1.7821, 0.0512]))
    """

    df: float
    scale: float
    log_concave: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "df", positive("df", self.df, owner="StudentT"))
        object.__setattr__(self, "scale", positive("scale", self.scale, owner="StudentT"))

    @property
    def kernel(self) -> Kernel:
        """(code, df, scale)."""
        return STUDENT_T, self.df, self.scale

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``-(df + 1)/2 log(1 + t²) + constant``, ``t = (y - f)/(scale √df)``."""
        t = self._standardised(y, f)
        half = 0.5 * self.df
        gammaln = scipy.special.gammaln
        constant = gammaln(half + 0.5) - gammaln(half) - 0.5 * log(pi * self.df) - log(self.scale)
        return np.asarray(constant - (half + 0.5) * np.log1p(t * t))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``c t/(1 + t²)`` and ``c/(scale √df) (t² - 1)/(1 + t²)²``, ``c = (df + 1)/(scale √df)``."""
        t = self._standardised(y, f)
        width = self.scale * sqrt(self.df)
        shrink = 1.0 / (1.0 + t * t)
        factor = (self.df + 1.0) / width
        return (
            np.asarray(factor * t * shrink),
            np.asarray(factor / width * (t - 1.0) * (t + 1.0) * shrink * shrink),
        )

    def conditional(self, f: ArrayLike) -> Moments:
        """``f`` and ``scale² df/(df - 2)``, infinite for df ≤ 2."""
        (f,) = floats(f)
        variance = self.scale**2 * self.df / (self.df - 2.0) if self.df > 2.0 else np.inf
        return Moments(f.copy(), np.full(f.shape, variance))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """The mean has slope 1; nothing else moves."""
        (f,) = floats(f)
        none = np.zeros(f.shape)
        return Moments(np.ones(f.shape), none), Moments(none, none)

    def _standardised(self, y: ArrayLike, f: ArrayLike) -> Array:
        y, f = floats(y, f)
        return np.asarray((y - f) / (self.scale * sqrt(self.df)))

    def quadratic_bound(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """Slope and curvature of the bound by a Gaussian scale mixture: never a negative precision."""
        y, m, v = floats(y, *moments)
        away = y - m
        precision = (self.df + 1.0) / (self.df * self.scale**2 + away * away + v)
        return np.asarray(precision * away), np.asarray(-precision)
