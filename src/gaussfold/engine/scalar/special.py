"""Scalar special functions without cancellation: logistic, normal tail, Wright omega."""

from __future__ import annotations

import math

from gaussfold.engine.compiled import compiled

SQRT2 = math.sqrt(2.0)
SQRT_2PI = math.sqrt(2.0 * math.pi)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)


@compiled
def sigmoid(f: float) -> float:
    """1/(1+e^-f), to full relative precision in both tails."""
    if f >= 0.0:
        return 1.0 / (1.0 + math.exp(-f))
    e = math.exp(f)
    return e / (1.0 + e)


@compiled
def sigmoid_slope(f: float) -> float:
    """σ'(f) as e/(1+e)², which keeps all digits where σ(1-σ) would lose them."""
    e = math.exp(-abs(f))
    return e / ((1.0 + e) * (1.0 + e))


@compiled
def softplus(f: float) -> float:
    """log(1+e^f)."""
    return max(f, 0.0) + math.log1p(math.exp(-abs(f)))


@compiled
def normal_pdf(z: float) -> float:
    """φ(z)."""
    return math.exp(-0.5 * z * z) / SQRT_2PI


@compiled
def normal_cdf(z: float) -> float:
    """Φ(z), relatively accurate in the lower tail."""
    return 0.5 * math.erfc(-z / SQRT2)


@compiled
def inverse_mills(f: float) -> tuple[float, float]:
    """ρ = φ(f)/Φ(f) and ρ + f, the second without cancellation for f → -∞.

    Below -5 by the continued fraction of the Mills ratio, ρ(-x) = x + 1/(x + 2/(x + 3/(x + ...))).
    """
    if f > -5.0:
        rho = normal_pdf(f) / normal_cdf(f)
        return rho, rho + f
    x = -f
    tail = 0.0
    for k in range(60, 1, -1):
        tail = k / (x + tail)
    excess = 1.0 / (x + tail)
    return x + excess, excess


@compiled
def log_normal_cdf(f: float) -> float:
    """Log Φ(f)."""
    if f > -5.0:
        return math.log1p(-0.5 * math.erfc(f / SQRT2)) if f > 0.0 else math.log(normal_cdf(f))
    return -0.5 * f * f - LOG_SQRT_2PI - math.log(inverse_mills(f)[0])


@compiled
def wright_omega(z: float) -> float:
    """ω with ω + log ω = z: the Lambert W of e^z, for any real z."""
    if z < -30.0:
        return math.exp(z)
    w = math.exp(z) / (1.0 + math.exp(z)) if z < 1.0 else z - math.log(z)
    if z < 1.0:
        w = max(w, 1e-300)
    for _ in range(6):
        residual = w + math.log(w) - z
        step = residual * w / (1.0 + w)
        w_next = w - step
        w = w_next if w_next > 0.0 else 0.5 * w
        if abs(step) <= 1e-16 * w:
            break
    return w
