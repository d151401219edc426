"""Small matrices for :mod:`gaussfold.engine.kalman`: sums of products, roots, and one site on one marginal.

A matrix is a flat array and where in it the matrix begins, row after row: a row of a store, a step of a table and
scratch are then one type, so that every function compiles once (first use is mostly compilation). A vector is a matrix
of one column. No function remembers anything.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled_once


@compiled_once("void(f8[::1], i8, f8, f8[::1], i8, f8[::1], i8, i8, i8, i8)", inner=True)
def add(
    out: np.ndarray, o: int, scale: float, a: np.ndarray, i: int, b: np.ndarray, j: int, n: int, k: int, m: int
) -> None:
    """``out += scale · a b``, (n, k) by (k, m); zeros of a (blocks of the transition, most of H) cost nothing."""
    for r in range(n):
        for s in range(k):
            t = scale * a[i + r * k + s]
            if t != 0.0:
                for c in range(m):
                    out[o + r * m + c] += t * b[j + s * m + c]


@compiled_once("void(f8[::1], i8, f8, f8[::1], i8, f8[::1], i8, i8, i8, i8)", inner=True)
def add_turned(
    out: np.ndarray, o: int, scale: float, a: np.ndarray, i: int, b: np.ndarray, j: int, n: int, k: int, m: int
) -> None:
    """``out += scale · a' b``, (k, n)' by (k, m)."""
    for s in range(k):
        for r in range(n):
            t = scale * a[i + s * n + r]
            if t != 0.0:
                for c in range(m):
                    out[o + r * m + c] += t * b[j + s * m + c]


@compiled_once("void(f8[::1], i8, f8, f8[::1], i8, f8[::1], i8, i8, i8, i8)", inner=True)
def add_to_turned(
    out: np.ndarray, o: int, scale: float, a: np.ndarray, i: int, b: np.ndarray, j: int, n: int, k: int, m: int
) -> None:
    """``out += scale · a b'``, (n, k) by (m, k)'."""
    for r in range(n):
        for s in range(k):
            t = scale * a[i + r * k + s]
            if t != 0.0:
                for c in range(m):
                    out[o + r * m + c] += t * b[j + c * k + s]


@compiled_once("void(f8[::1], i8, i8)", inner=True)
def clear(out: np.ndarray, o: int, count: int) -> None:
    """``out = 0``."""
    for i in range(o, o + count):
        out[i] = 0.0


@compiled_once("void(f8[::1], i8, f8[::1], i8, f8[::1], i8, i8, i8, i8)", inner=True)
def mul(out: np.ndarray, o: int, a: np.ndarray, i: int, b: np.ndarray, j: int, n: int, k: int, m: int) -> None:
    """``out = a b``."""
    clear(out, o, n * m)
    add(out, o, 1.0, a, i, b, j, n, k, m)


@compiled_once("void(f8[::1], i8, f8[::1], i8, f8[::1], i8, f8[::1], i8)", inner=True)
def turned(out: np.ndarray, o: int, a: np.ndarray, i: int, P: np.ndarray, p: int, T: np.ndarray, n: int) -> None:
    """``out = a P a'`` for a symmetric P, all (n, n); ``T = a P``."""
    mul(T, 0, a, i, P, p, n, n, n)
    clear(out, o, n * n)
    add_to_turned(out, o, 1.0, a, i, T, 0, n, n, n)


@compiled_once("void(f8[::1], i8, i8)", inner=True)
def symmetrise(out: np.ndarray, o: int, n: int) -> None:
    """Mean of a matrix and its transpose."""
    for i in range(n):
        for j in range(i):
            t = 0.5 * (out[o + i * n + j] + out[o + j * n + i])
            out[o + i * n + j] = t
            out[o + j * n + i] = t


@compiled_once("b1(f8[::1], i8, f8[::1], i8, i8, f8)", inner=True)
def root(V: np.ndarray, v: int, L: np.ndarray, o: int, n: int, slack: float) -> bool:
    """Lower Cholesky factor; False if a pivot falls short of ``-slack`` times its diagonal entry.

    What is not positive becomes a column of zeros: a positive semi-definite matrix has a root too.
    """
    fine = True
    for j in range(n):
        for i in range(j, n):
            t = V[v + i * n + j]
            for k in range(j):
                t -= L[o + i * n + k] * L[o + j * n + k]
            if i == j:
                fine = fine and t >= -slack * abs(V[v + j * n + j])
                pivot = math.sqrt(t) if t > 0.0 else 0.0
                L[o + j * n + j] = pivot
            else:
                L[o + i * n + j] = t / pivot if pivot > 0.0 else 0.0
                L[o + j * n + i] = 0.0
    return fine


