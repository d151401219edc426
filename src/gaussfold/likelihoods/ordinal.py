"""Ordered classes: grades, ratings, stages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from math import log, pi
from typing import ClassVar, NamedTuple

import numpy as np

from gaussfold.checks import one_of, positive
from gaussfold.engine.seam import compiled_for, families, narrow, ordered, quadrature, special
from gaussfold.likelihoods import links
from gaussfold.likelihoods.base import ScalarLikelihood, floats
from gaussfold.likelihoods.libraries import library_of
from gaussfold.types import Array, ArrayLike, Moments

MOST_BORDERS = 16
"""Of a record in the engine, whose type must not depend on how many there are; with more, Python does the work."""


@dataclass(frozen=True)
class Ordinal(ScalarLikelihood):
    """``p(y ≤ k | f) = g((c_k - f)/scale)`` with g the logistic or the normal distribution: labels 0, 1, .., K-1.

    Parameters
    ----------
    cutpoints
        c₀ < c₁ < .. < c_{K-2}: the K - 1 borders between K classes.
    scale
        Width of the borders, > 0.
    link
        "logit" or "probit".

    Examples
    --------
    >>> Ordinal([-1.0, 0.5]).log_prob([0, 1, 2], 0.2)
    array([-1.4633, -1.0701, -0.8544])
    """

    cutpoints: tuple[float, ...]
    scale: float = 1.0
    link: links.Name = "logit"
    log_concave: ClassVar[bool] = True
    labels: ClassVar[str] = "class numbers 0, 1, .., K-1 (one more class than cutpoints)"
    remedy: ClassVar[str] = "number the classes in order from 0"

    def __init__(self, cutpoints: Sequence[float], scale: float = 1.0, link: links.Name = "logit") -> None:
        try:
            borders = tuple(float(c) for c in cutpoints)
        except (TypeError, ValueError):
            borders = ()
        if not borders or not np.isfinite(borders).all() or not (np.diff(borders) > 0.0).all():
            msg = f"cutpoints={cutpoints!r}: Ordinal needs at least one finite number, in increasing order"
            raise ValueError(msg)
        object.__setattr__(self, "cutpoints", borders)
        object.__setattr__(self, "scale", positive("scale", scale, owner="Ordinal"))
        one_of("link", link, links.BY_NAME, owner="Ordinal")
        object.__setattr__(self, "link", link)

    @property
    def record(self) -> OrdinalRecord | None:
        """How the engine knows it, for up to `MOST_BORDERS` borders."""
        count = len(self.cutpoints)
        if count > MOST_BORDERS:
            return None
        borders = self.cutpoints + (math.inf,) * (MOST_BORDERS - count)
        return OrdinalRecord(borders, count, self.scale, self.link == "probit")

    def explains(self, y: Array) -> np.ndarray:
        """``y = 0, 1, .., K-1``."""
        return np.asarray((y >= 0.0) & (y <= len(self.cutpoints)) & (np.floor(y) == y))

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``log(g(u) - g(l))`` between the borders u and l, without cancellation in either tail."""
        library = library_of(y, f)
        y, f = library.floats(y, f)
        where, log_g = library.where, library.log_cdf[self.link]
        c, last = library.array(self.cutpoints, f), len(self.cutpoints)
        k = library.whole(where(library.isnan(y), 0.0, y)).clip(0, last)
        above, below = k == last, k == 0
        # An end class has one border; in place of the other stands the same one, in terms that are left out.
        high, low = c[k.clip(0, last - 1)], c[(k - 1).clip(0, last - 1)]
        upper, lower, ends = (high - f) / self.scale, (low - f) / self.scale, above | below
        if self.link == "logit":
            # g(u) - g(l) = σ(u) σ(-l) (1 - e^{l-u}), and the last factor does not depend on f
            share = library.log(-library.expm1(where(ends, -1.0, (low - high) / self.scale)))
            value = where(above, 0.0, log_g(upper)) + where(below, 0.0, log_g(-lower)) + where(ends, 0.0, share)
        else:
            flip = lower + upper > 0.0  # work in the left tail, where log Φ keeps its digits
            near, far = log_g(where(flip, -lower, upper)), log_g(where(flip, -upper, lower))
            between = near + library.log(-library.expm1(where(ends, -1.0, far - near)))
            value = where(below, log_g(upper), where(above, log_g(-lower), between))
        return library.asarray(where(library.isnan(y), math.nan, value))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """Of ``log(g(u) - g(l))`` in f, where both borders move by -f/scale."""
        upper, lower, missing = self._borders(y, f)
        if self.link == "logit":
            # g(u) - g(l) = σ(u) σ(-l) (1 - e^{l-u}), and the last factor does not depend on f
            first = links.sigmoid(lower) - links.sigmoid(-upper)
            second = -links.sigmoid_slope(upper) - links.sigmoid_slope(lower)
        else:
            log_p = self.log_prob(y, f)
            at_u, at_l = _share(upper, log_p), _share(lower, log_p)
            first = at_l - at_u
            second = _times(lower, at_l) - _times(upper, at_u) - first**2
        first, second = first / self.scale, second / self.scale**2
        return np.asarray(np.where(missing, np.nan, first)), np.asarray(np.where(missing, np.nan, second))

    def conditional(self, f: ArrayLike) -> Moments:
        """``E y = Σ p(y > k)`` and ``E y² = Σ (2k + 1) p(y > k)``."""
        library = library_of(f)
        (f,) = library.floats(f)
        above = library.cdf[self.link]((f[..., None] - library.array(self.cutpoints, f)) / self.scale)
        odd = library.array(2.0 * np.arange(len(self.cutpoints)) + 1.0, f)
        mean = above.sum(axis=-1)
        return Moments(library.asarray(mean), library.asarray(above @ odd - mean**2))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """Term by term."""
        odd = 2.0 * np.arange(len(self.cutpoints)) + 1.0
        mean = self.conditional(f).mean
        slopes, bends = self._slopes(f, 1), self._slopes(f, 2)
        slope, bend = slopes.sum(axis=-1), bends.sum(axis=-1)
        return (
            Moments(slope, slopes @ odd - 2.0 * mean * slope),
            Moments(bend, bends @ odd - 2.0 * (slope**2 + mean * bend)),
        )

    def _slopes(self, f: ArrayLike, order: int) -> Array:
        """The derivative of that order of ``p(y > k | f)`` for every border, on a new last axis."""
        (f,) = floats(f)
        away = (f[..., None] - np.asarray(self.cutpoints)) / self.scale
        link = links.BY_NAME[self.link]
        return np.asarray(link.slopes(away)[order - 1] / self.scale**order)

    def _borders(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array, np.ndarray]:
        y, f = floats(y, f)
        missing = np.isnan(y)
        c = np.concatenate([[-np.inf], self.cutpoints, [np.inf]])
        k = np.clip(np.where(missing, 0.0, y), 0, len(self.cutpoints)).astype(int)
        return np.asarray((c[k + 1] - f) / self.scale), np.asarray((c[k] - f) / self.scale), missing


