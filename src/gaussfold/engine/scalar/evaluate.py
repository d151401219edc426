"""What each rule says of one observation when it looks at N(m, v): gradient and curvature.

``(J, H)`` as in DESIGN §1, for the likelihood raised to the power ``w``. The Python rules in
``gaussfold.rules`` are the readable twins.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import (
    GAUSSIAN,
    LOGIT,
    NEGATIVE_BINOMIAL,
    POISSON,
    PROBIT,
    STUDENT_T,
    bounded_exp,
    derivatives,
    fisher,
    log_density,
    log_rising,
)
from gaussfold.engine.scalar.logistic import (
    expected_softplus,
    logistic_mean_variance,
    logistic_moments,
    probit_moments,
)
from gaussfold.engine.scalar.quadrature import expm1_minus, gaussian_expectations, tilted_moments
from gaussfold.engine.scalar.special import inverse_mills, log_normal_cdf, normal_cdf, normal_pdf, sigmoid

NEWTON, TAYLOR, VI, EP, PL, QUADRATIC = range(6)
APPROXIMATE = 1.0
"""LOGIT's p0 when expectations are rvga (58) instead of exact."""


@compiled
def expected_derivatives(
    code: int, p0: float, p1: float, y: float, m: float, v: float
) -> tuple[float, float, float, float]:
    """E of the first four derivatives of log p under N(m, v): closed form or quadrature."""
    if code == GAUSSIAN:
        return (y - m) / (p0 * p0), -1.0 / (p0 * p0), 0.0, 0.0
    if code == LOGIT:
        if p0 == APPROXIMATE:
            p, q, d1, d2, d3 = probit_moments(m, v)
        else:
            p, q, d1, d2, d3 = logistic_moments(m, v)
        return y * q - (1.0 - y) * p, -d1, -d2, -d3
    if code == POISSON:
        r = bounded_exp(m + 0.5 * v)
        return y - r, -r, -r, -r
    if code == NEGATIVE_BINOMIAL:
        p, q, d1, d2, d3 = logistic_moments(m - math.log(p0), v)
        b = y + p0
        return y * q - p0 * p, -b * d1, -b * d2, -b * d3
    _, e1, e2, e3, e4 = gaussian_expectations(code, p0, p1, y, m, v)
    return e1, e2, e3, e4


@compiled
def expected_log_density(code: int, p0: float, p1: float, y: float, m: float, v: float) -> float:
    """E log p(y|f) under N(m, v)."""
    if code == GAUSSIAN:
        return log_density(code, p0, p1, y, m) - 0.5 * v / (p0 * p0)
    if code == LOGIT:
        return y * m - expected_softplus(m, v)
    if code == POISSON:
        return y * m - bounded_exp(m + 0.5 * v) - math.lgamma(y + 1.0)
    if code == NEGATIVE_BINOMIAL:
        g = m - math.log(p0)
        return log_rising(p0, y) - math.lgamma(y + 1.0) + y * g - (y + p0) * expected_softplus(g, v)
    return gaussian_expectations(code, p0, p1, y, m, v)[0]


@compiled
def predictive(code: int, p0: float, p1: float, m: float, v: float) -> tuple[float, float, float, float]:
    """F ~ N(m, v) integrated out: E y, E ∂E[y|f]/∂f, Var y, and Var of E[y|f] (rvga (62), (63))."""
    if code == GAUSSIAN:
        return m, 1.0, v + p0 * p0, v
    if code == STUDENT_T:
        noise = p1 * p1 * p0 / (p0 - 2.0) if p0 > 2.0 else math.inf
        return m, 1.0, v + noise, v
    if code == LOGIT:
        if p0 == APPROXIMATE:
            p, q, d, _, _ = probit_moments(m, v)
            x = v * math.pi / 8.0
            r = math.sqrt(1.0 + x)
            return p, d, p * q, p * q * x / (r * (r + 1.0))  # 1 - k = 1 - 1/r without cancellation
        p, q, d, _, _ = logistic_moments(m, v)
        return p, d, p * q, logistic_mean_variance(m, v)
    if code == PROBIT:
        scale = math.sqrt(1.0 + v)
        p = normal_cdf(m / scale)
        q = normal_cdf(-m / scale)
        return p, normal_pdf(m / scale) / scale, p * q, _probit_mean_variance(m, v)
    r = bounded_exp(m + 0.5 * v)
    spread = bounded_exp(2.0 * m + 2.0 * v + math.log(-math.expm1(-v))) if v > 0.0 else 0.0  # r² (e^v - 1)
    if code == POISSON:
        return r, r, r + spread, spread
    return r, r, r + spread + (spread + r * r) / p0, spread