@compiled_once("void(f8[::1], i8, f8[::1], i8, i8, i8)", inner=True)
def solve(a: np.ndarray, i: int, b: np.ndarray, j: int, n: int, m: int) -> None:
    """``b = a⁻¹ b``, (n, n) and (n, m), by elimination with row pivots; a is used up."""
    for k in range(n):
        best = k
        for r in range(k + 1, n):
            if abs(a[i + r * n + k]) > abs(a[i + best * n + k]):
                best = r
        if best != k:
            for c in range(n):
                a[i + k * n + c], a[i + best * n + c] = a[i + best * n + c], a[i + k * n + c]
            for c in range(m):
                b[j + k * m + c], b[j + best * m + c] = b[j + best * m + c], b[j + k * m + c]
        inverse = 1.0 / a[i + k * n + k]
        for c in range(k + 1, n):
            a[i + k * n + c] *= inverse
        for c in range(m):
            b[j + k * m + c] *= inverse
        for r in range(n):  # Gauss-Jordan: below the pivot and above it
            t = a[i + r * n + k]
            if r != k and t != 0.0:
                for c in range(k + 1, n):
                    a[i + r * n + c] -= t * a[i + k * n + c]
                for c in range(m):
                    b[j + r * m + c] -= t * b[j + k * m + c]


@compiled_once("b1(f8[::1], i8, f8[::1], i8, f8[::1], i8, i8)", inner=True)
def factorised(V: np.ndarray, v: int, precision: np.ndarray, y: int, work: np.ndarray, w: int, n: int) -> bool:
    """``V = LL'`` into ``work[w:]`` and ``I + L'ΛL = RR'`` behind it; whether both exist. A third matrix is scratch."""
    size = n * n
    fine = root(V, v, work, w, n, 1e-9)
    mul(work, w + size, precision, y, work, w, n, n, n)
    clear(work, w + 2 * size, size)
    add_turned(work, w + 2 * size, 1.0, work, w, work, w + size, n, n, n)
    for d in range(n):
        work[w + 2 * size + d * (n + 1)] += 1.0
    return root(work, w + 2 * size, work, w + size, n, -1e-300) and fine


@compiled_once("Tuple((b1, f8))(f8[::1], f8[::1], f8[::1], i8, f8[::1], i8, f8[::1], i8, f8[::1], i8)", inner=True)
def absorb(
    V: np.ndarray, h: np.ndarray, precision: np.ndarray, y: int, shift: np.ndarray, s: int,
    store: np.ndarray, at: int, work: np.ndarray, n: int,
) -> tuple[bool, float]:  # fmt: skip
    """One site on the marginal N(h, V): ω, Ω into ``store[at:]``; whether a posterior is left, and the share of log Z.

    ``[Ω ω] = (I + ΛV)⁻¹ [Λ e]``: no difference of large numbers when the site is much sharper than the prior. Whether
    the posterior is positive is for the pivots of ``I + L'ΛL`` to say, ``V = LL'``, which also give the determinant.
    """
    size = n * n
    if not factorised(V, 0, precision, y, work, 0, n):
        return False, 0.0
    determinant = 1.0
    for d in range(n):
        determinant *= work[size + d * (n + 1)]
    share = -math.log(determinant)
    mul(work, 0, precision, y, V, 0, n, n, n)
    right = size
    for i in range(n):
        work[i * (n + 1)] += 1.0
        e = shift[s + i]
        for j in range(n):
            e -= precision[y + i * n + j] * h[j]
            work[right + i * (n + 1) + j] = precision[y + i * n + j]
        work[right + i * (n + 1) + n] = e
        store[at + i] = e  # for now
        share += 0.5 * (shift[s + i] + e) * h[i]
    solve(work, 0, work, right, n, n + 1)
    for i in range(n):
        e = store[at + i]
        for j in range(n):
            store[at + n + i * n + j] = work[right + i * (n + 1) + j]
            share += 0.5 * e * V[i * n + j] * work[right + j * (n + 1) + n]
    for i in range(n):
        store[at + i] = work[right + i * (n + 1) + n]
    symmetrise(store, at + n, n)
    return True, share


@compiled_once("void(f8[::1], i8, f8[::1], i8, f8[::1], i8, f8[::1], i8)", inner=True)
def marginal(
    V: np.ndarray, v: int, precision: np.ndarray, y: int, out: np.ndarray, o: int, work: np.ndarray, n: int
) -> None:
    """``(V⁻¹ + Λ)⁻¹ = X'X`` with ``V = LL'``, ``I + L'ΛL = RR'``, ``X = R⁻¹L'``: never indefinite."""
    size = n * n
    factorised(V, v, precision, y, work, 0, n)
    x = 2 * size
    for j in range(n):
        for i in range(n):
            t = work[j * n + i]
            for k in range(i):
                t -= work[size + i * n + k] * work[x + k * n + j]
            work[x + i * n + j] = t / work[size + i * (n + 1)]
    clear(out, o, size)
    add_turned(out, o, 1.0, work, x, work, x, n, n, n)
