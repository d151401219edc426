"""Kalman filter and smoother over Gaussian sites, linear in the number of points: bayes-newton (68)-(71).

The state moves by ``x' = A x + N(0, Q)``, one step of a table per point; the latents are ``f = H x``; every point
carries a site ``t(f) = exp(-f'Λf/2 + λ'f)``, so that a missing observation is Λ = 0 and nothing is ever inverted.

Forward, with ``V = H P H'``, ``C = (V⁻¹ + Λ)⁻¹``, ``e = λ - Λ H m``: pull ``ω = (I - ΛC) e``, weight ``Ω = Λ - ΛCΛ``,
mean ``+= P H'ω``, covariance ``-= P H'Ω H P``, and the logarithm of ``∫ N(f; Hm, V) t(f) df`` adds up to log Z (71).

Backward runs the adjoint of log Z rather than the Rauch-Tung-Striebel gain (same posterior, no inverse): with
r = ∂log Z/∂m and ``N = -∂² log Z/∂m²`` the smoothed state is ``m + P r``, ``P - P N P``, and
∂log Z/∂P = (rr' - N)/2 makes the gradient for A, Q and the first covariance a by-product.

All arrays are flat (see :mod:`gaussfold.engine.kalman_algebra`). A row of ``store`` holds, one after the other, the
filtered mean (S) and covariance (S, S), HP⁻ (D, S), ω (D) and Ω (D, D). Twin: ``tests/reference/kalman.py``; the
derivative of all this in the direction of the sites is :mod:`gaussfold.engine.kalman_tangent`.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled_once
from gaussfold.engine.kalman_algebra import (
    absorb,
    add,
    add_to_turned,
    add_turned,
    clear,
    marginal,
    mul,
    solve,
    symmetrise,
    turned,
)


@compiled_once("Tuple((f8, i8))(i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def forward(
    step: np.ndarray, A: np.ndarray, Q: np.ndarray, H: np.ndarray, m0: np.ndarray, P0: np.ndarray,
    precision: np.ndarray, shift: np.ndarray, store: np.ndarray,
) -> tuple[float, int]:  # fmt: skip
    """Filter into store; returns log Z and the first row whose site leaves no positive covariance, or -1.

    ``m0, P0`` are the state at row 0.
    """
    S = m0.size
    D = H.size // S
    width = S + S * S + D * S + D + D * D
    T = np.empty(S * S)
    W = np.empty(D * S)
    V = np.empty(D * D)
    h = np.empty(D)
    work = np.empty(3 * D * D + D)
    total = 0.0
    for n in range(step.size):
        m = n * width
        P = m + S
        cross = P + S * S
        pull = cross + D * S
        weight = pull + D
        if n > 0:
            u = step[n] * S * S
            mul(store, m, A, u, store, m - width, S, S, 1)
            turned(store, P, A, u, store, P - width, T, S)
            for i in range(S * S):
                store[P + i] += Q[u + i]
        else:
            for i in range(S):
                store[m + i] = m0[i]
            for i in range(S * S):
                store[P + i] = P0[i]
        mul(h, 0, H, 0, store, m, D, S, 1)
        mul(store, cross, H, 0, store, P, D, S, S)
        clear(V, 0, D * D)
        add_to_turned(V, 0, 1.0, H, 0, store, cross, D, S, D)
        fine, share = absorb(V, h, precision, n * D * D, shift, n * D, store, pull, work, D)
        if not fine:
            return total, n
        total += share
        mul(W, 0, store, weight, store, cross, D, D, S)
        add_turned(store, m, 1.0, store, cross, store, pull, S, D, 1)
        add_turned(store, P, -1.0, store, cross, W, 0, S, D, S)
        symmetrise(store, P, S)
    return total, -1


@compiled_once("void(f8[::1], i8, f8[::1], i8, f8[::1], f8[::1], i8)", inner=True)
def back_in_time(A: np.ndarray, u: int, carry: np.ndarray, at: int, g: np.ndarray, T: np.ndarray, S: int) -> None:
    """``r = A'r`` and ``N = A'NA``, in place at ``carry[at:]``."""
    clear(g, 0, S)
    add_turned(g, 0, 1.0, A, u, carry, at, S, S, 1)
    for i in range(S):
        carry[at + i] = g[i]
    clear(T, 0, S * S)
    add_turned(T, 0, 1.0, A, u, carry, at + S, S, S, S)
    mul(carry, at + S, T, 0, A, u, S, S, S)
    symmetrise(carry, at + S, S)  # the measurement takes (H'U)' for U'H: true of a symmetric N, and rounding would grow


@compiled_once(
    "void(i8, i8, i8, i8, i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], b1, f8[::1], f8[::1])"
)
def backward(
    low: int, high: int, first: int, D: int, step: np.ndarray, A: np.ndarray, H: np.ndarray, precision: np.ndarray,
    store: np.ndarray, carry: np.ndarray, f_mean: np.ndarray, f_cov: np.ndarray,
    differentiate: bool, bar_A: np.ndarray, bar_Q: np.ndarray,
) -> None:  # fmt: skip
    """Smooth rows ``low`` to ``high``: marginals of the latents (row n at n - low) and, if asked, adjoints of A and Q.

    ``carry`` holds r and N on both ends, so that a long series can be walked in stretches (the last one first); after
    row 0 they are those of the first state. Adjoints of step u of the table add up in place ``u - first``.

    A marginal's covariance is what past and future say, ``V - (I + KΩ)⁻¹K`` with ``K = HP⁻N P⁻H'``, times its own site,
    in a form that cannot become indefinite however sharp the site is.
    """
    S = H.size // D
    SS, DD, DS = S * S, D * D, D * S
    width = S + SS + DS + D + DD
    N = S  # where N begins in carry
    T = np.empty(SS)
    X = np.empty(SS)
    Y = np.empty(DS)
    U = np.empty(DS)
    K = np.empty(DD)
    G = np.empty(DD)
    E = np.empty(DD)
    work = np.empty(3 * DD)
    g = np.empty(max(D, S))
    for n in range(high - 1, low - 1, -1):
        m = n * width
        P = m + S
        cross = P + SS
        pull = cross + DS
        weight = pull + D
        mul(g, 0, store, P, carry, 0, S, S, 1)
        for i in range(S):
            g[i] += store[m + i]
        mul(f_mean, (n - low) * D, H, 0, g, 0, D, S, 1)
        mul(Y, 0, store, cross, carry, N, D, S, S)
        clear(K, 0, DD)
        add_to_turned(K, 0, 1.0, Y, 0, store, cross, D, S, D)
        mul(G, 0, K, 0, store, weight, D, D, D)
        for i in range(DD):
            E[i] = K[i]
        for d in range(D):
            G[d * (D + 1)] += 1.0
        solve(G, 0, E, 0, D, D)
        symmetrise(E, 0, D)
        for i in range(DD):
            G[i] = -E[i]
        add_to_turned(G, 0, 1.0, H, 0, store, cross, D, S, D)
        marginal(G, 0, precision, n * DD, f_cov, (n - low) * DD, work, D)
        # back through the measurement
        mul(g, 0, store, cross, carry, 0, D, S, 1)
        mul(E, 0, store, weight, g, 0, D, D, 1)
        for d in range(D):
            g[d] = store[pull + d] - E[d]
        add_turned(carry, 0, 1.0, H, 0, g, 0, S, D, 1)
        # N += H'U + U'H with U = (Ω + ΩKΩ)H/2 - ΩY
        mul(G, 0, store, weight, K, 0, D, D, D)
        mul(K, 0, G, 0, store, weight, D, D, D)
        for i in range(DD):
            K[i] += store[weight + i]
        clear(U, 0, DS)
        add(U, 0, 0.5, K, 0, H, 0, D, D, S)
        add(U, 0, -1.0, store, weight, Y, 0, D, D, S)
        add_turned(carry, N, 1.0, H, 0, U, 0, S, D, S)
        add_turned(carry, N, 1.0, U, 0, H, 0, S, D, S)
        if n == 0:
            break
        u = step[n] * SS
        if differentiate:
            for i in range(S):
                for j in range(S):
                    X[i * S + j] = 0.5 * (carry[i] * carry[j] - carry[N + i * S + j])
            mul(T, 0, A, u, store, P - width, S, S, S)
            bar = u - first * SS
            add_to_turned(bar_A, bar, 1.0, carry, 0, store, m - width, S, 1, S)
            add(bar_A, bar, 2.0, X, 0, T, 0, S, S, S)
            for i in range(SS):
                bar_Q[bar + i] += X[i]
        back_in_time(A, u, carry, 0, g, T, S)
