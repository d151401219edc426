"""What the paper compares with and the library does not have: AdaGrad, and variational Bayes by sampling."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gaussfold.beliefs.cellular import Rows
from gaussfold.engine.exponential import exp_nonpositive
from gaussfold.types import Array


class AdaGrad:
    """Stochastic gradient descent on the log loss; a step is rate · g / (start + Σg²)^power, feature by feature.

    Duchi et al. have power 1/2 and start 0. In a stationary stream that forgets too slowly: the paper's figures for
    SGD are only reached if the power is tuned too (1 makes steps of order 1/t).
    """

    def __init__(self, dim: int, rate: float, power: float = 0.5, start: float = 0.0) -> None:
        self.rate, self.power = rate, power
        self.weights, self.squares = np.zeros(dim), np.full(dim, start)

    def learn(self, rows: Rows, y: Array) -> Array:
        """Predict, then learn, row by row; returns the log losses."""
        loss = np.empty(y.size)
        _adagrad(*rows, y, self.weights, self.squares, self.rate, self.power, loss)
        return loss


class SampledVB:
    """Marginal VB with N Monte Carlo samples per feature, by Newton's method: sparse-online (49)-(54)."""

    def __init__(self, dim: int, std: float, samples: int, seed: int = 0) -> None:
        self.mean, self.std = np.zeros(dim), np.full(dim, std)
        self.samples, self.state = samples, np.array([seed], dtype=np.uint64)

    def learn(self, rows: Rows, y: Array) -> Array:
        """Predict, then learn, row by row; returns the log losses."""
        loss = np.empty(y.size)
        rng = np.random.default_rng(self.state[0])
        # one pool of normals per chunk, read from a random place for every update: drawing would dominate the time
        pool = rng.standard_normal(1 << 20)
        self.state[0] += np.uint64(1)
        places = rng.integers(0, pool.size - self.samples, size=rows.data.size)
        _sampled_vb(*rows, y, self.mean, self.std, pool, places, self.samples, loss)
        return loss


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _log_loss(f: float, y: float) -> float:
    s = -f if y > 0.5 else f
    return max(s, 0.0) + math.log1p(math.exp(-abs(s)))


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _adagrad(indptr, indices, data, y, weights, squares, rate, power, loss):  # type: ignore[no-untyped-def]
    root = power == 0.5
    for r in range(y.size):
        f = 0.0
        for q in range(indptr[r], indptr[r + 1]):
            f += data[q] * weights[indices[q]]
        loss[r] = _log_loss(f, y[r])
        gradient = 1.0 / (1.0 + math.exp(-f)) - y[r]
        for q in range(indptr[r], indptr[r + 1]):
            g = gradient * data[q]
            squares[indices[q]] += g * g
            if g != 0.0:
                weights[indices[q]] -= (
                    rate * g / (math.sqrt(squares[indices[q]]) if root else squares[indices[q]] ** power)
                )


@njit(error_model="numpy", fastmath={"reassoc", "contract"})  # type: ignore[untyped-decorator]
def _sampled_vb(indptr, indices, data, y, mean, std, pool, places, samples, loss):  # type: ignore[no-untyped-def]
    c = math.pi / 8.0
    for r in range(y.size):
        mu = 0.0
        spread = 0.0
        for q in range(indptr[r], indptr[r + 1]):
            i = indices[q]
            mu += data[q] * mean[i]
            spread += (data[q] * std[i]) ** 2
        loss[r] = _log_loss(mu / math.sqrt(1.0 + c * spread), y[r])
        sign = 1.0 if y[r] > 0.5 else -1.0
        for q in range(indptr[r], indptr[r + 1]):
            i = indices[q]
            x = data[q]
            m0 = mean[i]
            s0 = std[i]
            k = 1.0 / math.sqrt(1.0 + c * max(spread - (x * s0) ** 2, 0.0))
            alpha = sign * x * k
            rest = sign * k * (mu - x * m0)
            m = m0
            s = s0
            for _ in range(8):
                g1 = 0.0
                g2 = 0.0
                h11 = 0.0
                h12 = 0.0
                h22 = 0.0
                for t in range(places[q], places[q] + samples):
                    z = pool[t]
                    f = rest + alpha * (m + z * s)
                    e = exp_nonpositive(-abs(f))
                    small = e / (1.0 + e)  # the smaller of p and 1 - p
                    miss = small if f > 0.0 else 1.0 - small
                    g1 += miss
                    g2 += z * miss
                    d = small * (1.0 - small)
                    h11 += d
                    h12 += z * d
                    h22 += z * z * d
                a = alpha / samples
                b = alpha * alpha / samples
                v0 = s0 * s0
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
                if abs(dm) + abs(ds) < 1e-6 * s:
                    break
            mean[i] = m
            std[i] = s
