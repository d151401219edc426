"""Counts with a log link: the mean is exp(f)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import scipy

from gaussfold.engine.seam import compiled_for, over_arrays, special
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.likelihoods.libraries import library_of, rate
from gaussfold.types import Array, ArrayLike, Moments, Record

if TYPE_CHECKING:
    from gaussfold.engine.arrays.over_arrays import RowFunctions

NARROW = 1e-9
"""Below this variance of what is added to the latent a count is a Poisson count to rounding."""


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
    def record(self) -> PoissonRecord:
        """How the engine knows it."""
        return PoissonRecord()

    def row_functions(self) -> RowFunctions:
        """What has a closed form is one line of NumPy."""
        rest = super().row_functions()
        return over_arrays.RowFunctions(
            expected_log_prob_rows, expected_derivatives_rows, rest.log_predictive, rest.tilted, rest.predictive
        )

    def explains(self, y: Array) -> np.ndarray:
        """``y = 0, 1, 2, ...``."""
        return np.asarray((y >= 0.0) & (np.floor(y) == y))

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``y f - exp(f) - log y!``."""
        library = library_of(y, f)
        y, f = library.floats(y, f)
        return library.asarray(y * f - library.exp(f) - library.gammaln(y + 1.0))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``y - exp(f)`` and ``-exp(f)``."""
        y, f = floats(y, f)
        mu = rate(f)
        return np.asarray(y - mu), np.asarray(-mu)

    def conditional(self, f: ArrayLike) -> Moments:
        """``exp(f)``, twice."""
        library = library_of(f)
        (f,) = library.floats(f)
        mu = library.exp(f)
        return Moments(mu, library.asarray(1.0 * mu))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """``exp(f)``, four times."""
        found = self.conditional(f)
        return found, found


def mean_rate(m: Array, v: Array) -> Array:
    """``E exp(f)``, finite."""
    return np.asarray(np.exp(np.minimum(m + 0.5 * v, special.HUGE)))


def expected_log_prob_rows(y: Array, m: Array, v: Array) -> Array:
    """``E log p`` over rows."""
    return np.asarray(y * m - mean_rate(m, v) - scipy.special.gammaln(y + 1.0))


def expected_derivatives_rows(y: Array, m: Array, v: Array) -> tuple[Array, Array]:
    """``E l'`` and ``E l''`` over rows."""
    r = mean_rate(m, v) + 0.0 * y
    return y - r, -r


# What the engine runs: see ``engine.families`` and ``engine.scalar`` for what each function means.


class PoissonRecord(NamedTuple):
    """The family in the engine."""


class GammaPoissonRecord(NamedTuple):
    """A Poisson count whose rate is spread by a gamma distribution: the negative binomial family, in the engine."""

    dispersion: float


@compiled_for(PoissonRecord)
def log_density(family: PoissonRecord, y: float, f: float) -> float:
    """``y f - exp(f) - log y!``."""
    return y * f - special.bounded_exp(f) - math.lgamma(y + 1.0)


@compiled_for(PoissonRecord)
def log_ratio(family: PoissonRecord, y: float, f: float, g: float, at_g: float) -> float:
    """``y (f - g) - exp(g) (exp(f - g) - 1)``."""
    return y * (f - g) - special.bounded_exp(g) * math.expm1(min(f - g, 600.0))


