"""One site in plain Python: the readable twin of ``engine.scalar.sites``, for what the engine does not know."""

from __future__ import annotations

import numpy as np

from gaussfold.protocols import Likelihood
from gaussfold.rules.at import At
from gaussfold.rules.catalogue import AnyRule
from gaussfold.rules.implicit import Look
from gaussfold.types import Array, ArrayLike, Moments


class Tempered:
    """A likelihood raised to a power: what a sample weight means."""

    def __init__(self, likelihood: Likelihood, power: float) -> None:
        self._likelihood, self._power = likelihood, power

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Array:
        """``power · log p(y|f)``."""
        return self._power * self._likelihood.log_prob(y, f)

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Array, Array]:
        """Both derivatives of it."""
        first, second = self._likelihood.derivatives(y, f)
        return self._power * first, self._power * second


def site_maker(rule: AnyRule, likelihood: Likelihood, y: float, weight: float, m0: float, v0: float) -> Look:
    """How ``rule`` sees one observation, when the belief before it is N(m0, v0).

    Power EP looks at the cavity: what is left of N(m, v) without the fraction alpha of the site N(m, v)/N(m0, v0).
    """

    def look(m: float, v: float) -> tuple[float, float]:
        gradient, curvature = rule.site(likelihood, y, Moments(np.asarray(m), np.asarray(v)))
        return weight * float(gradient), weight * float(curvature)

    def look_at_cavity(m: float, v: float) -> tuple[float, float]:
        variance = 1.0 / ((1.0 - rule.alpha) / v + rule.alpha / v0)
        mean = variance * ((1.0 - rule.alpha) * m / v + rule.alpha * m0 / v0)
        moments = Moments(np.asarray(mean), np.asarray(variance))
        gradient, curvature = rule.site(Tempered(likelihood, weight), y, moments)  # type: ignore[arg-type]
        return float(gradient) + float(curvature) * (m - mean), float(curvature)

    return look_at_cavity if rule.looks_at_cavity else look


def make_site(
    rule: AnyRule, at: At, likelihood: Likelihood, y: float, weight: float, m0: float, v0: float
) -> tuple[float, float]:
    """The site (precision, shift) of one observation whose latent has the marginal N(m0, v0) before it."""
    return at.site(site_maker(rule, likelihood, y, weight, m0, v0), m0, v0)
