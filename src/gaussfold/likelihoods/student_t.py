"""Heavy-tailed noise: an outlier is forgiven. Not log-concave, so a site's precision can be negative."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import log, pi, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from gaussfold.checks import positive
from gaussfold.engine.seam import compiled_for, families, quadrature, rules, search, sites
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.likelihoods.libraries import library_of
from gaussfold.types import Array, ArrayLike, Moments, Record


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
    def record(self) -> StudentTRecord:
        """How the engine knows it."""
        return StudentTRecord(self.df, self.scale)

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``-(df + 1)/2 log(1 + t²) + constant``, ``t = (y - f)/(scale √df)``."""
        t = self._standardised(y, f)
        half = 0.5 * self.df
        constant = math.lgamma(half + 0.5) - math.lgamma(half) - 0.5 * log(pi * self.df) - log(self.scale)
        library = library_of(t)
        return library.asarray(constant - (half + 0.5) * library.log1p(t * t))

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
        library = library_of(f)
        (f,) = library.floats(f)
        variance = self.scale**2 * self.df / (self.df - 2.0) if self.df > 2.0 else math.inf
        return Moments(library.asarray(1.0 * f), library.full_like(f, variance))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """The mean has slope 1; nothing else moves."""
        (f,) = floats(f)
        none = np.zeros(f.shape)
        return Moments(np.ones(f.shape), none), Moments(none, none)

    def _standardised(self, y: ArrayLike, f: ArrayLike) -> Array:
        library = library_of(y, f)
        y, f = library.floats(y, f)
        return library.asarray((y - f) / (self.scale * sqrt(self.df)))

    def quadratic_bound(self, y: ArrayLike, moments: Moments) -> tuple[Array, Array]:
        """Slope and curvature of the bound by a Gaussian scale mixture: never a negative precision."""
        y, m, v = floats(y, *moments)
        away = y - m
        precision = (self.df + 1.0) / (self.df * self.scale**2 + away * away + v)
        return np.asarray(precision * away), np.asarray(-precision)


# What the engine runs: see ``engine.families`` and ``engine.scalar`` for what each function means.


class StudentTRecord(NamedTuple):
    """The family in the engine."""

    df: float
    scale: float


@compiled_for(StudentTRecord)
def log_density(family: StudentTRecord, y: float, f: float) -> float:
    """``-(df + 1)/2 log(1 + z²/df) + constant``, ``z = (y - f)/scale``."""
    df = family.df
    z = (y - f) / family.scale
    const = (
        math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi) - math.log(family.scale)
    )
    return const - 0.5 * (df + 1.0) * math.log1p(z * z / df)


@compiled_for(StudentTRecord)
def log_ratio(family: StudentTRecord, y: float, f: float, g: float, at_g: float) -> float:
    """``-(df + 1)/2 log((a + (y-f)²)/(a + (y-g)²))``, ``a = df scale²``."""
    a = family.df * family.scale * family.scale
    away = y - g
    return -0.5 * (family.df + 1.0) * math.log1p((g - f) * (2.0 * y - f - g) / (a + away * away))


