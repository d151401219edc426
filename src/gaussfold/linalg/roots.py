"""Square roots of covariance matrices.

Convention: a *factor* F of a covariance P is any square matrix with P = F F'; *lower* is the one that is lower
triangular with a positive diagonal. No function here adds jitter: a matrix that is not positive definite is
refused by name.
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when something in them is first looked up

from gaussfold.linalg.triangles import inverse_of_lower
from gaussfold.types import Array


def lower_root(matrix: Array, name: str) -> Array:
    """Lower Cholesky factor of a symmetric positive definite matrix; ``name`` is for the error message."""
    asymmetry = np.abs(matrix - matrix.T).max(initial=0.0)
    if not asymmetry <= 1e-8 * np.abs(matrix).max(initial=0.0):
        msg = f"{name} is not symmetric (largest difference {asymmetry:.3g}); symmetrise it first"
        raise ValueError(msg)
    try:
        return np.asarray(scipy.linalg.cholesky(0.5 * (matrix + matrix.T), lower=True))
    except scipy.linalg.LinAlgError:
        smallest = float(np.linalg.eigvalsh(0.5 * (matrix + matrix.T))[0])
        msg = f"{name} is not positive definite (smallest eigenvalue {smallest:.3g}); all must be above zero"
        raise ValueError(msg) from None


def triangularise(factor: Array) -> Array:
    """The lower triangular root of F F' with positive diagonal, without ever forming F F'; F may be wide."""
    size = factor.shape[0]
    found, *_ = scipy.linalg.lapack.dgeqrf(factor.T, lwork=64 * size)  # 64 is the largest block there is
    lower = np.tril(found[:size].T)
    return np.ascontiguousarray(np.where(np.diag(lower) < 0.0, -lower, lower))


def inverse_root(lower: Array) -> Array:
    """L⁻¹, so that the precision is (L⁻¹)' L⁻¹."""
    return inverse_of_lower(lower)


def log_det(lower: Array) -> float:
    """Log |L L'| of a triangular root."""
    return float(2.0 * np.log(np.abs(np.diag(lower))).sum())


def root_from_precision(precision: Array, name: str) -> Array:
    """A factor of the inverse of ``precision``: with Λ = L L', F = L⁻ᵀ."""
    return np.ascontiguousarray(inverse_root(lower_root(precision, name)).T)
