"""Learning one row of logistic regression, many features at a time: the update as a series in each feature's share.

Setting: marginal coupling, logit link, Newton's rule with the curvature at the mode. A row with label y, weight w and
features xᵢ updates the mean μᵢ and variance σᵢ² of every feature i, with the other features of the row integrated out
(sparse-online (11)). Let μ_t be the mean of the row's latent and σ₋ᵢ² its variance without feature i. With c = π/8,
k = 1/√(1 + c σ₋ᵢ²) and a₀ = k μ_t, the mode of (13) in a = k (μ₋ᵢ + xᵢ wᵢ) is the root of

    a - a₀ = V (y - σ(a)),    V = w k² xᵢ² σᵢ²                                   (15) times k xᵢ

and then (15) and (19) say

    μᵢ += xᵢ σᵢ² · w k (y - σ(a))          the *gain*, w k (y - σ(a))
    σᵢ² ← σᵢ² · 1/(1 + V σ'(a))            the *shrink*, 1/(1 + V σ'(a)).

That is one equation to solve for each feature of each row. What makes it cheap: let D = 1 + c Σ x² σ², the sum over the
whole row, and u = c xᵢ² σᵢ²/D the *share* that feature i has in it. Then k² = 1/(D (1 - u)) and V = (w/c) u/(1 - u), so
that within one row gain and shrink depend on the feature through u alone, and u is small for a feature that is known
well. So both are expanded at u = 0, once a row, and evaluated for each feature:

1. ``short_series``: up to u³, from a single exponential. Exact to 1e-13 for u ≤ SHORT_REACH/(w/c + |a| + 1).
2. ``long_series``: two terms more, to u⁵. As exact for u ≤ LONG_REACH/(w/c + |a| + 1).
3. ``solve``: what is beyond, feature by feature. Halley's steps on the equation, starting from what the series says;
   the last step is so small that its error is below rounding, and σ is carried over it by Taylor's series. What Halley
   does not settle (a wide prior that meets a surprise) is left to the bracketed search of ``engine.scalar.logistic``.

Every function takes plain numbers or lanes of them (``simd.types``). The same numbers, slowly and for any rule:
``engine.sparse.visit_any``; reference twin: ``tests/reference/diagonal.py``.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from gaussfold.engine.compiled import compiled_fused, compiled_inline
from gaussfold.engine.scalar.exponential import exp_nonpositive
from gaussfold.engine.scalar.logistic import logistic_root
from gaussfold.engine.scalar.special import sigmoid
from gaussfold.engine.simd.lane_memory import load_like, store
from gaussfold.engine.simd.lanes import bits_of, choose, larger, magnitude, root, width_of
from gaussfold.engine.simd.types import Lanes, Pointer

Series: TypeAlias = tuple[Lanes, ...]
"""Coefficients of a power series, lowest first."""
Rest: TypeAlias = tuple[Series, Series, Series, Series]
"""What `short_series` has found on its way and `long_series` goes on from."""

SCALE = math.pi / 8.0
SHORT_REACH, LONG_REACH = 6e-4, 8e-3
MOST_STEPS = 8
B1, B2, B3, B4, B5 = 0.5, 0.375, 0.3125, 0.2734375, 0.24609375
"""(1 - u)^-½ = 1 + B1 u + B2 u² + ..."""


@compiled_inline
def sigmoids(a: Lanes) -> tuple[Lanes, Lanes]:
    """σ(a) and σ(-a)."""
    t = exp_nonpositive(0.0 - magnitude(a))
    large = 1.0 / (1.0 + t)
    small = t * large
    rising = a >= 0.0
    return choose(rising, large, small), choose(rising, small, large)


@compiled_inline
def short_series(mean: Lanes, variance: Lanes, y: float, w: float) -> tuple[Lanes, Lanes, Series, Series, Rest]:
    """Expand gain and shrink of a row with this marginal, up to u³.

    Returns c/D (a feature's x² σ² times this is its share u), w/c + |a| + 1 (u times this tells whether a series
    holds), the gain as 4 coefficients, the shrink as 3 after the leading 1, and what `long_series` needs.

    With a = Σ aₙ uⁿ and E = y - σ(a) = Σ eₙ uⁿ: aₙ = a₀ Bₙ + (w/c) (e₀ + ... + eₙ₋₁), and eₙ by composition. Then z =
    V σ'(a), σ' along the series times (w/c) u/(1-u), which adds up; and 1/(1+z).
    """
    d = 1.0 + SCALE * variance
    inverse = 1.0 / d
    share = SCALE * inverse
    k = root(d) * inverse
    a = k * mean
    up, down = sigmoids(a)
    pull = w * (1.0 / SCALE)
    p1 = up * down  # derivatives of σ over factorials
    skew = down - up
    p2 = 0.5 * p1 * skew
    p3 = p1 * (1.0 / 6.0 - p1)
    e0 = y * down - (1.0 - y) * up
    a1 = B1 * a + pull * e0
    e1 = 0.0 - p1 * a1
    sum1 = e0 + e1
    a2 = B2 * a + pull * sum1
    a11 = a1 * a1
    e2 = 0.0 - (p1 * a2 + p2 * a11)
    sum2 = sum1 + e2
    a3 = B3 * a + pull * sum2
    a12 = a1 * a2
    a111 = a1 * a11
    e3 = 0.0 - (p1 * a3 + (2.0 * p2) * a12 + p3 * a111)
    z1 = pull * p1
    z2 = z1 + pull * (2.0 * p2 * a1)
    z3 = z2 + pull * (2.0 * p2 * a2 + 3.0 * p3 * a11)
    r1 = 0.0 - z1
    r2 = 0.0 - (z1 * r1 + z2)
    r3 = 0.0 - (z1 * r2 + z2 * r1 + z3)
    wk = w * k
    g0 = wk * e0
    g1 = wk * (e1 + B1 * e0)
    g2 = wk * (e2 + B1 * e1 + B2 * e0)
    g3 = wk * (e3 + B1 * e2 + B2 * e1 + B3 * e0)
    rest = (a, pull, p1, p2, p3, skew, wk), (e0, e1, e2, e3), (a1, a2, a3), (z1, z2, z3)
    return share, pull + magnitude(a) + 1.0, (g0, g1, g2, g3), (r1, r2, r3), rest


@compiled_inline
def long_series(g: Series, r: Series, rest: Rest) -> tuple[Series, Series]:
    """Go on to 6 and 5 coefficients (up to u⁵) from what `short_series` found."""
    (a, pull, p1, p2, p3, skew, wk), (e0, e1, e2, e3), (a1, a2, a3), (z1, z2, z3) = rest
    r1, r2, r3 = r
    p4 = p1 * skew * (1.0 / 24.0 - 0.5 * p1)
    p5 = p1 * (1.0 / 120.0 - p1 * (0.25 - p1))
    a11, a12 = a1 * a1, a1 * a2
    a111 = a1 * a11
    sum3 = ((e0 + e1) + e2) + e3
    a4 = B4 * a + pull * sum3
    square4 = 2.0 * (a1 * a3) + a2 * a2
    e4 = 0.0 - (p1 * a4 + p2 * square4 + (3.0 * p3) * (a11 * a2) + p4 * (a11 * a11))
    a5 = B5 * a + pull * (sum3 + e4)
    square5 = 2.0 * (a1 * a4 + a2 * a3)
    cube5 = 3.0 * (a11 * a3 + a12 * a2)
    e5 = 0.0 - (p1 * a5 + p2 * square5 + p3 * cube5 + (4.0 * p4) * (a111 * a2) + p5 * (a111 * a11))
    z4 = z3 + pull * (2.0 * p2 * a3 + 6.0 * p3 * a12 + 4.0 * p4 * a111)
    z5 = z4 + pull * (2.0 * p2 * a4 + 3.0 * p3 * square4 + 12.0 * p4 * (a11 * a2) + 5.0 * p5 * (a11 * a11))
    r4 = 0.0 - (z1 * r3 + z2 * r2 + z3 * r1 + z4)
    r5 = 0.0 - (z1 * r4 + z2 * r3 + z3 * r2 + z4 * r1 + z5)
    g4 = wk * (e4 + B1 * e3 + B2 * e2 + B3 * e1 + B4 * e0)
    g5 = wk * (e5 + B1 * e4 + B2 * e3 + B3 * e2 + B4 * e1 + B5 * e0)
    return (*g, g4, g5), (r1, r2, r3, r4, r5)


@compiled_inline
def gain_and_shrink(u: Lanes, g: Series, r: Series) -> tuple[Lanes, Lanes]:
    """The long series at u: what xσ² is multiplied by to move the mean, and what σ² is multiplied by."""
    g0, g1, g2, g3, g4, g5 = g
    r1, r2, r3, r4, r5 = r
    u2 = u * u
    gain = (g0 + u * g1) + u2 * ((g2 + u * g3) + u2 * (g4 + u * g5))
    return gain, (1.0 + u * r1) + u2 * ((r2 + u * r3) + u2 * (r4 + u * r5))


@compiled_inline
def update_long(x: Lanes, m: Lanes, v: Lanes, share: Lanes, g: Series, r: Series) -> tuple[Lanes, Lanes]:
    """Mean and variance of features after the row, by the long series."""
    xv = x * v
    gain, shrink = gain_and_shrink(share * (x * xv), g, r)
    return m + xv * gain, v * shrink


@compiled_inline
def update_short(x: Lanes, m: Lanes, v: Lanes, share: Lanes, g: Series, r: Series) -> tuple[Lanes, Lanes]:
    """As `update_long`, by the short series."""
    g0, g1, g2, g3 = g
    r1, r2, r3 = r
    xv = x * v
    u = share * (x * xv)
    u2 = u * u
    return m + xv * ((g0 + u * g1) + u2 * (g2 + u * g3)), v * ((1.0 + u * r1) + u2 * (r2 + u * r3))


@compiled_inline
def halley(a: Lanes, gap: Lanes, pull: Lanes, y: float, not_y: float) -> tuple[Lanes, Lanes, Lanes]:
    """One step on a - a₀ = pull·(y - σ(a)), where gap = a - a₀; and σ(a), σ(-a) after the step."""
    up, down = sigmoids(a)
    residual = pull * (y * down - not_y * up) - gap
    slope = up * down
    bend = slope * (down - up)
    rise = 1.0 + pull * slope
    step = residual * rise / (rise * rise + 0.5 * (residual * pull) * bend)
    change = step * (slope + 0.5 * step * (bend + (1.0 / 3.0) * step * (slope * (1.0 - 6.0 * slope))))
    return step, up + change, down - change


@compiled_fused
def _search(a0: float, pull: float, y: float, w: float) -> tuple[float, float]:
    a, _, _ = logistic_root(w * y, w, a0, pull / w, False)
    return sigmoid(a), sigmoid(-a)


@compiled_inline
def _unsettled(pull: Lanes, step: Lanes) -> int:
    """Bits of the lanes where a further step matters: Halley errs by 0.03·pull·step³ at most, Taylor by step⁴/24."""
    size = magnitude(step)
    bits: int = bits_of(pull * (size * size * size) > 1e-13) | bits_of(size > 1e-3)
    return bits


@compiled_inline
def _at_mode(start: Lanes, gap: Lanes, pull: Lanes, y: float, w: float, room: Pointer) -> tuple[Lanes, Lanes]:
    """σ(a) and σ(-a) at the root of a - start = pull·(y - σ(a)), beginning at a = start + gap."""
    not_y = 1.0 - y
    step, up, down = halley(start + gap, gap, pull, y, not_y)
    gap = gap + step
    steps = 1
    while _unsettled(pull, step) != 0 and steps < MOST_STEPS:
        step, up, down = halley(start + gap, gap, pull, y, not_y)
        gap = gap + step
        steps += 1
    if steps == MOST_STEPS:
        step, _, _ = halley(start + gap, gap, pull, y, not_y)
        settled = bits_of(magnitude(step) <= 1e-9)
        width = width_of(up)
        store(room, 0, start)
        store(room, width, pull)
        store(room, 2 * width, up)
        store(room, 3 * width, down)
        for i in range(width):
            if not settled >> i & 1:
                room[2 * width + i], room[3 * width + i] = _search(room[i], room[width + i], y, w)
        up = load_like(room, 2 * width, up)
        down = load_like(room, 3 * width, down)
    return up, down


@compiled_fused
def solve(
    x: Lanes, m: Lanes, v: Lanes, gain: Lanes, mean: Lanes, variance: Lanes, y: float, w: float, room: Pointer
) -> tuple[Lanes, Lanes]:
    """Mean and variance of features after the row, in lanes; ``mean`` and ``variance`` are the whole row's.

    ``gain`` is the series' value, a good place to start from even where it is not exact enough to end with.
    ``room`` points to space for four times as many numbers as there are lanes, for the search.
    """
    not_y = 1.0 - y
    own = x * x * v
    d = 1.0 + SCALE * larger(variance - own, 0.0)
    slant = root(d)
    inverse = 1.0 / d
    k = slant * inverse
    pull = (w * own) * inverse
    start = k * mean
    gap = pull * (gain * slant) * (1.0 / w)
    gap = choose(magnitude(gap) <= pull, gap, 0.0)
    up, down = _at_mode(start, gap, pull, y, w, room)
    return m + x * v * (w * k * (y * down - not_y * up)), v / (1.0 + pull * (up * down))


@compiled_fused
def logit_sites(m0: Lanes, v0: Lanes, y: float, w: float, room: Pointer) -> tuple[Lanes, Lanes]:
    """Gradient w (y - σ(f)) and curvature -w σ'(f) at the mode f of σ(f)^(wy) σ(-f)^(w(1-y)) N(f; m0, v0), in lanes.

    The same numbers one by one: ``scalar.sites.make_site`` by Newton's rule at the posterior. ``room`` as for `solve`.
    """
    up, down = _at_mode(m0, 0.0 * m0, w * v0, y, w, room)
    return w * (y * down - (1.0 - y) * up), 0.0 - w * (up * down)
