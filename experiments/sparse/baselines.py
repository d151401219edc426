"""The paper's stochastic gradient descent, which the library does not have."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from gaussfold.rows import Rows
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
        _adagrad(rows.indptr, rows.indices, rows.data, y, self.weights, self.squares, self.rate, self.power, loss)
        return loss


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def log_loss(f: float, y: float) -> float:
    """-log σ(±f), the sign by the label."""
    s = -f if y > 0.5 else f
    return max(s, 0.0) + math.log1p(math.exp(-abs(s)))


@njit(error_model="numpy")  # type: ignore[untyped-decorator]
def _adagrad(indptr, indices, data, y, weights, squares, rate, power, loss):  # type: ignore[no-untyped-def]
    root = power == 0.5
    for r in range(y.size):
        f = 0.0
        for q in range(indptr[r], indptr[r + 1]):
            f += data[q] * weights[indices[q]]
        loss[r] = log_loss(f, y[r])
        gradient = 1.0 / (1.0 + math.exp(-f)) - y[r]
        for q in range(indptr[r], indptr[r + 1]):
            g = gradient * data[q]
            squares[indices[q]] += g * g
            if g != 0.0:
                weights[indices[q]] -= (
                    rate * g / (math.sqrt(squares[indices[q]]) if root else squares[indices[q]] ** power)
                )
