"""Recursive expectation maximisation: lrvga Alg. 1 for the target T = α(W₀W₀' + Ψ₀) + XBX'.

One step of EM for factor analysis, from the current (W, Ψ), with M = I + W'Ψ⁻¹W:

    U = TΨ⁻¹WM⁻¹,   H = M⁻¹ + M⁻¹W'Ψ⁻¹U,   W ← UH⁻¹,   Ψ ← diag(T - WU')          lrvga (19), (20)

The first loop starts at W₀, and for α = 1 it collapses: with C = M⁻¹W'Ψ⁻¹X (what the factors see in the new
columns), E = X - WC (what they do not explain) and S = (B⁻¹ + C'C)⁻¹,

    W ← W + ESC',   Ψ ← Ψ + diag(ESE').

So the first loop costs a rank-K update, no d×p by p×p product, and Ψ can only grow. All d-sized work is in
``engine.lowrank.products``. Reference twin: ``tests/reference/lowrank.py`` (Algorithm 1 as printed).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky

from gaussfold.engine.lowrank.products import add_product, add_squares, gram, mix, mix_rows, reach, tile_rows
from gaussfold.linalg.triangles import solve_triangular
from gaussfold.rows import Matrix, is_sparse
from gaussfold.types import Array


class Seen(NamedTuple):
    """What a pass over W found out about the rows X, for a projection not to pass again."""

    reach: Array
    """W'Ψ⁻¹X', p×K."""
    inner: Array
    """XΨ⁻¹X', K×K."""
    residual: Array | None = None
    """X - C'W', K×d."""


CANCELLED = 1e-9
"""Where Ψ is this much smaller than T's diagonal, rounding is checked against a bound."""


def project_em(
    W: Array,
    psi: Array,
    G: Array,
    X: Matrix,
    weight: Array,
    alpha: float = 1.0,
    inner_loops: int = 1,
    seen: Seen | None = None,
    due: Array | None = None,  # noqa: ARG001 - only the eigen-projection leaves anything for later
) -> Array:
    """Project α(WW' + Ψ) + X'diag(weight)X onto low rank plus diagonal by ``inner_loops`` steps of EM, in place.

    Parameters
    ----------
    W, psi
        Factors (d, p) and diagonal (d,); overwritten.
    G
        W'Ψ⁻¹W of what they are now, as :func:`gaussfold.engine.lowrank.products.gram` gives it.
    X
        Rows (K, d), dense or sparse.
    weight
        One number per row. A negative one is allowed as long as the target stays positive definite.
    alpha
        Weight of what is known, > 0.
    inner_loops
        Steps of EM. From the second on, a copy of W is kept: one more array of its size.
    seen
        What is known of X already.
    due
        What the projection left to do later, see :mod:`gaussfold.factors.eigen`.

    Returns
    -------
    W'Ψ⁻¹W after the projection.
    """
    base, base_psi = (W.copy(), psi.copy()) if inner_loops > 1 else (W, psi)
    if alpha == 1.0:
        _first_loop(W, psi, G, X, weight, seen)
        G = gram(W, psi)
    else:
        G = _first_loop_scaled(W, psi, G, X, weight, alpha)
    for _ in range(inner_loops - 1):
        G = em_loop(W, psi, G, base, base_psi, X, weight, alpha)
    return G


def _first_loop(W: Array, psi: Array, G: Array, X: Matrix, weight: Array, seen: Seen | None) -> None:
    R = reach(W, psi, X)[0] if seen is None else seen.reach
    C = cho_solve(cho_factor(np.eye(len(G)) + G), R)
    E = mix(W, -C, X) if seen is None or seen.residual is None else seen.residual
    if (weight >= 0.0).all():  # S = √B (I + √B C'C √B)⁻¹ √B stands a weight of zero
        root = np.sqrt(weight)
        inner = np.eye(len(root)) + (root[:, None] * (C.T @ C)) * root
        S = root[:, None] * cho_solve(cho_factor(inner), np.diag(root))
        add_squares(psi, E, S)
    else:
        S = np.linalg.solve(np.eye(len(weight)) + weight[:, None] * (C.T @ C), np.diag(weight))
        S = 0.5 * (S + S.T)
        fresh = psi.copy()
        add_squares(fresh, E, S)
        if not (fresh > 0.0).all():
            msg = "weight: negative weights leave nothing positive on the diagonal of Ψ"
            raise ValueError(msg)
        psi[:] = fresh
    add_product(W, E, S @ C.T)


