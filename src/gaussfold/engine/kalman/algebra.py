"""Small matrices for :mod:`gaussfold.engine.kalman.smoother`: sums of products, roots, and one site on one marginal.

A matrix is a pointer to its first entry, rows one after the other; a vector is a matrix of one column. A row of a
store, a step of a table and scratch are then one type, and ten words shorter than an array: every function compiles
once, and first use is mostly compilation. Nothing is allocated here; ``work`` is scratch.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numba.core.types import boolean, void
from numba.core.types import float64 as f8
from numba.core.types import int64 as i8
from numba.core.types.containers import Tuple, UniTuple

from gaussfold.engine.compiled import compiled_once
from gaussfold.engine.simd.pointers import offset as at
from gaussfold.engine.simd.pointers import pointer_to

Pointer: TypeAlias = np.ndarray
"""For type checkers: something whose entries are read and written by their place."""

PLACE = pointer_to(f8)
"""For Numba: the type of such a thing."""
_SUM = void(PLACE, f8, PLACE, PLACE, i8, i8, i8)


@compiled_once(i8(i8, i8))
def store_width(S: int, D: int) -> int:
    """Length of a row of a store, for S states and D latents."""
    return S + S * S + D * S + D + D * D


@compiled_once(UniTuple(i8, 5)(i8, i8, i8), inner=True)
def row_of_store(n: int, S: int, D: int) -> tuple[int, int, int, int, int]:
    """Where row n of a store begins, and in it P⁺ (S, S), HP⁻ (D, S), ω (D) and Ω (D, D), after the mean (S)."""
    m = n * store_width(S, D)
    P = m + S
    cross = P + S * S
    pull = cross + D * S
    return m, P, cross, pull, pull + D


# Three products that differ in which factor is turned, each with its places written out: the filter spends its time
# here, and the inner loop is to run over neighbours wherever it can.


@compiled_once(_SUM, inner=True)
def add(out: Pointer, scale: float, a: Pointer, b: Pointer, n: int, k: int, m: int) -> None:
    """``out += scale · a b``, (n, k) by (k, m); zeros of a (blocks of the transition, most of H) cost nothing."""
    for r in range(n):
        for s in range(k):
            t = scale * a[r * k + s]
            if t != 0.0:
                for c in range(m):
                    out[r * m + c] += t * b[s * m + c]


@compiled_once(_SUM, inner=True)
def add_turned(out: Pointer, scale: float, a: Pointer, b: Pointer, n: int, k: int, m: int) -> None:
    """``out += scale · a' b``, (k, n)' by (k, m)."""
    for s in range(k):
        for r in range(n):
            t = scale * a[s * n + r]
            if t != 0.0:
                for c in range(m):
                    out[r * m + c] += t * b[s * m + c]


@compiled_once(_SUM, inner=True)
def add_to_turned(out: Pointer, scale: float, a: Pointer, b: Pointer, n: int, k: int, m: int) -> None:
    """``out += scale · a b'``, (n, k) by (m, k)'."""
    for r in range(n):
        for s in range(k):
            t = scale * a[r * k + s]
            if t != 0.0:
                for c in range(m):
                    out[r * m + c] += t * b[c * k + s]


@compiled_once(void(PLACE, i8), inner=True)
def clear(out: Pointer, count: int) -> None:
    """``out = 0``."""
    for i in range(count):
        out[i] = 0.0


@compiled_once(void(PLACE, PLACE, i8), inner=True)
def copy(out: Pointer, a: Pointer, count: int) -> None:
    """``out = a``."""
    for i in range(count):
        out[i] = a[i]


@compiled_once(void(PLACE, i8), inner=True)
def add_one(out: Pointer, n: int) -> None:
    """``out += I``."""
    for i in range(n):
        out[i * (n + 1)] += 1.0


@compiled_once(void(PLACE, PLACE, PLACE, i8), inner=True)
def half_adjoint(out: Pointer, r: Pointer, N: Pointer, n: int) -> None:
    """``out = (rr' - N)/2``: the adjoint of a covariance, given r and N of the mean."""
    for i in range(n):
        for j in range(n):
            out[i * n + j] = 0.5 * (r[i] * r[j] - N[i * n + j])


@compiled_once(void(PLACE, PLACE, PLACE, i8, i8, i8), inner=True)
def mul(out: Pointer, a: Pointer, b: Pointer, n: int, k: int, m: int) -> None:
    """``out = a b``."""
    clear(out, n * m)
    add(out, 1.0, a, b, n, k, m)


@compiled_once(void(PLACE, PLACE, PLACE, PLACE, i8), inner=True)
def turned(out: Pointer, a: Pointer, P: Pointer, T: Pointer, n: int) -> None:
    """``out = a P a'`` for a symmetric P, all (n, n); ``T = a P``."""
    mul(T, a, P, n, n, n)
    clear(out, n * n)
    add_to_turned(out, 1.0, a, T, n, n, n)


@compiled_once(void(PLACE, i8), inner=True)
def symmetrise(out: Pointer, n: int) -> None:
    """Mean of a matrix and its transpose."""
    for i in range(n):
        for j in range(i):
            t = 0.5 * (out[i * n + j] + out[j * n + i])
            out[i * n + j] = t
            out[j * n + i] = t


@compiled_once(boolean(PLACE, PLACE, i8, f8), inner=True)
def root(V: Pointer, L: Pointer, n: int, slack: float) -> bool:
    """Lower Cholesky factor; False if a pivot falls short of ``-slack`` times its diagonal entry.

    What is not positive becomes a column of zeros: a positive semi-definite matrix has a root too.
    """
    fine = True
    for j in range(n):
        pivot = 0.0
        for i in range(j, n):
            t = V[i * n + j]
            for k in range(j):
                t -= L[i * n + k] * L[j * n + k]
            if i == j:
                fine = fine and t >= -slack * abs(V[j * n + j])
                pivot = math.sqrt(t) if t > 0.0 else 0.0
                L[j * n + j] = pivot
            else:
                L[i * n + j] = t / pivot if pivot > 0.0 else 0.0
                L[j * n + i] = 0.0
    return fine


@compiled_once(void(PLACE, i8, i8, i8), inner=True)
def _swap_rows(a: Pointer, i: int, j: int, m: int) -> None:
    for c in range(m):
        a[i * m + c], a[j * m + c] = a[j * m + c], a[i * m + c]


@compiled_once(i8(PLACE, i8, i8), inner=True)
def _pivot(a: Pointer, k: int, n: int) -> int:
    """The row from k on whose entry in column k is largest."""
    best = k
    for r in range(k + 1, n):
        if abs(a[r * n + k]) > abs(a[best * n + k]):
            best = r
    return best


@compiled_once(void(PLACE, PLACE, i8, i8), inner=True)
def solve(a: Pointer, b: Pointer, n: int, m: int) -> None:
    """``b = a⁻¹ b``, (n, n) and (n, m), by elimination with row pivots (Gauss-Jordan); a is used up."""
    for k in range(n):
        best = _pivot(a, k, n)
        if best != k:
            _swap_rows(a, k, best, n)
            _swap_rows(b, k, best, m)
        inverse = 1.0 / a[k * n + k]
        for c in range(k + 1, n):
            a[k * n + c] *= inverse
        for c in range(m):
            b[k * m + c] *= inverse
        for r in range(n):
            t = a[r * n + k]
            if r != k and t != 0.0:
                for c in range(k + 1, n):
                    a[r * n + c] -= t * a[k * n + c]
                for c in range(m):
                    b[r * m + c] -= t * b[k * m + c]


@compiled_once(boolean(PLACE, PLACE, PLACE, i8), inner=True)
def factorised(V: Pointer, precision: Pointer, work: Pointer, n: int) -> bool:
    """``V = LL'`` into work and ``I + L'ΛL = RR'`` behind it; whether both exist. A third matrix is scratch."""
    L, R, G = work, at(work, n * n), at(work, 2 * n * n)
    fine = root(V, L, n, 1e-9)
    mul(R, precision, L, n, n, n)
    clear(G, n * n)
    add_turned(G, 1.0, L, R, n, n, n)
    add_one(G, n)
    return root(G, R, n, -1e-300) and fine


@compiled_once(Tuple((boolean, f8))(PLACE, PLACE, PLACE, PLACE, PLACE, PLACE, PLACE, i8), inner=True)
def absorb(
    V: Pointer, h: Pointer, precision: Pointer, shift: Pointer, pull: Pointer, weight: Pointer, work: Pointer, n: int
) -> tuple[bool, float]:
    """One site on the marginal N(h, V): ω, Ω into pull and weight; whether a posterior is left, the share of log Z.

    ``[Ω ω] = (I + ΛV)⁻¹ [Λ e]``: no difference of large numbers when the site is much sharper than the prior. Whether
    the posterior is positive is for the pivots of ``I + L'ΛL`` to say, ``V = LL'``, which also give the determinant.
    """
    if not factorised(V, precision, work, n):
        return False, 0.0
    determinant = 1.0
    for d in range(n):
        determinant *= work[n * n + d * (n + 1)]
    share = -math.log(determinant)
    right = at(work, n * n)
    mul(work, precision, V, n, n, n)
    for i in range(n):
        work[i * (n + 1)] += 1.0
        e = shift[i]
        for j in range(n):
            e -= precision[i * n + j] * h[j]
            right[i * (n + 1) + j] = precision[i * n + j]
        right[i * (n + 1) + n] = e
        pull[i] = e  # for now
        share += 0.5 * (shift[i] + e) * h[i]
    solve(work, right, n, n + 1)
    for i in range(n):
        for j in range(n):
            weight[i * n + j] = right[i * (n + 1) + j]
            share += 0.5 * pull[i] * V[i * n + j] * right[j * (n + 1) + n]
    for i in range(n):
        pull[i] = right[i * (n + 1) + n]
    symmetrise(weight, n)
    return True, share


@compiled_once(void(PLACE, PLACE, PLACE, PLACE, i8), inner=True)
def marginal(V: Pointer, precision: Pointer, out: Pointer, work: Pointer, n: int) -> None:
    """``(V⁻¹ + Λ)⁻¹ = X'X`` with ``V = LL'``, ``I + L'ΛL = RR'``, ``X = R⁻¹L'``: never indefinite."""
    factorised(V, precision, work, n)
    L, R, X = work, at(work, n * n), at(work, 2 * n * n)
    for j in range(n):
        for i in range(n):
            t = L[j * n + i]
            for k in range(i):
                t -= R[i * n + k] * X[k * n + j]
            X[i * n + j] = t / R[i * (n + 1)]
    clear(out, n * n)
    add_turned(out, 1.0, X, X, n, n, n)
