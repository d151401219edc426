"""The likelihoods as scalar functions of one latent, chosen by code: values and four derivatives.

Codes and parameters are those of ``likelihoods.*.kernel``; the NumPy definitions there are the twins.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import compiled
from gaussfold.engine.scalar.special import (
    LOG_SQRT_2PI,
    inverse_mills,
    log_normal_cdf,
    normal_cdf,
    sigmoid,
    sigmoid_slope,
    softplus,
)

GAUSSIAN, LOGIT, PROBIT, POISSON, STUDENT_T, NEGATIVE_BINOMIAL = range(6)
HUGE = 709.0
"""Exponents are clipped here: e^709 is still finite, and any solver step away from it is a large one."""


@compiled
def bounded_exp(f: float) -> float:
    """e^f, finite."""
    return math.exp(min(f, HUGE))


@compiled
def explains(code: int, y: float) -> bool:
    """Whether y is a label of the family (or missing): the compiled twin of ``Likelihood.check_labels``."""
    if math.isnan(y):
        return True
    if code in (LOGIT, PROBIT):
        return 0.0 <= y <= 1.0
    if code in (POISSON, NEGATIVE_BINOMIAL):
        return 0.0 <= y < math.inf and y == math.floor(y)
    return -math.inf < y < math.inf


@compiled
def log_rising(r: float, y: float) -> float:
    """Log Γ(y+r)/Γ(r); for large r by Stirling's series, in which the leading terms cancel on paper."""
    if r < 200.0:
        return math.lgamma(y + r) - math.lgamma(r)
    tail = 1.0 / (12.0 * (r + y)) - 1.0 / (12.0 * r) - 1.0 / (360.0 * (r + y) ** 3) + 1.0 / (360.0 * r**3)
    return y * math.log(r) + (r + y - 0.5) * math.log1p(y / r) - y + tail


@compiled
def log_density(code: int, p0: float, p1: float, y: float, f: float) -> float:
    """Log p(y|f), soft labels included for the Bernoulli families."""
    if code == GAUSSIAN:
        z = (y - f) / p0
        return -0.5 * z * z - math.log(p0) - LOG_SQRT_2PI
    if code == LOGIT:
        return y * f - softplus(f)
    if code == PROBIT:
        total = 0.0
        if y > 0.0:
            total += y * log_normal_cdf(f)
        if y < 1.0:
            total += (1.0 - y) * log_normal_cdf(-f)
        return total
    if code == POISSON:
        return y * f - bounded_exp(f) - math.lgamma(y + 1.0)
    if code == STUDENT_T:
        z = (y - f) / p1
        const = math.lgamma(0.5 * (p0 + 1.0)) - math.lgamma(0.5 * p0) - 0.5 * math.log(p0 * math.pi) - math.log(p1)
        return const - 0.5 * (p0 + 1.0) * math.log1p(z * z / p0)
    g = f - math.log(p0)
    return log_rising(p0, y) - math.lgamma(y + 1.0) + y * g - (y + p0) * softplus(g)


@compiled
def derivatives(code: int, p0: float, p1: float, y: float, f: float) -> tuple[float, float, float, float]:
    """The first four derivatives of log p(y|f) with respect to f."""
    if code == GAUSSIAN:
        return (y - f) / (p0 * p0), -1.0 / (p0 * p0), 0.0, 0.0
    if code == LOGIT:
        s = sigmoid(f)
        d = sigmoid_slope(f)
        return y * sigmoid(-f) - (1.0 - y) * s, -d, -d * (1.0 - 2.0 * s), -d * (1.0 - 6.0 * d)
    if code == PROBIT:
        g1 = 0.0
        g2 = 0.0
        g3 = 0.0
        g4 = 0.0
        if y > 0.0:
            a1, a2, a3, a4 = _log_cdf_derivatives(f)
            g1 += y * a1
            g2 += y * a2
            g3 += y * a3
            g4 += y * a4
        if y < 1.0:
            a1, a2, a3, a4 = _log_cdf_derivatives(-f)
            g1 -= (1.0 - y) * a1
            g2 += (1.0 - y) * a2
            g3 -= (1.0 - y) * a3
            g4 += (1.0 - y) * a4
        return g1, g2, g3, g4
    if code == POISSON:
        r = bounded_exp(f)
        return y - r, -r, -r, -r
    if code == STUDENT_T:
        a = p0 * p1 * p1
        z = y - f
        z2 = z * z
        q = a + z2
        c = p0 + 1.0
        return (
            c * z / q,
            c * (z2 - a) / (q * q),
            c * 2.0 * z * (z2 - 3.0 * a) / q**3,
            c * 6.0 * (z2 * z2 - 6.0 * a * z2 + a * a) / q**4,
        )
    g = f - math.log(p0)
    s = sigmoid(g)
    d = sigmoid_slope(g)
    b = y + p0
    return y * sigmoid(-g) - p0 * s, -b * d, -b * d * (1.0 - 2.0 * s), -b * d * (1.0 - 6.0 * d)


@compiled
def _log_cdf_derivatives(f: float) -> tuple[float, float, float, float]:
    """Derivatives of log Φ(f): ρ, -ρδ, ... with δ = ρ + f kept free of cancellation."""
    rho, delta = inverse_mills(f)
    d1 = -rho * delta
    d2 = -d1 * delta - rho * (1.0 + d1)
    # ρ''' by differentiating ρ'' = -ρ'δ - ρ(1+ρ') once more
    d3 = -d2 * delta - 2.0 * d1 * (1.0 + d1) - rho * d2
    return rho, d1, d2, d3


@compiled
def conditional(code: int, p0: float, p1: float, f: float) -> tuple[float, float]:
    """Mean and variance of y given f."""
    if code == GAUSSIAN:
        return f, p0 * p0
    if code == LOGIT:
        return sigmoid(f), sigmoid_slope(f)
    if code == PROBIT:
        p = normal_cdf(f)
        return p, p * normal_cdf(-f)
    if code == STUDENT_T:
        return f, p1 * p1 * p0 / (p0 - 2.0) if p0 > 2.0 else math.inf
    r = bounded_exp(f)
    if code == POISSON:
        return r, r
    return r, r + r * r / p0


@compiled
def fisher(code: int, p0: float, p1: float, f: float) -> float:
    """(∂ E[y|f]/∂f)² / Var[y|f]: the curvature of the linearised model, bayes-newton (32)."""
    if code == GAUSSIAN:
        return 1.0 / (p0 * p0)
    if code == LOGIT:
        return sigmoid_slope(f)
    if code == PROBIT:
        return inverse_mills(f)[0] * inverse_mills(-f)[0]
    if code == POISSON:
        return bounded_exp(f)
    if code == STUDENT_T:
        return (p0 - 2.0) / (p0 * p1 * p1)
    return p0 * sigmoid(f - math.log(p0))


@compiled
def landmark(code: int, p0: float, p1: float, y: float) -> tuple[float, float]:
    """Where log p(y|f) bends as a function of f, and on what length: guides the quadrature panels.

    The length is the distance of the nearest complex singularity (or the decay of e^f).
    """
    if code == STUDENT_T:
        return y, math.sqrt(p0) * p1
    if code == PROBIT:
        return 0.0, 2.0
    if code == NEGATIVE_BINOMIAL:
        return math.log(p0), 2.0
    if code == POISSON:
        return math.log(max(y, 0.5)), 1.0
    return 0.0, 2.0
