"""One site on R^D in plain Python: as ``python_sites``, for a row that sees several latents at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from gaussfold.likelihoods.chained import AnyCubature, VectorLikelihood
from gaussfold.linalg.small import symmetrised
from gaussfold.rules.at import At, Extragradient
from gaussfold.rules.base import SiteRule, View
from gaussfold.rules.curvature.base import Curvature, Target
from gaussfold.rules.implicit import MAX_STEPS, TOLERANCE
from gaussfold.types import Array, ArrayLike, Sites

Look: TypeAlias = Callable[[Array, Array], tuple[Array, Array]]
"""From a marginal (m, V) to the site made there: gradient at m (D,) and curvature (D, D)."""
Natural: TypeAlias = tuple[Array, Array]
"""Precision (D, D) and shift (D,) of a site."""


class VectorRecipe(NamedTuple):
    """All that decides what a site is, apart from the belief."""

    likelihood: VectorLikelihood
    rule: SiteRule
    at: At
    curvature: Curvature
    cubature: AnyCubature = None


class TemperedVector(VectorLikelihood):
    """A likelihood raised to a power: what a sample weight means to a rule that looks at the cavity."""

    def __init__(self, likelihood: VectorLikelihood, power: float) -> None:
        self._likelihood, self._power = likelihood, power

    @property
    def latents(self) -> int:
        """As it is."""
        return self._likelihood.latents

    @property
    def outputs(self) -> int:
        """As it is."""
        return self._likelihood.outputs

    def log_prob(self, Y: ArrayLike, F: ArrayLike) -> Array:
        """``power · log p(y|f)``."""
        return self._power * self._likelihood.log_prob(Y, F)

    def derivatives(self, Y: ArrayLike, F: ArrayLike) -> tuple[Array, Array]:
        """Both derivatives of it."""
        first, second = self._likelihood.derivatives(Y, F)
        return self._power * first, self._power * second

    def tilted(
        self, Y: Array, mean: Array, cov: Array, alpha: float = 1.0, cubature: AnyCubature = None
    ) -> tuple[Array, Array, Array]:
        """The likelihood's own, of power times alpha."""
        return self._likelihood.tilted(Y, mean, cov, alpha * self._power, cubature)


def after(site: Natural, mean: Array, cov: Array) -> tuple[Array, Array]:
    """N(mean, cov) times the site: exact, and without an inverse of cov."""
    precision, shift = site
    turn = np.eye(mean.size) + cov @ precision
    return mean + np.linalg.solve(turn, cov @ (shift - precision @ mean)), symmetrised(
        np.asarray(np.linalg.solve(turn, cov))
    )


def make_vector_site(recipe: VectorRecipe, y: Array, weight: float, mean: Array, cov: Array) -> Natural:
    """The site of one observation whose latents have the marginal N(mean, cov) before it."""
    look = _cavity_look(recipe, y, weight, mean, cov) if recipe.rule.looks_at_cavity else _look(recipe, y, weight)
    return _site_at(recipe.at, look, mean, cov)


def _site_at(at: At, look: Look, mean: Array, cov: Array) -> Natural:
    """The site that ``at`` asks for: rvga (78)-(80), (73)-(77), lrvga (137)-(143)."""
    if at.is_implicit:
        return implicit_site(look, mean, cov)
    gradient, curvature = look(mean, cov)
    first = -curvature, gradient - curvature @ mean
    if not isinstance(at, Extragradient):
        return first
    trial = after(first, mean, cov)
    gradient_there, curvature_there = look(*trial)
    if at.form == "natural":
        return -curvature_there, gradient_there - curvature_there @ trial[0]
    kept = curvature_there if at.form == "printed" else curvature
    return -kept, gradient_there - kept @ mean


def implicit_site(look: Look, mean: Array, cov: Array) -> Natural:
    """Solve for the site that the rule makes at the very belief it leads to, by damped substitution."""
    precision, shift = np.zeros_like(cov), np.zeros_like(mean)
    scale = np.sqrt(np.maximum(np.diag(cov), np.finfo(float).tiny))
    damping, last = 1.0, np.inf
    for _ in range(MAX_STEPS):
        m, V = after((precision, shift), mean, cov)
        gradient, curvature = look(m, V)
        target = -curvature, gradient - curvature @ m
        m_next, V_next = after(target, mean, cov)
        spread = (V_next - V) / (scale[:, None] * scale)
        distance = float((np.abs(m_next - m) / scale).max() + np.abs(spread).max())
        if distance <= TOLERANCE or not np.isfinite(distance):  # what is not finite is refused by the caller
            return target
        if distance > 0.9 * last:
            damping = max(0.5 * damping, 1e-3)
        last = distance
        precision = precision + damping * (target[0] - precision)
        shift = shift + damping * (target[1] - shift)
    msg = f"the implicit update at N({mean.tolist()}, ...) did not settle in {MAX_STEPS} steps; use at='prior'"
    raise ValueError(msg)


def _site(recipe: VectorRecipe, likelihood: VectorLikelihood, y: Array, mean: Array, cov: Array) -> Natural:
    """Gradient and curvature by rule and curvature policy, for one row."""
    view = View(likelihood, y[None], mean[None], cov[None], recipe.cubature)
    blank = Sites(np.zeros((1, *cov.shape)), np.zeros((1, mean.size)))
    site, _ = recipe.curvature.site(Target(recipe.rule, view, blank, 1.0), None)
    return site.gradient[0], site.curvature[0]


def _look(recipe: VectorRecipe, y: Array, weight: float) -> Look:
    def look(mean: Array, cov: Array) -> tuple[Array, Array]:
        gradient, curvature = _site(recipe, recipe.likelihood, y, mean, cov)
        return weight * gradient, weight * curvature

    return look


def _cavity_look(recipe: VectorRecipe, y: Array, weight: float, mean0: Array, cov0: Array) -> Look:
    """Power ep: what is left of N(m, V) without the fraction alpha of the site N(m, V)/N(m0, V0)."""
    alpha = recipe.rule.alpha
    likelihood = recipe.likelihood if weight == 1.0 else TemperedVector(recipe.likelihood, weight)
    before = np.linalg.inv(cov0) if alpha < 1.0 else cov0

    def look(mean: Array, cov: Array) -> tuple[Array, Array]:
        if alpha == 1.0:
            gradient, curvature = _site(recipe, likelihood, y, mean0, cov0)
            return gradient + curvature @ (mean - mean0), curvature
        now = np.linalg.inv(cov)
        left = symmetrised(np.linalg.inv((1.0 - alpha) * now + alpha * before))
        middle = left @ ((1.0 - alpha) * now @ mean + alpha * before @ mean0)
        gradient, curvature = _site(recipe, likelihood, y, middle, left)
        return gradient + curvature @ (mean - middle), curvature

    return look
