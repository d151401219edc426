"""A precision WW' + Ψ, and the rows Z of a block not yet projected: Λ = WW' + Z'Z + Ψ, through Woodbury's identity.

With F = [W, Z'] and M = I + F'Ψ⁻¹F the covariance acts as Px = Ψ⁻¹(x - FC), C = M⁻¹F'Ψ⁻¹x, and

    x'Px = |Ψ^(-1/2)(x - FC)|² + |C|²,

a sum of squares (the minimum over C, so errors in C matter only to second order), where x'Ψ⁻¹x - C'MC would lose
all digits of a well known direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from gaussfold.engine.lowrank.products import mix, mix_rows, reach, weighted_gram
from gaussfold.linalg.triangles import solve_triangular
from gaussfold.rows import Matrix, is_sparse
from gaussfold.types import Array

CANCELLED = 1e-5
"""Below this share of x'Ψ⁻¹x a difference has lost too many digits, and the sum of squares is used."""


class View(NamedTuple):
    """What the precision says about some rows X."""

    reach: Array
    """F'Ψ⁻¹X', (p+b)×K."""
    inner: Array
    """XΨ⁻¹X', K×K."""
    explained: Array
    """C = M⁻¹F'Ψ⁻¹X'."""
    residual: Array | None
    """X - C'F' (K×d), or None where sparsity made it unnecessary."""
    covariance: Array
    """XPX'."""


