"""Overdispersed counts with a log link: the mean is exp(f), the variance more than that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np

from gaussfold.checks import positive
from gaussfold.engine.seam import compiled_for, expectations, families, logistic, narrow, special
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.likelihoods.libraries import library_of, rate
from gaussfold.likelihoods.links import logistic_bound, sigmoid, sigmoid_slope
from gaussfold.likelihoods.poisson import GammaPoissonRecord, Poisson
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
    def record(self) -> GammaPoissonRecord:
        """How the engine knows it."""
        return GammaPoissonRecord(self.dispersion)

    def explains(self, y: Array) -> np.ndarray:
        """``y = 0, 1, 2, ...``."""
        return np.asarray((y >= 0.0) & (np.floor(y) == y))

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``y log σ(g) + r log σ(-g) + log Γ(y + r)/(Γ(r) y!)``."""
        library = library_of(y, f)
        y, f = library.floats(y, f)
        r, g, log_g = self.dispersion, f - log(self.dispersion), library.log_cdf["logit"]
        # The binomial coefficient by way of the beta function: log-gammas cancel when r is large.
        coefficient = -library.betaln(y + 1.0, r) - library.log(y + r)
        return library.asarray(y * log_g(g) + r * log_g(-g) + coefficient)

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """``y σ(-g) - r σ(g)`` and ``-(y + r) σ'(g)``."""
        y, f = floats(y, f)
        r, g = self.dispersion, f - log(self.dispersion)
        return np.asarray(y * sigmoid(-g) - r * sigmoid(g)), np.asarray(-(y + r) * sigmoid_slope(g))

    def conditional(self, f: ArrayLike) -> Moments:
        """``exp(f)`` and ``exp(f) + exp(2f)/r``."""
        library = library_of(f)
        (f,) = library.floats(f)
        mu = library.exp(f)
        return Moments(mu, library.asarray(mu + library.exp(2.0 * f) / self.dispersion))

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


SLIM = 0.02
"""Variance of the latent below which no more than ten nodes are needed."""


# What the engine runs: see ``engine.families`` and ``engine.scalar`` for what each function means. The record, with its
# labels, is defined beside the Poisson family, which turns into this one when its latent is spread.


@compiled_for(GammaPoissonRecord)
def log_density(family: GammaPoissonRecord, y: float, f: float) -> float:
    """``y log σ(g) + r log σ(-g) + log Γ(y + r)/(Γ(r) y!)``."""
    g = f - math.log(family.dispersion)
    coefficient = special.log_rising(family.dispersion, y) - math.lgamma(y + 1.0)
    return coefficient + y * g - (y + family.dispersion) * special.softplus(g)


@compiled_for(GammaPoissonRecord)
def log_ratio(family: GammaPoissonRecord, y: float, f: float, g: float, at_g: float) -> float:
    """``y (f - g) - (y + r) log(1 + σ(g - log r) (e^{f-g} - 1))``."""
    if f - g > 30.0:
        return families.log_density(family, y, f) - at_g
    share = special.sigmoid(g - math.log(family.dispersion))
    return y * (f - g) - (y + family.dispersion) * math.log1p(share * math.expm1(f - g))


