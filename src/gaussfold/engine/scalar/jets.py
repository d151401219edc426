"""Gaussians that are narrow on the likelihood's length: polynomials through three or five places.

At each place four derivatives of log p are known, so that three places fix a polynomial of degree 11 for l', and five
one of degree 19. They are Turán's: with them an average of l'' is exact for that degree as well, though it takes the
last three derivatives alone and hence does not cancel. From there on all is arithmetic: averages over the Gaussian and
over its neighbours, and log p relative to the middle. Reference twins: ``tests/reference/quadrature.py`` and
``tests/reference/sites.py``, as for the integrals that do the same at any width.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gaussfold.engine.compiled import part
from gaussfold.engine.dispatch import by_family
from gaussfold.engine.families import Family, derivatives, landmark, log_density
from gaussfold.engine.scalar.jet_tables import (
    AVERAGE_WEIGHTS,
    FLAT,
    KNOWN,
    MANY_NODES,
    MANY_VALUES,
    MANY_WEIGHTS,
    NEARLY_FLAT,
    NODES,
    REACHES,
    STARTS,
    SUM_WEIGHTS,
    VALUE_WEIGHTS,
)

Jet: TypeAlias = tuple[float, float, float, float]
Averages: TypeAlias = tuple[float, float, float, float, float, float, float, float]
Values: TypeAlias = tuple[float, float, float, float, float, float]


@by_family
def has_jets(family: Family) -> bool:
    """Whether rule vi may take these averages: landmark's length is right, and no closed form is meant instead."""
    return False


@by_family
def scores_by_jets(family: Family) -> bool:
    """Whether :func:`log_mean` is the family's own way to its score, so that both may be had at once."""
    return False


@part
def size_for(family: Family, y: float, v: float) -> int:
    """Which set of places serves N(·, v); -1 where none does."""
    _, length = landmark(family, y)
    square = length * length
    if v <= REACHES[0] * REACHES[0] * square:
        return 0
    return 1 if v <= REACHES[1] * REACHES[1] * square else -1


@part
def _at_place(family: Family, y: float, m: float, s: float, place: int) -> Jet:
    """The derivatives at one place, in units of s."""
    d1, d2, d3, d4 = derivatives(family, y, m + s * NODES[place])
    return s * d1, s * s * d2, s * s * s * d3, s * s * s * s * d4


@part
def _with_averages(e: Averages, place: int, jet: Jet) -> Averages:
    d1, d2, d3, d4 = jet
    w = AVERAGE_WEIGHTS[place]
    return (
        e[0] + (w[0, 0] * d1 + w[0, 1] * d2 + w[0, 2] * d3 + w[0, 3] * d4),
        e[1] + (w[1, 1] * d2 + w[1, 2] * d3 + w[1, 3] * d4),
        e[2] + (w[2, 0] * d1 + w[2, 1] * d2 + w[2, 2] * d3 + w[2, 3] * d4),
        e[3] + (w[3, 0] * d1 + w[3, 1] * d2 + w[3, 2] * d3 + w[3, 3] * d4),
        e[4] + (w[4, 0] * d1 + w[4, 1] * d2 + w[4, 2] * d3 + w[4, 3] * d4),
        e[5] + (w[5, 0] * d1 + w[5, 1] * d2 + w[5, 2] * d3 + w[5, 3] * d4),
        e[6] + (w[6, 0] * d1 + w[6, 1] * d2 + w[6, 2] * d3 + w[6, 3] * d4),
        e[7] + (w[7, 0] * d1 + w[7, 1] * d2 + w[7, 2] * d3 + w[7, 3] * d4),
    )


@part
def _with_values(g: Values, place: int, jet: Jet) -> Values:
    d1, d2, d3, d4 = jet
    w = VALUE_WEIGHTS[place]
    return (
        g[0] + (w[0, 0] * d1 + w[0, 1] * d2 + w[0, 2] * d3 + w[0, 3] * d4),
        g[1] + (w[1, 0] * d1 + w[1, 1] * d2 + w[1, 2] * d3 + w[1, 3] * d4),
        g[2] + (w[2, 0] * d1 + w[2, 1] * d2 + w[2, 2] * d3 + w[2, 3] * d4),
        g[3] + (w[3, 0] * d1 + w[3, 1] * d2 + w[3, 2] * d3 + w[3, 3] * d4),
        g[4] + (w[4, 0] * d1 + w[4, 1] * d2 + w[4, 2] * d3 + w[4, 3] * d4),
        g[5] + (w[5, 0] * d1 + w[5, 1] * d2 + w[5, 2] * d3 + w[5, 3] * d4),
    )


