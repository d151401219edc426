"""One-dimensional integrals against a Gaussian that hold at any scale.

A fixed Gauss-Hermite rule fails when the Gaussian is wide against the likelihood's own length. Here the
line is cut into panels that grow geometrically away from the likelihood's landmark and from the bulk of
the integrand, with twelve Gauss-Legendre points on each.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from gaussfold.engine.compiled import part
from gaussfold.engine.dispatch import by_family
from gaussfold.engine.families import Family, derivatives, is_log_concave, landmark, log_density
from gaussfold.engine.scalar.special import LOG_SQRT_2PI
from gaussfold.engine.scalar.vectors import sort_first

LEGENDRE_NODES, LEGENDRE_WEIGHTS = np.polynomial.legendre.leggauss(12)
STEP, GRID = 0.35, 25
"""Of a trapezoidal rule in standard deviations, and its steps to either side: as far as doubles reach."""
NARROW = 0.5
"""Of the likelihood's length: a Gaussian of a smaller standard deviation steps over nothing."""
REACH = 8.8
MAX_EDGES = 256

Sums: TypeAlias = tuple[float, float, float, float, float, float]


@part
def graded_edges(center: float, length: float, low: float, high: float, edges: np.ndarray, count: int) -> int:
    """Append center, center ± length·{1, 2, 4, ...} inside (low, high)."""
    if low < center < high and count < edges.size:
        edges[count] = center
        count += 1
    for side in (-1.0, 1.0):
        reach = length
        for _ in range(120):
            x = center + side * reach
            if (side > 0.0 and x >= high) or (side < 0.0 and x <= low):
                break
            if low < x < high and count < edges.size:
                edges[count] = x
                count += 1
            reach *= 2.0
    return count


@part
def _with_node(family: Family, y: float, f: float, w: float, sums: Sums) -> Sums:
    """The sums with the node f of weight w: the weights, and of log p and its four derivatives times the weights."""
    mass, e0, e1, e2, e3, e4 = sums
    d1, d2, d3, d4 = derivatives(family, y, f)
    return (
        mass + w, e0 + w * log_density(family, y, f), e1 + w * d1, e2 + w * d2, e3 + w * d3, e4 + w * d4,
    )  # fmt: skip


@part
def _averages(sums: Sums) -> tuple[float, float, float, float, float]:
    mass, e0, e1, e2, e3, e4 = sums
    return e0 / mass, e1 / mass, e2 / mass, e3 / mass, e4 / mass


@part
def gaussian_panels(center: float, length: float, m: float, s: float, knots: np.ndarray) -> int:
    """Panel edges for an average over N(m, s²), and how many they are."""
    low = m - REACH * s
    high = m + REACH * s
    knots[0] = low
    knots[1] = high
    count = 2
    for z in (-6.0, -4.0, -2.0, 0.0, 2.0, 4.0, 6.0):
        knots[count] = m + z * s
        count += 1
    count = graded_edges(center, 0.5 * length, low, high, knots, count)
    sort_first(knots, count)
    return count


@part
def gaussian_expectations(family: Family, y: float, m: float, v: float) -> tuple[float, float, float, float, float]:
    """E of log p and of its first four derivatives under N(m, v), for families without a closed form."""
    s = math.sqrt(v)
    center, length = landmark(family, y)
    sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if s <= NARROW * length:
        # Nearest singularity at least two standard deviations away: the plain trapezoidal rule.
        for i in range(-GRID, GRID + 1):
            z = i * STEP
            w = math.exp(-0.5 * z * z)
            f = m + s * z
            sums = _with_node(family, y, f, w, sums)
        return _averages(sums)
    knots = np.empty(MAX_EDGES)
    count = gaussian_panels(center, length, m, s, knots)
    for k in range(count - 1):
        half = 0.5 * (knots[k + 1] - knots[k])
        if half <= 0.0:
            continue
        mid = 0.5 * (knots[k + 1] + knots[k])
        for j in range(12):
            f = mid + half * LEGENDRE_NODES[j]
            z = (f - m) / s
            w = half * LEGENDRE_WEIGHTS[j] * math.exp(-0.5 * z * z)
            sums = _with_node(family, y, f, w, sums)
    return _averages(sums)


@by_family
def tilted_mode(family: Family, y: float, power: float, m0: float, v0: float) -> tuple[float, float, int]:
    """Mode of N(f|m0, v0) p(y|f)^power, the Laplace variance there, and the steps it took.

    m = m0 + v0 · power · l'(m) increases in m on the left and decreases on the right if l is concave: one root,
    bracketed by m0 and m0 + v0 · power · l'(m0). If not, the far end moves on until it is behind a root.
    """
    d1, d2, _, _ = derivatives(family, y, m0)
    far = m0 + v0 * power * d1
    if not is_log_concave(family):
        for _ in range(60):
            if not (far - m0 - v0 * power * derivatives(family, y, far)[0]) * (far - m0) < 0.0:
                break
            far = m0 + 2.0 * (far - m0)
    low = min(m0, far)
    high = max(m0, far)
    low -= 1e-9 * (1.0 + abs(low))
    high += 1e-9 * (1.0 + abs(high))
    m = m0
    n = 0
    while n < 100:
        n += 1
        residual = m - m0 - v0 * power * d1
        if residual > 0.0:
            high = m
        else:
            low = m
        target = m - residual / (1.0 - v0 * power * d2)
        noise = 2.3e-16 * (abs(m) + abs(m0) + v0 * power * abs(d1))
        done = abs(residual) <= noise or abs(target - m) <= 1e-15 * abs(m)
        m = target if done or low <= target <= high else 0.5 * (low + high)
        d1, d2, _d3, _d4 = derivatives(family, y, m)
        if done:
            break
    return m, v0 / (1.0 - v0 * power * d2), n


