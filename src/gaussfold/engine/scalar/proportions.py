"""A beta distribution of mean g(f) and size φ as a function of the latent f, also where g underflows.

With ``a = φ g`` and ``tₖ = g⁽ᵏ⁾/g`` the chain rule has ``a ψ(a) t₁`` and the like, products that stay finite as a
vanishes where their factors do not; ``b = φ (1 - g)`` the same with ``uₖ``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from gaussfold.engine.compiled import part
from gaussfold.engine.scalar.special import scaled_polygammas

Ratios: TypeAlias = tuple[float, float, float, float]


@part
def beta_log_density(size: float, constant: float, y: float, log_g: float, log_rest: float) -> float:
    """``(a - 1) log y + (b - 1) log(1 - y) - log B(a, b)`` with constant = log Γ(φ) + 2 log φ."""
    a, b = size * math.exp(log_g), size * math.exp(log_rest)
    gammas = math.lgamma(1.0 + a) - log_g + math.lgamma(1.0 + b) - log_rest
    return (a - 1.0) * math.log(y) + (b - 1.0) * math.log1p(-y) - gammas + constant


@part
def _side(x: float, log_y: float, t: Ratios) -> Ratios:
    """The first four derivatives of ``x log y - log Γ(x)`` in the latent."""
    p0, p1, p2, p3 = scaled_polygammas(x)
    t1, t2, t3, t4 = t
    slope = x * log_y - p0
    return (
        slope * t1,
        slope * t2 - p1 * t1 * t1,
        slope * t3 - 3.0 * p1 * t1 * t2 - p2 * t1 * t1 * t1,
        slope * t4 - p1 * (4.0 * t1 * t3 + 3.0 * t2 * t2) - 6.0 * p2 * t1 * t1 * t2 - p3 * t1 * t1 * t1 * t1,
    )


@part
def beta_derivatives(size: float, y: float, g: float, rest: float, t: Ratios, u: Ratios) -> Ratios:
    """Of both sides. ``log(1 - y)`` is as exact as ψ is, and unlike log1p it is taken out of a caller's loop."""
    a1, a2, a3, a4 = _side(size * g, math.log(y), t)
    b1, b2, b3, b4 = _side(size * rest, math.log(1.0 - y), u)
    return a1 + b1, a2 + b2, a3 + b3, a4 + b4
