"""Marginal VB with expectations over N samples, by Newton's method: sparse-online (49)-(54).

An update needs five sums over its samples z: of q, z q, and of d, z d, z² d, where q = σ(-f) is the probability of the
other label at f = a + h z, h = α s, and d = -q'(f). Directly that is N exponentials for each of at most eight steps.
Where h is small, q is its Taylor series around a to better than the samples are worth, and the sums are those
of powers of z: differences of running sums over the pool of samples, at a price that does not depend on N.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from experiments.sparse.baselines import log_loss
from gaussfold.engine.scalar.exponential import exp_nonpositive
from gaussfold.rows import Rows
from gaussfold.types import Array

POOL = 1 << 15
TERMS = 9
"""At most so many of the series of q. Its radius of convergence is at least π: terms shrink like (h|z|/π)^k."""
NARROW = 0.25
"""Largest h that takes the series: what it leaves out is below 1e-7 of q, the samples' own error is 1/√N."""


class SampledVB:
    """One-dimensional VB for each active feature, the rest integrated out, with N samples.

    ``fresh=False`` draws them once and uses them for all updates, so that their error does not average out over the
    stream: that is what reproduces the paper's figures. ``fresh=True`` draws for every update, and comes to what
    quadrature gives. ``narrow`` is the largest h at which the series replaces the samples. ``taylor``: no iterations;
    each sample's probability is expanded to first order around the old mean and standard deviation, as (17) does, and
    what is left is solved: an equation for the mean that is linear, then a quadratic in the standard deviation.
    """

    def __init__(
        self,
        dim: int,
        std: float,
        samples: int,
        *,
        fresh: bool = False,
        seed: int = 0,
        narrow: float = NARROW,
        taylor: bool = False,
    ) -> None:
        self.mean, self.std = np.zeros(dim), np.full(dim, std)
        self.samples, self.fresh, self.narrow, self.taylor = samples, fresh, narrow, taylor
        self.draw(seed)

    def draw(self, seed: int) -> None:
        """Draw the samples."""
        self.rng = np.random.default_rng(seed)
        self.drawn = None if self.fresh else _pool(self.rng.standard_normal(self.samples), 0)

    def learn(self, rows: Rows, y: Array) -> Array:
        """Predict, then learn, row by row; returns the log losses."""
        # one pool of normals per chunk, read from a random place for every update: drawing would dominate the time
        pool, sums = self.drawn or _pool(_balanced(self.rng, max(POOL, 2 * self.samples)), self.samples)
        places = self.rng.integers(0, pool.size - self.samples + 1, size=rows.data.size)
        loss = np.empty(y.size)
        _learn(
            rows.indptr,
            rows.indices,
            rows.data,
            y,
            self.mean,
            self.std,
            pool,
            sums,
            places,
            self.samples,
            self.narrow,
            self.taylor,
            loss,
        )
        return loss


