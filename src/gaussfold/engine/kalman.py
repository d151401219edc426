"""Kalman filter and smoother over Gaussian sites, linear in the number of points: bayes-newton (68)-(71).

The state moves by ``x' = A x + N(0, Q)``, one step of a table per point; the latents are ``f = H x``; every point
carries a site ``t(f) = exp(-f'Λf/2 + λ'f)``, so that a missing observation is Λ = 0 and nothing is ever inverted.

Forward, with ``V = H P H'``, ``C = (V⁻¹ + Λ)⁻¹``, ``e = λ - Λ H m``: pull ``ω = (I - ΛC) e``, weight ``Ω = Λ - ΛCΛ``,
mean ``+= P H'ω``, covariance ``-= P H'Ω H P``, and the logarithm of ``∫ N(f; Hm, V) t(f) df`` adds up to log Z (71).

Backward runs the adjoint of log Z rather than the Rauch-Tung-Striebel gain (same posterior, no inverse): with
r = ∂log Z/∂m and ``N = -∂² log Z/∂m²`` the smoothed state is ``m + P r``, ``P - P N P``, and
∂log Z/∂P = (rr' - N)/2 makes the gradient for A, Q and the first covariance a by-product.

Arrays may be complex: a complex step through the sites differentiates the gradient once more. Hence plain transposes,
never conjugates, and real parts in comparisons. Twin: ``tests/reference/kalman.py``.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_fused


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


@compiled
def _root(V: np.ndarray, L: np.ndarray) -> bool:
    """Lower Cholesky factor of a positive semi-definite matrix; False if a pivot is negative beyond rounding."""
    D = V.shape[0]
    fine = True
    for j in range(D):
        pivot = V[j, j]
        for k in range(j):
            pivot -= L[j, k] * L[j, k]
        if pivot.real < -1e-9 * abs(V[j, j].real) or np.isnan(pivot.real):
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


@compiled_fused
def forward(
    step: np.ndarray, A: np.ndarray, Q: np.ndarray, H: np.ndarray, m0: np.ndarray, P0: np.ndarray,
    precision: np.ndarray, shift: np.ndarray,
    mean: np.ndarray, cov: np.ndarray, cross: np.ndarray, pull: np.ndarray, weight: np.ndarray,
) -> tuple[complex, int]:  # fmt: skip
    """Filter: fills the filtered mean and cov, P⁻H' (cross), ω (pull), Ω (weight); returns log Z and the bad row.

    The bad row is the first whose site leaves no positive covariance, or -1. ``m0, P0`` are the state at row 0.
    """
    N, D = shift.shape
    S = m0.shape[0]
    kind = shift.dtype
    m = m0.astype(kind)
    P = P0.astype(kind)
    T = np.empty((S, S), kind)
    moved = np.empty(S, kind)
    V = np.empty((D, D), kind)
    L = np.zeros((D, D), kind)
    R = np.zeros((D, D), kind)
    G = np.empty((D, D), kind)
    X = np.empty((D, D), kind)
    h = np.empty(D, kind)
    e = np.empty(D, kind)
    g = np.empty(D, kind)
    W = np.empty((S, D), kind)
    total = np.zeros(1, kind)
    for n in range(N):
        u = step[n]
        if n > 0:
            for i in range(S):
                t = 0.0 * m[0]
                for k in range(S):
                    t += A[u, i, k] * m[k]
                moved[i] = t
                T[i] = 0.0
            m[:] = moved
            for i in range(S):
                for k in range(S):
                    a = A[u, i, k]
                    if a != 0.0:
                        for j in range(S):
                            T[j, i] += a * P[k, j]  # T = P A'
            for i in range(S):
                for j in range(S):
                    P[i, j] = Q[u, i, j]
                for k in range(S):
                    a = A[u, i, k]
                    if a != 0.0:
                        for j in range(S):
                            P[i, j] += a * T[k, j]
        B = cross[n]
        for d in range(D):
            h[d] = 0.0
            for i in range(S):
                B[i, d] = 0.0
            for k in range(S):
                a = H[d, k]
                if a != 0.0:
                    h[d] += a * m[k]
                    for i in range(S):
                        B[i, d] += a * P[i, k]
        for d in range(D):
            for c in range(D):
                t = 0.0 * m[0]
                for k in range(S):
                    if H[c, k] != 0.0:
                        t += H[c, k] * B[k, d]
                V[c, d] = t
        # C = L (I + L'ΛL)⁻¹ L' = X'X with V = LL' and X = R⁻¹L'.
        fine = _root(V, L)
        for i in range(D):
            for j in range(D):
                t = 0.0 * m[0]
                for k in range(D):
                    t += precision[n, i, k] * L[k, j]
                G[i, j] = t
        for i in range(D):
            for j in range(D):
                t = 0.0 * m[0]
                for k in range(D):
                    t += L[k, i] * G[k, j]
                V[i, j] = t
            V[i, i] += 1.0
        for j in range(D):
            for i in range(j, D):
                entry = V[i, j]
                for k in range(j):
                    entry -= R[i, k] * R[j, k]
                if i == j:
                    fine = fine and entry.real > 0.0
                    R[j, j] = np.sqrt(entry)
                    total[0] -= 0.5 * np.log(entry)
                else:
                    R[i, j] = entry / R[j, j]
        if not fine:
            return total[0], n
        for j in range(D):
            for i in range(D):
                t = L[j, i]
                for k in range(i):
                    t -= R[i, k] * X[k, j]
                X[i, j] = t / R[i, i]
        for i in range(D):
            t = shift[n, i]
            for k in range(D):
                t -= precision[n, i, k] * h[k]
            e[i] = t
            total[0] += 0.5 * (shift[n, i] + t) * h[i]
        for i in range(D):  # g = C e, G = C Λ
            t = 0.0 * m[0]
            for k in range(D):
                for c in range(D):
                    t += X[c, i] * X[c, k] * e[k]
            g[i] = t
            total[0] += 0.5 * t * e[i]
            for j in range(D):
                t = 0.0 * m[0]
                for k in range(D):
                    for c in range(D):
                        t += X[c, i] * X[c, k] * precision[n, k, j]
                G[i, j] = t
        for i in range(D):
            t = e[i]
            for k in range(D):
                t -= precision[n, i, k] * g[k]
            pull[n, i] = t
            for j in range(D):
                t = precision[n, i, j]
                for k in range(D):
                    t -= precision[n, i, k] * G[k, j]
                weight[n, i, j] = t
        for i in range(S):
            for d in range(D):
                t = 0.0 * m[0]
                for c in range(D):
                    t += B[i, c] * weight[n, c, d]
                W[i, d] = t
                m[i] += B[i, d] * pull[n, d]
        for i in range(S):
            for j in range(i + 1):
                t = P[i, j]
                for d in range(D):
                    t -= W[i, d] * B[j, d]
                P[i, j] = t
                P[j, i] = t
        mean[n] = m
        cov[n] = P
    return total[0], -1


@compiled_fused
def backward(
    step: np.ndarray, A: np.ndarray, H: np.ndarray,
    mean: np.ndarray, cov: np.ndarray, cross: np.ndarray, pull: np.ndarray, weight: np.ndarray,
    f_mean: np.ndarray, f_cov: np.ndarray,
    differentiate: bool, bar_A: np.ndarray, bar_Q: np.ndarray, bar_P: np.ndarray,
) -> None:  # fmt: skip
    """Smooth: fills the latents' marginals and, if asked, adds up the adjoints of log Z for A, Q and P0."""
    N, D = pull.shape
    S = mean.shape[1]
    kind = mean.dtype
    r = np.zeros(S, kind)
    M = np.zeros((S, S), kind)  # N of the module's docstring
    B = np.empty((S, D), kind)
    Y = np.empty((S, D), kind)
    Z = np.empty((S, D), kind)
    T = np.empty((S, S), kind)
    X = np.empty((S, S), kind)
    moved = np.empty(max(S, D), kind)
    K = np.empty((D, D), kind)
    for n in range(N - 1, -1, -1):
        P = cov[n]
        for d in range(D):
            t = 0.0 * r[0]
            for i in range(S):
                B[i, d] = 0.0
            for k in range(S):
                a = H[d, k]
                if a != 0.0:
                    t += a * mean[n, k]
                    for i in range(S):
                        B[i, d] += a * P[i, k]
            for i in range(S):
                t += B[i, d] * r[i]
            f_mean[n, d] = t
        for d in range(D):
            for i in range(S):
                t = 0.0 * r[0]
                for k in range(S):
                    t += M[i, k] * B[k, d]
                Y[i, d] = t
        for d in range(D):
            for c in range(d + 1):
                t = 0.0 * r[0]
                for k in range(S):
                    t += H[c, k] * B[k, d] - B[k, c] * Y[k, d]
                f_cov[n, c, d] = t
                f_cov[n, d, c] = t
        # back through the measurement
        B[:] = cross[n]
        for d in range(D):
            for i in range(S):
                t = 0.0 * r[0]
                for k in range(S):
                    t += M[i, k] * B[k, d]
                Y[i, d] = t
        for i in range(S):
            for d in range(D):
                t = 0.0 * r[0]
                for c in range(D):
                    t += Y[i, c] * weight[n, c, d]
                Z[i, d] = t
        for c in range(D):
            for d in range(D):
                t = weight[n, c, d]
                for a in range(D):
                    for k in range(S):
                        t += weight[n, c, a] * B[k, a] * Z[k, d]
                K[c, d] = t
        for d in range(D):
            moved[d] = pull[n, d]
            for c in range(D):
                for k in range(S):
                    moved[d] -= weight[n, d, c] * B[k, c] * r[k]
        for d in range(D):
            for i in range(S):
                a = H[d, i]
                if a != 0.0:
                    r[i] += a * moved[d]
                    for j in range(S):
                        M[i, j] -= a * Z[j, d]
                        M[j, i] -= a * Z[j, d]
                    for c in range(D):
                        for j in range(S):
                            if H[c, j] != 0.0:
                                M[i, j] += a * K[d, c] * H[c, j]
        if differentiate:
            for i in range(S):
                for j in range(S):
                    X[i, j] = 0.5 * (r[i] * r[j] - M[i, j])
        if n == 0:
            if differentiate:
                bar_P += X
            break
        u = step[n]
        if differentiate:
            P = cov[n - 1]
            T[:] = 0.0
            for i in range(S):
                for k in range(S):
                    bar_Q[u, i, k] += X[i, k]
                    a = A[u, i, k]
                    if a != 0.0:
                        for j in range(S):
                            T[i, j] += a * P[k, j]
            for i in range(S):
                for j in range(S):
                    bar_A[u, i, j] += r[i] * mean[n - 1, j]
                for k in range(S):
                    a = 2.0 * X[i, k]
                    for j in range(S):
                        bar_A[u, i, j] += a * T[k, j]
        # back through time: r = A'r, M = A'MA
        moved[:] = 0.0
        T[:] = 0.0
        for k in range(S):
            for i in range(S):
                a = A[u, k, i]
                if a != 0.0:
                    moved[i] += a * r[k]
                    for j in range(S):
                        T[j, i] += a * M[k, j]  # M A
        r[:] = moved[:S]
        M[:] = 0.0
        for k in range(S):
            for i in range(S):
                a = A[u, k, i]
                if a != 0.0:
                    for j in range(S):
                        M[i, j] += a * T[k, j]
