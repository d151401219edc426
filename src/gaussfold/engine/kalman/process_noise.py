"""Process noise of a stationary state space, ``Q = P∞ - A P∞ A'`` for a table of steps, and its adjoint."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled_fused


@compiled_fused
def process_noise(A: np.ndarray, P: np.ndarray, Q: np.ndarray) -> None:
    """``Q_u = P - A_u P A_u'`` for every step of the table; tables are (U, S, S)."""
    S = P.shape[0]
    for u in range(A.shape[0]):
        for i in range(S):
            for j in range(S):
                Q[u, i, j] = P[i, j]
        for i in range(S):
            for k in range(S):
                t = 0.0
                for j in range(S):
                    t += A[u, i, j] * P[j, k]
                for j in range(i + 1):
                    Q[u, i, j] -= t * A[u, j, k]
        for i in range(S):
            for j in range(i):
                Q[u, j, i] = Q[u, i, j]


@compiled_fused
def add_adjoints(
    dt: np.ndarray, A: np.ndarray, P: np.ndarray, bar_A: np.ndarray, bar_Q: np.ndarray, sums: np.ndarray
) -> None:
    """What the derivatives of A and P∞ are made of, added to the three (S, S) matrices of ``sums``.

    With Q made of A and P, A's whole adjoint is ``B = bar_A - 2 bar_Q A P``, and the sums over the table are
    ``B ∘ A``, ``dt B A'`` and ``bar_Q - A' bar_Q A``.
    """
    S = P.shape[0]
    for u in range(A.shape[0]):
        for i in range(S):
            for j in range(S):
                sums[2, i, j] += bar_Q[u, i, j]
        for i in range(S):
            for k in range(S):
                t = 0.0
                for j in range(S):
                    t += bar_Q[u, i, j] * A[u, j, k]  # bar_Q A
                for j in range(S):
                    bar_A[u, i, j] -= 2.0 * t * P[k, j]
                    sums[2, j, k] -= A[u, i, j] * t
            for j in range(S):
                t = bar_A[u, i, j]
                sums[0, i, j] += t * A[u, i, j]
                for k in range(S):
                    sums[1, i, k] += dt[u] * t * A[u, k, j]


@compiled_fused
def process_noise_pair(A: np.ndarray, P: np.ndarray, Q: np.ndarray) -> None:
    """:func:`process_noise` for two states, written out."""
    x, y, z = P[0, 0], P[0, 1], P[1, 1]
    for u in range(A.shape[0]):
        a, b, c, d = A[u, 0, 0], A[u, 0, 1], A[u, 1, 0], A[u, 1, 1]
        ax, ay = a * x + b * y, a * y + b * z
        cx, cy = c * x + d * y, c * y + d * z
        q = y - (ax * c + ay * d)
        Q[u, 0, 0] = x - (ax * a + ay * b)
        Q[u, 0, 1] = q
        Q[u, 1, 0] = q
        Q[u, 1, 1] = z - (cx * c + cy * d)


@compiled_fused
def add_adjoints_pair(
    dt: np.ndarray, A: np.ndarray, P: np.ndarray, bar_A: np.ndarray, bar_Q: np.ndarray, sums: np.ndarray
) -> None:
    """:func:`add_adjoints` for two states and a symmetric bar_Q, written out; bar_A is left alone."""
    x, y, z = P[0, 0], P[0, 1], P[1, 1]
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    f0, f1, f2, f3 = 0.0, 0.0, 0.0, 0.0
    p0, p1, p3 = 0.0, 0.0, 0.0
    for u in range(A.shape[0]):
        a, b, c, d = A[u, 0, 0], A[u, 0, 1], A[u, 1, 0], A[u, 1, 1]
        g, h, i, t = bar_Q[u, 0, 0], bar_Q[u, 0, 1], bar_Q[u, 1, 1], dt[u]
        ga, gb, ha, hb = g * a + h * c, g * b + h * d, h * a + i * c, h * b + i * d  # bar_Q A
        p0 += g - (a * ga + c * ha)
        p1 += h - (a * gb + c * hb)
        p3 += i - (b * gb + d * hb)
        B0 = bar_A[u, 0, 0] - 2.0 * (ga * x + gb * y)
        B1 = bar_A[u, 0, 1] - 2.0 * (ga * y + gb * z)
        B2 = bar_A[u, 1, 0] - 2.0 * (ha * x + hb * y)
        B3 = bar_A[u, 1, 1] - 2.0 * (ha * y + hb * z)
        s0 += B0 * a
        s1 += B1 * b
        s2 += B2 * c
        s3 += B3 * d
        f0 += t * (B0 * a + B1 * b)
        f1 += t * (B0 * c + B1 * d)
        f2 += t * (B2 * a + B3 * b)
        f3 += t * (B2 * c + B3 * d)
    for k, totals in enumerate(((s0, s1, s2, s3), (f0, f1, f2, f3), (p0, p1, p1, p3))):
        sums[k, 0, 0] += totals[0]
        sums[k, 0, 1] += totals[1]
        sums[k, 1, 0] += totals[2]
        sums[k, 1, 1] += totals[3]
