"""Regularised least squares by QR: the square root of an information matrix ``I + A'A``."""

from __future__ import annotations

import numpy as np
from scipy.linalg import qr_multiply

from gaussfold.linalg.triangles import solve_triangular
from gaussfold.types import Array


class InformationRoot:
    """R with ``R'R = I + A'A`` (columns permuted), never squaring A's condition number.

    Rows enter by decreasing size and columns are pivoted, which makes Householder QR accurate row by row
    (Cox and Higham, 1998): a few huge rows (precise observations, flat priors) do not drown the small ones.

    Parameters
    ----------
    A
        Matrix of shape (n, d).
    b
        Right side of shape (n,), zeros if not given.

    Attributes
    ----------
    z : ndarray of shape (d,)
        The minimum of ``|Az - b|² + |z|²``.
    """

    def __init__(self, A: Array, b: Array | None = None) -> None:
        n, d = A.shape
        stacked = np.vstack([A, np.eye(d)])
        target = np.zeros(n + d)
        target[:n] = 0.0 if b is None else b
        order = np.argsort(-np.abs(stacked).max(axis=1), kind="stable")
        projected, self._upper, self._pivot = qr_multiply(
            stacked[order], target[order], mode="right", pivoting=True, overwrite_a=True
        )
        self.z = np.empty(d)
        self.z[self._pivot] = solve_triangular(self._upper, projected)

    def log_det(self) -> float:
        """``log |I + A'A|``."""
        return 2.0 * float(np.log(np.abs(np.diag(self._upper))).sum())

    def whiten(self, rows: Array) -> Array:
        """``rows R⁻¹``: row by row, its squared norm is ``x' (I + A'A)⁻¹ x``."""
        return np.asarray(solve_triangular(self._upper, rows[:, self._pivot].T, turned=True).T)

    def solve(self, b: Array) -> Array:
        """``(I + A'A)⁻¹ b``."""
        half = solve_triangular(self._upper, b[self._pivot], turned=True)
        out = np.empty_like(b)
        out[self._pivot] = solve_triangular(self._upper, half)
        return out

    def factor(self) -> Array:
        """``R⁻¹``, a factor of the covariance: ``(I + A'A)⁻¹ = R⁻¹ R⁻ᵀ``."""
        out = np.empty(self._upper.shape)
        out[self._pivot] = solve_triangular(self._upper, np.eye(self._upper.shape[0]))
        return out
