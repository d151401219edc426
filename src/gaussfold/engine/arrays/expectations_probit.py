"""The probit expectations of many rows at once, eight in lanes: hard labels, |mean| up to 20, std below 4.

For a label of one (of zero: with -f for f) ``l = log Φ(a)``, ``l' = ρ = φ/Φ``, ``l'' = -ρ(ρ + a)``. All follow from
``erfcx(x) = e^{x²} erfc(x)`` at x = |a|/√2, since Φ(-|a|) = e^{-x²} erfcx(x)/2. In t = (x - k)/(x + k), k = 15/4,
(1 + 2x) erfcx(x) is a polynomial of degree 24 for all x ≥ 0, to 1e-15 (Shepherd and Laframboise, 1981).

The trapezoidal rule in z = (f-m)/√v has the step of ``expectations_logit``: the zeros of Φ are 2.8 from the real
line, those of the logistic function's denominator π. The scalar twin, also for all other rows, is
``scalar.quadrature.gaussian_expectations``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

from gaussfold.engine.arrays.expectations_logit import tilted_where_common
from gaussfold.engine.arrays.over_arrays import Column, RowFunctions, row_functions, where_it_fits
from gaussfold.engine.compiled import compiled_fused, compiled_inline
from gaussfold.engine.families import Family
from gaussfold.engine.scalar.exponential import exp_nonpositive, log_one_minus, log_positive
from gaussfold.engine.simd.lane_memory import load8, store
from gaussfold.engine.simd.lanes import choose, lanes8, magnitude, root

WIDTH = 8
WIDE = 4.0
FARTHEST = 20.0
REACH = 8.6
CENTRE = 3.75
SQRT_HALF = math.sqrt(0.5)
EVEN = np.array([
    1.2375126308378275, 0.003585415485463775, -0.10880393014171785, -0.058693398590212366, -0.009746579552504244,
    0.0002937136342850081, 5.1649211390702855e-05, -1.1444412439171722e-05, 1.752057970166318e-06,
    -2.591069687796658e-07, 3.8965452548985966e-08, -5.28428697963142e-09, 4.434959070009628e-10,
])  # fmt: skip
ODD = np.array([
    -0.14024059858554697, 0.08227673849014516, 0.09230432116037876, 0.028362277418940665, 0.0017556258530017257,
    -0.0002901540809795271, 2.2384240314224437e-05, -9.735619015182663e-07, -5.721597255990987e-08,
    2.3261913276696566e-08, -3.743568033634583e-09, 3.110310719839165e-10,
])  # fmt: skip


@compiled_inline
def scaled_tail(a: Any) -> Any:
    """``erfcx(|a|/√2)/2``; times e^{-a²/2} that is Φ(-|a|)."""
    x = SQRT_HALF * magnitude(a)
    t = (x - CENTRE) / (x + CENTRE)
    t2 = t * t
    even = EVEN[12] * t2 + EVEN[11]
    odd = ODD[11] * t2 + ODD[10]
    for i in range(10, 0, -1):
        even = even * t2 + EVEN[i]
        odd = odd * t2 + ODD[i - 1]
    return 0.5 * (even * t2 + EVEN[0] + t * odd) / (1.0 + 2.0 * x)


@compiled_inline
def _slopes(a: Any) -> Any:
    """Compute ρ and ρ(ρ + a)."""
    tail = scaled_tail(a)
    density = exp_nonpositive(-0.5 * (a * a))
    # φ/Φ, above and below divided by e^{-a²/2} where a < 0
    rho = choose(a > 0.0, density, 1.0) / choose(a > 0.0, 1.0 - density * tail, tail) * (1.0 / math.sqrt(2.0 * math.pi))
    return rho, rho * (rho + a)


@compiled_inline
def _log_cdf(a: Any) -> Any:
    """Log Φ(a)."""
    tail = scaled_tail(a)
    square = -0.5 * (a * a)
    below = choose(a > 0.0, exp_nonpositive(square) * tail, 0.0)
    return choose(a > 0.0, log_one_minus(below), square + log_positive(tail))


@compiled_fused
def _gather(y: np.ndarray, m: np.ndarray, v: np.ndarray, low: int, scratch: np.ndarray) -> float:
    """Means (mirrored for a label of zero) and variances of eight rows, the last one repeated; returns the step."""
    widest = 0.0
    for i in range(WIDTH):
        j = min(low + i, m.size - 1)
        scratch[i] = m[j] if y[j] == 1.0 else -m[j]
        scratch[WIDTH + i] = v[j]
        widest = max(widest, v[j])
    return min(0.5, 0.5 / math.sqrt(widest)) if widest > 0.0 else 0.5


@compiled_fused
def probit_rows(y: np.ndarray, m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """E l' and E l'' of the probit likelihood under N(m, v)."""
    first = np.empty(m.size)
    second = np.empty(m.size)
    scratch = np.empty(2 * WIDTH)
    for low in range(0, m.size, WIDTH):
        h = _gather(y, m, v, low, scratch)
        centre, s = load8(scratch, 0), root(load8(scratch, WIDTH))
        total, rho, bend = 0.0, lanes8(0.0), lanes8(0.0)
        for j in range(math.ceil(REACH / h) + 1):
            w = math.exp(-0.5 * (j * h) ** 2) if j > 0 else 0.5  # the middle is a pair of one
            away = s * (j * h)
            up, bend_up = _slopes(centre + away)
            down, bend_down = _slopes(centre - away)
            total += 2.0 * w
            rho = rho + w * (up + down)
            bend = bend + w * (bend_up + bend_down)
        store(scratch, 0, rho / total)
        store(scratch, WIDTH, bend / total)
        for i in range(low, min(low + WIDTH, m.size)):
            first[i] = scratch[i - low] if y[i] == 1.0 else -scratch[i - low]
            second[i] = -scratch[WIDTH + i - low]
    return first, second


