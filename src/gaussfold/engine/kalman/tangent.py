"""How log Z's adjoints move when the sites move: :mod:`gaussfold.engine.kalman.smoother` differentiated.

Sites move by (dΛ, dλ) and with them, since ``ω = (I + ΛV)⁻¹e`` and ``Ω = (Λ⁻¹ + V)⁻¹``, with f = Hm the filtered mean,

    ``dω = (I - ΩV)(dλ - dΛ f) - Ω(H dm⁻ + dV ω)``,   ``dΩ = (I - ΩV) dΛ (I - VΩ) - Ω dV Ω``,

everything else by the product rule: no inverse, no logarithm. The derivative of an energy in the hyperparameters
takes both the adjoints and their tangents, as ``tangent - adjoint`` (see ``gp.markov``), so they are summed as that.

``moved`` (the array ``tangents``) has the layout of ``store`` and holds the tangents of what is there.
"""

from __future__ import annotations

import numpy as np
from numba.core.types import float64 as f8
from numba.core.types import int64 as i8
from numba.core.types import void
from numba.core.types.containers import UniTuple

from gaussfold.engine.compiled import compiled_once
from gaussfold.engine.kalman.algebra import (
    add,
    add_one,
    add_to_turned,
    add_turned,
    clear,
    copy,
    half_adjoint,
    mul,
    row_of_store,
    store_width,
    symmetrise,
    turned,
)
from gaussfold.engine.kalman.smoother import CHAIN, back_in_time, back_through_reading
from gaussfold.engine.simd.pointers import offset as at
from gaussfold.engine.simd.pointers import pointer

# Loops that begin like the smoother's, with the same names for the pieces of a chain and of scratch: pointers into one
# block of memory, laid out after what each loop needs and at hand as locals, since every line uses them.


@compiled_once(void(CHAIN, *[f8[::1]] * 5))
def tangent_forward(
    chain: tuple[int, np.ndarray, np.ndarray, np.ndarray], stored: np.ndarray, d_precisions: np.ndarray,
    d_shift: np.ndarray, tangents: np.ndarray, scratch: np.ndarray,
) -> None:  # fmt: skip
    """Tangents of the filter, into ``moved``."""
    D, step, tables_A, reads = chain
    S = reads.size // D
    SS, DD, DS = S * S, D * D, D * S
    width = store_width(S, D)
    A, H, store, moved = pointer(tables_A), pointer(reads), pointer(stored), pointer(tangents)
    d_precision = pointer(d_precisions)
    T = pointer(scratch)
    U = at(T, SS)
    V = at(U, DS)
    J = at(V, DD)
    K = at(J, DD)
    e = at(K, DD)
    f = at(e, D)
    for n in range(step.size):
        m, P, cross, pull, weight = row_of_store(n, S, D)
        clear(at(moved, m), width)
        if n > 0:
            u = step[n] * SS
            add(at(moved, m), 1.0, at(A, u), at(moved, m - width), S, S, 1)
            turned(at(moved, P), at(A, u), at(moved, P - width), T, S)
        add(at(moved, cross), 1.0, H, at(moved, P), D, S, S)
        # J = I - ΩV, and e = dλ - dΛ f
        clear(V, DD)
        add_to_turned(V, 1.0, H, at(store, cross), D, S, D)
        clear(J, DD)
        add(J, -1.0, at(store, weight), V, D, D, D)
        mul(f, H, at(store, m), D, S, 1)
        add_one(J, D)
        for d in range(D):
            e[d] = d_shift[n * D + d]
        add(e, -1.0, at(d_precision, n * DD), f, D, D, 1)
        clear(V, DD)
        add_to_turned(V, 1.0, H, at(moved, cross), D, S, D)  # dV from here on
        mul(f, H, at(moved, m), D, S, 1)
        add(f, 1.0, V, at(store, pull), D, D, 1)
        add(at(moved, pull), 1.0, J, e, D, D, 1)
        add(at(moved, pull), -1.0, at(store, weight), f, D, D, 1)
        mul(K, J, at(d_precision, n * DD), D, D, D)
        add_to_turned(at(moved, weight), 1.0, K, J, D, D, D)
        mul(K, at(store, weight), V, D, D, D)
        add(at(moved, weight), -1.0, K, at(store, weight), D, D, D)
        symmetrise(at(moved, weight), D)
        # dm += H dP⁻'ω + HP⁻'dω, and dP -= cross'U + U'cross
        add_turned(at(moved, m), 1.0, at(moved, cross), at(store, pull), S, D, 1)
        add_turned(at(moved, m), 1.0, at(store, cross), at(moved, pull), S, D, 1)
        mul(U, at(store, weight), at(moved, cross), D, D, S)
        add(U, 0.5, at(moved, weight), at(store, cross), D, D, S)
        add_turned(at(moved, P), -1.0, at(store, cross), U, S, D, S)
        add_turned(at(moved, P), -1.0, U, at(store, cross), S, D, S)