@part
def log_integrand(family: Family, y: float, power: float, m: float, v: float, t: float) -> float:
    """Log of N(f|m, v) p(y|f)^power up to a constant, at f = m + t: the Gaussian sees t unrounded."""
    return power * log_density(family, y, m + t) - 0.5 * t * t / v


@by_family
def measured_from_mode(family: Family) -> bool:
    """Whether :func:`log_relative` starts from the mode, where the peak is then, instead of from the highest knot."""
    return False


@by_family
def log_relative(
    family: Family, y: float, power: float, m: float, v: float, origin: float, peak: float, u: float
) -> float:
    """Log integrand at m + origin + u, relative to ``peak``."""
    return log_integrand(family, y, power, m, v, origin + u) - peak


@by_family
def cliff(family: Family, power: float) -> tuple[float, float, int]:
    """Where a steep fall of the integrand begins, the step of extra knots below it, and how many; none by default."""
    return 0.0, 0.0, 0


@by_family
def tilted_panels(family: Family, y: float, power: float, m: float, v: float, edges: np.ndarray) -> tuple[int, float]:
    """Panel edges (offsets from m) that cover the tilted density, and the offset of its mode."""
    center, length = landmark(family, y)
    center -= m
    mode, variance, _ = tilted_mode(family, y, power, m, v)
    mode -= m
    spread = math.sqrt(variance if variance > 0.0 else v)  # without concavity the bend may be upwards
    top = log_integrand(family, y, power, m, v, mode)
    low = mode - 2.0 * spread
    for _ in range(200):
        if not log_integrand(family, y, power, m, v, low) > top - 40.0:
            break
        low = mode - 1.6 * (mode - low)
    high = mode + 2.0 * spread
    for _ in range(200):
        if not log_integrand(family, y, power, m, v, high) > top - 40.0:
            break
        high = mode + 1.6 * (high - mode)
    edges[0] = low
    edges[1] = high
    count = graded_edges(mode, 0.8 * spread, low, high, edges, 2)
    top_of_cliff, step, knots = cliff(family, power)
    for k in range(knots):
        x = top_of_cliff - m - step * k
        if low < x < high:
            edges[count] = x
            count += 1
    return graded_edges(center, 0.5 * length, low, high, edges, count), mode


@part
def tilted_moments(
    family: Family, y: float, power: float, m: float, v: float
) -> tuple[float, float, float, float, float]:
    """Of the tilted density N(f|m, v) p(y|f)^power / Z: (log Z, ∂ log Z/∂m, ∂² log Z/∂m², mean - m, variance).

    The derivatives come as E_t[l'] and E_t[l''] + Var_t[l'] (l = power · log p), which do not cancel for
    small v as (mean - m)/v would.
    """
    knots = np.empty(MAX_EDGES)
    count, origin = tilted_panels(family, y, power, m, v, knots)
    for k in range(count):
        knots[k] -= origin
    sort_first(knots, count)
    peak = log_integrand(family, y, power, m, v, origin)
    if not measured_from_mode(family):
        for k in range(count):
            peak = max(peak, log_integrand(family, y, power, m, v, origin + knots[k]))
    mass = 0.0
    g1 = 0.0
    g2 = 0.0
    h1 = 0.0
    f1 = 0.0
    f2 = 0.0
    # The panels of gaussian_expectations around other sums, in the loop itself for speed.
    for k in range(count - 1):
        half = 0.5 * (knots[k + 1] - knots[k])
        if half <= 0.0:
            continue
        mid = 0.5 * (knots[k + 1] + knots[k])
        for j in range(12):
            u = mid + half * LEGENDRE_NODES[j]
            fall = log_relative(family, y, power, m, v, origin, peak, u)
            w = half * LEGENDRE_WEIGHTS[j] * math.exp(fall)
            d1, d2, _, _ = derivatives(family, y, m + (origin + u))
            d1 *= power
            mass += w
            g1 += w * d1
            g2 += w * d1 * d1
            h1 += w * power * d2
            f1 += w * u
            f2 += w * u * u
    log_z = peak + math.log(mass) - LOG_SQRT_2PI - 0.5 * math.log(v)
    g1 /= mass
    f1 /= mass
    variance = f2 / mass - f1 * f1
    hessian = h1 / mass + g2 / mass - g1 * g1
    if v * (abs(h1) + g2) > 10.0 * mass:
        hessian = (variance / v - 1.0) / v  # the same number, where large terms would cancel in the other
    return log_z, g1, hessian, origin + f1, variance


@by_family
def tilted(family: Family, y: float, power: float, m: float, v: float) -> tuple[float, float, float]:
    """Log E p(y|f)^power and its first two derivatives in m."""
    log_z, first, second, _, _ = tilted_moments(family, y, power, m, v)
    return log_z, first, second
