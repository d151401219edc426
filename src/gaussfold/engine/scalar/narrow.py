"""Integrals against a Gaussian that is narrow on the likelihood's length: as exact as panels, by a few nodes.

After some hundred rows nearly all marginals of a stream are such. Reference twin: ``tests/reference/quadrature.py``,
the same as that of ``scalar.quadrature``, which serves all other Gaussians.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import part
from gaussfold.engine.families import Family, derivatives, landmark, log_density, log_ratio
from gaussfold.engine.scalar import jets
from gaussfold.engine.scalar.hermite import (
    HERMITE_HALF_SQUARES,
    HERMITE_NODES,
    HERMITE_REACHES,
    HERMITE_STARTS,
    HERMITE_WEIGHTS,
)
from gaussfold.engine.scalar.quadrature import (
    GRID,
    LEGENDRE_NODES,
    LEGENDRE_WEIGHTS,
    MAX_EDGES,
    NARROW,
    STEP,
    gaussian_panels,
)


@part
def _derivatives_by_nodes(
    family: Family, y: float, m: float, s: float, start: int, stop: int
) -> tuple[float, float, float, float]:
    """E of the first four derivatives by Gauss and Hermite, with the nodes of the table from ``start`` to ``stop``."""
    e1 = 0.0
    e2 = 0.0
    e3 = 0.0
    e4 = 0.0
    for i in range(start, stop):
        w = HERMITE_WEIGHTS[i]
        d1, d2, d3, d4 = derivatives(family, y, m + s * HERMITE_NODES[i])
        e1 += w * d1
        e2 += w * d2
        e3 += w * d3
        e4 += w * d4
    return e1, e2, e3, e4


@part
def _derivatives_on_grid(family: Family, y: float, m: float, s: float) -> tuple[float, float, float, float]:
    """The same by the plain trapezoidal rule: the nearest singularity is at least two standard deviations away."""
    mass = 0.0
    e1 = 0.0
    e2 = 0.0
    e3 = 0.0
    e4 = 0.0
    for i in range(-GRID, GRID + 1):
        z = i * STEP
        w = math.exp(-0.5 * z * z)
        d1, d2, d3, d4 = derivatives(family, y, m + s * z)
        mass += w
        e1 += w * d1
        e2 += w * d2
        e3 += w * d3
        e4 += w * d4
    return e1 / mass, e2 / mass, e3 / mass, e4 / mass


@part
def gaussian_derivatives(family: Family, y: float, m: float, v: float) -> tuple[float, float, float, float]:
    """E of the first four derivatives of log p under N(m, v): a few nodes for a narrow Gaussian."""
    s = math.sqrt(v)
    center, length = landmark(family, y)
    if s <= HERMITE_REACHES[5] * length:
        size = 0
        while s > HERMITE_REACHES[size] * length:
            size += 1
        return _derivatives_by_nodes(family, y, m, s, HERMITE_STARTS[size], HERMITE_STARTS[size + 1])
    if s <= NARROW * length:
        return _derivatives_on_grid(family, y, m, s)
    knots = np.empty(MAX_EDGES)
    count = gaussian_panels(center, length, m, s, knots)
    mass = 0.0
    e1 = 0.0
    e2 = 0.0
    e3 = 0.0
    e4 = 0.0
    for k in range(count - 1):
        half = 0.5 * (knots[k + 1] - knots[k])
        if half <= 0.0:
            continue
        mid = 0.5 * (knots[k + 1] + knots[k])
        for j in range(12):
            f = mid + half * LEGENDRE_NODES[j]
            z = (f - m) / s
            w = half * LEGENDRE_WEIGHTS[j] * math.exp(-0.5 * z * z)
            d1, d2, d3, d4 = derivatives(family, y, f)
            mass += w
            e1 += w * d1
            e2 += w * d2
            e3 += w * d3
            e4 += w * d4
    return e1 / mass, e2 / mass, e3 / mass, e4 / mass


@part
def _narrow_sum(family: Family, y: float, m: float, v: float, top: float, a: float, r: float, size: int) -> float:
    """E p(y|f)/p(y|m) under N(m, v), but for a factor, by nodes of one size that are laid out for N(m + a, r²).

    ``top`` is log p(y|m).
    """
    total = 0.0
    for i in range(HERMITE_STARTS[size], HERMITE_STARTS[size + 1]):
        away = a + r * HERMITE_NODES[i]
        fall = log_ratio(family, y, m + away, m, top) - 0.5 * away * away / v + HERMITE_HALF_SQUARES[i]
        total += HERMITE_WEIGHTS[i] * math.exp(fall)
    return total


@part
def _narrow_grid(family: Family, y: float, m: float, v: float, top: float, a: float, r: float) -> tuple[bool, float]:
    """As :func:`_narrow_sum` by the trapezoidal rule; False where its ends are too near."""
    total = 0.0
    ends = 0.0
    for i in range(-GRID, GRID + 1):
        away = a + r * (i * STEP)
        term = math.exp(log_ratio(family, y, m + away, m, top) - 0.5 * away * away / v)
        total += term
        if abs(i) == GRID:
            ends += term
    return ends <= 1e-15 * total and total < math.inf, total * STEP / math.sqrt(2.0 * math.pi)


@part
def narrow_log_mean(family: Family, y: float, m: float, v: float) -> tuple[bool, float]:
    """(True, log E p(y|f)) where a few nodes will do: two sizes agree so well that the larger one is exact.

    For a Gaussian that is narrow against the likelihood's length, and a label that does not surprise it. The error of
    n nodes falls like ε^n or faster, so where 7 and 14 differ by 1e-8 the larger one is at rounding. Else a grid, if it
    is wide enough.
    """
    found, value = jets.log_mean(family, y, m, v)
    if found:
        return True, value
    _, length = landmark(family, y)
    d1, d2, _, _ = derivatives(family, y, m)
    stiff = 1.0 - v * d2
    b = v / stiff  # Laplace's Gaussian, seen from m
    a = b * d1
    if not (v <= (NARROW * length) * (NARROW * length) and 0.5 < stiff < 20.0 and a * a <= 16.0 * v):
        return False, 0.0
    r = math.sqrt(b)
    top = log_density(family, y, m)
    if v <= (0.15 * length) * (0.15 * length):
        few = _narrow_sum(family, y, m, v, top, a, r, 2)
        more = _narrow_sum(family, y, m, v, top, a, r, 4)
        if abs(more - few) <= 1e-8 * more:
            return True, math.log(more / math.sqrt(stiff)) + top
    good, more = _narrow_grid(family, y, m, v, top, a, r)
    return good, math.log(more / math.sqrt(stiff)) + top
