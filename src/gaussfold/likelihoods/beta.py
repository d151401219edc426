"""Proportions: numbers strictly between 0 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from gaussfold.checks import one_of, positive
from gaussfold.likelihoods import links
from gaussfold.likelihoods.base import ScalarLikelihood, floats
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

    def explains(self, y: Array) -> np.ndarray:
        """``0 < y < 1``."""
        return np.asarray((y > 0.0) & (y < 1.0))

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``(a - 1) log y + (b - 1) log(1 - y) - log B(a, b)``, a = φg(f), b = φg(-f)."""
        y, f = floats(y, f)
        a, b = self._counts(f)
        return np.asarray((a - 1.0) * np.log(y) + (b - 1.0) * np.log1p(-y) - scipy.special.betaln(a, b))

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """With D = φ(ψ(b) - ψ(a) + logit y): ``D g'`` and ``D g'' - φ²(ψ'(a) + ψ'(b)) g'²``."""
        y, f = floats(y, f)
        a, b = self._counts(f)
        slope, bend = links.BY_NAME[self.link].slopes(f)
        special = scipy.special
        pull = self.scale * (special.digamma(b) - special.digamma(a) + special.logit(y))
        stiffness = self.scale**2 * (special.polygamma(1, a) + special.polygamma(1, b))
        return np.asarray(pull * slope), np.asarray(pull * bend - stiffness * slope**2)

    def conditional(self, f: ArrayLike) -> Moments:
        """``g(f)`` and ``g(f) g(-f)/(1 + φ)``."""
        (f,) = floats(f)
        g = links.BY_NAME[self.link].cdf
        mean = np.asarray(g(f))
        return Moments(mean, np.asarray(mean * g(-f) / (1.0 + self.scale)))

    def conditional_derivatives(self, f: ArrayLike) -> tuple[Moments, Moments]:
        """``g'`` and ``g' (1 - 2g)/(1 + φ)``; ``g''`` and ``(g'' (1 - 2g) - 2g'²)/(1 + φ)``."""
        (f,) = floats(f)
        link = links.BY_NAME[self.link]
        tilt = link.cdf(-f) - link.cdf(f)
        slope, bend = link.slopes(f)
        share = 1.0 / (1.0 + self.scale)
        return Moments(slope, share * slope * tilt), Moments(bend, share * (bend * tilt - 2.0 * slope**2))

    def _counts(self, f: Array) -> tuple[Array, Array]:
        g = links.BY_NAME[self.link].cdf
        return np.asarray(self.scale * g(f)), np.asarray(self.scale * g(-f))