@compiled_for(GammaPoissonRecord)
def derivatives(family: GammaPoissonRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """Those of a logistic likelihood of weight ``y + r``."""
    g = f - math.log(family.dispersion)
    s, rest, d = special.sigmoid_sides(g)
    b = y + family.dispersion
    first = y * rest - family.dispersion * s
    return first, -b * d, -b * d * (1.0 - 2.0 * s), -b * d * (1.0 - 6.0 * d)


@compiled_for(GammaPoissonRecord)
def landmark(family: GammaPoissonRecord, y: float) -> tuple[float, float]:
    """Where the logistic function bends."""
    return math.log(family.dispersion), 2.0


@compiled_for(GammaPoissonRecord)
def conditional(family: GammaPoissonRecord, f: float) -> tuple[float, float]:
    """``exp(f)`` and ``exp(f) + exp(2f)/r``."""
    r = special.bounded_exp(f)
    return r, r + r * r / family.dispersion


@compiled_for(GammaPoissonRecord)
def fisher(family: GammaPoissonRecord, f: float) -> float:
    """``r σ(g)``."""
    return family.dispersion * special.sigmoid(f - math.log(family.dispersion))


@compiled_for(GammaPoissonRecord)
def taylor_site(family: GammaPoissonRecord, y: float, f: float) -> tuple[float, float]:
    """The score, and minus the Fisher information."""
    return families.derivatives(family, y, f)[0], -families.fisher(family, f)


@compiled_for(GammaPoissonRecord)
def expected_derivatives(family: GammaPoissonRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """By the logistic moments of g, or a few nodes."""
    if v < SLIM:
        return narrow.gaussian_derivatives(family, y, m, v)
    p, q, d1, d2, d3 = logistic.logistic_moments(m - math.log(family.dispersion), v)
    b = y + family.dispersion
    return y * q - family.dispersion * p, -b * d1, -b * d2, -b * d3


@compiled_for(GammaPoissonRecord)
def expected_log_density(family: GammaPoissonRecord, y: float, m: float, v: float) -> float:
    """By ``E log(1 + e^g)``."""
    g = m - math.log(family.dispersion)
    coefficient = special.log_rising(family.dispersion, y) - math.lgamma(y + 1.0)
    return coefficient + y * g - (y + family.dispersion) * logistic.expected_softplus(g, v)


@compiled_for(GammaPoissonRecord)
def predictive(family: GammaPoissonRecord, m: float, v: float) -> tuple[float, float, float, float]:
    """The moments of a log-normal rate, and of an overdispersed count on top of it."""
    r, spread = special.lognormal_moments(m, v)
    return r, r, r + spread + (spread + r * r) / family.dispersion, spread


@compiled_for(GammaPoissonRecord)
def linearised(family: GammaPoissonRecord, y: float, m: float, v: float) -> tuple[float, float]:
    """Divided through by the mean, so that nothing vanishes or cancels."""
    excess = special.expm1_minus(min(v, 600.0))
    excess += math.exp(min(v, 600.0)) / family.dispersion
    return special.count_regression(y, m, v, excess)


@compiled_for(GammaPoissonRecord)
def bounded_site(family: GammaPoissonRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """Jaakkola-Jordan with weight ``y + r``."""
    b = y + family.dispersion
    return expectations.logistic_bound(y - 0.5 * b, b, m - math.log(family.dispersion), v)


@compiled_for(GammaPoissonRecord)
def tilted_mode(family: GammaPoissonRecord, y: float, power: float, m0: float, v0: float) -> tuple[float, float, int]:
    """A logistic root."""
    shift = math.log(family.dispersion)
    m, v, n = logistic.logistic_root(power * y, power * (y + family.dispersion), m0 - shift, v0, False)
    return m + shift, v, n


@compiled_for(GammaPoissonRecord)
def averaged_start(family: GammaPoissonRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """The root as rvga (69)-(70) approximate it."""
    shift = math.log(family.dispersion)
    m, v, n = logistic.logistic_root(w * y, w * (y + family.dispersion), m0 - shift, v0, True)
    return m + shift, v, n


@compiled_for(GammaPoissonRecord)
def marginalised(family: GammaPoissonRecord, s: float) -> tuple[GammaPoissonRecord, float, float]:
    """A rate spread twice: ψ'(r) = s + ψ'(r₀), shift = log r - ψ(r) less the same at r₀."""
    psi0, slope0 = special.digamma_trigamma(family.dispersion)
    r = special.inverse_trigamma(slope0 + s)
    psi, _ = special.digamma_trigamma(r)
    return GammaPoissonRecord(r), 1.0, (math.log(r) - psi) - (math.log(family.dispersion) - psi0)


@compiled_for(GammaPoissonRecord)
def has_jets(family: GammaPoissonRecord) -> bool:
    """Yes: its averages are integrals, and its singularities lie where the landmark says."""
    return True


@compiled_for(GammaPoissonRecord)
def scores_by_jets(family: GammaPoissonRecord) -> bool:
    """Yes."""
    return True