@part
def averages(family: Family, y: float, m: float, s: float, size: int) -> Averages:
    """``s^k E l^(k)`` under N(m, s²) for k = 1 .. 8."""
    e = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for place in range(STARTS[size], STARTS[size + 1]):
        e = _with_averages(e, place, _at_place(family, y, m, s, place))
    return e


@part
def _shifted(e: Averages, shift: float, widening: float) -> tuple[float, float, float, float]:
    """The first four averages at N(m + s·shift, v (1 + 2·widening)): ∂/∂v = ½ ∂²/∂m² (Price), so both are series."""
    t = widening
    a8, a7 = e[7], e[6]
    a6 = e[5] + t * e[7]
    a5 = e[4] + t * e[6]
    a4 = e[3] + t * (e[5] + 0.5 * t * e[7])
    a3 = e[2] + t * (e[4] + 0.5 * t * e[6])
    a2 = e[1] + t * (e[3] + 0.5 * t * (e[5] + t / 3.0 * e[7]))
    a1 = e[0] + t * (e[2] + 0.5 * t * (e[4] + t / 3.0 * e[6]))
    x = shift
    x2, x3, x4, x5, x6 = x / 2.0, x / 3.0, x / 4.0, x / 5.0, x / 6.0
    t4 = a4 + x * (a5 + x2 * (a6 + x3 * (a7 + x4 * a8)))
    t3 = a3 + x * (a4 + x2 * (a5 + x3 * (a6 + x4 * (a7 + x5 * a8))))
    t2 = a2 + x * (a3 + x2 * (a4 + x3 * (a5 + x4 * (a6 + x5 * (a7 + x6 * a8)))))
    t1 = a1 + x * (a2 + x2 * (a3 + x3 * (a4 + x4 * (a5 + x5 * (a6 + x6 * (a7 + x / 7.0 * a8))))))
    return t1, t2, t3, t4


@part
def _root_of_series(e: Averages, w: float, away: float, ratio: float) -> tuple[bool, float, float, int]:
    """(found, δ, η, steps): the root of rule vi by the series around N(c, s²), at m = c + δs and v = s²(1 + 2η).

    With the belief before at c + away·s, of variance ratio·s², it solves δ = away + w ratio t₁ and
    1 + 2η = ratio/(1 - w ratio t₂), where tₖ are the averages there.
    """
    pull = w * ratio
    shift, widening = 0.0, 0.0
    for n in range(1, 12):
        t1, t2, t3, t4 = _shifted(e, shift, widening)
        grown = 1.0 - pull * t2
        if not 0.25 < grown < 4.0:
            return False, 0.0, 0.0, n
        r1 = shift - away - pull * t1
        r2 = widening - 0.5 * ratio / grown + 0.5
        bend = 0.5 * ratio * pull / (grown * grown)
        a12, a21, a22 = -pull * t3, -bend * t3, 1.0 - bend * t4
        det = grown * a22 - a12 * a21
        step = (a22 * r1 - a12 * r2) / det
        change = (grown * r2 - a21 * r1) / det
        shift -= step
        widening -= change
        if not abs(shift) + abs(widening) <= 1.5:
            return False, 0.0, 0.0, n
        if abs(step) + abs(change) <= 1e-8:  # the next step would be at rounding
            return True, shift, widening, n
    return False, 0.0, 0.0, n


@part
def averaged_root(
    family: Family, y: float, w: float, m0: float, v0: float
) -> tuple[bool, float, float, float, float, int]:
    """(True, J, H, m, v, steps) of rule vi at the posterior, where a narrow belief moves a little: else (False, ...).

    Averages around a centre are series in the step from it (Price), so that Newton's method needs no further look at
    the likelihood. If the root is too far for the series to end at rounding, it is the next centre.
    """
    size = size_for(family, y, v0)
    if size < 0:
        return False, 0.0, 0.0, m0, v0, 0
    return _root_from(family, y, w, m0, v0, averages(family, y, m0, math.sqrt(v0), size))


