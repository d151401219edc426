"""Process noise of a stationary state space, ``Q = P∞ - A P∞ A'`` for a table of steps, and its adjoint."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled


@compiled
def process_noise(A: np.ndarray, P: np.ndarray) -> np.ndarray:
    """``Q_u = P - A_u P A_u'`` for every step of the table."""
    S = P.shape[0]
    Q = np.empty_like(A)
    T = np.empty((S, S))
    for u in range(A.shape[0]):
        for i in range(S):
            for j in range(S):
                t = 0.0
                for k in range(S):
                    t += A[u, i, k] * P[k, j]
                T[i, j] = t
        for i in range(S):
            for j in range(i + 1):
                t = P[i, j]
                for k in range(S):
                    t -= T[i, k] * A[u, j, k]
                Q[u, i, j] = Q[u, j, i] = t
    return Q


@compiled
def process_noise_adjoint(
    A: np.ndarray, P: np.ndarray, bar_A: np.ndarray, bar_Q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Adjoints of A and P when Q is made of them: ``bar_A - 2 bar_Q A P`` and ``Σ bar_Q - A' bar_Q A``."""
    S = P.shape[0]
    out_A = np.empty_like(bar_A)
    out_P = np.zeros((S, S))
    T = np.empty((S, S))
    for u in range(A.shape[0]):
        for i in range(S):
            for j in range(S):
                t = 0.0
                for k in range(S):
                    t += bar_Q[u, i, k] * A[u, k, j]
                T[i, j] = t  # bar_Q A
        for i in range(S):
            for j in range(S):
                t = bar_A[u, i, j]
                s = bar_Q[u, i, j]
                for k in range(S):
                    t -= 2.0 * T[i, k] * P[k, j]
                    s -= A[u, k, i] * T[k, j]
                out_A[u, i, j] = t
                out_P[i, j] += s
    return out_A, out_P
