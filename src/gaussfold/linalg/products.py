"""Matrix products through one BLAS.

NumPy and SciPy each bring their own copy with its own threads, and the idle threads of one spin on the cores that the
other needs. Code that calls SciPy's routines in a loop takes its products from there too.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dgemm, dgemv

from gaussfold.types import Array


def product(a: Array, b: Array) -> Array:
    """``a @ b`` as a C-ordered array; no operand is copied if it is contiguous either way round."""
    left, turn_left = _as_fortran(b)
    right, turn_right = _as_fortran(a)
    return np.asarray(dgemm(1.0, left, right, trans_a=turn_left, trans_b=turn_right).T)


def applied(a: Array, vector: Array) -> Array:
    """``a @ vector``, likewise."""
    left, turn = _as_fortran(a)
    return np.asarray(dgemv(1.0, left, vector, trans=1 - turn))


def _as_fortran(matrix: Array) -> tuple[Array, int]:
    """The transpose as Fortran would hold it: a view, or the matrix itself and the order to transpose it."""
    return (matrix.T, 0) if matrix.flags.c_contiguous else (matrix, 1)
