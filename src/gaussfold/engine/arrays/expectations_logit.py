"""The logistic expectations of many rows at once, eight in lanes.

The same trapezoidal rule in z = (f-m)/√v as ``scalar.logistic`` (its scalar twin). Eight rows take the finest step that
any of them needs; rows with std ≥ 4 go to the scalar function. ``exact_functions`` says where these are good enough and
goes by ``over_arrays`` elsewhere.

The nodes ±z go together, which halves divisions and logarithms. With E = e^-|m| and e = 2E cosh(√v z), so that e is the
sum and E² the product of e^-f at the two, and D = 1 + e + E²:

    ``Σ σ(-f) = (e + 2E²)/D``,   ``Σ σ'(f) = (e(1 + E²) + 4E²)/D²``,   ``Σ log(1 + e^-f) = log D``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gaussfold.engine.arrays.over_arrays import Column, RowFunctions, row_functions
from gaussfold.engine.compiled import compiled_fused, compiled_inline
from gaussfold.engine.families import Family
from gaussfold.engine.scalar.exponential import exp_nonpositive
from gaussfold.engine.scalar.logistic import REACH, WIDE, expected_softplus, logistic_moments
from gaussfold.engine.simd.lane_memory import load8, store
from gaussfold.engine.simd.lanes import choose, lanes8, magnitude, root, split_exponent

WIDTH = 8
MEAN, VARIANCE, FIRST, SECOND = (WIDTH * i for i in range(4))

# log f = 2 artanh(t), t = (f-1)/(f+1), √½ ≤ f < √2: |t| ≤ 0.172, ten terms to 1e-17
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
A1, A2, A3, A4, A5, A6, A7, A8, A9 = (1.0 / (2 * k + 1) for k in range(1, 10))


@compiled_inline
def log1p_positive(e: Any) -> Any:
    """log(1 + e) for 0 ≤ e < 1e300, to rounding in relative terms; the plain equivalent is ``math.log1p``."""
    x = 1.0 + e
    lost = (e - (x - 1.0)) / x
    f, k = split_exponent(x)
    t = (f - 1.0) / (f + 1.0)
    s = t * t
    s2 = s * s
    s4 = s2 * s2
    series = (A1 + A2 * s) + (A3 + A4 * s) * s2 + ((A5 + A6 * s) + (A7 + A8 * s) * s2) * s4 + A9 * s4 * s4
    return k * LN2_HIGH + (2.0 * t + (2.0 * t * s * series + (k * LN2_LOW + lost)))


@compiled_fused
def _gather(m: np.ndarray, v: np.ndarray, low: int, scratch: np.ndarray) -> float:
    """|m| and v of eight rows, the last one repeated at the end, variances of wide rows as 0; returns the step."""
    widest = 0.0
    for i in range(WIDTH):
        j = min(low + i, m.size - 1)
        scratch[MEAN + i] = abs(m[j])
        scratch[VARIANCE + i] = v[j] if v[j] < WIDE * WIDE else 0.0
        widest = max(widest, scratch[VARIANCE + i])
    return min(0.5, 0.52 / math.sqrt(widest)) if widest > 0.0 else 0.5


@compiled_inline
def _middle(scratch: np.ndarray, h: float) -> Any:
    """What a step of h multiplies e^-f with and what it divides it by, E = e^-|m| and its square."""
    ratio = exp_nonpositive(0.0 - root(load8(scratch, VARIANCE)) * h)
    middle = exp_nonpositive(0.0 - load8(scratch, MEAN))
    return ratio, 1.0 / ratio, middle, middle * middle


@compiled_inline
def _outwards(falling: Any, rising: Any, ratio: Any, inverse: Any, w: float, fall: float, curve: float) -> Any:
    """From a pair of nodes to the next: e^-f on both sides, the weight, and what the weight falls by after that."""
    return falling * ratio, rising * inverse, fall if w == 0.5 else w * fall, fall * curve


# The three loops below, and the two of ``expectations_probit``, are one shape with different sums. What the nodes have
# in common is above; the sums stay in each loop, where they are kept in registers.


@compiled_fused
def logit_rows(y: np.ndarray, m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E l' and E l'' of the logit likelihood under N(m, v); NaN for a missing label."""
    first = np.empty(m.size)
    second = np.empty(m.size)
    scratch = np.empty(4 * WIDTH)
    for low in range(0, m.size, WIDTH):
        h = _gather(m, v, low, scratch)
        ratio, inverse, falling, square = _middle(scratch, h)
        rising = falling
        total, below, slope = 0.0, lanes8(0.0), lanes8(0.0)
        w, fall = 0.5, math.exp(-0.5 * h * h)  # half: the middle is a pair of one
        curve = fall * fall
        for _ in range(math.ceil(REACH / h) + 1):
            e = falling + rising
            inv = 1.0 / (1.0 + e + square)
            part = w * inv
            below = below + part * (e + 2.0 * square)
            slope = slope + part * inv * (e + square * (e + 4.0))
            total += 2.0 * w
            falling, rising, w, fall = _outwards(falling, rising, ratio, inverse, w, fall, curve)
        store(scratch, FIRST, below / total)
        store(scratch, SECOND, slope / total)
        for i in range(low, min(low + WIDTH, m.size)):
            small = scratch[FIRST + i - low]  # E σ(-f) where m ≥ 0, E σ(f) elsewhere: the one that is not 1 - ...
            bend = scratch[SECOND + i - low]
            if not v[i] < WIDE * WIDE:
                up, down, bend, _, _ = logistic_moments(m[i], v[i])
                small = down if m[i] >= 0.0 else up
            first[i] = (y[i] - 1.0) + small if m[i] >= 0.0 else y[i] - small
            second[i] = -bend + 0.0 * y[i]
    return first, second


