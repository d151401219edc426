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

from gaussfold.engine.compiled import compiled
from gaussfold.engine.kalman_algebra import absorb, add_turned, apply, marginal, mul, mul_turned, solve


@compiled
def forward(
    step: np.ndarray, A: np.ndarray, Q: np.ndarray, H: np.ndarray, m0: np.ndarray, P0: np.ndarray,
    precision: np.ndarray, shift: np.ndarray,
    mean: np.ndarray, cov: np.ndarray, cross: np.ndarray, pull: np.ndarray, weight: np.ndarray,
) -> tuple[complex, int]:  # fmt: skip
    """Filter: fills the filtered mean and cov, HP⁻ (cross), ω (pull), Ω (weight); returns log Z and the bad row.

    The bad row is the first whose site leaves no positive covariance, or -1. ``m0, P0`` are the state at row 0.
    All arrays but ``step`` have one type.
    """
    N, D = shift.shape
    S = m0.shape[0]
    kind = shift.dtype
    T = np.empty((S, S), kind)
    W = np.empty((D, S), kind)
    V = np.empty((D, D), kind)
    work = np.zeros((3, D, D), kind)
    right = np.empty((D, D + 1), kind)
    h = np.empty(D, kind)
    total = np.zeros(1, kind)
    for n in range(N):
        m, P = mean[n], cov[n]
        if n > 0:
            u = step[n]
            apply(A[u], mean[n - 1], m)
            mul(A[u], cov[n - 1], T)
            mul_turned(A[u], T, P)
            for i in range(S):
                for j in range(S):
                    P[i, j] += Q[u, i, j]
        else:
            for i in range(S):
                m[i] = m0[i]
                for j in range(S):
                    P[i, j] = P0[i, j]
        apply(H, m, h)
        mul(H, P, cross[n])
        mul_turned(H, cross[n], V)
        if not absorb(V, h, precision[n], shift[n], work, right, pull[n], weight[n], total):
            return total[0], n
        mul(weight[n], cross[n], W)
        for d in range(D):
            for i in range(S):
                m[i] += cross[n, d, i] * pull[n, d]
        add_turned(-1.0, cross[n], W, P)
        for i in range(S):
            for j in range(i):
                P[i, j] = P[j, i] = 0.5 * (P[i, j] + P[j, i])
    return total[0], -1


@compiled
def backward(
    step: np.ndarray, A: np.ndarray, H: np.ndarray, precision: np.ndarray,
    mean: np.ndarray, cov: np.ndarray, cross: np.ndarray, pull: np.ndarray, weight: np.ndarray,
    f_mean: np.ndarray, f_cov: np.ndarray,
    differentiate: bool, bar_A: np.ndarray, bar_Q: np.ndarray, bar_P: np.ndarray,
) -> None:  # fmt: skip
    """Smooth: fills the latents' marginals and, if asked, adds up the adjoints of log Z for A, Q and P0.

    A marginal's covariance is what past and future say, ``V - (I + KΩ)⁻¹K`` with ``K = HP⁻N P⁻H'``, times its own site,
    in a form that cannot become indefinite however sharp the site is.
    """
    N, D = pull.shape
    S = mean.shape[1]
    kind = mean.dtype
    r = np.zeros(S, kind)
    M = np.zeros((S, S), kind)  # N of the module's docstring
    T = np.empty((S, S), kind)
    X = np.empty((S, S), kind)
    B = np.empty((D, S), kind)
    Y = np.empty((D, S), kind)
    Z = np.empty((D, S), kind)
    K = np.empty((D, D), kind)
    G = np.empty((D, D), kind)
    V = np.empty((D, D), kind)
    E = np.empty((D, D), kind)
    work = np.zeros((4, D, D), kind)
    g = np.empty(D, kind)
    s = np.empty(S, kind)
    for n in range(N - 1, -1, -1):
        mul(H, cov[n], B)
        apply(H, mean[n], f_mean[n])
        apply(B, r, g)
        mul(cross[n], M, Y)
        mul_turned(Y, cross[n], K)
        mul(K, weight[n], G)
        mul_turned(H, cross[n], V)
        for d in range(D):
            f_mean[n, d] += g[d]
            G[d, d] += 1.0
            for c in range(D):
                E[d, c] = K[d, c]
        solve(G, E)
        for d in range(D):
            for c in range(D):
                G[d, c] = V[d, c] - 0.5 * (E[d, c] + E[c, d])
        marginal(G, precision[n], work, f_cov[n])
        # back through the measurement
        apply(cross[n], r, g)
        for d in range(D):
            t = pull[n, d]
            for c in range(D):
                t -= weight[n, d, c] * g[c]
            for i in range(S):
                r[i] += H[d, i] * t
        mul(weight[n], Y, Z)
        mul(weight[n], K, G)
        mul(G, weight[n], K)
        for d in range(D):
            for c in range(D):
                K[d, c] += weight[n, d, c]
        add_turned(-1.0, H, Z, M)
        add_turned(-1.0, Z, H, M)
        mul(K, H, Y)
        add_turned(1.0, H, Y, M)
        if differentiate:
            for i in range(S):
                for j in range(S):
                    X[i, j] = 0.5 * (r[i] * r[j] - M[i, j])
        if n == 0:
            if differentiate:
                for i in range(S):
                    for j in range(S):
                        bar_P[i, j] += X[i, j]
            break
        u = step[n]
        if differentiate:
            mul(A[u], cov[n - 1], T)
            for i in range(S):
                for j in range(S):
                    bar_Q[u, i, j] += X[i, j]
                    bar_A[u, i, j] += r[i] * mean[n - 1, j]
            add_turned(2.0, X, T, bar_A[u])
        # back through time: r = A'r, N = A'NA
        for i in range(S):
            s[i] = 0.0
            for j in range(S):
                T[i, j] = 0.0
        for k in range(S):
            for i in range(S):
                s[i] += A[u, k, i] * r[k]
        add_turned(1.0, A[u], M, T)
        mul(T, A[u], M)
        for i in range(S):  # Z'H above stands for M·cross'·ΩH: true of a symmetric M only, and rounding would grow
            for j in range(i):
                M[i, j] = M[j, i] = 0.5 * (M[i, j] + M[j, i])
        for i in range(S):
            r[i] = s[i]
