"""One visit in plain Python: the readable twin of ``engine.scalar.sites.visit``, for what the engine does not know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gaussfold.protocols import Likelihood
from gaussfold.rules.at import At, Extragradient, Posterior, Prior
from gaussfold.rules.catalogue import AnyRule
from gaussfold.rules.ep import EP
from gaussfold.types import ArrayLike, Moments

Look: TypeAlias = Callable[[float, float], tuple[float, float]]
"""From a marginal (m, v) to the site made there: (gradient at m, curvature)."""

TOLERANCE = 1e-10  # taylor and pl take slopes by differences, which leave about 1e-11
MAX_STEPS = 2000


class Tempered:
    """A likelihood raised to a power: what a sample weight means."""

    def __init__(self, likelihood: Likelihood, power: float) -> None:
        self._likelihood, self._power = likelihood, power

    def log_prob(self, y: ArrayLike, f: ArrayLike) -> Any:
        """``power · log p(y|f)``."""
        return self._power * self._likelihood.log_prob(y, f)

    def derivatives(self, y: ArrayLike, f: ArrayLike) -> tuple[Any, Any]:
        """Both derivatives of it."""
        first, second = self._likelihood.derivatives(y, f)
        return self._power * first, self._power * second


def looker(rule: AnyRule, likelihood: Likelihood, y: float, weight: float, m0: float, v0: float) -> Look:
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

    return look_at_cavity if isinstance(rule, EP) else look


def visit(
    rule: AnyRule, at: At, likelihood: Likelihood, y: float, weight: float, m0: float, v0: float
) -> tuple[float, float]:
    """The site (precision, shift) of one observation whose latent has the marginal N(m0, v0) before it."""
    look = looker(rule, likelihood, y, weight, m0, v0)
    if isinstance(at, Posterior):
        return _implicit(look, m0, v0)
    gradient, curvature = look(m0, v0)
    if isinstance(at, Prior):
        return -curvature, gradient - curvature * m0
    return _extragradient(look, at, gradient, curvature, m0, v0)


def _after(precision: float, shift: float, m0: float, v0: float) -> tuple[float, float]:
    """N(m0, v0) times the site: exact, DESIGN §1."""
    v = 1.0 / (1.0 / v0 + precision)
    return v * (m0 / v0 + shift), v


def _extragradient(
    look: Look, at: Extragradient, gradient: float, curvature: float, m0: float, v0: float
) -> tuple[float, float]:
    """Update by the trial belief's site, in the form that ``at`` names: lrvga (137)-(143)."""
    m1, v1 = _after(-curvature, gradient - curvature * m0, m0, v0)
    gradient_there, curvature_there = look(m1, v1)
    if at.form == "natural":
        return -curvature_there, gradient_there - curvature_there * m1
    kept = curvature_there if at.form == "printed" else curvature
    return -kept, gradient_there - kept * m0


def _implicit(look: Look, m0: float, v0: float) -> tuple[float, float]:
    """Solve for the site that the rule makes at the very belief it leads to, by damped substitution.

    A full step is Newton's for the mean; when it does not bring (m, v) nearer to where it leads, half of it is taken.
    """
    precision, shift = 0.0, 0.0
    damping, last = 1.0, np.inf
    for _ in range(MAX_STEPS):
        m, v = _after(precision, shift, m0, v0)
        gradient, curvature = look(m, v)
        target = -curvature, gradient - curvature * m
        m_next, v_next = _after(*target, m0, v0)
        distance = abs(m_next - m) / np.sqrt(v) + abs(np.log(v_next / v)) if v_next > 0.0 else np.inf
        if distance <= TOLERANCE:
            return target
        if distance > 0.9 * last:
            damping = max(0.5 * damping, 1e-3)
        last = distance
        precision += damping * (target[0] - precision)
        shift += damping * (target[1] - shift)
    msg = f"the implicit update at N({m0!r}, {v0!r}) did not settle in {MAX_STEPS} steps; use at='prior'"
    raise ValueError(msg)
