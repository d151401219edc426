"""The logistic expectations of many rows at once, vectorised across rows.

The same trapezoidal rule in z = (f-m)/√v as ``engine.logistic`` (its scalar twin), with the nodes in the outer loop and
64 rows in the inner one: no exponential but one per row, no branch, no call. A block takes the finest step that any of
its rows needs; rows with std ≥ 4 go to the scalar function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gaussfold.engine.compiled import compiled_fused, compiled_inline
from gaussfold.engine.logistic import REACH, WIDE, expected_softplus, logistic_moments

WIDTH = 64
PITCH = WIDTH + 8
E, RATIO, SUM, SLOPE = (PITCH * i for i in range(4))

# log x = k log 2 + 2 artanh(t), t = (m-1)/(m+1), x = 2^k m with √½ ≤ m < √2: |t| ≤ 0.172, ten terms to 1e-17
LOWEST_MANTISSA = np.int64(0x3FE6A09E667F3BCD)  # the bits of √½
LIFT = np.int64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
MANTISSA = np.int64(0x000FFFFFFFFFFFFF)
EXPONENT_BITS = np.int64(52)
AS_DOUBLE = np.int64(0x4330000000000000)  # the bits of 2⁵²: an integer below that, put under them, is its double
BIAS = 4503599627370496.0 + 1023.0
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = 1.90821492927058770002e-10
A1, A2, A3, A4, A5, A6, A7, A8, A9 = (1.0 / (2 * k + 1) for k in range(1, 10))


@compiled_inline
def log1p_positive(e: Any) -> Any:
    """log(1 + e) for 0 ≤ e < 1e300, to rounding in relative terms; the plain equivalent is ``math.log1p``."""
    x = 1.0 + e
    lost = (e - (x - 1.0)) / x
    lifted = np.float64(x).view(np.int64) + LIFT
    k = np.int64((lifted >> EXPONENT_BITS) | AS_DOUBLE).view(np.float64) - BIAS
    m = np.int64((lifted & MANTISSA) + LOWEST_MANTISSA).view(np.float64)
    t = (m - 1.0) / (m + 1.0)
    s = t * t
    s2 = s * s
    s4 = s2 * s2
    series = (A1 + A2 * s) + (A3 + A4 * s) * s2 + ((A5 + A6 * s) + (A7 + A8 * s) * s2) * s4 + A9 * s4 * s4
    return k * LN2_HIGH + (2.0 * t + (2.0 * t * s * series + (k * LN2_LOW + lost)))


@compiled_fused
def _start(m: np.ndarray, v: np.ndarray, low: int, high: int, scratch: np.ndarray) -> tuple[float, int]:
    """e^-f at the leftmost node and its ratio from node to node; step and number of nodes on either side of 0."""
    widest = 0.0
    for i in range(low, high):
        s = math.sqrt(v[i])
        if widest < s < WIDE:
            widest = s
    h = min(0.5, 0.52 / widest) if widest > 0.0 else 0.5
    n = math.ceil(REACH / h)
    for i in range(low, high):
        s = min(math.sqrt(v[i]), WIDE)
        scratch[E + i - low] = math.exp(s * n * h - abs(m[i]))
        scratch[RATIO + i - low] = math.exp(-s * h)
        scratch[SUM + i - low] = 0.0
        scratch[SLOPE + i - low] = 0.0
    return h, n


@compiled_fused
def logit_rows(y: np.ndarray, m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E l' and E l'' of the logit likelihood under N(m, v); NaN for a missing label."""
    first = np.empty(m.size)
    second = np.empty(m.size)
    scratch = np.empty(4 * PITCH)
    for low in range(0, m.size, WIDTH):
        high = min(low + WIDTH, m.size)
        h, n = _start(m, v, low, high, scratch)
        count = high - low
        total = 0.0
        for j in range(-n, n + 1):
            w = math.exp(-0.5 * (j * h) ** 2)
            total += w
            for i in range(count):
                e = scratch[E + i]
                inv = 1.0 / (1.0 + e)
                part = w * (e * inv)
                scratch[SUM + i] += part
                scratch[SLOPE + i] += part * inv
                scratch[E + i] = e * scratch[RATIO + i]
        for i in range(low, high):
            small = scratch[SUM + i - low] / total  # E σ(-f) where m ≥ 0, E σ(f) elsewhere: the one that is not 1 - ...
            slope = scratch[SLOPE + i - low] / total
            if not v[i] < WIDE * WIDE:
                up, down, slope, _, _ = logistic_moments(m[i], v[i])
                small = down if m[i] >= 0.0 else up
            first[i] = (y[i] - 1.0) + small if m[i] >= 0.0 else y[i] - small
            second[i] = -slope + 0.0 * y[i]
    return first, second


@compiled_fused
def softplus_rows(m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """E log(1 + e^f) under N(m, v)."""
    value = np.empty(m.size)
    scratch = np.empty(4 * PITCH)
    for low in range(0, m.size, WIDTH):
        high = min(low + WIDTH, m.size)
        h, n = _start(m, v, low, high, scratch)
        count = high - low
        total = 0.0
        for j in range(-n, n + 1):
            w = math.exp(-0.5 * (j * h) ** 2)
            total += w
            for i in range(count):
                e = scratch[E + i]
                scratch[SUM + i] += w * log1p_positive(e)
                scratch[E + i] = e * scratch[RATIO + i]
        for i in range(count):
            value[low + i] = scratch[SUM + i] / total + max(m[low + i], 0.0)
        for i in range(low, high):
            if not v[i] < WIDE * WIDE:
                value[i] = expected_softplus(m[i], v[i])
    return value
