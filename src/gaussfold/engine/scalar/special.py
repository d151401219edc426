"""Scalar special functions without cancellation: logistic, normal tail, Wright omega, gamma's relatives."""

from __future__ import annotations

import math

from gaussfold.engine.compiled import part

SQRT2 = math.sqrt(2.0)
SQRT_2PI = math.sqrt(2.0 * math.pi)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
HUGE = 709.0
"""Exponents are clipped here: e^709 is still finite, and any solver step away from it is a large one."""


@part
def bounded_exp(f: float) -> float:
    """e^f, finite."""
    return math.exp(min(f, HUGE))


@part
def expm1_minus(u: float) -> float:
    """e^u - 1 - u, without cancellation for small u."""
    if abs(u) > 0.3:
        return math.expm1(u) - u
    total = 1.0
    for k in range(13, 2, -1):
        total = 1.0 + u / k * total
    return 0.5 * u * u * total


@part
def sigmoid(f: float) -> float:
    """1/(1+e^-f), to full relative precision in both tails."""
    if f >= 0.0:
        return 1.0 / (1.0 + math.exp(-f))
    e = math.exp(f)
    return e / (1.0 + e)


@part
def sigmoid_slope(f: float) -> float:
    """σ'(f) as e/(1+e)², which keeps all digits where σ(1-σ) would lose them."""
    e = math.exp(-abs(f))
    return e / ((1.0 + e) * (1.0 + e))


@part
def sigmoid_sides(f: float) -> tuple[float, float, float]:
    """σ(f), σ(-f) and σ'(f), for one exponential."""
    e = math.exp(-abs(f))
    large = 1.0 / (1.0 + e)
    small = e * large
    if f >= 0.0:
        return large, small, large * small
    return small, large, large * small


@part
def softplus(f: float) -> float:
    """log(1+e^f)."""
    return max(f, 0.0) + math.log1p(math.exp(-abs(f)))


@part
def normal_pdf(z: float) -> float:
    """φ(z)."""
    return math.exp(-0.5 * z * z) / SQRT_2PI


@part
def normal_cdf(z: float) -> float:
    """Φ(z), relatively accurate in the lower tail."""
    return 0.5 * math.erfc(-z / SQRT2)


@part
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


@part
def log_normal_cdf(f: float) -> float:
    """Log Φ(f)."""
    if f > -5.0:
        return math.log1p(-0.5 * math.erfc(f / SQRT2)) if f > 0.0 else math.log(normal_cdf(f))
    return -0.5 * f * f - LOG_SQRT_2PI - math.log(inverse_mills(f)[0])


@part
def soft_log_normal_cdf(y: float, f: float) -> float:
    """``y log Φ(f) + (1 - y) log Φ(-f)``, where a side of no weight is left out: it may be infinite."""
    total = 0.0
    if y > 0.0:
        total += y * log_normal_cdf(f)
    if y < 1.0:
        total += (1.0 - y) * log_normal_cdf(-f)
    return total


@part
def log_cdf_derivatives(f: float) -> tuple[float, float, float, float]:
    """Derivatives of log Φ(f): ρ, -ρδ, ... with δ = ρ + f kept free of cancellation."""
    rho, delta = inverse_mills(f)
    d1 = -rho * delta
    d2 = -d1 * delta - rho * (1.0 + d1)
    # ρ''' by differentiating ρ'' = -ρ'δ - ρ(1+ρ') once more
    d3 = -d2 * delta - 2.0 * d1 * (1.0 + d1) - rho * d2
    return rho, d1, d2, d3


@part
def normal_cdf_variance(m: float, v: float) -> float:
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


@part
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


@part
def digamma_trigamma(x: float) -> tuple[float, float]:
    """ψ(x) and ψ'(x) for x > 0: up by the recurrence to 10, from there the asymptotic series."""
    psi = 0.0
    slope = 0.0
    while x < 10.0:
        psi -= 1.0 / x
        slope += 1.0 / (x * x)
        x += 1.0
    t = 1.0 / (x * x)
    psi_tail = 1 / 12 - t * (1 / 120 - t * (1 / 252 - t * (1 / 240 - t * (1 / 132 - t * 691 / 32760))))
    slope_tail = 1 / 6 - t * (1 / 30 - t * (1 / 42 - t * (1 / 30 - t * (5 / 66 - t * 691 / 2730))))
    psi += math.log(x) - 0.5 / x - t * psi_tail
    slope += (1.0 + 0.5 / x + t * slope_tail) / x
    return psi, slope