@compiled
def _probit_mean_variance(m: float, v: float) -> float:
    """Var Φ(f): E Φ² - p² with E Φ² = P(two correlated normals are positive), by Plackett's integral.

    ∂/∂ρ of the bivariate normal probability is its density; from ρ = 0, where it is p², to ρ = v/(1+v).
    With ρ = sin t the integrand is exp(-h²/(1 + sin t))/2π: smooth: three Gauss-Legendre points on each of 64 panels.
    """
    h2 = m * m / (1.0 + v)
    top = math.asin(v / (1.0 + v))
    total = 0.0
    n = 64
    for i in range(n):
        a = top * i / n
        b = top * (i + 1) / n
        mid = 0.5 * (a + b)
        half = 0.5 * (b - a)
        for x, w in ((-0.7745966692414834, 5.0 / 9.0), (0.0, 8.0 / 9.0), (0.7745966692414834, 5.0 / 9.0)):
            total += half * w * math.exp(-h2 / (1.0 + math.sin(mid + half * x)))
    return total / (2.0 * math.pi)


@compiled
def log_predictive(code: int, p0: float, p1: float, y: float, m: float, v: float) -> float:
    """Log E p(y|f); for a soft label the cross-entropy y log p₁ + (1-y) log p₀; NaN for a missing one."""
    if math.isnan(y):
        return math.nan
    if v <= 0.0:
        return log_density(code, p0, p1, y, m)
    if code == GAUSSIAN:
        return log_density(code, math.sqrt(p0 * p0 + v), p1, y, m)
    if code == LOGIT:
        if p0 == APPROXIMATE:
            k = 1.0 / math.sqrt(1.0 + v * math.pi / 8.0)
            return log_density(code, p0, p1, y, k * m)
        p, q, _, _, _ = logistic_moments(m, v)
        total = 0.0
        if y > 0.0:
            total += y * (math.log(p) if p > 1e-9 else tilted_moments(code, p0, p1, 1.0, 1.0, m, v)[0])
        if y < 1.0:
            total += (1.0 - y) * (math.log(q) if q > 1e-9 else tilted_moments(code, p0, p1, 0.0, 1.0, m, v)[0])
        return total
    if code == PROBIT:
        a = m / math.sqrt(1.0 + v)
        total = 0.0
        if y > 0.0:
            total += y * log_normal_cdf(a)
        if y < 1.0:
            total += (1.0 - y) * log_normal_cdf(-a)
        return total
    return tilted_moments(code, p0, p1, y, 1.0, m, v)[0]


@compiled
def _binary_slopes(code: int, p0: float, m: float, v: float) -> tuple[float, float]:
    """E h'/p and E h'/(1-p) of a binary label, also where p or 1-p has underflown."""
    if code == PROBIT:
        scale = math.sqrt(1.0 + v)
        return inverse_mills(m / scale)[0] / scale, inverse_mills(-m / scale)[0] / scale
    if p0 == APPROXIMATE:
        k = 1.0 / math.sqrt(1.0 + v * math.pi / 8.0)
        return k * sigmoid(-k * m), k * sigmoid(k * m)
    p, q, slope, _, _ = logistic_moments(m, v)
    # Below 1e-9 the moments keep no relative digits; the slope of log p in m is the tilted mean of l' = σ(-f).
    up = slope / p if p > 1e-9 else tilted_moments(code, p0, 0.0, 1.0, 1.0, m, v)[1]
    down = slope / q if q > 1e-9 else -tilted_moments(code, p0, 0.0, 0.0, 1.0, m, v)[1]
    return up, down


@compiled
def _linearised(code: int, p0: float, p1: float, y: float, m: float, v: float) -> tuple[float, float]:
    """Statistical linear regression, bayes-newton (29)-(31): slope E h', residual variance Var y - v (E h')².

    Divided through by p(1-p) for a binary label and by the mean for a count, so that nothing vanishes or cancels.
    """
    if code in (POISSON, NEGATIVE_BINOMIAL):
        excess = expm1_minus(min(v, 600.0))  # e^v - 1 - v
        if code == NEGATIVE_BINOMIAL:
            excess += math.exp(min(v, 600.0)) / p0
        if m + 0.5 * v < 0.0:
            r = math.exp(m + 0.5 * v)
            return (y - r) / (1.0 + r * excess), -r / (1.0 + r * excess)
        fall = math.exp(-m - 0.5 * v)  # 1/r, where r may overflow
        return (y * fall - 1.0) / (fall + excess), -1.0 / (fall + excess)
    if code in (LOGIT, PROBIT):
        up, down = _binary_slopes(code, p0, m, v)
        residual = 1.0 - v * up * down
        return (y * up - (1.0 - y) * down) / residual, -up * down / residual
    mean, slope, total, _ = predictive(code, p0, p1, m, v)
    residual = total - v * slope * slope
    return slope * (y - mean) / residual, -slope * slope / residual


