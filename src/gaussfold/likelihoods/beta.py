"""Proportions: numbers strictly between 0 and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import scipy

from gaussfold.checks import one_of, positive
from gaussfold.engine.seam import compiled_for, proportions, special
from gaussfold.likelihoods import links
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.likelihoods.libraries import NUMPY, Library, library_of
from gaussfold.types import Array, ArrayLike, Moments


@dataclass(frozen=True)
class Beta(ScalarLikelihood):
    """``y | f ~ Beta(φg, φ(1-g))``: mean ``g(f)``, variance ``g(1-g)/(1+φ)``.

    Parameters
    ----------
    scale
        φ > 0; large means little noise.
    link
        "logit" or "probit": which distribution function g.

    Examples
    --------
    >>> Beta(scale=4.0).conditional(0.5)
    Moments(mean=array(0.6225), variance=array(0.0470))
    """

    scale: float = 1.0
    link: links.Name = "logit"
    labels: ClassVar[str] = "strictly between 0 and 1"
    remedy: ClassVar[str] = "drop rows at 0 and 1, or use Bernoulli, which takes them as soft labels"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale, owner="Beta"))
        one_of("link", self.link, links.BY_NAME, owner="Beta")

    @property
    def record(self) -> BetaRecord:
        """How the engine knows it."""
        constant = math.lgamma(self.scale) + 2.0 * math.log(self.scale)
        return BetaRecord(self.scale, constant, self.link == "probit")

    def explains(self, y: Array) -> np.ndarray:
        """``0 < y < 1``."""
        return np.asarray((y > 0.0) & (y < 1.0))

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``(a - 1) log y + (b - 1) log(1 - y) - log B(a, b)``, a = φg(f), b = φg(-f)."""
        library = library_of(y, f)
        y, f = library.floats(y, f)
        a, b = self._counts(library, f)
        # B(a, b) by B(1 + a, 1 + b): a and b may leave the range, their logarithms do not
        log_g = library.log_cdf[self.link]
        scale = log_g(f) + log_g(-f) - math.log1p(1.0 / self.scale) - library.betaln(1.0 + a, 1.0 + b)
        return library.asarray((a - 1.0) * library.log(y) + (b - 1.0) * library.log1p(-y) + scale)

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """With D = φ(ψ(b) - ψ(a) + logit y): ``D g'`` and ``D g'' - φ²(ψ'(a) + ψ'(b)) g'²``."""
        y, f = floats(y, f)
        a, b = self._counts(NUMPY, f)
        slope, bend = links.BY_NAME[self.link].slopes(f)
        special = scipy.special
        pull = self.scale * (special.digamma(b) - special.digamma(a) + special.logit(y))
        stiffness = self.scale**2 * (special.polygamma(1, a) + special.polygamma(1, b))
        return np.asarray(pull * slope), np.asarray(pull * bend - stiffness * slope**2)

    def conditional(self, f: ArrayLike) -> Moments:
        """``g(f)`` and ``g(f) g(-f)/(1 + φ)``."""
        library = library_of(f)
        (f,) = library.floats(f)
        g = library.cdf[self.link]
        mean = g(f)
        return Moments(library.asarray(mean), library.asarray(mean * g(-f) / (1.0 + self.scale)))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """``g'`` and ``g' (1 - 2g)/(1 + φ)``; ``g''`` and ``(g'' (1 - 2g) - 2g'²)/(1 + φ)``."""
        (f,) = floats(f)
        link = links.BY_NAME[self.link]
        tilt = link.cdf(-f) - link.cdf(f)
        slope, bend = link.slopes(f)
        share = 1.0 / (1.0 + self.scale)
        return Moments(slope, share * slope * tilt), Moments(bend, share * (bend * tilt - 2.0 * slope**2))

    def _counts(self, library: Library, f: Array) -> tuple[Array, Array]:
        g = library.cdf[self.link]
        return self.scale * g(f), self.scale * g(-f)


# What the engine runs: see ``engine.families`` and ``engine.scalar`` for what each function means.


class BetaRecord(NamedTuple):
    """The family in the engine."""

    scale: float
    constant: float
    """``log Γ(φ) + 2 log φ``."""
    probit: bool
    """Whether g is the normal distribution function, or else the logistic one."""


@compiled_for(BetaRecord)
def log_density(family: BetaRecord, y: float, f: float) -> float:
    """``(a - 1) log y + (b - 1) log(1 - y) - log B(a, b)``."""
    if family.probit:
        log_g, log_rest = special.log_normal_cdf(f), special.log_normal_cdf(-f)
    else:
        log_g, log_rest = -special.softplus(-f), -special.softplus(f)
    return proportions.beta_log_density(family.scale, family.constant, y, log_g, log_rest)


@compiled_for(BetaRecord)
def derivatives(family: BetaRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """By the chain rule through g and 1 - g, whose derivatives are taken in units of themselves."""
    if family.probit:
        g, rest = special.normal_cdf(f), special.normal_cdf(-f)
        up, down = special.inverse_mills(f)[0], special.inverse_mills(-f)[0]
        k2, k3, k4 = -f, f * f - 1.0, (3.0 - f * f) * f
    else:
        g, rest, slope = special.sigmoid_sides(f)
        up, down = rest, g
        k2, k3, k4 = rest - g, 1.0 - 6.0 * slope, (rest - g) * (1.0 - 12.0 * slope)
    return proportions.beta_derivatives(
        family.scale, y, g, rest, (up, up * k2, up * k3, up * k4), (-down, -down * k2, -down * k3, -down * k4)
    )


@compiled_for(BetaRecord)
def is_label(family: BetaRecord, y: float) -> bool:
    """``0 < y < 1``."""
    return 0.0 < y < 1.0


@compiled_for(BetaRecord)
def landmark(family: BetaRecord, y: float) -> tuple[float, float]:
    """Where the mean is one half; that g may be -k/φ the logistic latent must be ±iπ away from the line."""
    return 0.0, 2.0 if family.probit else 3.0


@compiled_for(BetaRecord)
def conditional(family: BetaRecord, f: float) -> tuple[float, float]:
    """``g(f)`` and ``g(f) g(-f)/(1 + φ)``."""
    if family.probit:
        g, rest = special.normal_cdf(f), special.normal_cdf(-f)
    else:
        g, rest = special.sigmoid(f), special.sigmoid(-f)
    return g, g * rest / (1.0 + family.scale)


@compiled_for(BetaRecord)
def has_jets(family: BetaRecord) -> bool:
    """Yes: its averages are integrals, and its singularities lie where the landmark says."""
    return True


@compiled_for(BetaRecord)
def scores_by_jets(family: BetaRecord) -> bool:
    """Yes."""
    return True
