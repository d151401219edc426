"""Kalman filter and smoother over Gaussian sites, linear in the number of points: bayes-newton (68)-(71).

The state moves by ``x' = A x + N(0, Q)``, one step of a table per point; the latents are ``f = H x``; every point
carries a site ``t(f) = exp(-f'Λf/2 + λ'f)``, so that a missing observation is Λ = 0 and nothing is ever inverted.

Forward, with ``V = H P H'``, ``C = (V⁻¹ + Λ)⁻¹``, ``e = λ - Λ H m``: pull ``ω = (I - ΛC) e``, weight ``Ω = Λ - ΛCΛ``,
mean ``+= P H'ω``, covariance ``-= P H'Ω H P``, and the logarithm of ``∫ N(f; Hm, V) t(f) df`` adds up to log Z (71).

Backward runs the adjoint of log Z rather than the Rauch-Tung-Striebel gain (same posterior, no inverse): with
r = ∂log Z/∂m and ``N = -∂² log Z/∂m²`` the smoothed state is ``m + P r``, ``P - P N P``, and
∂log Z/∂P = (rr' - N)/2 makes the gradient for A, Q and the first covariance a by-product.

All arrays are flat (see :mod:`gaussfold.engine.kalman.algebra`). A row of ``store`` holds, one after the other, the
filtered mean (S) and covariance (S, S), HP⁻ (D, S), ω (D) and Ω (D, D). Twin: ``tests/reference/kalman.py``; the
derivative of all this in the direction of the sites is :mod:`gaussfold.engine.kalman.tangent`.
"""

from __future__ import annotations

import numpy as np
from numba.core.types import float64 as f8
from numba.core.types import int64 as i8
from numba.core.types import void
from numba.core.types.containers import Tuple, UniTuple

from gaussfold.engine.compiled import compiled_once
from gaussfold.engine.kalman.algebra import (
    PLACE,
    Pointer,
    absorb,
    add,
    add_one,
    add_to_turned,
    add_turned,
    clear,
    copy,
    half_adjoint,
    marginal,
    mul,
    row_of_store,
    solve,
    store_width,
    symmetrise,
    turned,
)
from gaussfold.engine.simd.pointers import offset as at
from gaussfold.engine.simd.pointers import pointer


@compiled_once(Tuple((f8, i8))(i8[::1], *[f8[::1]] * 9))
def forward(
    step: np.ndarray, tables_A: np.ndarray, Q: np.ndarray, reads: np.ndarray, m0: np.ndarray, P0: np.ndarray,
    precisions: np.ndarray, shifts: np.ndarray, stored: np.ndarray, scratch: np.ndarray,
) -> tuple[float, int]:  # fmt: skip
    """Filter into store; returns log Z and the first row whose site leaves no positive covariance, or -1.

    ``m0, P0`` are the state at row 0.
    """
    S = m0.size
    D = reads.size // S
    width = store_width(S, D)
    A, H, store = pointer(tables_A), pointer(reads), pointer(stored)
    precision, shift = pointer(precisions), pointer(shifts)
    T = pointer(scratch)
    W = at(T, S * S)
    V = at(W, D * S)
    h = at(V, D * D)
    work = at(h, D)
    total = 0.0
    for n in range(step.size):
        m, P, cross, pull, weight = row_of_store(n, S, D)
        if n > 0:
            u = step[n] * S * S
            mul(at(store, m), at(A, u), at(store, m - width), S, S, 1)
            turned(at(store, P), at(A, u), at(store, P - width), T, S)
            for i in range(S * S):
                store[P + i] += Q[u + i]
        else:
            for i in range(S):
                store[m + i] = m0[i]
            for i in range(S * S):
                store[P + i] = P0[i]
        mul(h, H, at(store, m), D, S, 1)
        mul(at(store, cross), H, at(store, P), D, S, S)
        clear(V, D * D)
        add_to_turned(V, 1.0, H, at(store, cross), D, S, D)
        fine, share = absorb(
            V, h, at(precision, n * D * D), at(shift, n * D), at(store, pull), at(store, weight), work, D
        )
        if not fine:
            return total, n
        total += share
        mul(W, at(store, weight), at(store, cross), D, D, S)
        add_turned(at(store, m), 1.0, at(store, cross), at(store, pull), S, D, 1)
        add_turned(at(store, P), -1.0, at(store, cross), W, S, D, S)
        symmetrise(at(store, P), S)
    return total, -1


@compiled_once(void(PLACE, PLACE, PLACE, PLACE, PLACE, i8), inner=True)
def back_in_time(A: Pointer, r: Pointer, N: Pointer, g: Pointer, T: Pointer, S: int) -> None:
    """``r = A'r`` and ``N = A'NA``, in place."""
    clear(g, S)
    add_turned(g, 1.0, A, r, S, S, 1)
    copy(r, g, S)
    clear(T, S * S)
    add_turned(T, 1.0, A, N, S, S, S)
    mul(N, T, A, S, S, S)
    symmetrise(N, S)  # the measurement takes (H'U)' for U'H: true of a symmetric N, and rounding would grow


