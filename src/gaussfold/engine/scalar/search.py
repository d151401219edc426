"""Bracketing searches for the implicit update: slow and sure, where Newton's method does not settle.

For a fixed mean the variance has one equation, 1/v = 1/v0 - H(m, v); with it profiled out, the mean has one,
m = m0 + v0 J(m, v(m)). Where the likelihood is not log-concave there may be several roots: the one with the lowest
objective is the answer.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import part
from gaussfold.engine.dispatch import by_family
from gaussfold.engine.families import Family
from gaussfold.engine.rules import RuleRecord, objective, rule_site

EXACT = 4e-16
"""The tolerance at rounding; a search whose end is polished may have a larger one."""


@part
def _trial(n: int, low: float, high: float, f_low: float, f_high: float) -> float:
    """Where to look next between low and high: the chord's root; every third time, or outside, the middle.

    The chord converges fast and the middle cannot be stalled by a flat end.
    """
    x = 0.5 * (low + high) if n % 3 == 2 else (low * f_high - high * f_low) / (f_high - f_low)
    return x if low < x < high else 0.5 * (low + high)


@part
def _narrowed(
    x: float, f: float, low: float, high: float, f_low: float, f_high: float, side: int
) -> tuple[float, float, float, float, int]:
    """The bracket with f(x) known; an end that stays twice has its value halved (the Illinois rule)."""
    if f > 0.0:
        return low, x, 0.5 * f_low if side == 1 else f_low, f, 1
    return x, high, f, 0.5 * f_high if side == -1 else f_high, -1


@part
def profile_variance(
    family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float, m: float, tolerance: float
) -> float:
    """For a fixed mean the v with 1/v = 1/v0 - H(m, v), an upward crossing: Illinois steps on log v."""
    x_low = math.log(v0) - 50.0
    x_high = math.log(v0)
    f_low = -1.0
    f_high = 1.0
    for _ in range(60):  # a likelihood that is not log-concave may widen the marginal
        v = math.exp(x_high)
        _, h = rule_site(family, rule, y, w, m, v, m0, v0)
        f_high = v * (1.0 / v0 - h) - 1.0
        if f_high >= 0.0:
            break
        x_high += 1.0
    f_high = min(f_high, 1e3)
    side = 0
    for n in range(120):
        x = _trial(n, x_low, x_high, f_low, f_high)
        v = math.exp(x)
        _, h = rule_site(family, rule, y, w, m, v, m0, v0)
        f = v * (1.0 / v0 - h) - 1.0
        x_low, x_high, f_low, f_high, side = _narrowed(x, f, x_low, x_high, f_low, f_high, side)
        if x_high - x_low <= tolerance or abs(f) <= tolerance:
            break
    return math.exp(x_low) if abs(f_low) < abs(f_high) else math.exp(x_high)


@part
def residual(
    family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float, m: float, tolerance: float
) -> float:
    """How far m is from where the site made there, with its variance profiled out, leads."""
    v = profile_variance(family, rule, y, w, m0, v0, m, tolerance)
    j, _ = rule_site(family, rule, y, w, m, v, m0, v0)
    return m - m0 - v0 * j


@part
def bracketed(
    family: Family, rule: RuleRecord, y: float, w: float,
    m0: float, v0: float, low: float, high: float, tolerance: float,
) -> float:  # fmt: skip
    """The mean at which the profiled residual crosses zero upwards between low and high (Illinois steps)."""
    f_low = residual(family, rule, y, w, m0, v0, low, tolerance)
    f_high = residual(family, rule, y, w, m0, v0, high, tolerance)
    if f_low >= 0.0:
        return low
    if f_high <= 0.0:
        return high
    side = 0
    for n in range(200):
        x = _trial(n, low, high, f_low, f_high)
        f = residual(family, rule, y, w, m0, v0, x, tolerance)
        low, high, f_low, f_high, side = _narrowed(x, f, low, high, f_low, f_high, side)
        if high - low <= tolerance * (abs(low) + abs(high)):
            break
    return 0.5 * (low + high)


@part
def scan(
    family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float, length: float, tolerance: float
) -> tuple[float, float]:
    """All upward crossings between m0 and y, the best of them by objective: for a likelihood with its lump at y.

    The gradient points from m towards y everywhere, so every stationary point lies between m0 and y. Marks are
    dense around y on the likelihood's own length and around m0.
    """
    gap = y - m0
    best_m = m0
    best = math.inf
    previous = m0
    f_previous = residual(family, rule, y, w, m0, v0, m0, tolerance) * (1.0 if gap > 0.0 else -1.0)
    for k in range(1, 16):
        if k <= 6:
            mark = m0 + gap * (k / 6.0) * 0.5
        else:
            distance = min(length * 2.0 ** (12 - k), 0.5 * abs(gap)) if k < 15 else 0.0
            mark = y - math.copysign(distance, gap)
        if (mark - previous) * gap <= 0.0:
            continue
        f = residual(family, rule, y, w, m0, v0, mark, tolerance) * (1.0 if gap > 0.0 else -1.0)
        if f_previous < 0.0 <= f:
            m = bracketed(family, rule, y, w, m0, v0, min(previous, mark), max(previous, mark), tolerance)
            v = profile_variance(family, rule, y, w, m0, v0, m, tolerance)
            value = objective(family, rule, y, w, m0, v0, m, v)
            if value < best:
                best = value
                best_m = m
        previous = mark
        f_previous = f
    return best_m, profile_variance(family, rule, y, w, m0, v0, best_m, tolerance)


@by_family
def bracket(family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float) -> tuple[float, float]:
    """Two means around the root: m0 on one side, and on the other doubling steps from m0."""
    f = residual(family, rule, y, w, m0, v0, m0, EXACT)
    step = math.sqrt(v0)
    other = m0
    for _ in range(200):
        other = m0 - step if f > 0.0 else m0 + step
        g = residual(family, rule, y, w, m0, v0, other, EXACT)
        if (f > 0.0) != (g > 0.0):
            break
        step *= 2.0
    return min(m0, other), max(m0, other)