@compiled
def bounded_site(code: int, p0: float, p1: float, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """The tightest quadratic lower bound on log p in expectation: Jaakkola-Jordan and its relatives.

    Logistic families: rvga (82)-(90). Probit: curvature -1 (Albert-Chib). Student-t: the Gaussian scale
    mixture. Gaussian: exact. Returns (J, H, ∂H/∂m, ∂H/∂v); J = slope at the landmark + H·(distance to it).
    """
    if code in (LOGIT, NEGATIVE_BINOMIAL):
        b = 1.0 if code == LOGIT else y + p0
        g = m if code == LOGIT else m - math.log(p0)
        xi = math.sqrt(v + g * g)
        if xi > 1e-4:
            t = math.tanh(0.5 * xi)
            lam = 0.5 * t / xi
            slope = (0.25 * (1.0 - t * t) - lam) / (xi * xi)  # λ'(ξ)/ξ
        else:
            lam = 0.25
            slope = -1.0 / 24.0
        return y - 0.5 * b - b * lam * g, -b * lam, -b * slope * g, -0.5 * b * slope
    if code == PROBIT:
        up = inverse_mills(m)[0] if y > 0.0 else 0.0
        down = inverse_mills(-m)[0] if y < 1.0 else 0.0
        return y * up - (1.0 - y) * down, -1.0, 0.0, 0.0
    if code == STUDENT_T:
        z = y - m
        q = p0 * p1 * p1 + z * z + v
        lam = (p0 + 1.0) / q
        return lam * z, -lam, -2.0 * lam * z / q, lam / q
    d1, d2, _, _ = derivatives(code, p0, p1, y, m)
    return d1, d2, 0.0, 0.0


@compiled
def ep_site(
    code: int, p0: float, p1: float, alpha: float, y: float, w: float, m: float, v: float
) -> tuple[float, float]:
    """Power EP, bayes-newton (22), looking at the cavity N(m, v): J at m, H."""
    if code == GAUSSIAN:
        return w * (y - m) / (p0 * p0), -w / (p0 * p0)
    if code == PROBIT and alpha * w == 1.0 and (y in (0.0, 1.0)):
        sign = 1.0 if y > 0.5 else -1.0
        scale = math.sqrt(1.0 + v)
        rho, delta = inverse_mills(sign * m / scale)
        gradient = sign * rho / scale
        hessian = -rho * delta / (1.0 + v)
        shrink = 1.0 / (1.0 + v * hessian)
        return shrink * gradient / alpha, shrink * hessian / alpha
    _, gradient, hessian, moved, variance = tilted_moments(code, p0, p1, y, alpha * w, m, v)
    if abs(v * hessian) < 0.5:
        shrink = 1.0 / (1.0 + v * hessian)
    else:
        shrink = v / variance  # the same number; 1 + v G would cancel
        hessian = (variance / v - 1.0) / v
        gradient = moved / v
    return shrink * gradient / alpha, shrink * hessian / alpha


@compiled
def rule_site(
    code: int,
    p0: float,
    p1: float,
    rule: int,
    alpha: float,
    y: float,
    w: float,
    m: float,
    v: float,
    m0: float,
    v0: float,
) -> tuple[float, float]:
    """(J at m, H) when the belief before is N(m0, v0) and the rule looks at N(m, v).

    Only power EP needs the belief before: its cavity is what is left of N(m, v) when the fraction alpha of
    the site (= N(m, v)/N(m0, v0)) is taken out.
    """
    if rule == EP:
        precision = (1.0 - alpha) / v + alpha / v0
        cavity_variance = 1.0 / precision
        cavity_mean = cavity_variance * ((1.0 - alpha) * m / v + alpha * m0 / v0)
        j, h = ep_site(code, p0, p1, alpha, y, w, cavity_mean, cavity_variance)
        return j + h * (m - cavity_mean), h
    if rule == VI:
        j, h, _, _ = expected_derivatives(code, p0, p1, y, m, v)
    elif rule == NEWTON:
        j, h, _, _ = derivatives(code, p0, p1, y, m)
    elif rule == TAYLOR:
        h = -fisher(code, p0, p1, m)
        if code == STUDENT_T:
            j = -h * (y - m)
        else:
            j, _, _, _ = derivatives(code, p0, p1, y, m)
    elif rule == PL:
        j, h = _linearised(code, p0, p1, y, m, v)
    else:
        j, h, _, _ = bounded_site(code, p0, p1, y, m, v)
    return w * j, w * h