@compiled_once(void(PLACE, PLACE, PLACE, PLACE, PLACE, PLACE, i8, i8), inner=True)
def back_through_reading(
    N: Pointer, H: Pointer, L: Pointer, weight: Pointer, Y: Pointer, U: Pointer, D: int, S: int
) -> None:
    """``N += H'U + U'H`` with ``U = LH/2 - ΩY``, where ``L = Ω + ΩKΩ``, Ω is ``weight`` and U scratch."""
    clear(U, D * S)
    add(U, 0.5, L, H, D, D, S)
    add(U, -1.0, weight, Y, D, D, S)
    add_turned(N, 1.0, H, U, S, D, S)
    add_turned(N, 1.0, U, H, S, D, S)


CHAIN = Tuple((i8, i8[::1], f8[::1], f8[::1]))
"""Type of: number of latents D, step of every row, table A, reads H."""


@compiled_once(void(UniTuple(i8, 3), CHAIN, *[f8[::1]] * 3, *[UniTuple(f8[::1], 2)] * 2, f8[::1]))
def backward(
    span: tuple[int, int, int], chain: tuple[int, np.ndarray, np.ndarray, np.ndarray], precisions: np.ndarray,
    stored: np.ndarray, carry: np.ndarray, marginals: tuple[np.ndarray, np.ndarray],
    bars: tuple[np.ndarray, np.ndarray], scratch: np.ndarray,
) -> None:  # fmt: skip
    """Smooth rows ``low`` to ``high``: means, covariances of the latents (row n at n - low), and adjoints of A and Q.

    ``carry`` holds r and N on both ends, so that a long series can be walked in blocks (the last one first); after
    row 0 they are those of the first state. ``span`` is low, high and first: adjoints of step u of the table add up in
    place ``u - first``, or nowhere if bars are empty.

    A marginal's covariance is what past and future say, ``V - (I + KΩ)⁻¹K`` with ``K = HP⁻N P⁻H'``, times its own site,
    in a form that cannot become indefinite however sharp the site is.
    """
    low, high, first = span
    D, step, tables_A, reads = chain
    S = reads.size // D
    SS, DD, DS = S * S, D * D, D * S
    width = store_width(S, D)
    A, H, store, precision = pointer(tables_A), pointer(reads), pointer(stored), pointer(precisions)
    f_mean, f_cov, bar_A, bar_Q = pointer(marginals[0]), pointer(marginals[1]), pointer(bars[0]), pointer(bars[1])
    differentiate = bars[0].size > 0
    r = pointer(carry)
    N = at(r, S)
    T = pointer(scratch)
    X = at(T, SS)
    Y = at(X, SS)
    U = at(Y, DS)
    K = at(U, DS)
    G = at(K, DD)
    E = at(G, DD)
    g = at(E, DD)
    work = at(g, S + D)
    for n in range(high - 1, low - 1, -1):
        m, P, cross, pull, weight = row_of_store(n, S, D)
        mul(g, at(store, P), r, S, S, 1)
        for i in range(S):
            g[i] += store[m + i]
        mul(at(f_mean, (n - low) * D), H, g, D, S, 1)
        mul(Y, at(store, cross), N, D, S, S)
        clear(K, DD)
        add_to_turned(K, 1.0, Y, at(store, cross), D, S, D)
        mul(G, K, at(store, weight), D, D, D)
        copy(E, K, DD)
        add_one(G, D)
        solve(G, E, D, D)
        symmetrise(E, D)
        for i in range(DD):
            G[i] = -E[i]
        add_to_turned(G, 1.0, H, at(store, cross), D, S, D)
        marginal(G, at(precision, n * DD), at(f_cov, (n - low) * DD), work, D)
        # back through the measurement
        mul(g, at(store, cross), r, D, S, 1)
        mul(E, at(store, weight), g, D, D, 1)
        for d in range(D):
            g[d] = store[pull + d] - E[d]
        add_turned(r, 1.0, H, g, S, D, 1)
        mul(G, at(store, weight), K, D, D, D)
        mul(K, G, at(store, weight), D, D, D)
        for i in range(DD):
            K[i] += store[weight + i]
        back_through_reading(N, H, K, at(store, weight), Y, U, D, S)
        if n == 0:
            break
        u = step[n] * SS
        if differentiate:
            half_adjoint(X, r, N, S)
            mul(T, at(A, u), at(store, P - width), S, S, S)
            bar = u - first * SS
            add_to_turned(at(bar_A, bar), 1.0, r, at(store, m - width), S, 1, S)
            add(at(bar_A, bar), 2.0, X, T, S, S, S)
            for i in range(SS):
                bar_Q[bar + i] += X[i]
        back_in_time(at(A, u), r, N, g, T, S)
