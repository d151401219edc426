"""Log probability of a class between two borders, and its derivatives, for likelihoods of ordered classes.

Class k of f lies between ``upper = (c_k - f)/scale`` and ``lower = (c_{k-1} - f)/scale``, one of which may be infinite.
Derivatives are in f, with a scale of 1.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import part
from gaussfold.engine.scalar.special import LOG_SQRT_2PI, log_normal_cdf, sigmoid_sides, softplus


@part
def borders_of(borders: tuple[float, ...], count: int, scale: float, y: float, f: float) -> tuple[float, float]:
    """The borders above and below class y, as seen from f."""
    k = int(y)
    upper = (borders[k] - f) / scale if k < count else math.inf
    lower = (borders[k - 1] - f) / scale if k > 0 else -math.inf
    return upper, lower


@part
def logit_log_between(upper: float, lower: float) -> float:
    """``log(σ(u) - σ(l)) = log σ(u) + log σ(-l) + log(1 - e^{l-u})``."""
    value = 0.0
    if upper < math.inf:
        value -= softplus(-upper)
    if lower > -math.inf:
        value -= softplus(lower)
    if upper < math.inf and lower > -math.inf:
        value += math.log(-math.expm1(lower - upper))
    return value


@part
def logit_between_derivatives(upper: float, lower: float) -> tuple[float, float, float, float]:
    """Of the two logarithms; the third term does not depend on f."""
    d1 = 0.0
    d2 = 0.0
    d3 = 0.0
    d4 = 0.0
    if upper < math.inf:
        s, rest, d = sigmoid_sides(upper)
        d1 -= rest
        d2 -= d
        d3 += d * (1.0 - 2.0 * s)
        d4 -= d * (1.0 - 6.0 * d)
    if lower > -math.inf:
        s, _, d = sigmoid_sides(lower)
        d1 += s
        d2 -= d
        d3 += d * (1.0 - 2.0 * s)
        d4 -= d * (1.0 - 6.0 * d)
    return d1, d2, d3, d4


@part
def probit_log_between(upper: float, lower: float) -> float:
    """``log(Φ(u) - Φ(l))``, in the left tail, where log Φ keeps its digits."""
    if upper + lower > 0.0:
        upper, lower = -lower, -upper
    top = log_normal_cdf(upper)
    if lower == -math.inf:
        return top
    return top + math.log(-math.expm1(log_normal_cdf(lower) - top))


@part
def probit_between_derivatives(upper: float, lower: float) -> tuple[float, float, float, float]:
    """By P⁽ⁿ⁾/P = He_{n-1}(l) φ(l)/P - He_{n-1}(u) φ(u)/P with Hermite's polynomials."""
    log_p = probit_log_between(upper, lower)
    p1 = 0.0
    p2 = 0.0
    p3 = 0.0
    p4 = 0.0
    if upper < math.inf:
        share = math.exp(-0.5 * upper * upper - LOG_SQRT_2PI - log_p)
        u2 = upper * upper
        p1 -= share
        p2 -= upper * share
        p3 -= (u2 - 1.0) * share
        p4 -= (u2 - 3.0) * upper * share
    if lower > -math.inf:
        share = math.exp(-0.5 * lower * lower - LOG_SQRT_2PI - log_p)
        l2 = lower * lower
        p1 += share
        p2 += lower * share
        p3 += (l2 - 1.0) * share
        p4 += (l2 - 3.0) * lower * share
    q = p1 * p1
    return (
        p1,
        p2 - q,
        p3 - 3.0 * p1 * p2 + 2.0 * p1 * q,
        p4 - 4.0 * p1 * p3 - 3.0 * p2 * p2 + 12.0 * q * p2 - 6.0 * q * q,
    )
