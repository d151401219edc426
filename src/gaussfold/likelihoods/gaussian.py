"""Normal noise of known standard deviation: the conjugate case, where every rule is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import log, pi
from typing import ClassVar, NamedTuple

import numpy as np

from gaussfold.checks import positive
from gaussfold.engine.seam import compiled_for, families
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.likelihoods.libraries import library_of
from gaussfold.types import Array, ArrayLike, Moments

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Gaussian(ScalarLikelihood):
    """``y = f + noise``, ``noise ~ N(0, std²)``.

    Parameters
    ----------
    std : float
        Standard deviation of the noise, > 0.

    Examples
    --------
    >>> Gaussian(std=0.7).derivatives(1.3, 0.2)
    (array(2.2449), array(-2.0408))
    """

    std: float
    log_concave: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "std", positive("std", self.std, owner="Gaussian"))

    @property
    def record(self) -> GaussianRecord:
        """How the engine knows it."""
        return GaussianRecord(self.std)

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``-(y - f)²/(2 std²) - log std - log(2π)/2``."""
        library = library_of(y, f)
        y, f = library.floats(y, f)
        z = (y - f) / self.std
        return library.asarray(-0.5 * z * z - log(self.std) - 0.5 * log(2.0 * pi))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``(y - f)/std²`` and ``-1/std²``."""
        y, f = floats(y, f)
        precision = self.std**-2
        return np.asarray((y - f) * precision), np.full(f.shape, -precision)

    def conditional(self, f: ArrayLike) -> Moments:
        """``f`` and ``std²``."""
        library = library_of(f)
        (f,) = library.floats(f)
        return Moments(library.asarray(1.0 * f), library.full_like(f, self.std**2))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """The mean has slope 1; nothing else moves."""
        (f,) = floats(f)
        none = np.zeros(f.shape)
        return Moments(np.ones(f.shape), none), Moments(none, none)

    def quadratic_bound(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """Itself."""
        return self.derivatives(y, moments.mean)


# What the engine runs: see ``engine.families`` and ``engine.scalar`` for what each function means.


class GaussianRecord(NamedTuple):
    """The family in the engine."""

    std: float


@compiled_for(GaussianRecord)
def log_density(family: GaussianRecord, y: float, f: float) -> float:
    """``-(y - f)²/(2 std²) - log std - log(2π)/2``."""
    z = (y - f) / family.std
    return -0.5 * z * z - math.log(family.std) - HALF_LOG_2PI


@compiled_for(GaussianRecord)
def derivatives(family: GaussianRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """Only two of them are not zero."""
    return (y - f) / (family.std * family.std), -1.0 / (family.std * family.std), 0.0, 0.0


@compiled_for(GaussianRecord)
def is_log_concave(family: GaussianRecord) -> bool:
    """Yes."""
    return True


@compiled_for(GaussianRecord)
def is_exponential(family: GaussianRecord) -> bool:
    """Yes."""
    return True


@compiled_for(GaussianRecord)
def conditional(family: GaussianRecord, f: float) -> tuple[float, float]:
    """``f`` and ``std²``."""
    return f, family.std * family.std


@compiled_for(GaussianRecord)
def fisher(family: GaussianRecord, f: float) -> float:
    """``1/std²``."""
    return 1.0 / (family.std * family.std)


@compiled_for(GaussianRecord)
def taylor_site(family: GaussianRecord, y: float, f: float) -> tuple[float, float]:
    """Already linear."""
    return (y - f) / (family.std * family.std), -1.0 / (family.std * family.std)


@compiled_for(GaussianRecord)
def closed_form(family: GaussianRecord, y: float, w: float, m0: float, v0: float) -> tuple[bool, float, float]:
    """The Kalman filter, whatever the rule: rvga Th. 2."""
    h = -w / (family.std * family.std)
    v = v0 / (1.0 - v0 * h)
    return True, v / v0 * w * (y - m0) / (family.std * family.std), h


@compiled_for(GaussianRecord)
def expected_derivatives(family: GaussianRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """As at the mean."""
    return (y - m) / (family.std * family.std), -1.0 / (family.std * family.std), 0.0, 0.0


@compiled_for(GaussianRecord)
def expected_log_density(family: GaussianRecord, y: float, m: float, v: float) -> float:
    """``log p(y|m) - v/(2 std²)``."""
    return families.log_density(family, y, m) - 0.5 * v / (family.std * family.std)


@compiled_for(GaussianRecord)
def predictive(family: GaussianRecord, m: float, v: float) -> tuple[float, float, float, float]:
    """``N(m, v + std²)``."""
    return m, 1.0, v + family.std * family.std, v


@compiled_for(GaussianRecord)
def log_mean_density(family: GaussianRecord, y: float, m: float, v: float) -> float:
    """The density of ``N(m, v + std²)``."""
    return families.log_density(GaussianRecord(math.sqrt(family.std * family.std + v)), y, m)


@compiled_for(GaussianRecord)
def bounded_site(family: GaussianRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """Its own bound."""
    return (y - m) / (family.std * family.std), -1.0 / (family.std * family.std), 0.0, 0.0


@compiled_for(GaussianRecord)
def ep_site(family: GaussianRecord, alpha: float, y: float, w: float, m: float, v: float) -> tuple[float, float]:
    """Exact for every power."""
    return w * (y - m) / (family.std * family.std), -w / (family.std * family.std)


@compiled_for(GaussianRecord)
def tilted(family: GaussianRecord, y: float, power: float, m: float, v: float) -> tuple[float, float, float]:
    """``log E p^power`` in closed form, and its two derivatives in m."""
    noise = family.std * family.std
    total = noise + power * v
    away = y - m
    value = -0.5 * (power * (math.log(2.0 * math.pi * family.std * family.std) + away * away / total))
    value -= 0.5 * math.log(total / noise)
    return value, power * away / total, -power / total


@compiled_for(GaussianRecord)
def tilted_mode(family: GaussianRecord, y: float, power: float, m0: float, v0: float) -> tuple[float, float, int]:
    """The posterior's mean and variance."""
    precision = power / (family.std * family.std)
    v = v0 / (1.0 + v0 * precision)
    return m0 + v * precision * (y - m0), v, 1


@compiled_for(GaussianRecord)
def can_marginalise(family: GaussianRecord) -> bool:
    """Yes."""
    return True


@compiled_for(GaussianRecord)
def marginalised(family: GaussianRecord, s: float) -> tuple[GaussianRecord, float, float]:
    """The noise's variance grows by s: exact."""
    return GaussianRecord(math.sqrt(family.std * family.std + s)), 1.0, 0.0
