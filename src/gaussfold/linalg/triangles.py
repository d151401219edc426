"""Triangular systems without LAPACK's ``trtrs``.

OpenBLAS hands ``trtrs``, which is what SciPy's ``solve_triangular`` calls, to all of its threads however small the
matrix is; ``trsm`` and ``trtri`` do the same work and keep small matrices to themselves. A 2×2 system took 2 µs instead
of 15, and on busy cores, where a thread has to wait for its turn, instead of milliseconds.
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when something in them is first looked up

from gaussfold.types import Array


def solve_triangular(matrix: Array, right: Array, *, lower: bool = False, turned: bool = False) -> Array:
    """``matrix⁻¹ right``, or with ``turned`` ``matrix⁻ᵀ right``, for a vector or for columns; one triangle is read.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the result is not finite: the matrix is singular, or something in it or in ``right`` is no number.
    """
    columns = right[:, None] if right.ndim == 1 else right
    flipped = bool(matrix.flags.c_contiguous)  # the transpose is as Fortran holds it: nothing is copied
    found = scipy.linalg.blas.dtrsm(
        1.0, matrix.T if flipped else matrix, columns, lower=lower is not flipped, trans_a=turned is not flipped
    )
    return _finite(found[:, 0] if right.ndim == 1 else found)


def divided(matrix: Array, lower: Array, *, turned: bool = False) -> Array:
    """``L⁻¹ matrix`` or, turned, ``L⁻ᵀ matrix``, in the matrix's place if it is C-contiguous; nothing is checked."""
    found = scipy.linalg.blas.dtrsm(1.0, lower, matrix.T, side=1, lower=1, trans_a=0 if turned else 1, overwrite_b=1)
    return np.asarray(found.T)


def inverse_of_lower(lower: Array) -> Array:
    """``L⁻¹`` of a lower triangular L with zeros above; raises as :func:`solve_triangular` does."""
    if lower.flags.c_contiguous:
        upper, info = scipy.linalg.lapack.dtrtri(lower.T, lower=0)
        found = upper.T
    else:
        found, info = scipy.linalg.lapack.dtrtri(lower, lower=1)
    return _finite(found, singular=info > 0)


def _finite(found: Array, *, singular: bool = False) -> Array:
    if singular or not np.isfinite(found).all():
        msg = "a triangular matrix is singular, or not finite"
        raise np.linalg.LinAlgError(msg)
    return found