def _balanced(rng: np.random.Generator, size: int) -> Array:
    """Draw normals whose mean is exactly 0 and whose variance is 1.

    The mean of a plain pool, 1/√size, would be in every update of a chunk alike: it does not average out as the error
    of a window does, and late in a stream, where h is small, it is what the standard deviations would follow.
    """
    half = rng.standard_normal(size // 2)
    half /= math.sqrt(float(np.mean(half * half)))
    return rng.permutation(np.concatenate([half, -half]))


def _pool(normals: Array, wrap: int) -> tuple[Array, Array]:
    """Samples, the first ``wrap`` of them again at the end, so that windows of that length show all equally often.

    Also the running sums of their powers 0 to TERMS, shape (size + 1, TERMS + 1).
    """
    pool = np.concatenate([normals, normals[:wrap]])
    sums = np.zeros((pool.size + 1, TERMS + 1))
    power = np.ones(pool.size)
    for k in range(TERMS + 1):
        np.cumsum(power, out=sums[1:, k])
        power *= pool
    return pool, sums


@njit(error_model="numpy", fastmath={"reassoc", "contract"})  # type: ignore[untyped-decorator]
def _direct(a, h, pool, place, samples):  # type: ignore[no-untyped-def]
    g1 = 0.0
    g2 = 0.0
    h11 = 0.0
    h12 = 0.0
    h22 = 0.0
    for t in range(place, place + samples):
        z = pool[t]
        f = a + h * z
        e = exp_nonpositive(-abs(f))
        small = e / (1.0 + e)  # the smaller of p and 1 - p
        miss = small if f > 0.0 else 1.0 - small
        g1 += miss
        g2 += z * miss
        d = small * (1.0 - small)
        h11 += d
        h12 += z * d
        h22 += z * z * d
    return g1, g2, h11, h12, h22


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _series(a, h, sums, place, samples, c):  # type: ignore[no-untyped-def]
    """The same sums by Taylor: q' = -q(1 - q) gives (k + 1) c[k+1] = -c[k] + Σ c[i] c[k-i]."""
    e = math.exp(-abs(a))
    c[0] = e / (1.0 + e) if a > 0.0 else 1.0 / (1.0 + e)
    g1 = 0.0
    g2 = 0.0
    h11 = 0.0
    h12 = 0.0
    h22 = 0.0
    power = 1.0
    last = place + samples
    terms = 4 if h * h <= 0.02**2 else 6 if h * h <= 0.08**2 else TERMS  # each to below 1e-7
    for k in range(terms - 1):
        total = -c[k]
        for i in range(k + 1):
            total += c[i] * c[k - i]
        c[k + 1] = total / (k + 1)
        here = power * (sums[last, k] - sums[place, k])
        next_one = power * (sums[last, k + 1] - sums[place, k + 1])
        second = power * (sums[last, k + 2] - sums[place, k + 2])
        g1 += c[k] * here
        g2 += c[k] * next_one
        h11 -= total * here
        h12 -= total * next_one
        h22 -= total * second
        power *= h
    g1 += c[terms - 1] * power * (sums[last, terms - 1] - sums[place, terms - 1])
    g2 += c[terms - 1] * power * (sums[last, terms] - sums[place, terms])
    return g1, g2, h11, h12, h22


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _learn(indptr, indices, data, y, mean, std, pool, sums, places, samples, narrow, taylor, loss):  # type: ignore[no-untyped-def]
    c = math.pi / 8.0
    terms = np.empty(TERMS)
    for r in range(y.size):
        mu = 0.0
        spread = 0.0
        for q in range(indptr[r], indptr[r + 1]):
            i = indices[q]
            mu += data[q] * mean[i]
            spread += (data[q] * std[i]) ** 2
        loss[r] = log_loss(mu / math.sqrt(1.0 + c * spread), y[r])
        sign = 1.0 if y[r] > 0.5 else -1.0
        for q in range(indptr[r], indptr[r + 1]):
            i = indices[q]
            x = data[q]
            m0 = mean[i]
            s0 = std[i]
            v0 = s0 * s0
            k = 1.0 / math.sqrt(1.0 + c * max(spread - (x * s0) ** 2, 0.0))
            alpha = sign * x * k
            rest = sign * k * (mu - x * m0)
            m = m0
            s = s0
            for _ in range(8):
                if abs(alpha * s) <= narrow:
                    g1, g2, h11, h12, h22 = _series(rest + alpha * m, alpha * s, sums, places[q], samples, terms)
                else:
                    g1, g2, h11, h12, h22 = _direct(rest + alpha * m, alpha * s, pool, places[q], samples)
                a = alpha / samples
                b = alpha * alpha / samples
                if taylor:
                    p11 = 1.0 / v0 + b * h11
                    p = 1.0 / v0 + b * h22 - b * h12 * b * h12 / p11
                    linear = a * g2 + (b * h22 - b * h12 * b * h12 / p11) * s0 - b * h12 * a * g1 / p11
                    s = (linear + math.sqrt(linear * linear + 4.0 * p)) / (2.0 * p)
                    m = m0 + (a * g1 - b * h12 * (s - s0)) / p11
                    break
                e1 = (m - m0) / v0 - a * g1
                e2 = -1.0 / s + s / v0 - a * g2
                j11 = 1.0 / v0 + b * h11
                j12 = b * h12
                j22 = 1.0 / (s * s) + 1.0 / v0 + b * h22
                det = j11 * j22 - j12 * j12
                dm = (j22 * e1 - j12 * e2) / det
                ds = (j11 * e2 - j12 * e1) / det
                m -= dm
                s = max(s - ds, 0.1 * s)
                if abs(dm) + abs(ds) < 1e-3 * s:  # Newton: what is left is of the order of the square
                    break
            mean[i] = m
            std[i] = s