@compiled_fused
def log_probit_rows(y: np.ndarray, m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """E l of the probit likelihood under N(m, v)."""
    value = np.empty(m.size)
    scratch = np.empty(2 * WIDTH)
    for low in range(0, m.size, WIDTH):
        h = _gather(y, m, v, low, scratch)
        centre, s = load8(scratch, 0), root(load8(scratch, WIDTH))
        total, sums = 0.0, lanes8(0.0)
        for j in range(math.ceil(REACH / h) + 1):
            w = math.exp(-0.5 * (j * h) ** 2) if j > 0 else 0.5
            away = s * (j * h)
            total += 2.0 * w
            sums = sums + w * (_log_cdf(centre + away) + _log_cdf(centre - away))
        store(scratch, 0, sums / total)
        for i in range(low, min(low + WIDTH, m.size)):
            value[i] = scratch[i - low]
    return value


def exact_functions(family: Family) -> RowFunctions:
    """The expectations of a probit likelihood, in lanes where they hold, in closed form where there is one."""
    slow = row_functions(family)

    def expected_log_prob(y: Column, m: Column, v: Column) -> Column:
        value = where_it_fits(
            _fits(y, m, v), lambda *c: (log_probit_rows(*c),), lambda *c: (slow.expected_log_prob(*c),), (y, m, v), 1
        )
        return np.asarray(value[0])

    def expected_derivatives(y: Column, m: Column, v: Column) -> tuple[Column, Column]:
        first, second = where_it_fits(_fits(y, m, v), probit_rows, slow.expected_derivatives, (y, m, v), 2)
        return first, second

    def tilted(power: float, y: Column, m: Column, v: Column) -> tuple[Column, Column, Column]:
        fits = ((y == 0.0) | (y == 1.0)) & (power == 1.0)
        return tilted_where_common(fits, tilted_probit_rows, slow, power, (y, m, v))

    return RowFunctions(expected_log_prob, expected_derivatives, log_predictive, tilted, slow.predictive)


def _fits(y: Column, m: Column, v: Column) -> Column:
    """Rows that the lanes are good for."""
    return np.asarray(((y == 0.0) | (y == 1.0)) & (v < WIDE * WIDE) & (np.abs(m) <= FARTHEST))


def log_predictive(y: Column, m: Column, v: Column) -> Column:
    """``log Φ(±m/√(1+v))``."""
    a = m / np.sqrt(1.0 + v)
    log_p = np.where(y > 0.0, y * scipy.special.log_ndtr(a), 0.0) + np.where(
        y < 1.0, (1.0 - y) * scipy.special.log_ndtr(-a), 0.0
    )
    return np.where(np.isnan(y), np.nan, log_p)


def tilted_probit_rows(y: Column, m: Column, v: Column) -> tuple[Column, Column, Column]:
    """Log Φ(a), a = ±m/√(1+v), with slope ρ = φ/Φ and curvature -ρ(ρ + a) in a."""
    sign, scale = 2.0 * y - 1.0, np.sqrt(1.0 + v)
    a = sign * m / scale
    value = scipy.special.log_ndtr(a)
    rho = np.exp(-0.5 * a * a - value) / math.sqrt(2.0 * math.pi)
    return value, sign * rho / scale, -rho * (rho + a) / (1.0 + v)
