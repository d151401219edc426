"""A family with its latent integrated out: expectations, predictions, and the sites that are made of them.

All are generic (``engine.dispatch``): families with closed forms bring them, the bodies here integrate by quadrature.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import part
from gaussfold.engine.dispatch import by_family
from gaussfold.engine.families import Family, conditional, landmark, log_density
from gaussfold.engine.scalar.narrow import gaussian_derivatives, narrow_log_mean
from gaussfold.engine.scalar.quadrature import gaussian_expectations, tilted_moments

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(64)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@by_family
def expected_derivatives(family: Family, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """E of the first four derivatives of log p under N(m, v)."""
    return gaussian_derivatives(family, y, m, v)


@by_family
def expected_log_density(family: Family, y: float, m: float, v: float) -> float:
    """E log p(y|f) under N(m, v)."""
    return gaussian_expectations(family, y, m, v)[0]


@by_family
def predictive(family: Family, m: float, v: float) -> tuple[float, float, float, float]:
    """F ~ N(m, v) integrated out: E y, E ∂E[y|f]/∂f, Var y, and Var of E[y|f] (rvga (62), (63)).

    By Gauss-Hermite quadrature of the conditional moments; the slope by Stein's lemma.
    """
    if v <= 0.0:
        mean, noise = conditional(family, m)
        return mean, math.nan, noise, 0.0
    s = math.sqrt(v)
    mean = 0.0
    slope = 0.0
    noise = 0.0
    for i in range(NODES.size):
        h, r = conditional(family, m + s * NODES[i])
        mean += WEIGHTS[i] * h
        slope += WEIGHTS[i] * h * NODES[i] / s
        noise += WEIGHTS[i] * r
    of_mean = 0.0
    for i in range(NODES.size):
        away = conditional(family, m + s * NODES[i])[0] - mean
        of_mean += WEIGHTS[i] * away * away
    return mean, slope, noise + of_mean, of_mean


@by_family
def log_mean_density(family: Family, y: float, m: float, v: float) -> float:
    """Log E p(y|f) for v > 0; for a soft label the cross-entropy y log p₁ + (1-y) log p₀."""
    found, value = narrow_log_mean(family, y, m, v)
    return value if found else tilted_moments(family, y, 1.0, m, v)[0]


@part
def log_predictive(family: Family, y: float, m: float, v: float) -> float:
    """As :func:`log_mean_density` for any v; NaN for a missing label."""
    if math.isnan(y):
        return math.nan
    if v <= 0.0:
        return log_density(family, y, m)
    return log_mean_density(family, y, m, v)


@by_family
def height_normaliser(family: Family, y: float, m: float, v: float) -> float:
    """Log E p(y|f) as sparse-online (18) takes it, where that differs."""
    return log_predictive(family, y, m, v)


@by_family
def linearised(family: Family, y: float, m: float, v: float) -> tuple[float, float]:
    """Statistical linear regression, bayes-newton (29)-(31): slope E h', residual variance Var y - v (E h')²."""
    mean, slope, total, _ = predictive(family, m, v)
    residual = total - v * slope * slope
    return slope * (y - mean) / residual, -slope * slope / residual


@by_family
def bounded_site(family: Family, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """The quadratic lower bound on log p that is tightest in expectation: (J, H, ∂H/∂m, ∂H/∂v).

    J = slope at the landmark + H·(distance to it). NaN for a family that has no bound.
    """
    return math.nan, math.nan, math.nan, math.nan


@by_family
def bounded_slopes(
    family: Family, y: float, w: float, m: float, v: float
) -> tuple[float, float, float, float, float, float]:
    """J and H of :func:`bounded_site`, ∂J/∂m, ∂J/∂log v, ∂H/∂m, ∂H/∂log v, all times w."""
    j, h, hm, hv = bounded_site(family, y, m, v)
    center, _ = landmark(family, y)
    reach = m - center  # J = constant + H · reach
    return w * j, w * h, w * (h + hm * reach), w * hv * v * reach, w * hm, w * hv * v


@part
def logistic_bound(half: float, weight: float, g: float, v: float) -> tuple[float, float, float, float]:
    """Jaakkola-Jordan for ``-weight log(1 + e^g)``, rvga (82)-(90), as :func:`bounded_site` has it."""
    xi = math.sqrt(v + g * g)
    if xi > 1e-4:
        t = math.tanh(0.5 * xi)
        rate = 0.5 * t / xi
        slope = (0.25 * (1.0 - t * t) - rate) / (xi * xi)  # λ'(ξ)/ξ
    else:
        rate = 0.25
        slope = -1.0 / 24.0
    return half - weight * rate * g, -weight * rate, -weight * slope * g, -0.5 * weight * slope


@by_family
def ep_site(family: Family, alpha: float, y: float, w: float, m: float, v: float) -> tuple[float, float]:
    """Power EP, bayes-newton (22), looking at the cavity N(m, v): J at m, H."""
    return tilted_site(family, alpha, y, w, m, v)


@part
def tilted_site(family: Family, alpha: float, y: float, w: float, m: float, v: float) -> tuple[float, float]:
    """Power EP by quadrature of the tilted density."""
    _, gradient, hessian, shift, variance = tilted_moments(family, y, alpha * w, m, v)
    if abs(v * hessian) < 0.5:
        shrink = 1.0 / (1.0 + v * hessian)
    else:
        shrink = v / variance  # the same number; 1 + v G would cancel
        hessian = (variance / v - 1.0) / v
        gradient = shift / v
    return shrink * gradient / alpha, shrink * hessian / alpha
