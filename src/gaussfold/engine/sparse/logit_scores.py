"""Log probability of a binary label when the latent is N(m, v) and the link logistic: many at a time.

With μ = |m| and s = √v everything follows from the smaller probability q = E σ(-f), f ~ N(μ, v):

- s < 4: the trapezoidal rule in z = (f - μ)/s, as in ``scalar.logistic``, the nodes ±z together: σ(-μ-sz) + σ(-μ+sz)
  = (EC + 2E²)/(1 + EC + E²), E = e^-μ, C = 2 cosh sz. All terms are positive, so q is as exact relatively as
  absolutely.
- s ≥ 4: σ(-f) is a step and what the step misses, q = Φ(-μ/s) + ∫₀^∞ σ(-t) (N(t; μ, v) - N(-t; μ, v)) dt; Gauss
  quadrature for the weight σ(-t), 20 nodes: 1e-12 relatively down to q = 1e-6, better for larger s, 1e-17 below.

The plain equivalent, also for the rest, is ``scalar.expectations.log_predictive``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from gaussfold.engine.compiled import compiled_fused, compiled_inline
from gaussfold.engine.scalar.expectations import log_predictive
from gaussfold.engine.scalar.exponential import exp_nonpositive, log_one_minus, log_positive
from gaussfold.engine.simd.lane_memory import load4, load4_last, load8, store
from gaussfold.engine.simd.lanes import bits_of, choose, lanes4, lanes8, larger, magnitude, peak, root, smaller, total
from gaussfold.engine.simd.types import Lanes

if TYPE_CHECKING:
    from gaussfold.likelihoods.bernoulli_logit import LogitRecord

SCALE = math.pi / 8.0
WIDE = 4.0
REACH = 8.6
FARTHEST = 700.0
RARE = 1e-6
LEAST = -20.0
"""A label less probable than e^LEAST lies where the nodes thin out."""
NARROW = 0.25
NODES = np.array([
    0.07596881766097743, 0.39689586344285177, 0.9633855961455676, 1.7672851741343873,
    2.8113783607544, 4.107840574994487, 5.670435458031239, 7.511843531087686,
    9.645797798701258, 12.08934989255565, 14.864277739984745, 17.99848289542226,
    21.528081763693308, 25.500770968520506, 29.98144510924884, 35.06218120122074,
    40.88168547635076, 47.6685221895426, 55.859236367272466, 66.57277603310332,
])  # fmt: skip
WEIGHTS = np.array([
    0.09358078357935277, 0.1791589107707745, 0.18942324180609035, 0.13457298596861636,
    0.06623417223767455, 0.02309072031143862, 0.005838335078447862, 0.0010844477943787606,
    0.00014785885411091834, 1.4638381919646375e-05, 1.0333504555720963e-06, 5.0717447651635744e-08,
    1.6733110910186913e-09, 3.546943922613306e-11, 4.539897224729797e-13, 3.2122945191934556e-15,
    1.1001725170464245e-17, 1.4665773261340315e-20, 5.036421857158181e-24, 1.578247292006709e-28,
])  # fmt: skip


@compiled_inline
def _lesser(mu: Lanes, v: Lanes, zero: Lanes) -> Lanes:
    """Integrate σ(-f) over N(μ, v) for s < 4, in lanes; ``zero`` says how many."""
    s = root(v)
    h = smaller(0.5, 0.52 / larger(s, 1e-3))
    ratio = exp_nonpositive(0.0 - s * h)
    inverse = 1.0 / ratio
    w_ratio = exp_nonpositive(-0.5 * (h * h))
    w_curve = w_ratio * w_ratio
    e = exp_nonpositive(0.0 - mu)
    e2 = e * e
    falling = zero + e
    rising = zero + e
    w = zero + 1.0
    mass = zero + 0.5
    q = zero + e / (1.0 + e) * 0.5
    z = zero + 0.0
    last = REACH + h * (1.0 - 1e-9)  # one node at or beyond the reach, never one that depends on rounding
    steps = math.ceil(REACH / min(0.5, 0.52 / max(peak(s), 1e-3)))
    for _ in range(steps):
        z = z + h
        falling = falling * ratio
        rising = rising * inverse
        w = choose(z < last, w * w_ratio, 0.0)  # the same nodes whatever the other lanes need
        w_ratio = w_ratio * w_curve
        ec = falling + rising
        # half of the pair: the middle, counted once, has weight one half
        q = q + w * ((0.5 * ec + e2) / (1.0 + ec + e2))
        mass = mass + w
    probability: Lanes = q / mass
    return probability


@compiled_inline
def _log_scores(approximate: bool, y: Lanes, m: Lanes, v: Lanes, zero: Lanes) -> Lanes:
    """Y log p + (1-y) log(1-p), in lanes."""
    if approximate:
        e = exp_nonpositive(0.0 - magnitude(m) / root(1.0 + SCALE * v))
        q = zero + e / (1.0 + e)
    else:
        q = _lesser(magnitude(m), choose(v < WIDE * WIDE, v, 0.0), zero)  # the wide ones are done apart
    small, large = log_positive(q), log_one_minus(q)
    score: Lanes = choose(m >= 0.0, y * large + (1.0 - y) * small, y * small + (1.0 - y) * large)
    return score


@compiled_fused
def log_score_wide(family: LogitRecord, y: float, m: float, v: float) -> float:
    """The same for one row with s ≥ 4."""
    mu = abs(m)
    scale = -0.5 / v
    q4 = lanes4(0.0)
    for i in range(0, NODES.size, 4):
        t = load4(NODES, i)
        near = t - mu
        far = t + mu
        q4 = q4 + load4(WEIGHTS, i) * (exp_nonpositive(scale * (near * near)) - exp_nonpositive(scale * (far * far)))
    q = 0.5 * math.erfc(mu / math.sqrt(2.0 * v)) + total(q4) / math.sqrt(2.0 * math.pi * v)
    if q < RARE:
        # What nearly always happens is told by 1 - q, where q need not be exact relatively.
        usual = 1.0 if m >= 0.0 else 0.0
        return math.log1p(-max(q, 0.0)) if y == usual else log_predictive(family, y, m, v)
    small, large = math.log(q), math.log1p(-q)
    return y * large + (1.0 - y) * small if m >= 0.0 else y * small + (1.0 - y) * large


@compiled_fused
def _score_one(family: LogitRecord, y: float, m: float, v: float) -> float:
    """What the lanes do not cover."""
    if not family.approximate and v >= WIDE * WIDE and abs(m) < FARTHEST and v < 1e6:
        return log_score_wide(family, y, m, v)
    return log_predictive(family, y, m, v)


@compiled_inline
def _covered(m: Lanes, v: Lanes, score: Lanes, widest: float) -> int:
    """Bits of the lanes that hold: where labels are not rare the nodes reach far enough, the rest must be narrow."""
    bits: int = bits_of(magnitude(m) < FARTHEST) & bits_of(v < widest) & (bits_of(score >= LEAST) | bits_of(v < NARROW))
    return bits


# A few branches more than ten: three widths of the same loop, each with what its lanes do not cover.
@compiled_fused
def logit_scores(
    family: LogitRecord, y: np.ndarray, means: np.ndarray, variances: np.ndarray, scores: np.ndarray
) -> None:
    """Log probability of every row's label under every component; NaN without a label. Arrays of shape (n, K)."""
    n, k = means.shape
    widest = math.inf if family.approximate else WIDE * WIDE
    if k == 8:
        for r in range(n):
            m = load8(means, r * 8)
            v = load8(variances, r * 8)
            score = _log_scores(family.approximate, y[r], m, v, lanes8(0.0))
            store(scores, r * 8, score)
            covered = 0 if 0.0 < y[r] < 1.0 else _covered(m, v, score, widest)
            if covered != 255:
                for c in range(8):
                    if not covered >> c & 1:
                        scores[r, c] = _score_one(family, y[r], means[r, c], variances[r, c])
        return
    if k > 1:
        for r in range(n):
            for c in range(k):
                scores[r, c] = log_predictive(family, y[r], means[r, c], variances[r, c])
        return
    padded = np.empty(4)
    for r in range(0, n, 4):
        if r + 4 <= n:
            label, m, v = load4(y, r), load4(means, r), load4(variances, r)
        else:
            label, m, v = load4_last(y, r, n - 1), load4_last(means, r, n - 1), load4_last(variances, r, n - 1)
        score = _log_scores(family.approximate, label, m, v, lanes4(0.0))
        store(padded, 0, score)
        covered = _covered(m, v, score, widest)
        for i in range(min(4, n - r)):
            if covered >> i & 1 and not 0.0 < y[r + i] < 1.0:
                scores[r + i, 0] = padded[i]
            else:
                scores[r + i, 0] = _score_one(family, y[r + i], means[r + i, 0], variances[r + i, 0])
