"""Expectations of the logistic function under a Gaussian, to rounding, for any mean and variance.

With p = E σ(f), D = E σ'(f), f ~ N(m, v), and the two further derivatives of D with respect to m
that Newton's method on (m, v) needs (Price: ∂/∂v = ½ ∂²/∂m²).

- std < 4: trapezoidal rule in z = (f-m)/√v. The integrand is analytic in a strip of width π/√v, so
  the error falls like exp(-2π²/(h√v)); e^-f and e^{-z²/2} run along the grid by multiplication.
- std ≥ 4: σ' is itself a density, hence E σ(f) = E_l Φ((m-l)/√v) with l logistic. Gauss quadrature for
  the logistic weight has the recurrence β_n = π² n⁴/(4n²-1); 40 nodes give 14 digits from std = 4 on.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import part
from gaussfold.engine.scalar.special import SQRT2, SQRT_2PI, normal_cdf, normal_pdf, sigmoid, sigmoid_slope

WIDE = 4.0
REACH = 8.6
PROBIT_SCALE = 8.0 / math.pi
"""β² of rvga (58): σ(f) ≈ Φ(f/β)."""


def _logistic_rule(order: int) -> tuple[np.ndarray, np.ndarray]:
    k = np.arange(1, order)
    nodes, vectors = np.linalg.eigh(np.diag(np.pi * k**2 / np.sqrt(4.0 * k**2 - 1.0), -1))
    weights = vectors[0] ** 2
    keep = weights > 1e-18
    return np.ascontiguousarray(nodes[keep]), np.ascontiguousarray(weights[keep] / weights[keep].sum())


NODES, WEIGHTS = _logistic_rule(40)


@part
def logistic_moments(m: float, v: float) -> tuple[float, float, float, float, float]:
    """(E σ(f), E σ(-f), E σ'(f), E σ''(f), E σ'''(f)), to rounding in absolute terms.

    Relatively they hold down to about 1e-9; what divides two smaller ones takes ``quadrature.tilted_moments``.
    """
    flip = m < 0.0
    mu = -m if flip else m  # work on the side where e^-f cannot overflow
    s = math.sqrt(v)
    upper = 0.0  # E σ(-f), the small one
    d1 = 0.0
    d2 = 0.0
    d3 = 0.0
    if s < WIDE:
        h = min(0.5, 0.52 / s) if s > 0.0 else 0.5
        n = math.ceil(REACH / h)
        z = -n * h
        e = math.exp(-(mu + s * z))
        e_ratio = math.exp(-s * h)
        w = math.exp(-0.5 * z * z) * h / SQRT_2PI
        w_ratio = math.exp(-h * z - 0.5 * h * h)
        w_curve = math.exp(-h * h)
        total = 0.0
        for _ in range(2 * n + 1):
            inv = 1.0 / (1.0 + e)
            small = e * inv
            slope = small * inv
            total += w
            upper += w * small
            d1 += w * slope
            d2 += w * slope * (small - inv)
            d3 += w * slope * (1.0 - 6.0 * slope)
            e *= e_ratio
            w *= w_ratio
            w_ratio *= w_curve
        upper /= total
        d1 /= total
        d2 /= total
        d3 /= total
    else:
        for i in range(NODES.size):
            z = (mu - NODES[i]) / s
            upper += WEIGHTS[i] * normal_cdf(-z)
            g = WEIGHTS[i] * normal_pdf(z) / s
            d1 += g
            d2 -= g * z / s
            d3 += g * (z * z - 1.0) / v
    if flip:
        return upper, 1.0 - upper, d1, -d2, d3
    return 1.0 - upper, upper, d1, d2, d3


@part
def probit_moments(m: float, v: float) -> tuple[float, float, float, float, float]:
    """The same five numbers by rvga (58): σ(km), kσ'(km), k = 1/√(1+πv/8)."""
    k = 1.0 / math.sqrt(1.0 + v / PROBIT_SCALE)
    a = k * m
    p = sigmoid(a)
    slope = sigmoid_slope(a)
    return p, sigmoid(-a), k * slope, k * k * slope * (1.0 - 2.0 * p), k**3 * slope * (1.0 - 6.0 * slope)


@part
def logistic_mean_variance(m: float, v: float) -> float:
    """Var σ(f), from deviations σ(f) - σ(m), which do not cancel for small v as E σ² - (E σ)² does."""
    s = math.sqrt(v)
    if s >= WIDE:
        p, q, d, _, _ = logistic_moments(m, v)
        return max(p * q - d, 0.0)
    h = min(0.5, 0.52 / s) if s > 0.0 else 0.5
    n = math.ceil(REACH / h)
    below = sigmoid(-m)
    mass = 0.0
    first = 0.0
    second = 0.0
    for i in range(-n, n + 1):
        away = s * i * h
        w = math.exp(-0.5 * (i * h) ** 2)
        change = -sigmoid(m + away) * below * math.expm1(-away)
        mass += w
        first += w * change
        second += w * change * change
    first /= mass
    return max(second / mass - first * first, 0.0)