@compiled_for(StudentTRecord)
def derivatives(family: StudentTRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """Rational functions of the distance."""
    a = family.df * family.scale * family.scale
    z = y - f
    z2 = z * z
    q = a + z2
    c = family.df + 1.0
    return (
        c * z / q,
        c * (z2 - a) / (q * q),
        c * 2.0 * z * (z2 - 3.0 * a) / q**3,
        c * 6.0 * (z2 * z2 - 6.0 * a * z2 + a * a) / q**4,
    )


@compiled_for(StudentTRecord)
def landmark(family: StudentTRecord, y: float) -> tuple[float, float]:
    """The singularities lie at y ± i scale √df."""
    return y, math.sqrt(family.df) * family.scale


@compiled_for(StudentTRecord)
def conditional(family: StudentTRecord, f: float) -> tuple[float, float]:
    """``f`` and the noise's variance, infinite for df ≤ 2."""
    df, scale = family.df, family.scale
    return f, scale * scale * df / (df - 2.0) if df > 2.0 else math.inf


@compiled_for(StudentTRecord)
def fisher(family: StudentTRecord, f: float) -> float:
    """One over the noise's variance: of the linearised model, not of the family."""
    return (family.df - 2.0) / (family.df * family.scale * family.scale)


@compiled_for(StudentTRecord)
def taylor_site(family: StudentTRecord, y: float, f: float) -> tuple[float, float]:
    """A Gaussian of the same variance."""
    h = -families.fisher(family, f)
    return -h * (y - f), h


@compiled_for(StudentTRecord)
def predictive(family: StudentTRecord, m: float, v: float) -> tuple[float, float, float, float]:
    """The variances add."""
    return m, 1.0, v + families.conditional(family, m)[1], v


@compiled_for(StudentTRecord)
def bounded_site(family: StudentTRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """The Gaussian scale mixture."""
    z = y - m
    q = family.df * family.scale * family.scale + z * z + v
    precision = (family.df + 1.0) / q
    return precision * z, -precision, -2.0 * precision * z / q, precision / q


@compiled_for(StudentTRecord)
def tilted_panels(
    family: StudentTRecord, y: float, power: float, m: float, v: float, edges: np.ndarray
) -> tuple[int, float]:
    """Two lumps, one around m with the Gaussian's width and one around y with the likelihood's, tilted."""
    s = math.sqrt(v)
    center, length = families.landmark(family, y)
    center -= m
    steep = 0.5 * length if center == 0.0 else min(0.5 * length, 4.0 * v / abs(center))
    low = min(-(quadrature.REACH + 1.5) * s, center - 60.0 * length)
    high = max((quadrature.REACH + 1.5) * s, center + 60.0 * length)
    low = max(low, -(abs(center) + 45.0 * s))
    high = min(high, abs(center) + 45.0 * s)
    edges[0] = low
    edges[1] = high
    count = quadrature.graded_edges(0.0, 0.8 * s, low, high, edges, 2)
    for z in (-6.0, -4.0, -2.0, 2.0, 4.0, 6.0):
        edges[count] = z * s
        count += 1
    count = quadrature.graded_edges(center, steep, low, high, edges, count)
    # Moments are taken about the higher lump: about the other one the variance would cancel.
    there = quadrature.log_integrand(family, y, power, m, v, center)
    here = quadrature.log_integrand(family, y, power, m, v, 0.0)
    return count, 0.0 if there < here else center


@compiled_for(StudentTRecord)
def mode_start(family: StudentTRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """The belief before: with two lumps there is no telling. A narrow one goes a step, which is nearly all the way."""
    d1, d2, _, _ = families.derivatives(family, y, m0)
    grown = 1.0 - v0 * w * d2
    step = v0 * w * d1 / grown
    if v0 <= 0.04 * family.df * family.scale * family.scale and grown > 0.5 and step * step <= v0:
        return m0 + step, v0 / grown, 1
    return m0, v0, 0


@compiled_for(StudentTRecord)
def bound_start(family: StudentTRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """Near the fixed point of the Gaussian scale mixture, where coordinate ascent from the prior leads.

    With t = v0/v the site's precision is (df+1)/(df scale² + (y-m0)²/t² + v0/t): t climbs from 1, never past the root.
    """
    df, scale = family.df, family.scale
    gap = y - m0
    t = 1.0
    for _ in range(200):
        before = t
        t = 1.0 + v0 * w * (df + 1.0) / (df * scale * scale + (gap / t) * (gap / t) + v0 / t)
        if t - before <= 1e-3 * t:
            break
    return m0 + gap * (1.0 - 1.0 / t), v0 / t, 1


@compiled_for(StudentTRecord)
def may_have_lumps(family: StudentTRecord, rule: Record, w: float, v0: float) -> bool:
    """Convex as long as the largest l'' cannot outweigh the prior's precision."""
    steepest = w * (family.df + 1.0) / (8.0 * family.df * family.scale * family.scale)
    return rules.has_objective(family, rule) and v0 * steepest >= 1.0


@compiled_for(StudentTRecord)
def among_lumps(
    family: StudentTRecord, rule: Record, y: float, w: float, m0: float, v0: float
) -> tuple[bool, float, float, float, float, int]:
    """Looked for at both lumps."""
    if not sites.may_have_lumps(family, rule, w, v0):
        return False, 0.0, 0.0, m0, v0, 0
    length = math.sqrt(family.df) * family.scale
    m, v = search.scan(family, rule, y, w, m0, v0, length, 1e-8)
    ok, j, h, m_polished, v_polished, n = sites.newton(family, rule, y, w, m0, v0, m, v)
    if ok and abs(m_polished - m) <= 1e-6 * (abs(m) + math.sqrt(v)):
        return True, j, h, m_polished, v_polished, n
    m, v = search.scan(family, rule, y, w, m0, v0, length, search.EXACT)
    j, h = rules.rule_site(family, rule, y, w, m, v, m0, v0)
    return True, j, h, m, v, n


@compiled_for(StudentTRecord)
def bracket(family: StudentTRecord, rule: Record, y: float, w: float, m0: float, v0: float) -> tuple[float, float]:
    """The gradient points towards y everywhere."""
    return min(m0, y), max(m0, y)


@compiled_for(StudentTRecord)
def has_jets(family: StudentTRecord) -> bool:
    """Yes: its averages are integrals, and its singularities lie where the landmark says."""
    return True


@compiled_for(StudentTRecord)
def scores_by_jets(family: StudentTRecord) -> bool:
    """Yes."""
    return True
