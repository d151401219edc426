"""Small matrices for :mod:`gaussfold.engine.kalman`: products that skip zeros, roots, and one site on one marginal.

Real or complex; plain transposes, real parts in comparisons.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled


@compiled
def mul(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """``out = a b``; zeros of a (blocks of the transition, most of H) cost nothing."""
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            out[i, j] = 0.0
        for k in range(a.shape[1]):
            t = a[i, k]
            if t != 0.0:
                for j in range(b.shape[1]):
                    out[i, j] += t * b[k, j]


@compiled
def mul_turned(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """``out = a b'``."""
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            out[i, j] = 0.0
        for k in range(a.shape[1]):
            t = a[i, k]
            if t != 0.0:
                for j in range(b.shape[0]):
                    out[i, j] += t * b[j, k]


@compiled
def add_turned(scale: float, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """``out += scale · a' b``."""
    for k in range(a.shape[0]):
        for i in range(a.shape[1]):
            t = scale * a[k, i]
            if t != 0.0:
                for j in range(b.shape[1]):
                    out[i, j] += t * b[k, j]


@compiled
def apply(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """``out = a x``."""
    for i in range(a.shape[0]):
        t = a[i, 0] * x[0]
        for k in range(1, a.shape[1]):
            t += a[i, k] * x[k]
        out[i] = t


@compiled
def root(V: np.ndarray, L: np.ndarray) -> bool:
    """Lower Cholesky factor of a positive semi-definite matrix; False if a pivot is negative beyond rounding."""
    D = V.shape[0]
    fine = True
    for j in range(D):
        pivot = V[j, j]
        for k in range(j):
            pivot -= L[j, k] * L[j, k]
        if not pivot.real >= -1e-9 * abs(V[j, j].real):
            fine = False
        positive = pivot.real > 0.0
        L[j, j] = np.sqrt(pivot) if positive else 0.0
        for i in range(j + 1, D):
            entry = V[i, j]
            for k in range(j):
                entry -= L[i, k] * L[j, k]
            L[i, j] = entry / L[j, j] if positive else 0.0
            L[j, i] = 0.0
    return fine


@compiled
def solve(a: np.ndarray, b: np.ndarray) -> None:
    """``b = a⁻¹ b`` by elimination with row pivots; a is used up."""
    D = a.shape[0]
    for k in range(D):
        best = k
        for i in range(k + 1, D):
            if abs(a[i, k].real) > abs(a[best, k].real):
                best = i
        if best != k:
            for j in range(D):
                a[k, j], a[best, j] = a[best, j], a[k, j]
            for j in range(b.shape[1]):
                b[k, j], b[best, j] = b[best, j], b[k, j]
        for i in range(k + 1, D):
            t = a[i, k] / a[k, k]
            for j in range(k + 1, D):
                a[i, j] -= t * a[k, j]
            for j in range(b.shape[1]):
                b[i, j] -= t * b[k, j]
    for k in range(D - 1, -1, -1):
        for j in range(b.shape[1]):
            t = b[k, j]
            for i in range(k + 1, D):
                t -= a[k, i] * b[i, j]
            b[k, j] = t / a[k, k]


@compiled
def factorised(V: np.ndarray, precision: np.ndarray, work: np.ndarray) -> tuple[bool, float]:
    """``V = LL'`` and ``I + L'ΛL = RR'``, into ``work[0]`` and ``work[1]``; whether both exist, and log det R."""
    D = V.shape[0]
    L, R, G = work[0], work[1], work[2]
    fine = root(V, L)
    mul(precision, L, G)
    for i in range(D):
        for j in range(D):
            R[i, j] = 0.0
    add_turned(1.0, L, G, R)
    half_log_det = 0.0 * V[0, 0]
    for j in range(D):
        R[j, j] += 1.0
        for i in range(j, D):
            entry = R[i, j]
            for k in range(j):
                entry -= R[i, k] * R[j, k]
            if i == j:
                fine = fine and entry.real > 0.0
                R[j, j] = np.sqrt(entry)
                half_log_det += 0.5 * np.log(entry)
            else:
                R[i, j] = entry / R[j, j]
    return fine, half_log_det


@compiled
def absorb(
    V: np.ndarray, h: np.ndarray, precision: np.ndarray, shift: np.ndarray, work: np.ndarray, right: np.ndarray,
    pull: np.ndarray, weight: np.ndarray, total: np.ndarray,
) -> bool:  # fmt: skip
    """One site on the marginal N(h, V): ω, Ω, and its share of log Z; False if no positive covariance is left.

    ``[Ω ω] = (I + ΛV)⁻¹ [Λ e]``: no difference of large numbers when the site is much sharper than the prior. Whether
    the posterior is positive is for the pivots of ``I + L'ΛL`` to say, ``V = LL'``, which also give the determinant.
    """
    D = h.shape[0]
    G = work[2]
    fine, half_log_det = factorised(V, precision, work)
    if not fine:
        return False
    total[0] -= half_log_det
    mul(precision, V, G)
    for i in range(D):
        G[i, i] += 1.0
        t = shift[i]
        for j in range(D):
            t -= precision[i, j] * h[j]
            right[i, j] = precision[i, j]
        right[i, D] = t
        pull[i] = t  # e, for now
        total[0] += 0.5 * (shift[i] + t) * h[i]
    solve(G, right)
    for i in range(D):
        for j in range(D):
            weight[i, j] = 0.5 * (right[i, j] + right[j, i])
            total[0] += 0.5 * pull[i] * V[i, j] * right[j, D]
    for i in range(D):
        pull[i] = right[i, D]
    return True


@compiled
def marginal(V: np.ndarray, precision: np.ndarray, work: np.ndarray, out: np.ndarray) -> None:
    """``(V⁻¹ + Λ)⁻¹ = X'X`` with ``V = LL'``, ``I + L'ΛL = RR'``, ``X = R⁻¹L'``: never indefinite."""
    D = V.shape[0]
    L, R, X = work[0], work[1], work[3]
    factorised(V, precision, work)
    out[:] = 0.0
    for j in range(D):
        for i in range(D):
            t = L[j, i]
            for k in range(i):
                t -= R[i, k] * X[k, j]
            X[i, j] = t / R[i, i]
    add_turned(1.0, X, X, out)
