"""Many small symmetric matrices at once: shape (..., d, d), d of a few. No function here adds jitter."""

from __future__ import annotations

import numpy as np

from gaussfold.linalg.triangles import solve_triangular
from gaussfold.types import Array

ROUNDING = 1e-10
"""An eigenvalue above ``-ROUNDING`` times the largest is a zero that was rounded."""


def symmetrised(matrices: Array) -> Array:
    """``(A + A')/2``."""
    return np.asarray(0.5 * (matrices + np.swapaxes(matrices, -1, -2)))


def applied(matrices: Array, vectors: Array) -> Array:
    """``A x`` of each, (..., d, d) and (..., d)."""
    if matrices.shape[-1] == 1:  # a product of many matrices of one entry takes ten times as long
        return np.asarray(matrices[..., 0] * vectors)
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def inverse(matrices: Array) -> Array:
    """A⁻¹ of each; a singular one gives infinities, not an exception."""
    if matrices.shape[-1] == 1:
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / matrices)
    try:
        return np.asarray(np.linalg.inv(matrices))
    except np.linalg.LinAlgError:
        flat = matrices.reshape(-1, *matrices.shape[-2:])
        out = np.full(flat.shape, np.inf)
        for row, matrix in enumerate(flat):
            if np.linalg.matrix_rank(matrix) == matrix.shape[0]:
                out[row] = np.linalg.inv(matrix)
        return out.reshape(matrices.shape)


def lower_roots(cov: Array, name: str) -> Array:
    """A factor L with L L' = cov for every row: the Cholesky factor, or for a singular one a symmetric root.

    Raises a ValueError that names the first row whose matrix has a negative eigenvalue or is not finite.
    """
    if cov.shape[-1] == 1:
        _refuse_first(~(cov[..., 0, 0] >= 0.0), cov[..., 0, 0], name)
        return np.asarray(np.sqrt(cov))
    try:
        return np.asarray(np.linalg.cholesky(cov))
    except np.linalg.LinAlgError:
        finite = np.asarray(np.isfinite(cov).all(axis=(-1, -2)))
        values, vectors = np.linalg.eigh(np.where(finite[..., None, None], symmetrised(cov), 0.0))
        smallest = np.where(finite, values[..., 0], np.nan)
        _refuse_first(~(smallest >= -ROUNDING * np.abs(values[..., -1])), smallest, name)
        return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]) @ np.swapaxes(vectors, -1, -2))


def whiteners(cov: Array, name: str) -> Array:
    """``L⁻¹`` with L L' = cov for every positive definite row, in place of one call to LAPACK per row.

    Row i of L⁻¹ is (e_i - Σ_k L_ik (row k of L⁻¹))/L_ii; a singular matrix goes through :func:`lower_roots`.
    """
    D = cov.shape[-1]
    L, out = np.empty(cov.shape), np.zeros(cov.shape)
    for j in range(D):
        pivot = cov[..., j, j] - np.square(L[..., j, :j]).sum(axis=-1)
        if not (pivot > 0.0).all():
            return inverse(lower_roots(cov, name))
        L[..., j, j] = np.sqrt(pivot)
        for i in range(j + 1, D):
            L[..., i, j] = (cov[..., i, j] - (L[..., i, :j] * L[..., j, :j]).sum(axis=-1)) / L[..., j, j]
        out[..., j, j] = 1.0 / L[..., j, j]
        for i in range(j):
            out[..., j, i] = -(L[..., j, i:j] * out[..., i:j, i]).sum(axis=-1) * out[..., j, j]
    return out


def root_adjoint(roots: Array, bar: Array) -> Array:
    """From the adjoint of a lower triangular L to that of ``L L'``: ``L⁻ᵀ S L⁻¹``, symmetric up to rounding.

    S is the symmetric part of Φ(L' bar), where Φ keeps the lower triangle and half of the diagonal. For one large
    matrix by triangular solves, for many small ones by elimination.
    """
    inside = np.tril(np.swapaxes(roots, -1, -2) @ np.tril(bar))
    diagonal = np.arange(roots.shape[-1])
    inside[..., diagonal, diagonal] *= 0.5
    half = _turned_solve(roots, symmetrised(inside))
    return _turned_solve(roots, np.swapaxes(half, -1, -2))


def _turned_solve(roots: Array, right: Array) -> Array:
    """``L⁻ᵀ right``."""
    if roots.ndim == 2:
        return np.asarray(solve_triangular(roots, right, lower=True, turned=True))
    turned = np.swapaxes(roots, -1, -2)
    try:
        return np.asarray(np.linalg.solve(turned, right))
    except np.linalg.LinAlgError:
        return np.asarray(inverse(turned) @ right)


def eigen(matrices: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of symmetric matrices, as ``numpy.linalg.eigh``."""
    if matrices.shape[-1] == 1:
        return np.asarray(matrices[..., 0]), np.ones_like(matrices)
    values, vectors = np.linalg.eigh(matrices)
    return values, vectors


def smallest_eigenvalues(matrices: Array) -> Array:
    """The smallest eigenvalue of each."""
    if matrices.shape[-1] == 1:
        return np.asarray(matrices[..., 0, 0])
    if matrices.shape[-1] == 2:
        a, b, d = matrices[..., 0, 0], matrices[..., 0, 1], matrices[..., 1, 1]
        return np.asarray(0.5 * (a + d) - np.hypot(0.5 * (a - d), b))
    return np.asarray(np.linalg.eigvalsh(matrices)[..., 0])


def non_positive(matrices: Array) -> np.ndarray:
    """Which of these have a negative eigenvalue, rounding apart."""
    if matrices.shape[-1] == 1:
        return np.asarray(~(matrices[..., 0, 0] >= 0.0))
    size = np.abs(matrices).max(axis=(-1, -2), initial=0.0)
    return np.asarray(~(smallest_eigenvalues(matrices) >= -ROUNDING * size))


def _refuse_first(bad: np.ndarray, value: Array, name: str) -> None:
    if bad.any():
        row = int(np.argmax(bad.ravel()))
        msg = (
            f"{name}[{row}] is not positive semi-definite (smallest eigenvalue {float(value.ravel()[row])!r}); a "
            "covariance has none below zero"
        )
        raise ValueError(msg)
