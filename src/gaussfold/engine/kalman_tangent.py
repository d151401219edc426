"""How log Z's adjoints move when the sites move: :mod:`gaussfold.engine.kalman` differentiated.

Sites move by (dΛ, dλ) and with them, since ``ω = (I + ΛV)⁻¹e`` and ``Ω = (Λ⁻¹ + V)⁻¹``, with f = Hm the filtered mean,

    ``dω = (I - ΩV)(dλ - dΛ f) - Ω(H dm⁻ + dV ω)``,   ``dΩ = (I - ΩV) dΛ (I - VΩ) - Ω dV Ω``,

everything else by the product rule: no inverse, no logarithm. The derivative of an energy in the hyperparameters
takes both the adjoints and their tangents, as ``tangent - adjoint`` (see ``gp.markov``), so they are summed as that.

``moved`` has the layout of ``store`` and holds the tangents of what is there.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled_once
from gaussfold.engine.kalman import back_in_time
from gaussfold.engine.kalman_algebra import add, add_to_turned, add_turned, clear, mul, symmetrise, turned


@compiled_once("void(i8, i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def tangent_forward(
    D: int, step: np.ndarray, A: np.ndarray, H: np.ndarray, store: np.ndarray,
    d_precision: np.ndarray, d_shift: np.ndarray, moved: np.ndarray,
) -> None:  # fmt: skip
    """Tangents of the filter, into ``moved``."""
    S = H.size // D
    SS, DD, DS = S * S, D * D, D * S
    width = S + SS + DS + D + DD
    T = np.empty(SS)
    U = np.empty(DS)
    V = np.empty(DD)
    J = np.empty(DD)
    K = np.empty(DD)
    e = np.empty(D)
    f = np.empty(D)
    for n in range(step.size):
        m = n * width
        P = m + S
        cross = P + SS
        pull = cross + DS
        weight = pull + D
        clear(moved, m, width)
        if n > 0:
            u = step[n] * SS
            add(moved, m, 1.0, A, u, moved, m - width, S, S, 1)
            turned(moved, P, A, u, moved, P - width, T, S)
        add(moved, cross, 1.0, H, 0, moved, P, D, S, S)
        # J = I - ΩV, and e = dλ - dΛ f
        clear(V, 0, DD)
        add_to_turned(V, 0, 1.0, H, 0, store, cross, D, S, D)
        clear(J, 0, DD)
        add(J, 0, -1.0, store, weight, V, 0, D, D, D)
        mul(f, 0, H, 0, store, m, D, S, 1)
        for d in range(D):
            J[d * (D + 1)] += 1.0
            e[d] = d_shift[n * D + d]
        add(e, 0, -1.0, d_precision, n * DD, f, 0, D, D, 1)
        clear(V, 0, DD)
        add_to_turned(V, 0, 1.0, H, 0, moved, cross, D, S, D)  # dV from here on
        mul(f, 0, H, 0, moved, m, D, S, 1)
        add(f, 0, 1.0, V, 0, store, pull, D, D, 1)
        add(moved, pull, 1.0, J, 0, e, 0, D, D, 1)
        add(moved, pull, -1.0, store, weight, f, 0, D, D, 1)
        mul(K, 0, J, 0, d_precision, n * DD, D, D, D)
        add_to_turned(moved, weight, 1.0, K, 0, J, 0, D, D, D)
        mul(K, 0, store, weight, V, 0, D, D, D)
        add(moved, weight, -1.0, K, 0, store, weight, D, D, D)
        symmetrise(moved, weight, D)
        # dm += H dP⁻'ω + HP⁻'dω, and dP -= cross'U + U'cross
        add_turned(moved, m, 1.0, moved, cross, store, pull, S, D, 1)
        add_turned(moved, m, 1.0, store, cross, moved, pull, S, D, 1)
        mul(U, 0, store, weight, moved, cross, D, D, S)
        add(U, 0, 0.5, moved, weight, store, cross, D, D, S)
        add_turned(moved, P, -1.0, store, cross, U, 0, S, D, S)
        add_turned(moved, P, -1.0, U, 0, store, cross, S, D, S)


@compiled_once("void(i8, i8, i8, i8, i8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1], f8[::1])")
def tangent_backward(
    low: int, high: int, first: int, D: int, step: np.ndarray, A: np.ndarray, H: np.ndarray,
    store: np.ndarray, moved: np.ndarray, carry: np.ndarray, bar_A: np.ndarray, bar_Q: np.ndarray,
) -> None:  # fmt: skip
    """Add up ``tangent - adjoint`` of A and Q over rows ``low`` to ``high``; carry is r, N, dr, dN on both ends."""
    S = H.size // D
    SS, DD, DS = S * S, D * D, D * S
    width = S + SS + DS + D + DD
    N, dr, dN = S, S + SS, 2 * S + SS
    T = np.empty(SS)
    X = np.empty(SS)
    Y = np.empty(DS)
    dY = np.empty(DS)
    U = np.empty(DS)
    K = np.empty(DD)
    dK = np.empty(DD)
    G = np.empty(DD)
    L = np.empty(DD)
    g = np.empty(max(D, S))
    dg = np.empty(D)
    t = np.empty(D)
    for n in range(high - 1, low - 1, -1):
        m = n * width
        P = m + S
        cross = P + SS
        pull = cross + DS
        weight = pull + D
        # ω - Ωg for r, and its tangent for dr
        mul(g, 0, store, cross, carry, 0, D, S, 1)
        mul(dg, 0, moved, cross, carry, 0, D, S, 1)
        add(dg, 0, 1.0, store, cross, carry, dr, D, S, 1)
        for d in range(D):
            t[d] = moved[pull + d]
        add(t, 0, -1.0, moved, weight, g, 0, D, D, 1)
        add(t, 0, -1.0, store, weight, dg, 0, D, D, 1)
        add_turned(carry, dr, 1.0, H, 0, t, 0, S, D, 1)
        for d in range(D):
            t[d] = store[pull + d]
        add(t, 0, -1.0, store, weight, g, 0, D, D, 1)
        add_turned(carry, 0, 1.0, H, 0, t, 0, S, D, 1)
        # Y = HP⁻N, K = YP⁻H' and their tangents
        mul(Y, 0, store, cross, carry, N, D, S, S)
        mul(dY, 0, moved, cross, carry, N, D, S, S)
        add(dY, 0, 1.0, store, cross, carry, dN, D, S, S)
        clear(K, 0, DD)
        add_to_turned(K, 0, 1.0, Y, 0, store, cross, D, S, D)
        clear(dK, 0, DD)
        add_to_turned(dK, 0, 1.0, dY, 0, store, cross, D, S, D)
        add_to_turned(dK, 0, 1.0, Y, 0, moved, cross, D, S, D)
        # dN += H'U + U'H with U = dL H/2 - d(ΩY), L = Ω + ΩKΩ
        mul(G, 0, K, 0, store, weight, D, D, D)
        for i in range(DD):
            L[i] = 0.5 * moved[weight + i]
        add(L, 0, 1.0, moved, weight, G, 0, D, D, D)  # half of it: the rest is its transpose, which H'U + U'H adds
        mul(G, 0, dK, 0, store, weight, D, D, D)
        add(L, 0, 0.5, store, weight, G, 0, D, D, D)
        mul(U, 0, L, 0, H, 0, D, D, S)
        add(U, 0, -1.0, moved, weight, Y, 0, D, D, S)
        add(U, 0, -1.0, store, weight, dY, 0, D, D, S)
        add_turned(carry, dN, 1.0, H, 0, U, 0, S, D, S)
        add_turned(carry, dN, 1.0, U, 0, H, 0, S, D, S)
        mul(G, 0, K, 0, store, weight, D, D, D)
        for i in range(DD):
            L[i] = store[weight + i]
        add(L, 0, 1.0, store, weight, G, 0, D, D, D)
        clear(U, 0, DS)
        add(U, 0, 0.5, L, 0, H, 0, D, D, S)
        add(U, 0, -1.0, store, weight, Y, 0, D, D, S)
        add_turned(carry, N, 1.0, H, 0, U, 0, S, D, S)
        add_turned(carry, N, 1.0, U, 0, H, 0, S, D, S)
        if n == 0:
            break
        u = step[n] * SS
        bar = u - first * SS
        for i in range(S):
            for j in range(S):
                X[i * S + j] = 0.5 * (carry[i] * carry[j] - carry[N + i * S + j])
        # 2X A dP + r dm', then 2(dX - X) A P + (dr - r) m'
        mul(T, 0, A, u, moved, P - width, S, S, S)
        add(bar_A, bar, 2.0, X, 0, T, 0, S, S, S)
        add_to_turned(bar_A, bar, 1.0, carry, 0, moved, m - width, S, 1, S)
        for i in range(S):
            g[i] = carry[dr + i] - carry[i]
            for j in range(S):
                both = carry[dr + i] * carry[j] + carry[i] * carry[dr + j]
                X[i * S + j] = 0.5 * (both - carry[dN + i * S + j]) - X[i * S + j]
        mul(T, 0, A, u, store, P - width, S, S, S)
        add(bar_A, bar, 2.0, X, 0, T, 0, S, S, S)
        add_to_turned(bar_A, bar, 1.0, g, 0, store, m - width, S, 1, S)
        for i in range(SS):
            bar_Q[bar + i] += X[i]
        back_in_time(A, u, carry, 0, g, T, S)
        back_in_time(A, u, carry, dr, g, T, S)