class Precision:
    """Λ = WW' + Z'Z + Ψ with M factorised."""

    def __init__(self, W: Array, psi: Array, gram: Array, rows: Matrix | None = None) -> None:
        self.W, self.psi, self.rows = W, psi, rows
        self.rank = W.shape[1]
        if rows is not None:
            R, inner = reach(W, psi, rows)
            gram = np.block([[gram, R], [R.T, inner]])
        self.gram = gram
        self._cho = _factorised(gram)

    def plus(self, rows: Matrix) -> Precision:
        """Λ + rows'rows; of a precision without waiting rows."""
        if self.rows is not None:
            msg = "plus: rows wait already; project them first"
            raise ValueError(msg)
        return Precision(self.W, self.psi, self.gram, rows)

    def solve(self, right: Array) -> Array:
        """M⁻¹ right."""
        return np.asarray(cho_solve(self._cho, right))

    def log_det(self) -> float:
        """Log |Λ|."""
        return float(np.log(self.psi, dtype=np.float64).sum() + 2.0 * np.log(np.diag(self._cho[0])).sum())

    def reach(self, X: Matrix) -> tuple[Array, Array]:
        """F'Ψ⁻¹X' and XΨ⁻¹X'."""
        R, inner = reach(self.W, self.psi, X)
        if self.rows is None:
            return R, inner
        return np.vstack([R, cross(self.rows, self.psi, X)]), inner

    def residual(self, X: Matrix, C: Array) -> Array:
        """X - C'F', K×d."""
        E = mix(self.W, -C[: self.rank], X)
        if self.rows is not None:
            E -= mix_rows(C[self.rank :].T, self.rows, E.dtype)
        return E

    def view(self, X: Matrix, residual: bool = True) -> View:
        """Look at rows; without ``residual`` sparse rows are looked at in time linear in their non-zeros."""
        R, inner = self.reach(X)
        C = self.solve(R)
        if not residual:
            difference = inner - R.T @ C
            if (np.diag(difference) > CANCELLED * np.diag(inner)).all():
                return View(R, inner, C, None, 0.5 * (difference + difference.T))
        E = self.residual(X, C)
        covariance = weighted_gram(E, self.psi) + C.T @ C
        return View(R, inner, C, E, 0.5 * (covariance + covariance.T))

    def variances(self, X: Matrix) -> Array:
        """X'Px per row, in pieces that keep memory small."""
        step = max(1, (1 << 21) // self.psi.size)
        out = np.empty(X.shape[0])
        for start in range(0, X.shape[0], step):
            part = X[start : start + step]
            R, _ = self.reach(part) if part.shape[0] <= 64 else (self._reach_only(part), None)
            C = self.solve(R)
            E = self.residual(part, C)
            out[start : start + step] = np.einsum("ij,ij,j->i", E, E, 1.0 / self.psi) + np.einsum("ji,ji->i", C, C)
        return out

    def _reach_only(self, X: Matrix) -> Array:
        scaled = _scaled(X, self.psi)
        R = np.asarray((scaled @ self.W).T, dtype=np.float64)
        if self.rows is None:
            return R
        return np.vstack([R, _dense(scaled @ self.rows.T).T])

    def diagonal(self) -> Array:
        """Diagonal of the covariance: (1 - |L⁻¹F'Ψ^(-1/2)|²)/ψ, M = LL'.

        Where that difference has lost its digits the sum of squares is used, at a unit vector. It cannot be so for
        many parameters: the shares that F explains add up to less than its columns.
        """
        out = np.empty(self.psi.size)
        step = max(1, (1 << 18) // len(self.gram))
        lower = np.tril(self._cho[0])
        for start in range(0, out.size, step):
            part = slice(start, start + step)
            F = self.W[part]
            if self.rows is not None:
                F = np.hstack([F, _dense(self.rows[:, part]).T])
            scale = 1.0 / np.sqrt(self.psi[part], dtype=np.float64)
            seen = solve_triangular(lower, (F * scale[:, None]).T, lower=True)
            out[part] = 1.0 - np.einsum("ij,ij->j", seen, seen)
        cancelled = np.flatnonzero(out <= CANCELLED)
        out /= self.psi
        for at in cancelled:
            unit = np.zeros((1, out.size))
            unit[0, at] = 1.0
            out[at] = self.variances(unit)[0]
        return out

    def times(self, vectors: Array) -> Array:
        """Λ v for each row v."""
        out = (vectors @ self.W) @ self.W.T + vectors * self.psi
        if self.rows is not None:
            out += mix_rows(np.asarray((self.rows @ vectors.T).T), self.rows, out.dtype)
        return np.asarray(out)

    def covariance_times(self, vectors: Array) -> Array:
        """P v for each row v."""
        return np.asarray(self.residual(vectors, self.solve(self._reach_only(vectors))) / self.psi)

    def ensemble(self, base: Array, base_factors: Array) -> Array:
        """Samples of N(0, P) from standard normals (n×d and n×(p+b)): x + L(ε - F'x), lrvga Prop. 1 corrected."""
        x = base / np.sqrt(self.psi)
        seen = np.asarray(x @ self.W)
        if self.rows is not None:
            seen = np.hstack([seen, np.asarray(self.rows @ x.T).T])
        weights = self.solve((base_factors - seen).T)
        pull = np.asarray(weights[: self.rank].T, dtype=self.W.dtype) @ self.W.T
        if self.rows is not None:
            pull += mix_rows(weights[self.rank :].T, self.rows, pull.dtype)
        pull /= self.psi
        x += pull
        return np.asarray(x)


def _factorised(gram: Array) -> tuple[Array, bool]:
    """Lower Cholesky factor of I + gram; where rounding has made that indefinite, through the eigenvectors.

    A Gram matrix has no negative eigenvalues: those of rounding are zero.
    """
    try:
        factor, lower = cho_factor(np.eye(len(gram)) + gram, lower=True)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(gram)
        upper: Array = np.asarray(np.linalg.qr(np.sqrt(1.0 + np.maximum(values, 0.0))[:, None] * vectors.T, mode="r"))
        return np.asarray(upper.T * np.sign(np.diag(upper))), True
    return np.asarray(factor), bool(lower)


def too_strong(psi: Array, X: Matrix, inner: Array, site_precision: Array) -> list[int]:
    """Which rows say more than 1/eps times what is known of a parameter, λx²/ψ: rounding would leave nothing else.

    ``inner`` is x'Ψ⁻¹x of each, so that few rows are looked at entry by entry. They are to be refused.
    """
    most = 1.0 / float(np.finfo(psi.dtype).eps)
    suspects = np.flatnonzero(site_precision * inner > most)
    return [int(r) for r in suspects if site_precision[r] * (_dense(X[[r]])[0] ** 2 / psi).max() > most]


def cross(rows: Matrix, psi: Array, X: Matrix) -> Array:
    """Z Ψ⁻¹ X'."""
    return _dense(_scaled(rows, psi) @ X.T)


def _scaled(X: Matrix, psi: Array) -> Matrix:
    if not is_sparse(X):
        return X / psi
    scaled = X.copy()
    scaled.data = scaled.data / psi[scaled.indices]
    return scaled


def _dense(matrix: Matrix) -> Array:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix, dtype=np.float64)