@part
def expected_softplus(m: float, v: float) -> float:
    """E log(1+e^f)."""
    s = math.sqrt(v)
    mu = abs(m)
    total = 0.0
    if s < WIDE:
        h = min(0.5, 0.52 / s) if s > 0.0 else 0.5
        n = math.ceil(REACH / h)
        mass = 0.0
        for i in range(-n, n + 1):
            w = math.exp(-0.5 * (i * h) ** 2)
            mass += w
            total += w * math.log1p(math.exp(-(mu + s * i * h)))
        total /= mass
    else:
        for i in range(NODES.size):
            # softplus(-f) = E_l (-f-l)_+ for a logistic l, and E (-f-l)_+ is Gaussian
            z = (-mu - NODES[i]) / s
            total += WEIGHTS[i] * s * (z * 0.5 * math.erfc(-z / SQRT2) + normal_pdf(z))
    return total + (m if m > 0.0 else 0.0)


@part
def probit_scaling_root(c: float, v0: float) -> float:
    """Q = 1/k with v = v0/(1 + c k v0): the inner equation (70) of rvga for fixed σ'(a), a cubic in q.

    β²(q²-1)(q+C) = v0 q with C = c v0. Convex for q > 0, so Newton from an upper bound only descends.
    """
    big = c * v0
    q = math.sqrt(1.0 + v0 / PROBIT_SCALE)
    if big > 0.0:
        half = 0.5 * v0 / (PROBIT_SCALE * big)
        q = min(q, half + math.sqrt(half * half + 1.0))
    for _ in range(40):
        value = PROBIT_SCALE * (q * q - 1.0) * (q + big) - v0 * q
        slope = PROBIT_SCALE * (2.0 * q * (q + big) + q * q - 1.0) - v0
        step = value / slope
        q -= step
        if step <= 1e-15 * q:
            break
    return max(q, 1.0)


@part
def _root_bracket(a_plus: float, b: float, m0: float, v0: float, shrink: bool) -> tuple[float, float, float]:
    """Where :func:`logistic_root` starts, and the two ends between which the root lies: rvga (71)-(72)."""
    q_max = math.sqrt(1.0 + v0 / PROBIT_SCALE) if shrink else 1.0
    low = m0 + v0 * (a_plus - b)
    high = m0 + v0 * a_plus
    low = low / q_max if low > 0.0 else low
    high = high if high > 0.0 else high / q_max
    low -= 1e-9 * (1.0 + abs(low))  # the root may sit on (71)'s bounds to rounding: leave Newton room
    high += 1e-9 * (1.0 + abs(high))
    # Where the sigmoid saturates, F is a line plus v0 b e^-|a|: start where the two balance.
    a = m0 / q_max
    pull_up = v0 * a_plus
    pull_down = v0 * (b - a_plus)
    if pull_up > 2.0 and a < math.log(pull_up):
        a = max(a, math.log(pull_up / (1.0 + math.log(pull_up) + max(-m0, 0.0))))
    if pull_down > 2.0 and a > -math.log(pull_down):
        a = min(a, -math.log(pull_down / (1.0 + math.log(pull_down) + max(m0, 0.0))))
    return min(max(a, low), high), low, high


@part
def logistic_root(a_plus: float, b: float, m0: float, v0: float, shrink: bool) -> tuple[float, float, int]:
    """The implicit mean and variance for the gradient ``a_plus - b σ(a)``: rvga (69)-(70).

    One scalar, a = k m. F(a) = a/k(v(a)) - v0 (A - bσ(a)) - m0 increases strictly (docs/architecture.md,
    "Errata"), so a bracketed Newton iteration is safe. ``shrink=False`` sets k = 1: the mode instead of (69)-(70).
    Returns (m, v, iterations).
    """
    a, low, high = _root_bracket(a_plus, b, m0, v0, shrink)
    q = 1.0
    n = 0
    while n < 100:
        n += 1
        s_up = sigmoid(a)
        s_down = sigmoid(-a)
        slope = sigmoid_slope(a)
        gradient = a_plus * s_down - (b - a_plus) * s_up
        dq = 0.0
        if shrink:
            q = probit_scaling_root(b * slope, v0)
            big = v0 * b * slope
            h_q = PROBIT_SCALE * (2.0 * q * (q + big) + q * q - 1.0) - v0
            dq = -PROBIT_SCALE * (q * q - 1.0) * v0 * b * slope * (s_down - s_up) / h_q
        residual = a * q - m0 - v0 * gradient
        if residual > 0.0:
            high = a
        else:
            low = a
        derivative = q + a * dq + v0 * b * slope
        target = a - residual / derivative
        noise = 2.3e-16 * (abs(a * q) + abs(m0) + v0 * abs(gradient))
        done = abs(residual) <= noise or abs(target - a) <= 1e-15 * abs(a)
        # A step out of the bracket is bisected, unless it is the last one, at the scale of rounding.
        a = target if done or low <= target <= high else 0.5 * (low + high)
        if done:
            break
    slope = sigmoid_slope(a)
    if shrink:
        q = probit_scaling_root(b * slope, v0)
    return a * q, v0 / (1.0 + v0 * b * slope / q), n