@compiled_fused
def softplus_rows(m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """E log(1 + e^f) under N(m, v)."""
    value = np.empty(m.size)
    scratch = np.empty(4 * WIDTH)
    for low in range(0, m.size, WIDTH):
        h = _gather(m, v, low, scratch)
        ratio, inverse, falling, square = _middle(scratch, h)
        rising = falling
        total, sums = 0.0, lanes8(0.0)
        w, fall = 0.5, math.exp(-0.5 * h * h)
        curve = fall * fall
        for _ in range(math.ceil(REACH / h) + 1):
            sums = sums + w * log1p_positive(falling + rising + square)
            total += 2.0 * w
            falling, rising, w, fall = _outwards(falling, rising, ratio, inverse, w, fall, curve)
        store(scratch, FIRST, sums / total)
        for i in range(low, min(low + WIDTH, m.size)):
            value[i] = scratch[FIRST + i - low] + max(m[i], 0.0)
            if not v[i] < WIDE * WIDE:
                value[i] = expected_softplus(m[i], v[i])
    return value


@compiled_fused
def tilted_logit_rows(y: np.ndarray, m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log E σ(a), a = ±f as the label (0 or 1) says, and its first two derivatives in m.

    They are E σ'/E σ and E σ''/E σ - (E σ'/E σ)² (the first with the label's sign), with σ' = e/(1+e)² and
    σ'' = e(e-1)/(1+e)³, e = e^-a. For v < 4 and labels that are not rare: the nodes must reach them.
    """
    value = np.empty(m.size)
    first = np.empty(m.size)
    second = np.empty(m.size)
    scratch = np.empty(4 * WIDTH)
    for low in range(0, m.size, WIDTH):
        h = _gather(m, v, low, scratch)
        for i in range(WIDTH):
            j = min(low + i, m.size - 1)
            scratch[MEAN + i] = m[j] if y[j] == 1.0 else -m[j]
        centre = load8(scratch, MEAN)
        near = exp_nonpositive(0.0 - magnitude(centre))
        ratio = exp_nonpositive(0.0 - root(load8(scratch, VARIANCE)) * h)
        inverse = 1.0 / ratio
        falling = choose(centre >= 0.0, near, 1.0 / near)
        rising = falling
        total, sums, slope, bend = 0.0, lanes8(0.0), lanes8(0.0), lanes8(0.0)
        w, fall = 0.5, math.exp(-0.5 * h * h)
        curve = fall * fall
        for _ in range(math.ceil(REACH / h) + 1):
            a = 1.0 / (1.0 + falling)
            b = 1.0 / (1.0 + rising)
            a1 = falling * a * a
            b1 = rising * b * b
            total += 2.0 * w
            sums = sums + w * (a + b)
            slope = slope + w * (a1 + b1)
            bend = bend + w * (a1 * a * (falling - 1.0) + b1 * b * (rising - 1.0))
            falling, rising, w, fall = _outwards(falling, rising, ratio, inverse, w, fall, curve)
        store(scratch, MEAN, sums / total)
        store(scratch, FIRST, slope / sums)
        store(scratch, SECOND, bend / sums)
        for i in range(low, min(low + WIDTH, m.size)):
            pull = scratch[FIRST + i - low]
            value[i] = math.log(scratch[MEAN + i - low])
            first[i] = pull if y[i] == 1.0 else -pull
            second[i] = scratch[SECOND + i - low] - pull * pull
    return value, first, second


COMMON = -12.0
"""Log probability of a label above which cancellation and the reach of the nodes do no harm."""
FARTHEST = 20.0
RARE = 1e-9
"""A probability below this is too small for a rule that is exact in absolute terms."""


def exact_functions(family: Family) -> RowFunctions:
    """The expectations of a logistic likelihood, in lanes where they hold."""
    slow = row_functions(family)

    def log_predictive(y: Column, m: Column, v: Column) -> Column:
        likely = (m >= 0.0).astype(np.float64)
        rare = np.abs(logit_rows(likely, m, v)[0])  # E σ of the less likely label, which has all the digits
        surprise = np.abs(y - likely)  # the share of the less likely label in y: 0 or 1, or between for a soft one
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(surprise > 0.0, surprise * np.log(rare), 0.0) + (1.0 - surprise) * np.log1p(-rare)
        far = (rare < RARE) & (surprise > 0.0)
        if far.any():
            value[far] = slow.log_predictive(y[far], m[far], v[far])
        return np.asarray(value)

    def tilted(power: float, y: Column, m: Column, v: Column) -> tuple[Column, Column, Column]:
        fits = ((y == 0.0) | (y == 1.0)) & (power == 1.0) & (v < 4.0) & (np.abs(m) <= FARTHEST)
        return tilted_where_common(fits, tilted_logit_rows, slow, power, (y, m, v))

    return RowFunctions(expected_log_prob, logit_rows, log_predictive, tilted, slow.predictive)


def expected_log_prob(y: Column, m: Column, v: Column) -> Column:
    """``y m - E log(1 + e^f)``."""
    return np.asarray(y * m - softplus_rows(m, v))


def tilted_where_common(
    fits: Column,
    fast: Callable[..., tuple[Column, Column, Column]],
    slow: RowFunctions,
    power: float,
    columns: tuple[Column, Column, Column],
) -> tuple[Column, Column, Column]:
    """The fast way for rows that fit and whose label is not too rare for it, the slow one for the others."""
    out = np.full((3, fits.size), np.nan)
    if fits.any():
        out[:, fits] = fast(*(column[fits] for column in columns))
    rest = ~np.isnan(columns[0]) & ~(out[0] > COMMON)
    if rest.any():
        out[:, rest] = slow.tilted(power, *(column[rest] for column in columns))
    return out[0], out[1], out[2]