def _first_loop_scaled(W: Array, psi: Array, G: Array, X: Matrix, weight: Array, alpha: float) -> Array:
    """The first loop for α ≠ 1: U = αW + XBC', H = αI + (1-α)M⁻¹ + CBC'."""
    p = len(G)
    R, _ = reach(W, psi, X)
    inverse = cho_solve(cho_factor(np.eye(p) + G), np.eye(p))
    C = inverse @ R
    CB = C * weight
    H_inverse = cho_solve(cho_factor(alpha * np.eye(p) + (1.0 - alpha) * inverse + CB @ C.T), np.eye(p))
    H_inverse = np.ascontiguousarray(H_inverse, dtype=W.dtype)
    squares = _weighted_squares(X, weight, psi.size)
    total = np.zeros((p, p))
    for part in tiles(W):
        tile = W[part]
        U = alpha * tile + mix_rows(CB, X[:, part], W.dtype).T
        new = U @ H_inverse
        diagonal = squares[part] + alpha * (np.einsum("ij,ij->i", tile, tile) + psi[part])
        fresh = diagonal - np.einsum("ij,ij->i", new, U)
        psi[part] = _bounded(fresh, diagonal, tile, psi[part], inverse, alpha * psi[part])
        W[part] = new
        total += tile_gram(new, psi[part])
    return total


def em_loop(
    W: Array, psi: Array, G: Array, base: Array, base_psi: Array, X: Matrix, weight: Array, alpha: float = 1.0
) -> Array:
    """One step of EM from any (W, Ψ) towards α(W₀W₀' + Ψ₀) + XBX', in place; returns the new W'Ψ⁻¹W."""
    p = len(G)
    R, _ = reach(W, psi, X)
    cross = np.zeros((p, p))  # W₀'Ψ⁻¹W
    twice = np.zeros((p, p))  # W'Ψ⁻¹Ψ₀Ψ⁻¹W
    for part in tiles(W):
        scaled = W[part] / psi[part][:, None]
        cross += base[part].T @ scaled
        twice += (scaled * base_psi[part][:, None]).T @ scaled
    lower = cholesky(np.eye(p) + G, lower=True)
    inverse = cho_solve((lower, True), np.eye(p))
    # H = L⁻ᵀ(I + L⁻¹QL⁻ᵀ)L⁻¹ with M = LL' and Q = W'Ψ⁻¹TΨ⁻¹W: a sum of squares that stays positive definite
    seen_base = solve_triangular(lower, cross.T, lower=True)
    seen_now = solve_triangular(lower, solve_triangular(lower, twice, lower=True).T, lower=True)
    seen_rows = solve_triangular(lower, R, lower=True)
    inner = (
        np.eye(p)
        + alpha * (seen_base @ seen_base.T + 0.5 * (seen_now + seen_now.T))
        + (seen_rows * weight) @ seen_rows.T
    )
    H_inverse = np.ascontiguousarray(lower @ cho_solve(cho_factor(inner), lower.T), dtype=W.dtype)
    from_base = np.asarray(alpha * cross @ inverse, dtype=W.dtype)
    from_now = np.asarray(alpha * inverse, dtype=W.dtype)
    from_rows = (inverse @ R) * weight
    squares = _weighted_squares(X, weight, psi.size)
    total = np.zeros((p, p))
    for part in tiles(W):
        known, now = base[part], W[part]
        ratio = base_psi[part] / psi[part]
        U = known @ from_base
        U += (now * ratio[:, None]) @ from_now
        U += mix_rows(from_rows, X[:, part], W.dtype).T
        new = U @ H_inverse
        diagonal = squares[part] + alpha * (np.einsum("ij,ij->i", known, known) + base_psi[part])
        fresh = diagonal - np.einsum("ij,ij->i", new, U)
        fresh = psi[part] = _bounded(fresh, diagonal, now, psi[part], inverse, alpha * base_psi[part])
        W[part] = new
        total += tile_gram(new, fresh)
    return total


def _bounded(fresh: Array, diagonal: Array, W: Array, psi: Array, inverse: Array, least: Array) -> Array:
    """The new Ψ = diag((T⁻¹ + LML')⁻¹), L = Ψ⁻¹WM⁻¹: never below what T ≥ ``least`` gives, whatever the rounding."""
    low = fresh < CANCELLED * diagonal
    if low.any():
        spread = np.einsum("ij,jk,ik->i", W[low], inverse, W[low]) / psi[low] ** 2
        fresh[low] = np.maximum(fresh[low], 1.0 / (1.0 / least[low] + spread))
    return fresh


def tiles(W: Array) -> list[slice]:
    """Slices of rows that fit the cache."""
    step = tile_rows(W)
    return [slice(start, start + step) for start in range(0, len(W), step)]


def tile_gram(tile: Array, psi: Array) -> Array:
    """W'Ψ⁻¹W of some rows."""
    scaled = tile / np.sqrt(psi)[:, None]
    return np.asarray(scaled.T @ scaled, dtype=np.float64)


def _weighted_squares(X: Matrix, weight: Array, dim: int) -> Array:
    """diag(XBX')."""
    squared = X.multiply(X) if is_sparse(X) else np.square(X)
    return np.asarray(squared.T @ weight).reshape(dim)
