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
def _mul(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
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
def _mul_turned(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
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
def _add_turned(scale: float, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """``out += scale · a' b``."""
    for k in range(a.shape[0]):
        for i in range(a.shape[1]):
            t = scale * a[k, i]
            if t != 0.0:
                for j in range(b.shape[1]):
                    out[i, j] += t * b[k, j]


@compiled
def _apply(a: np.ndarray, x: np.ndarray, out: np.ndarray) -> None:
    """``out = a x``."""
    for i in range(a.shape[0]):
        t = a[i, 0] * x[0]
        for k in range(1, a.shape[1]):
            t += a[i, k] * x[k]
        out[i] = t


@compiled
def _root(V: np.ndarray, L: np.ndarray) -> bool:
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
def _solve(a: np.ndarray, b: np.ndarray) -> None:
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
def _absorb(
    V: np.ndarray, h: np.ndarray, precision: np.ndarray, shift: np.ndarray, work: np.ndarray, right: np.ndarray,
    pull: np.ndarray, weight: np.ndarray, total: np.ndarray,
) -> bool:  # fmt: skip
    """One site on the marginal N(h, V): ω, Ω, and its share of log Z; False if no positive covariance is left.

    ``[Ω ω] = (I + ΛV)⁻¹ [Λ e]``: no difference of large numbers when the site is much sharper than the prior. Whether
    the posterior is positive is for the pivots of ``I + L'ΛL`` to say, ``V = LL'``, which also give the determinant.
    """
    D = h.shape[0]
    L, R, G = work[0], work[1], work[2]
    fine = _root(V, L)
    _mul(precision, L, G)
    for i in range(D):
        for j in range(D):
            R[i, j] = 0.0
    _add_turned(1.0, L, G, R)
    for i in range(D):
        R[i, i] += 1.0
    for j in range(D):
        for i in range(j, D):
            entry = R[i, j]
            for k in range(j):
                entry -= R[i, k] * R[j, k]
            if i == j:
                fine = fine and entry.real > 0.0
                R[j, j] = np.sqrt(entry)
                total[0] -= 0.5 * np.log(entry)
            else:
                R[i, j] = entry / R[j, j]
    if not fine:
        return False
    _mul(precision, V, G)
    for i in range(D):
        G[i, i] += 1.0
        t = shift[i]
        for j in range(D):
            t -= precision[i, j] * h[j]
            right[i, j] = precision[i, j]
        right[i, D] = t
        pull[i] = t  # e, for now
        total[0] += 0.5 * (shift[i] + t) * h[i]
    _solve(G, right)
    for i in range(D):
        for j in range(D):
            weight[i, j] = 0.5 * (right[i, j] + right[j, i])
            total[0] += 0.5 * pull[i] * V[i, j] * right[j, D]
    for i in range(D):
        pull[i] = right[i, D]
    return True


@compiled
def _marginal(V: np.ndarray, precision: np.ndarray, work: np.ndarray, out: np.ndarray) -> None:
    """``(V⁻¹ + Λ)⁻¹ = X'X`` with ``V = LL'``, ``I + L'ΛL = RR'``, ``X = R⁻¹L'``: never indefinite."""
    D = V.shape[0]
    L, R, G, X = work[0], work[1], work[2], work[3]
    _root(V, L)
    _mul(precision, L, G)
    for i in range(D):
        for j in range(D):
            R[i, j] = 0.0
            out[i, j] = 0.0
    _add_turned(1.0, L, G, R)
    for i in range(D):
        R[i, i] += 1.0
    for j in range(D):
        for i in range(j, D):
            entry = R[i, j]
            for k in range(j):
                entry -= R[i, k] * R[j, k]
            R[i, j] = np.sqrt(entry) if i == j else entry / R[j, j]
    for j in range(D):
        for i in range(D):
            t = L[j, i]
            for k in range(i):
                t -= R[i, k] * X[k, j]
            X[i, j] = t / R[i, i]
    _add_turned(1.0, X, X, out)


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
            _apply(A[u], mean[n - 1], m)
            _mul(A[u], cov[n - 1], T)
            _mul_turned(A[u], T, P)
            for i in range(S):
                for j in range(S):
                    P[i, j] += Q[u, i, j]
        else:
            for i in range(S):
                m[i] = m0[i]
                for j in range(S):
                    P[i, j] = P0[i, j]
        _apply(H, m, h)
        _mul(H, P, cross[n])
        _mul_turned(H, cross[n], V)
        if not _absorb(V, h, precision[n], shift[n], work, right, pull[n], weight[n], total):
            return total[0], n
        _mul(weight[n], cross[n], W)
        for d in range(D):
            for i in range(S):
                m[i] += cross[n, d, i] * pull[n, d]
        _add_turned(-1.0, cross[n], W, P)
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
        _mul(H, cov[n], B)
        _apply(H, mean[n], f_mean[n])
        _apply(B, r, g)
        _mul(cross[n], M, Y)
        _mul_turned(Y, cross[n], K)
        _mul(K, weight[n], G)
        _mul_turned(H, cross[n], V)
        for d in range(D):
            f_mean[n, d] += g[d]
            G[d, d] += 1.0
            for c in range(D):
                E[d, c] = K[d, c]
        _solve(G, E)
        for d in range(D):
            for c in range(D):
                G[d, c] = V[d, c] - 0.5 * (E[d, c] + E[c, d])
        _marginal(G, precision[n], work, f_cov[n])
        # back through the measurement
        _apply(cross[n], r, g)
        for d in range(D):
            t = pull[n, d]
            for c in range(D):
                t -= weight[n, d, c] * g[c]
            for i in range(S):
                r[i] += H[d, i] * t
        _mul(weight[n], Y, Z)
        _mul(weight[n], K, G)
        _mul(G, weight[n], K)
        for d in range(D):
            for c in range(D):
                K[d, c] += weight[n, d, c]
        _add_turned(-1.0, H, Z, M)
        _add_turned(-1.0, Z, H, M)
        _mul(K, H, Y)
        _add_turned(1.0, H, Y, M)
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
            _mul(A[u], cov[n - 1], T)
            for i in range(S):
                for j in range(S):
                    bar_Q[u, i, j] += X[i, j]
                    bar_A[u, i, j] += r[i] * mean[n - 1, j]
            _add_turned(2.0, X, T, bar_A[u])
        # back through time: r = A'r, N = A'NA
        for i in range(S):
            s[i] = 0.0
            for j in range(S):
                T[i, j] = 0.0
        for k in range(S):
            for i in range(S):
                s[i] += A[u, k, i] * r[k]
        _add_turned(1.0, A[u], M, T)
        _mul(T, A[u], M)
        for i in range(S):  # Z'H above stands for M·cross'·ΩH: true of a symmetric M only, and rounding would grow
            for j in range(i):
                M[i, j] = M[j, i] = 0.5 * (M[i, j] + M[j, i])
        for i in range(S):
            r[i] = s[i]