@compiled_once(void(UniTuple(i8, 3), CHAIN, *[f8[::1]] * 3, UniTuple(f8[::1], 2), f8[::1]))
def tangent_backward(
    span: tuple[int, int, int], chain: tuple[int, np.ndarray, np.ndarray, np.ndarray], stored: np.ndarray,
    tangents: np.ndarray, carry: np.ndarray, bars: tuple[np.ndarray, np.ndarray], scratch: np.ndarray,
) -> None:  # fmt: skip
    """Add up ``tangent - adjoint`` of A and Q over rows ``low`` to ``high``; carry is r, N, dr, dN on both ends."""
    low, high, first = span
    D, step, tables_A, reads = chain
    S = reads.size // D
    SS, DD, DS = S * S, D * D, D * S
    width = store_width(S, D)
    A, H, store, moved = pointer(tables_A), pointer(reads), pointer(stored), pointer(tangents)
    bar_A, bar_Q = pointer(bars[0]), pointer(bars[1])
    r = pointer(carry)
    N, dr, dN = at(r, S), at(r, S + SS), at(r, 2 * S + SS)
    T = pointer(scratch)  # what this loop keeps of a row, one after the other: its own layout, like the smoother's
    X = at(T, SS)
    Y = at(X, SS)
    dY = at(Y, DS)
    U = at(dY, DS)
    K = at(U, DS)
    dK = at(K, DD)
    G = at(dK, DD)
    L = at(G, DD)
    g = at(L, DD)
    dg = at(g, S + D)
    t = at(dg, D)
    for n in range(high - 1, low - 1, -1):
        m, P, cross, pull, weight = row_of_store(n, S, D)
        # ω - Ωg for r, and its tangent for dr
        mul(g, at(store, cross), r, D, S, 1)
        mul(dg, at(moved, cross), r, D, S, 1)
        add(dg, 1.0, at(store, cross), dr, D, S, 1)
        copy(t, at(moved, pull), D)
        add(t, -1.0, at(moved, weight), g, D, D, 1)
        add(t, -1.0, at(store, weight), dg, D, D, 1)
        add_turned(dr, 1.0, H, t, S, D, 1)
        copy(t, at(store, pull), D)
        add(t, -1.0, at(store, weight), g, D, D, 1)
        add_turned(r, 1.0, H, t, S, D, 1)
        # Y = HP⁻N, K = YP⁻H' and their tangents
        mul(Y, at(store, cross), N, D, S, S)
        mul(dY, at(moved, cross), N, D, S, S)
        add(dY, 1.0, at(store, cross), dN, D, S, S)
        clear(K, DD)
        add_to_turned(K, 1.0, Y, at(store, cross), D, S, D)
        clear(dK, DD)
        add_to_turned(dK, 1.0, dY, at(store, cross), D, S, D)
        add_to_turned(dK, 1.0, Y, at(moved, cross), D, S, D)
        # dN += H'U + U'H with U = dL H/2 - d(ΩY), L = Ω + ΩKΩ
        mul(G, K, at(store, weight), D, D, D)
        for i in range(DD):
            L[i] = 0.5 * moved[weight + i]
        add(L, 1.0, at(moved, weight), G, D, D, D)  # half of it: the rest is its transpose, which H'U + U'H adds
        mul(G, dK, at(store, weight), D, D, D)
        add(L, 0.5, at(store, weight), G, D, D, D)
        mul(U, L, H, D, D, S)
        add(U, -1.0, at(moved, weight), Y, D, D, S)
        add(U, -1.0, at(store, weight), dY, D, D, S)
        add_turned(dN, 1.0, H, U, S, D, S)
        add_turned(dN, 1.0, U, H, S, D, S)
        mul(G, K, at(store, weight), D, D, D)
        copy(L, at(store, weight), DD)
        add(L, 1.0, at(store, weight), G, D, D, D)
        back_through_reading(N, H, L, at(store, weight), Y, U, D, S)
        if n == 0:
            break
        u = step[n] * SS
        bar = u - first * SS
        half_adjoint(X, r, N, S)
        # 2X A dP + r dm', then 2(dX - X) A P + (dr - r) m'
        mul(T, at(A, u), at(moved, P - width), S, S, S)
        add(at(bar_A, bar), 2.0, X, T, S, S, S)
        add_to_turned(at(bar_A, bar), 1.0, r, at(moved, m - width), S, 1, S)
        for i in range(S):
            g[i] = dr[i] - r[i]
            for j in range(S):
                both = dr[i] * r[j] + r[i] * dr[j]
                X[i * S + j] = 0.5 * (both - dN[i * S + j]) - X[i * S + j]
        mul(T, at(A, u), at(store, P - width), S, S, S)
        add(at(bar_A, bar), 2.0, X, T, S, S, S)
        add_to_turned(at(bar_A, bar), 1.0, g, at(store, m - width), S, 1, S)
        for i in range(SS):
            bar_Q[bar + i] += X[i]
        back_in_time(at(A, u), r, N, g, T, S)
        back_in_time(at(A, u), dr, dN, g, T, S)