def _share(border: Array, log_p: Array) -> Array:
    """``φ(border)/P``; 0 at infinity."""
    return np.asarray(np.exp(-0.5 * border**2 - 0.5 * log(2.0 * pi) - log_p))


def _times(border: Array, share: Array) -> Array:
    """``border · share``, 0 at infinity."""
    return np.asarray(np.where(np.isinf(border), 0.0, border) * share)


# What the engine runs: see ``engine.families`` and ``engine.scalar`` for what each function means.


class OrdinalRecord(NamedTuple):
    """The family in the engine."""

    borders: tuple[float, ...]
    """`MOST_BORDERS` of them, infinite from ``n_borders`` on."""
    n_borders: int
    scale: float
    probit: bool
    """Whether the distribution is normal, or else logistic."""


@compiled_for(OrdinalRecord)
def log_density(family: OrdinalRecord, y: float, f: float) -> float:
    """``log(g(u) - g(l))``."""
    upper, lower = ordered.borders_of(family.borders, family.n_borders, family.scale, y, f)
    return ordered.probit_log_between(upper, lower) if family.probit else ordered.logit_log_between(upper, lower)


@compiled_for(OrdinalRecord)
def derivatives(family: OrdinalRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """Both borders move by -f/scale."""
    upper, lower = ordered.borders_of(family.borders, family.n_borders, family.scale, y, f)
    if family.probit:
        d1, d2, d3, d4 = ordered.probit_between_derivatives(upper, lower)
    else:
        d1, d2, d3, d4 = ordered.logit_between_derivatives(upper, lower)
    s = 1.0 / family.scale
    return d1 * s, d2 * s * s, d3 * s * s * s, d4 * s * s * s * s


@compiled_for(OrdinalRecord)
def log_ratio(family: OrdinalRecord, y: float, f: float, g: float, at_g: float) -> float:
    """Logistic: ``-log(1 + σ(-u)(e^{(f-g)/scale} - 1)) - log(1 + σ(l)(e^{(g-f)/scale} - 1))``, u and l seen from g."""
    if family.probit or abs(f - g) > 30.0 * family.scale:
        return families.log_density(family, y, f) - at_g
    upper, lower = ordered.borders_of(family.borders, family.n_borders, family.scale, y, g)
    growth = math.expm1((f - g) / family.scale)
    up = special.sigmoid(-upper) * growth if upper < math.inf else 0.0
    down = -special.sigmoid(lower) * growth / (1.0 + growth) if lower > -math.inf else 0.0
    return -math.log1p(up + down + up * down)


@compiled_for(OrdinalRecord)
def is_label(family: OrdinalRecord, y: float) -> bool:
    """``y = 0, 1, .., K-1``."""
    return 0.0 <= y <= family.n_borders and y == math.floor(y)


@compiled_for(OrdinalRecord)
def is_log_concave(family: OrdinalRecord) -> bool:
    """Yes."""
    return True


@compiled_for(OrdinalRecord)
def landmark(family: OrdinalRecord, y: float) -> tuple[float, float]:
    """Between the borders of the class, or at its only one; the logistic function has poles at ±iπ."""
    k = int(y)
    upper = family.borders[k] if k < family.n_borders else family.borders[k - 1]
    lower = family.borders[k - 1] if k > 0 else family.borders[0]
    return 0.5 * (upper + lower), (2.0 if family.probit else 3.0) * family.scale


@compiled_for(OrdinalRecord)
def conditional(family: OrdinalRecord, f: float) -> tuple[float, float]:
    """``E y = Σ p(y > k)`` and ``E y² = Σ (2k + 1) p(y > k)``."""
    mean = 0.0
    square = 0.0
    for k in range(family.n_borders):
        z = (f - family.borders[k]) / family.scale
        above = special.normal_cdf(z) if family.probit else special.sigmoid(z)
        mean += above
        square += (2.0 * k + 1.0) * above
    return mean, square - mean * mean


@compiled_for(OrdinalRecord)
def log_mean_density(family: OrdinalRecord, y: float, m: float, v: float) -> float:
    """Normal noise and a normal latent add up; logistic noise takes a few nodes."""
    if family.probit:
        wider = math.sqrt(family.scale * family.scale + v)
        upper, lower = ordered.borders_of(family.borders, family.n_borders, wider, y, m)
        return ordered.probit_log_between(upper, lower)
    found, value = narrow.narrow_log_mean(family, y, m, v)
    return value if found else quadrature.tilted_moments(family, y, 1.0, m, v)[0]


@compiled_for(OrdinalRecord)
def has_jets(family: OrdinalRecord) -> bool:
    """Yes: its averages are integrals, and its singularities lie where the landmark says."""
    return True


@compiled_for(OrdinalRecord)
def scores_by_jets(family: OrdinalRecord) -> bool:
    """Only logistic noise: a normal one has a closed form."""
    return not family.probit
