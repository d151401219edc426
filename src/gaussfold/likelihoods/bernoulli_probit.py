"""Binary labels through the normal distribution, as the engine runs them: see ``engine.families``."""

from __future__ import annotations

import math
from typing import NamedTuple

from gaussfold.engine.seam import compiled_for, expectations, families, logistic, special

LOGIT_SLOPE = 1.702
"""Φ(f) ≈ σ(1.702 f)."""


class ProbitRecord(NamedTuple):
    """The family in the engine."""


@compiled_for(ProbitRecord)
def log_density(family: ProbitRecord, y: float, f: float) -> float:
    """``y log Φ(f) + (1 - y) log Φ(-f)``."""
    return special.soft_log_normal_cdf(y, f)


@compiled_for(ProbitRecord)
def derivatives(family: ProbitRecord, y: float, f: float) -> tuple[float, float, float, float]:
    """Those of log Φ, from the side or sides that the label is on."""
    g1 = 0.0
    g2 = 0.0
    g3 = 0.0
    g4 = 0.0
    if y > 0.0:
        a1, a2, a3, a4 = special.log_cdf_derivatives(f)
        g1 += y * a1
        g2 += y * a2
        g3 += y * a3
        g4 += y * a4
    if y < 1.0:
        a1, a2, a3, a4 = special.log_cdf_derivatives(-f)
        g1 -= (1.0 - y) * a1
        g2 += (1.0 - y) * a2
        g3 -= (1.0 - y) * a3
        g4 += (1.0 - y) * a4
    return g1, g2, g3, g4


@compiled_for(ProbitRecord)
def conditional(family: ProbitRecord, f: float) -> tuple[float, float]:
    """``Φ(f)`` and ``Φ(f) Φ(-f)``."""
    p = special.normal_cdf(f)
    return p, p * special.normal_cdf(-f)


@compiled_for(ProbitRecord)
def fisher(family: ProbitRecord, f: float) -> float:
    """``φ²/(Φ(f) Φ(-f))``, as a product of two ratios that do not vanish."""
    return special.inverse_mills(f)[0] * special.inverse_mills(-f)[0]


@compiled_for(ProbitRecord)
def predictive(family: ProbitRecord, m: float, v: float) -> tuple[float, float, float, float]:
    """``Φ(m/√(1+v))``, exactly."""
    scale = math.sqrt(1.0 + v)
    p = special.normal_cdf(m / scale)
    q = special.normal_cdf(-m / scale)
    return p, special.normal_pdf(m / scale) / scale, p * q, special.normal_cdf_variance(m, v)


@compiled_for(ProbitRecord)
def log_mean_density(family: ProbitRecord, y: float, m: float, v: float) -> float:
    """``log Φ(±m/√(1+v))``."""
    return special.soft_log_normal_cdf(y, m / math.sqrt(1.0 + v))


@compiled_for(ProbitRecord)
def linearised(family: ProbitRecord, y: float, m: float, v: float) -> tuple[float, float]:
    """Divided through by p(1-p): ratios that stay where p or 1-p has underflown."""
    scale = math.sqrt(1.0 + v)
    up, down = special.inverse_mills(m / scale)[0] / scale, special.inverse_mills(-m / scale)[0] / scale
    return special.binary_regression(y, v, up, down)


@compiled_for(ProbitRecord)
def bounded_site(family: ProbitRecord, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """Curvature -1: Albert and Chib."""
    up = special.inverse_mills(m)[0] if y > 0.0 else 0.0
    down = special.inverse_mills(-m)[0] if y < 1.0 else 0.0
    return y * up - (1.0 - y) * down, -1.0, 0.0, 0.0


@compiled_for(ProbitRecord)
def bounded_slopes(
    family: ProbitRecord, y: float, w: float, m: float, v: float
) -> tuple[float, float, float, float, float, float]:
    """The gradient is the score, so its slope is l''; the curvature does not move."""
    j, h, _, _ = expectations.bounded_site(family, y, m, v)
    _, d2, _, _ = families.derivatives(family, y, m)
    return w * j, w * h, w * d2, 0.0, 0.0, 0.0


@compiled_for(ProbitRecord)
def ep_site(family: ProbitRecord, alpha: float, y: float, w: float, m: float, v: float) -> tuple[float, float]:
    """In closed form where the tilted power is one and the label is hard."""
    if not (alpha * w == 1.0 and (y in (0.0, 1.0))):
        return expectations.tilted_site(family, alpha, y, w, m, v)
    sign = 1.0 if y > 0.5 else -1.0
    scale = math.sqrt(1.0 + v)
    rho, delta = special.inverse_mills(sign * m / scale)
    gradient = sign * rho / scale
    hessian = -rho * delta / (1.0 + v)
    shrink = 1.0 / (1.0 + v * hessian)
    return shrink * gradient / alpha, shrink * hessian / alpha


@compiled_for(ProbitRecord)
def averaged_start(family: ProbitRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """The root of a logistic function of nearly the same shape."""
    m, v, n = logistic.logistic_root(w * y, w, LOGIT_SLOPE * m0, LOGIT_SLOPE * LOGIT_SLOPE * v0, True)
    return m / LOGIT_SLOPE, v / (LOGIT_SLOPE * LOGIT_SLOPE), n


@compiled_for(ProbitRecord)
def marginalised(family: ProbitRecord, s: float) -> tuple[ProbitRecord, float, float]:
    """K = 1/√(1 + s), exact: sparse-online (25)."""
    return family, 1.0 / math.sqrt(1.0 + s), 0.0


@compiled_for(ProbitRecord)
def has_jets(family: ProbitRecord) -> bool:
    """Yes: its averages are integrals, and its singularities lie where the landmark says."""
    return True
