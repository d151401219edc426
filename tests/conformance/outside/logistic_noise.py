"""A likelihood from outside: noise with a logistic distribution, in NumPy and for the engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gaussfold.engine.seam import compiled_for
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.types import Array, ArrayLike, Moments


@dataclass(frozen=True)
class LogisticNoise(ScalarLikelihood):
    """``y = f + scale · noise`` with density ``e^-z / (scale (1 + e^-z)²)``, ``z = (y - f)/scale``."""

    scale: float = 1.0
    log_concave: ClassVar[bool] = True

    @property
    def record(self) -> LogisticNoiseRecord | None:
        """How the engine knows it."""
        return LogisticNoiseRecord(self.scale)

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``-|z| - 2 log(1 + e^-|z|) - log scale``."""
        z = np.abs(self._standardised(y, f))
        return np.asarray(-z - 2.0 * np.log1p(np.exp(-z)) - math.log(self.scale))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``t/scale`` and ``-(1 - t²)/(2 scale²)``, ``t = tanh(z/2)``."""
        t = np.tanh(0.5 * self._standardised(y, f))
        return np.asarray(t / self.scale), np.asarray(-0.5 * (1.0 - t) * (1.0 + t) / self.scale**2)

    def conditional(self, f: ArrayLike) -> Moments:
        """``f`` and ``π² scale²/3``."""
        (f,) = floats(f)
        return Moments(f.copy(), np.full(f.shape, self.scale**2 * math.pi**2 / 3.0))

    def quadratic_bound(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """Jaakkola and Jordan's bound on ``-2 log cosh(z/2)``, tightest at ξ² = E z²."""
        y, m, v = floats(y, *moments)
        xi = np.sqrt((y - m) ** 2 + v) / self.scale
        precision = np.tanh(0.5 * xi) / xi / self.scale**2
        return np.asarray(precision * (y - m)), np.asarray(-precision)

    def _standardised(self, y: ArrayLike, f: ArrayLike) -> Array:
        y, f = floats(y, f)
        return np.asarray((y - f) / self.scale)


class LogisticNoiseRecord(NamedTuple):
    """The family in the engine."""

    scale: float


@compiled_for(LogisticNoiseRecord)
def log_density(family: LogisticNoiseRecord, y: float, f: float) -> float:
    """As above."""
    z = abs(y - f) / family.scale
    return -z - 2.0 * math.log1p(math.exp(-z)) - math.log(family.scale)


@compiled_for(LogisticNoiseRecord)
def derivatives(family: LogisticNoiseRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """Polynomials in ``t = tanh(z/2)``, whose slope in f is ``-(1 - t²)/(2 scale)``."""
    s = family.scale
    t = math.tanh(0.5 * (y - f) / s)
    rest = (1.0 - t) * (1.0 + t)
    return t / s, -0.5 * rest / s**2, -0.5 * t * rest / s**3, 0.25 * rest * (1.0 - 3.0 * t * t) / s**4


@compiled_for(LogisticNoiseRecord)
def is_log_concave(family: LogisticNoiseRecord) -> bool:
    """Yes."""
    return True


@compiled_for(LogisticNoiseRecord)
def landmark(family: LogisticNoiseRecord, y: float) -> tuple[float, float]:
    """The singularities lie at y ± iπ scale."""
    return y, math.pi * family.scale


@compiled_for(LogisticNoiseRecord)
def conditional(family: LogisticNoiseRecord, f: float) -> tuple[float, float]:
    """As above."""
    return f, family.scale**2 * math.pi**2 / 3.0


@compiled_for(LogisticNoiseRecord)
def bounded_site(family: LogisticNoiseRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """The bound, and how its curvature moves with m and v."""
    s2 = family.scale**2
    xi2 = ((y - m) ** 2 + v) / s2
    xi = math.sqrt(xi2)
    t = math.tanh(0.5 * xi)
    rate = t / xi
    slope = (0.5 * (1.0 - t * t) - rate) / (2.0 * xi2)  # of the rate, in ξ²
    return rate * (y - m) / s2, -rate / s2, 2.0 * slope * (y - m) / s2**2, -slope / s2**2
