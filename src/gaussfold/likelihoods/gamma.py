"""Positive numbers whose spread grows with their mean: durations, sizes, rates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import lgamma, log
from typing import ClassVar, NamedTuple

import numpy as np

from gaussfold.checks import positive
from gaussfold.engine.seam import compiled_for, expectations, families, initial_guess, quadrature, special
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.likelihoods.libraries import library_of, rate
from gaussfold.likelihoods.poisson import PoissonRecord
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

    @property
    def record(self) -> GammaRecord:
        """How the engine knows it."""
        return GammaRecord(self.shape)

    def explains(self, y: Array) -> np.ndarray:
        """``y > 0``."""
        return np.asarray(y > 0.0)

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``-a f - a y exp(-f) + (a - 1) log y + a log a - log Γ(a)``."""
        library = library_of(y, f)
        y, f = library.floats(y, f)
        return self._log_prob(y, f, library.exp(-f))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``a (y exp(-f) - 1)`` and ``-a y exp(-f)``."""
        y, f = floats(y, f)
        pull = self.shape * y * rate(-f)
        return np.asarray(pull - self.shape), np.asarray(-pull)

    def conditional(self, f: ArrayLike) -> Moments:
        """``exp(f)`` and ``exp(2f)/a``."""
        library = library_of(f)
        (f,) = library.floats(f)
        return Moments(library.exp(f), library.asarray(library.exp(2.0 * f) / self.shape))

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
        library = library_of(y)
        of_y = (a - 1.0) * library.log(y) if a != 1.0 else 0.0
        return library.asarray(a * log(a) - lgamma(a) + of_y - a * (f + y * inverse))


# What the engine runs: see ``engine.families`` and ``engine.scalar`` for what each function means. As a function of
# g = log(a y) - f this is a Poisson likelihood of the count a, up to a constant: ``a g - exp(g)``. That family is asked
# where it has more than quadrature to offer.


class GammaRecord(NamedTuple):
    """The family in the engine."""

    shape: float


@compiled_for(GammaRecord)
def log_density(family: GammaRecord, y: float, f: float) -> float:
    """``a g - exp(g) - log Γ(a) - log y``."""
    g = math.log(family.shape * y) - f
    return family.shape * g - special.bounded_exp(g) - math.lgamma(family.shape) - math.log(y)


@compiled_for(GammaRecord)
def derivatives(family: GammaRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """``a y exp(-f) - a``, then plus and minus the first term."""
    r = special.bounded_exp(math.log(family.shape * y) - f)
    return r - family.shape, -r, r, -r


@compiled_for(GammaRecord)
def is_label(family: GammaRecord, y: float) -> bool:
    """``y > 0``."""
    return 0.0 < y < math.inf


@compiled_for(GammaRecord)
def is_log_concave(family: GammaRecord) -> bool:
    """Yes."""
    return True


@compiled_for(GammaRecord)
def landmark(family: GammaRecord, y: float) -> tuple[float, float]:
    """Where the mean is the label; e^-f decays on a length of one."""
    return math.log(y), 1.0


@compiled_for(GammaRecord)
def conditional(family: GammaRecord, f: float) -> tuple[float, float]:
    """``exp(f)`` and ``exp(2f)/a``."""
    r = special.bounded_exp(f)
    return r, r * r / family.shape


@compiled_for(GammaRecord)
def fisher(family: GammaRecord, f: float) -> float:
    """``a``."""
    return family.shape


@compiled_for(GammaRecord)
def taylor_site(family: GammaRecord, y: float, f: float) -> tuple[float, float]:
    """The model linearised at f: ``a (y exp(-f) - 1)``, ``-a``."""
    return families.derivatives(family, y, f)[0], -family.shape


@compiled_for(GammaRecord)
def expected_derivatives(family: GammaRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """``E exp(-f) = exp(v/2 - m)``."""
    return families.derivatives(family, y, m - 0.5 * v)


@compiled_for(GammaRecord)
def expected_log_density(family: GammaRecord, y: float, m: float, v: float) -> float:
    """The same in the log density."""
    g = math.log(family.shape * y) - m
    constant = math.lgamma(family.shape) + math.log(y)
    return family.shape * g - special.bounded_exp(g + 0.5 * v) - constant


@compiled_for(GammaRecord)
def predictive(family: GammaRecord, m: float, v: float) -> tuple[float, float, float, float]:
    """The moments of a log-normal mean, and of noise in proportion to it."""
    r, spread = special.lognormal_moments(m, v)
    return r, r, spread + (spread + r * r) / family.shape, spread


@compiled_for(GammaRecord)
def log_mean_density(family: GammaRecord, y: float, m: float, v: float) -> float:
    """That of the count a, whose log density is less by ``log a - log y``."""
    count = expectations.log_mean_density(PoissonRecord(), family.shape, math.log(family.shape * y) - m, v)
    return count + math.lgamma(family.shape + 1.0) - math.lgamma(family.shape) - math.log(y)


@compiled_for(GammaRecord)
def ep_site(family: GammaRecord, alpha: float, y: float, w: float, m: float, v: float) -> tuple[float, float]:
    """Seen from the other side: the gradient changes its sign."""
    j, h = expectations.ep_site(PoissonRecord(), alpha, family.shape, w, math.log(family.shape * y) - m, v)
    return -j, h


@compiled_for(GammaRecord)
def tilted_mode(family: GammaRecord, y: float, power: float, m0: float, v0: float) -> tuple[float, float, int]:
    """A Lambert function."""
    end = math.log(family.shape * y)
    m, v, n = quadrature.tilted_mode(PoissonRecord(), family.shape, power, end - m0, v0)
    return end - m, v, n


@compiled_for(GammaRecord)
def vi_start(family: GammaRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """Exact."""
    end = math.log(family.shape * y)
    m, v, n = initial_guess.vi_start(PoissonRecord(), family.shape, w, end - m0, v0)
    return end - m, v, n
