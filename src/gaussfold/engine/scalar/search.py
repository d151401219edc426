"""Bracketing searches for the implicit update: slow and sure, where Newton's method does not settle.

For a fixed mean the variance has one equation, 1/v = 1/v0 - H(m, v); with it profiled out, the mean has one,
m = m0 + v0 J(m, v(m)). Where the likelihood is not log-concave there may be several roots: the one with the lowest
objective is the answer.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import STUDENT_T, log_density
from gaussfold.engine.scalar.evaluate import NEWTON, expected_log_density, rule_site


@compiled
def _trial(n: int, low: float, high: float, f_low: float, f_high: float) -> float:
    """Where to look next between low and high: the chord's root; every third time, or outside, the middle.

    The chord converges fast and the middle cannot be stalled by a flat end.
    """
    x = 0.5 * (low + high) if n % 3 == 2 else (low * f_high - high * f_low) / (f_high - f_low)
    return x if low < x < high else 0.5 * (low + high)


@compiled
def _narrowed(
    x: float, f: float, low: float, high: float, f_low: float, f_high: float, side: int
) -> tuple[float, float, float, float, int]:
    """The bracket with f(x) known; an end that stays twice has its value halved (the Illinois rule)."""
    if f > 0.0:
        return low, x, 0.5 * f_low if side == 1 else f_low, f, 1
    return x, high, f, 0.5 * f_high if side == -1 else f_high, -1


@compiled
def profile_variance(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float, m: float
) -> float:
    """For a fixed mean the v with 1/v = 1/v0 - H(m, v), an upward crossing: Illinois steps on log v."""
    x_low = math.log(v0) - 50.0
    x_high = math.log(v0)
    f_low = -1.0
    f_high = 1.0
    for _ in range(60):  # a likelihood that is not log-concave may widen the marginal
        v = math.exp(x_high)
        _, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
        f_high = v * (1.0 / v0 - h) - 1.0
        if f_high >= 0.0:
            break
        x_high += 1.0
    f_high = min(f_high, 1e3)
    side = 0
    for n in range(120):
        x = _trial(n, x_low, x_high, f_low, f_high)
        v = math.exp(x)
        _, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
        f = v * (1.0 / v0 - h) - 1.0
        x_low, x_high, f_low, f_high, side = _narrowed(x, f, x_low, x_high, f_low, f_high, side)
        if x_high - x_low <= 1e-15 or abs(f) <= 1e-15:
            break
    return math.exp(x_low) if abs(f_low) < abs(f_high) else math.exp(x_high)


@compiled
def _residual(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float, m: float
) -> float:
    v = profile_variance(code, p0, p1, rule, alpha, y, w, m0, v0, m)
    j, _ = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
    return m - m0 - v0 * j


@compiled
def bracketed(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float,
    m0: float, v0: float, low: float, high: float,
) -> float:  # fmt: skip
    """The mean at which the profiled residual crosses zero upwards between low and high (Illinois steps)."""
    f_low = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, low)
    f_high = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, high)
    if f_low >= 0.0:
        return low
    if f_high <= 0.0:
        return high
    side = 0
    for n in range(200):
        x = _trial(n, low, high, f_low, f_high)
        f = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, x)
        low, high, f_low, f_high, side = _narrowed(x, f, low, high, f_low, f_high, side)
        if high - low <= 4e-16 * (abs(low) + abs(high)):
            break
    return 0.5 * (low + high)


@compiled
def _objective(
    code: int, p0: float, p1: float, rule: int, y: float, w: float, m0: float, v0: float, m: float, v: float
) -> float:
    """What the posterior form minimises: KL to prior × likelihood (vi), or its value at the mode (newton)."""
    if rule == NEWTON:
        return 0.5 * (m - m0) * (m - m0) / v0 - w * log_density(code, p0, p1, y, m)
    fit = expected_log_density(code, p0, p1, y, m, v)
    return 0.5 * (v / v0 + (m - m0) * (m - m0) / v0 - math.log(v / v0)) - w * fit


@compiled
def scan(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float
) -> tuple[float, float]:
    """All upward crossings between m0 and y, the best of them by objective: for Student-t's two lumps.

    The gradient always points from m towards y, so every stationary point lies between m0 and y. Marks are
    dense around y on the likelihood's own length and around m0.
    """
    length = math.sqrt(p0) * p1
    gap = y - m0
    best_m = m0
    best = math.inf
    previous = m0
    f_previous = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, m0) * (1.0 if gap > 0.0 else -1.0)
    for k in range(1, 16):
        if k <= 6:
            mark = m0 + gap * (k / 6.0) * 0.5
        else:
            distance = min(length * 2.0 ** (12 - k), 0.5 * abs(gap)) if k < 15 else 0.0
            mark = y - math.copysign(distance, gap)
        if (mark - previous) * gap <= 0.0:
            continue
        f = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, mark) * (1.0 if gap > 0.0 else -1.0)
        if f_previous < 0.0 <= f:
            m = bracketed(code, p0, p1, rule, alpha, y, w, m0, v0, min(previous, mark), max(previous, mark))
            v = profile_variance(code, p0, p1, rule, alpha, y, w, m0, v0, m)
            value = _objective(code, p0, p1, rule, y, w, m0, v0, m, v)
            if value < best:
                best = value
                best_m = m
        previous = mark
        f_previous = f
    return best_m, profile_variance(code, p0, p1, rule, alpha, y, w, m0, v0, best_m)


@compiled
def bracket(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float
) -> tuple[float, float]:
    """Two means around the root: m0 on one side, and on the other y (Student-t) or doubling steps from m0."""
    if code == STUDENT_T:
        return min(m0, y), max(m0, y)
    f = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, m0)
    step = math.sqrt(v0)
    other = m0
    for _ in range(200):
        other = m0 - step if f > 0.0 else m0 + step
        g = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, other)
        if (f > 0.0) != (g > 0.0):
            break
        step *= 2.0
    return min(m0, other), max(m0, other)