@part
def _root_from(
    family: Family, y: float, w: float, m0: float, v0: float, e: Averages
) -> tuple[bool, float, float, float, float, int]:
    """As :func:`averaged_root`, with the averages around the belief before."""
    m, v = m0, v0
    steps = 0
    for _ in range(3):
        s = math.sqrt(v)
        found, shift, widening, n = _root_of_series(e, w, (m0 - m) / s, v0 / v)
        steps += n
        if not found:
            break
        reach = abs(shift) + 2.0 * math.sqrt(abs(widening))
        if w * (abs(e[6]) + abs(e[7])) * reach**7 <= 5e-12:  # 1e-15 of 7!
            t1, t2, _, _ = _shifted(e, shift, widening)
            h = w * t2 / v
            return True, w * t1 / s, h, m + s * shift, v0 / (1.0 - v0 * h), steps
        m += s * shift
        v *= 1.0 + 2.0 * widening
        if not v > 0.0:
            break
        size = size_for(family, y, v)
        if size < 0:
            break
        e = averages(family, y, m, math.sqrt(v), size)
    return False, 0.0, 0.0, m0, v0, 0


@part
def _is_flat(jet: Jet, bounds: Jet) -> bool:
    d1, d2, d3, d4 = jet
    return d1 * d1 <= bounds[0] and abs(d2) <= bounds[1] and abs(d3) <= bounds[2] and abs(d4) <= bounds[3]


@part
def _log_mean_of_few(family: Family, y: float, m: float, g: Values) -> float:
    """Seven nodes of Gauss and Hermite, exact up to z¹³."""
    excess = (
        SUM_WEIGHTS[0] * (math.expm1(g[0]) + math.expm1(g[5]))
        + SUM_WEIGHTS[1] * (math.expm1(g[1]) + math.expm1(g[4]))
        + SUM_WEIGHTS[2] * (math.expm1(g[2]) + math.expm1(g[3]))
    )
    return math.log1p(excess) + log_density(family, y, m)


@part
def _log_mean_of_many(family: Family, y: float, m: float, s: float, size: int) -> float:
    """Fourteen."""
    data = np.empty((STARTS[2], KNOWN))
    for i in range(STARTS[size], STARTS[size + 1]):
        data[i, 0], data[i, 1], data[i, 2], data[i, 3] = _at_place(family, y, m, s, i)
    excess = 0.0
    for j in range(MANY_NODES.size):
        value = 0.0
        for i in range(STARTS[size], STARTS[size + 1]):
            w = MANY_VALUES[i, j]
            value += w[0] * data[i, 0] + w[1] * data[i, 1] + w[2] * data[i, 2] + w[3] * data[i, 3]
        excess += MANY_WEIGHTS[j] * math.expm1(value)
    return math.log1p(excess) + log_density(family, y, m)


@part
def log_mean(family: Family, y: float, m: float, v: float) -> tuple[bool, float]:
    """(True, log E p(y|f)) under N(m, v) where the likelihood is nearly flat: a few nodes, log p there by polynomial.

    What the exponential of a slope, a bend and smaller terms has beyond the degree that the nodes integrate exactly is
    below 1e-14 within the bounds of ``FLAT`` and ``NEARLY_FLAT``.
    """
    size = size_for(family, y, v)
    if size < 0:
        return False, 0.0
    s = math.sqrt(v)
    g = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for place in range(STARTS[size], STARTS[size + 1]):
        jet = _at_place(family, y, m, s, place)
        if place == STARTS[size] and not _is_flat(jet, FLAT):
            nearly = _is_flat(jet, NEARLY_FLAT)
            return nearly, _log_mean_of_many(family, y, m, s, size) if nearly else 0.0
        g = _with_values(g, place, jet)
    return True, _log_mean_of_few(family, y, m, g)


@part
def scored_root(
    family: Family, y: float, w: float, m0: float, v0: float
) -> tuple[bool, float, float, float, float, float, int]:
    """(True, score, J, H, m, v, steps): :func:`log_mean` and :func:`averaged_root` for one look at the likelihood."""
    size = size_for(family, y, v0)
    if size < 0:
        return False, 0.0, 0.0, 0.0, m0, v0, 0
    s = math.sqrt(v0)
    e = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    g = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    for place in range(STARTS[size], STARTS[size + 1]):
        jet = _at_place(family, y, m0, s, place)
        if place == STARTS[size] and not _is_flat(jet, FLAT):
            return False, 0.0, 0.0, 0.0, m0, v0, 0
        e = _with_averages(e, place, jet)
        g = _with_values(g, place, jet)
    found, j, h, m, v, n = _root_from(family, y, w, m0, v0, e)
    return found, _log_mean_of_few(family, y, m0, g) if found else 0.0, j, h, m, v, n