@compiled_for(PoissonRecord)
def derivatives(family: PoissonRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """``y - exp(f)``, then ``-exp(f)`` for ever."""
    r = special.bounded_exp(f)
    return y - r, -r, -r, -r


@compiled_for(PoissonRecord, GammaPoissonRecord)
def is_label(family: Record, y: float) -> bool:
    """``y = 0, 1, 2, ...``."""
    return 0.0 <= y < math.inf and y == math.floor(y)


@compiled_for(PoissonRecord, GammaPoissonRecord)
def is_log_concave(family: Record) -> bool:
    """Yes."""
    return True


@compiled_for(PoissonRecord, GammaPoissonRecord)
def is_exponential(family: Record) -> bool:
    """Yes."""
    return True


@compiled_for(PoissonRecord)
def landmark(family: PoissonRecord, y: float) -> tuple[float, float]:
    """Where the rate is the count; e^f decays on a length of one."""
    return math.log(max(y, 0.5)), 1.0


@compiled_for(PoissonRecord)
def conditional(family: PoissonRecord, f: float) -> tuple[float, float]:
    """``exp(f)``, twice."""
    r = special.bounded_exp(f)
    return r, r


@compiled_for(PoissonRecord)
def fisher(family: PoissonRecord, f: float) -> float:
    """``exp(f)``."""
    return special.bounded_exp(f)


@compiled_for(PoissonRecord)
def taylor_site(family: PoissonRecord, y: float, f: float) -> tuple[float, float]:
    """The score, and minus the Fisher information."""
    r = special.bounded_exp(f)
    return y - r, -r


@compiled_for(PoissonRecord)
def expected_derivatives(family: PoissonRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """``E exp(f) = exp(m + v/2)``."""
    r = special.bounded_exp(m + 0.5 * v)
    return y - r, -r, -r, -r


@compiled_for(PoissonRecord)
def expected_log_density(family: PoissonRecord, y: float, m: float, v: float) -> float:
    """``y m - exp(m + v/2) - log y!``."""
    return y * m - special.bounded_exp(m + 0.5 * v) - math.lgamma(y + 1.0)


@compiled_for(PoissonRecord)
def predictive(family: PoissonRecord, m: float, v: float) -> tuple[float, float, float, float]:
    """The moments of a log-normal rate, and of a count on top of it."""
    r, spread = special.lognormal_moments(m, v)
    return r, r, r + spread, spread


@compiled_for(PoissonRecord)
def linearised(family: PoissonRecord, y: float, m: float, v: float) -> tuple[float, float]:
    """Divided through by the mean, so that nothing vanishes or cancels."""
    return special.count_regression(y, m, v, special.expm1_minus(min(v, 600.0)))


@compiled_for(PoissonRecord)
def tilted_mode(family: PoissonRecord, y: float, power: float, m0: float, v0: float) -> tuple[float, float, int]:
    """``m = a - v0 power e^m``: the Lambert function, by Wright's omega so that e^a may overflow."""
    a = m0 + v0 * power * y
    log_scale = math.log(v0 * power)
    w = special.wright_omega(log_scale + a)
    m = a - w if w < 1.0 else math.log(w) - log_scale  # w = v0 power e^m: the form that does not cancel
    return m, v0 / (1.0 + w), 1


@compiled_for(PoissonRecord)
def measured_from_mode(family: PoissonRecord) -> bool:
    """The rate pulls so hard that at the mode two terms of 1e13 may balance: :func:`log_relative` leaves them out."""
    return True


@compiled_for(PoissonRecord)
def log_relative(
    family: PoissonRecord, y: float, power: float, m: float, v: float, origin: float, peak: float, u: float
) -> float:
    """``-power e^f (e^u - 1 - u) - u²/2v`` is what remains, on paper, of the fall from the mode f."""
    r = special.bounded_exp(m + origin)
    beyond = r * special.expm1_minus(u) if u < 1.0 else special.bounded_exp(m + origin + u) - r * (1.0 + u)
    return -power * beyond - 0.5 * u * u / v


@compiled_for(PoissonRecord)
def cliff(family: PoissonRecord, power: float) -> tuple[float, float, int]:
    """``exp(-power e^f)``: all of the fall lies within five units below where power e^f = 40."""
    return math.log(40.0 / power), 0.4, 12


@compiled_for(PoissonRecord)
def vi_start(family: PoissonRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """Exact: for fixed v the mean is a Lambert function, and v (1 + ω) = v0 increases in v."""
    a = m0 + v0 * w * y
    log_scale = math.log(v0 * w)
    z = log_scale + a
    low = 0.0
    high = v0
    v = min(v0, 1.0)
    for _ in range(100):
        omega = special.wright_omega(z + 0.5 * v)
        residual = v * (1.0 + omega) - v0
        if residual > 0.0:
            high = v
        else:
            low = v
        target = v - residual / (1.0 + omega + 0.5 * v * omega / (1.0 + omega))
        if not (low < target < high):
            target = 0.5 * (low + high)
        done = abs(target - v) <= 1e-15 * v
        v = target
        if done:
            break
    omega = special.wright_omega(z + 0.5 * v)
    return a - omega if omega < 1.0 else math.log(omega) - log_scale - 0.5 * v, v, 1


@compiled_for(PoissonRecord, GammaPoissonRecord)
def can_marginalise(family: Record) -> bool:
    """Yes."""
    return True


@compiled_for(PoissonRecord, GammaPoissonRecord)
def only_shifts(family: Record) -> bool:
    """Yes: a spread of the rate leaves the pull of a large count as it is."""
    return True


@compiled_for(PoissonRecord)
def has_spread(family: PoissonRecord, s: float) -> bool:
    """Not below ``NARROW``."""
    return s >= NARROW


@compiled_for(PoissonRecord)
def marginalised(family: PoissonRecord, s: float) -> tuple[GammaPoissonRecord, float, float]:
    """A count whose rate is log-normal; the gamma distribution of the same mean and variance of the log stands in.

    ψ'(r) = s, shift = log r - ψ(r): for small s the mean e^{s/2} and the overdispersion s of the log-normal.
    """
    r = special.inverse_trigamma(s)
    psi, _ = special.digamma_trigamma(r)
    return GammaPoissonRecord(r), 1.0, math.log(r) - psi