@part
def scaled_polygammas(x: float) -> tuple[float, float, float, float]:
    """X ψ(x), x² times its slope, and so on to x⁴ and the third derivative, for x ≥ 0: finite at 0."""
    p0 = 0.0
    p1 = 0.0
    p2 = 0.0
    p3 = 0.0
    z = x
    if x < 10.0:
        p0 = -1.0
        p1 = 1.0
        p2 = -2.0
        p3 = 6.0
        for k in range(1, 10):  # all of them, whatever x: no term waits for another
            q = x / (x + k)
            q2 = q * q
            p0 -= q
            p1 += q2
            p2 -= 2.0 * q2 * q
            p3 += 6.0 * q2 * q2
        z = x + 10.0
    r = 1.0 / z
    t = r * r
    q = x * r
    s0 = 1 / 12 - t * (1 / 120 - t * (1 / 252 - t * (1 / 240 - t * (1 / 132 - t * 691 / 32760))))
    s1 = 1 / 6 - t * (1 / 30 - t * (1 / 42 - t * (1 / 30 - t * (5 / 66 - t * 691 / 2730))))
    s2 = 1 / 2 - t * (1 / 6 - t * (1 / 6 - t * (3 / 10 - t * (5 / 6 - t * 691 / 210))))
    s3 = 2.0 - t * (1.0 - t * (4 / 3 - t * (3.0 - t * (10.0 - t * 691 / 15))))
    p0 += x * (math.log(z) - 0.5 * r - t * s0)
    p1 += x * q * (1.0 + 0.5 * r + t * s1)
    p2 -= x * q * q * (1.0 + r + t * s2)
    p3 += x * q * q * q * (2.0 + 3.0 * r + t * s3)
    return p0, p1, p2, p3


@part
def inverse_trigamma(s: float) -> float:
    """R with ψ'(r) = s: Newton on 1/ψ', which is convex and nearly straight, so it only ascends."""
    r = 0.5 + 1.0 / s
    if s > 1e7:
        return 1.0 / math.sqrt(s)
    for _ in range(50):
        _, slope = digamma_trigamma(r)
        h = 1e-4 * r
        _, above = digamma_trigamma(r + h)
        _, below = digamma_trigamma(r - h)
        step = slope * (1.0 - slope / s) / ((above - below) / (2.0 * h))
        r += step
        if abs(step) <= 1e-13 * r:
            break
    return r


@part
def log_rising(r: float, y: float) -> float:
    """Log Γ(y+r)/Γ(r); for large r by Stirling's series, in which the leading terms cancel on paper."""
    if r < 200.0:
        return math.lgamma(y + r) - math.lgamma(r)
    tail = 1.0 / (12.0 * (r + y)) - 1.0 / (12.0 * r) - 1.0 / (360.0 * (r + y) ** 3) + 1.0 / (360.0 * r**3)
    return y * math.log(r) + (r + y - 0.5) * math.log1p(y / r) - y + tail


@part
def lognormal_moments(m: float, v: float) -> tuple[float, float]:
    """Mean r = e^{m + v/2} and variance r² (e^v - 1) of e^f, f ~ N(m, v), both finite."""
    mean = bounded_exp(m + 0.5 * v)
    variance = bounded_exp(2.0 * m + 2.0 * v + math.log(-math.expm1(-v))) if v > 0.0 else 0.0
    return mean, variance


@part
def count_regression(y: float, m: float, v: float, excess: float) -> tuple[float, float]:
    """Gradient and curvature of a count's linear regression on f, bayes-newton (29)-(31), divided by the mean r.

    The residual variance is r + r² excess.
    """
    if m + 0.5 * v < 0.0:
        r = math.exp(m + 0.5 * v)
        return (y - r) / (1.0 + r * excess), -r / (1.0 + r * excess)
    fall = math.exp(-m - 0.5 * v)  # 1/r, where r may overflow
    return (y * fall - 1.0) / (fall + excess), -1.0 / (fall + excess)


@part
def binary_regression(y: float, v: float, up: float, down: float) -> tuple[float, float]:
    """Gradient and curvature of a binary label's linear regression on f, bayes-newton (29)-(31), divided by p(1-p).

    ``up`` and ``down`` are E h'/p and E h'/(1-p).
    """
    residual = 1.0 - v * up * down
    return (y * up - (1.0 - y) * down) / residual, -up * down / residual
