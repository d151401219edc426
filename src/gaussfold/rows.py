"""Rows of features on their way from data to a belief: a dense block, or the three arrays of a CSR matrix.

Whatever a caller hands in as X is turned into one of the two at the door (:func:`as_rows`), and nobody looks at its
kind again but the belief that works with it. Readers make :class:`Rows` themselves, which nobody checks again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard, final

import numpy as np
import scipy

from gaussfold.checks import columns
from gaussfold.types import Array, ArrayLike


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Sparse rows: entries ``indptr[i]`` to ``indptr[i + 1]`` of ``indices`` and ``data`` are those of row i.

    A promise: indices are in range, none repeats within a row, and data are finite. Whoever makes one vouches for it.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.indptr.size - 1, self.width

    @property
    def longest(self) -> int:
        """Number of entries of the longest row."""
        return int(np.diff(self.indptr).max(initial=0))

    def __getitem__(self, part: slice | np.ndarray) -> Rows:
        """Some of the rows, by a slice (which shares memory) or a mask."""
        if isinstance(part, slice):
            start, stop, _ = part.indices(self.indptr.size - 1)
            a, b = int(self.indptr[start]), int(self.indptr[max(start, stop)])
            indptr = self.indptr[start : max(start, stop) + 1] - self.indptr.dtype.type(a)
            return Rows(indptr, self.indices[a:b], self.data[a:b], self.width)
        chosen = self.matrix()[part]
        return Rows(chosen.indptr, chosen.indices, chosen.data, self.width)

    def __matmul__(self, right: np.ndarray) -> np.ndarray:
        return np.asarray(self.matrix() @ right)

    def matrix(self) -> scipy.sparse.csr_matrix:
        """The same rows for SciPy, sharing memory."""
        matrix = scipy.sparse.csr_matrix(self.shape)
        # assigned, not passed: the constructor would look at every index again
        matrix.data, matrix.indices, matrix.indptr = self.data, self.indices, self.indptr
        return matrix

    def plain(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``indptr``, ``indices`` and ``data`` in the few types that loops are compiled for."""
        kind = np.int32 if self.indices.dtype == np.int32 else np.int64
        return (
            self.indptr.astype(np.int64, copy=False),
            self.indices.astype(kind, copy=False),
            self.data.astype(np.float64, copy=False),
        )


AnyRows: TypeAlias = Array | Rows
"""A dense block (n, dim) of doubles, or sparse rows."""
Matrix: TypeAlias = "np.ndarray | scipy.sparse.csr_matrix"  # in quotes: the command line does without SciPy's
"""The same for linear algebra: dense, or SciPy's; :func:`is_sparse` tells which."""


def is_sparse(X: ArrayLike) -> TypeGuard[scipy.sparse.csr_matrix]:
    """Whether X is a sparse matrix of SciPy's."""
    return bool(scipy.sparse.issparse(X))


def as_matrix(rows: AnyRows) -> Matrix:
    """Rows as linear algebra takes them, sharing memory."""
    return rows.matrix() if isinstance(rows, Rows) else rows


def as_rows(X: ArrayLike, dim: int) -> AnyRows:
    """Rows of X, dense or sparse as it comes, of ``dim`` columns; sparse ones with each feature at most once a row."""
    if isinstance(X, Rows):
        columns("X", X, dim)
        return X
    if not is_sparse(X):
        block = np.asarray(X, dtype=float)
        columns("X", block, dim)
        return block
    csr = X if X.format == "csr" else X.tocsr()
    columns("X", csr, dim)
    indices = csr.indices
    if indices.size and not (indices.min() >= 0 and indices.max() < dim):
        msg = f"X: column indices from {indices.min()} to {indices.max()}; 0 to {dim - 1} are allowed"
        raise ValueError(msg)
    rows = Rows(csr.indptr, indices, csr.data.astype(np.float64, copy=False), dim)
    return rows if csr.has_canonical_format else _merged(rows)


def sparse_rows(X: ArrayLike, dim: int) -> Rows:
    """As :func:`as_rows`, a dense block without its zeros."""
    rows = as_rows(X, dim)
    if isinstance(rows, Rows):
        return rows
    row, column = np.nonzero(rows)
    kind = np.int32 if max(row.size, dim) <= np.iinfo(np.int32).max else np.int64
    indptr = np.zeros(rows.shape[0] + 1, kind)
    np.cumsum(np.bincount(row, minlength=rows.shape[0]), out=indptr[1:])
    return Rows(indptr, column.astype(kind), rows[row, column], dim)


def dense_rows(rows: AnyRows) -> Array:
    """Rows as a C-contiguous array."""
    return np.ascontiguousarray(rows.matrix().toarray() if isinstance(rows, Rows) else rows)


def check_finite(rows: AnyRows, names: np.ndarray | None = None) -> None:
    """Refuse NaN and infinity; the first entry that is one is named, its column also by ``names`` if there are any."""
    values = rows.data if isinstance(rows, Rows) else rows
    flat = values.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(np.dot(flat, flat)):  # one pass, no temporary, and quick for a single row
            return
    bad = ~np.isfinite(values)
    if not bad.any():  # the squares overflowed, the entries did not
        return
    if isinstance(rows, Rows):
        row = int(np.searchsorted(rows.indptr, np.argmax(bad), side="right")) - 1
        entries = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
        column = int(rows.indices[entries][bad[entries]].min())  # a row may list its columns in any order
        value = rows.data[entries][rows.indices[entries] == column][0]
    else:
        row, column = (int(i) for i in np.argwhere(bad)[0])
        value = rows[row, column]
    what = "NaN" if np.isnan(value) else "infinity"
    name = "" if names is None else f" ({names[column]!r})"
    msg = f"X: row {row} has {what} in column {column}{name}; finite numbers are allowed, so impute or drop it"
    raise ValueError(msg)


def _merged(rows: Rows) -> Rows:
    """The same rows where a feature that is listed twice is listed once, with its values added up."""
    from gaussfold.engine.text.merge_duplicates import without_repeats

    return Rows(*without_repeats(*rows.plain()), rows.width)
