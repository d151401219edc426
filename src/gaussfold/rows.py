"""Rows of features on their way from data to a belief: a dense block, or the three arrays of a CSR matrix.

Whatever a caller hands in as X is turned into one of the two at the door (:func:`as_rows`), and nobody looks at its
kind again but the belief that works with it. The door is the only way to a compiled loop, for learning and predicting
alike: lengths, order, range and type of every array are checked there, once. What has passed it is a :class:`Rows`
that says so, or stands in a :class:`Block`; readers, whose parsers have looked at every number, make such themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard, final

import numpy as np
import scipy

from gaussfold.checks import columns, doubles
from gaussfold.types import Array, ArrayLike


@final
@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Sparse rows: entries ``indptr[i]`` to ``indptr[i + 1]`` of ``indices`` and ``data`` are those of row i.

    ``checked`` is a promise: ``indptr`` climbs from 0 to the number of entries, indices are in range, none repeats
    within a row, and data are finite. Whoever sets it vouches for that; :func:`as_rows` checks what does not have it.
    """

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    width: int
    checked: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.indptr.size - 1, self.width

    @property
    def longest(self) -> int:
        """Number of entries of the longest row."""
        if self.indptr.size <= 2:  # a row by itself, which costs less than NumPy's difference
            return int(self.indptr[-1])
        return int(np.diff(self.indptr).max(initial=0))

    def __getitem__(self, part: slice | np.ndarray) -> Rows:
        """Some of the rows, by a slice (which shares memory) or a mask."""
        if isinstance(part, slice):
            start, stop, _ = part.indices(self.indptr.size - 1)
            a, b = int(self.indptr[start]), int(self.indptr[max(start, stop)])
            indptr = self.indptr[start : max(start, stop) + 1] - self.indptr.dtype.type(a)
            return Rows(indptr, self.indices[a:b], self.data[a:b], self.width, self.checked)
        chosen = self.matrix()[part]
        return Rows(chosen.indptr, chosen.indices, chosen.data, self.width, self.checked)

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


@final
@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Dense rows that have passed the door: finite doubles. Whoever makes one vouches for it."""

    array: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.array.shape[0], self.array.shape[1]

    def __matmul__(self, right: np.ndarray) -> np.ndarray:
        return np.asarray(self.array @ right)


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


def as_rows(X: ArrayLike, dim: int, names: np.ndarray | None = None) -> AnyRows:
    """The door: rows of X, dense or sparse as it comes, finite, of ``dim`` columns.

    Sparse ones have each feature at most once a row. ``names`` of the columns, if there are any, go into messages.
    """
    if isinstance(X, Rows):
        columns("X", X, dim)
        return X if X.checked else _checked(X, names)
    if isinstance(X, Block):
        columns("X", X, dim)
        return X.array
    if not is_sparse(X):
        block = doubles("X", X, f"an array (n, {dim}) of them")
        columns("X", block, dim)
        _check_finite(block, names)
        return block
    columns("X", X, dim)
    csr = _as_csr(X)
    length, needed = np.size(csr.indptr), csr.shape[0] + 1
    if length != needed:
        msg = f"X: indptr of length {length} for {needed - 1} rows; {needed} is needed: {_REBUILD}"
        raise ValueError(msg)
    return _checked(Rows(csr.indptr, csr.indices, csr.data, dim), names, csr)


def sparse_rows(X: ArrayLike, dim: int) -> Rows:
    """As :func:`as_rows`, a dense block without its zeros."""
    rows = as_rows(X, dim)
    if isinstance(rows, Rows):
        return rows
    row, column = np.nonzero(rows)
    kind = np.int32 if max(row.size, dim) <= np.iinfo(np.int32).max else np.int64
    indptr = np.zeros(rows.shape[0] + 1, kind)
    np.cumsum(np.bincount(row, minlength=rows.shape[0]), out=indptr[1:])
    return Rows(indptr, column.astype(kind), rows[row, column], dim, checked=True)


def dense_rows(rows: AnyRows) -> Array:
    """Rows as a C-contiguous array."""
    return np.ascontiguousarray(rows.matrix().toarray() if isinstance(rows, Rows) else rows)


FEW = 500
"""Numbers that are looked at one by one in less time than it takes to switch warnings off."""
_UNSIGNED = {np.dtype(f"i{n}"): (np.dtype(f"u{n}"), 1 << (8 * n - 1)) for n in (4, 8)}
"""The whole numbers that places are told in, and how many of them are not negative."""
_REBUILD = "its parts do not fit together, so build the matrix again, as csr_array((data, indices, indptr), shape)"


def _checked(rows: Rows, names: np.ndarray | None, csr: scipy.sparse.csr_matrix | None = None) -> Rows:
    """The same rows, looked at: every array of the right type, length and range, no feature twice in a row."""
    indptr, indices = check_compressed(rows.indptr, rows.indices, rows.data, rows.width)
    found = Rows(indptr, indices, np.ascontiguousarray(doubles("X", rows.data, "values")), rows.width, checked=True)
    _check_finite(found, names)
    plain = csr.has_canonical_format if csr is not None else found.matrix().has_canonical_format
    return found if plain else _merged(found)


def check_compressed(
    indptr: np.ndarray, indices: np.ndarray, data: np.ndarray, width: int, what: str = "column"
) -> tuple[np.ndarray, np.ndarray]:
    """Refuse parts of a CSR matrix that do not fit together (of CSC: ``what`` is a row); returns the first two plain.

    A compiled loop, here or in SciPy, follows them without looking.
    """
    indptr, indices = _whole_numbers("indptr", indptr), _whole_numbers("indices", indices)
    size = indices.size
    if np.shape(data) != (size,):
        msg = f"X: data of shape {np.shape(data)} and {size} indices; one value per index is needed: {_REBUILD}"
        raise ValueError(msg)
    if indptr.size == 0 or indptr[0] != 0 or indptr[-1] != size:
        ends = "is empty" if indptr.size == 0 else f"goes from {indptr[0]} to {indptr[-1]}"
        msg = f"X: indptr {ends}; from 0 to the number of indices, {size}, is needed: {_REBUILD}"
        raise ValueError(msg)
    falls = indptr[1:] < indptr[:-1] if indptr.size > 2 else indptr[:0]  # of one row the ends tell it
    if np.count_nonzero(falls):
        at = int(np.argmax(falls))
        msg = f"X: indptr falls from {indptr[at]} to {indptr[at + 1]} at {at + 1}; it must not decrease: {_REBUILD}"
        raise ValueError(msg)
    unsigned, most = _UNSIGNED[indices.dtype]  # in which a negative one is larger than any: one pass finds both
    if size and not np.maximum.reduce(indices.view(unsigned)) < min(width, most):
        msg = f"X: {what} indices from {indices.min()} to {indices.max()}; 0 to {width - 1} are allowed"
        raise ValueError(msg)
    return indptr, indices


def _whole_numbers(name: str, numbers: ArrayLike) -> np.ndarray:
    """One axis of int32 or int64, side by side in memory."""
    array = np.asarray(numbers)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        msg = (
            f"X: {name} of shape {array.shape} and type {array.dtype}; whole numbers in one row are needed: {_REBUILD}"
        )
        raise ValueError(msg)
    if array.dtype == np.uint64 and array.max(initial=0) > np.iinfo(np.int64).max:
        msg = f"X: {name} up to {array.max()}; {np.iinfo(np.int64).max} is the largest that is allowed: {_REBUILD}"
        raise ValueError(msg)
    if _UNSIGNED.get(array.dtype) and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array.astype(np.int32 if array.dtype == np.int32 else np.int64, copy=False))


def _as_csr(X: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """A sparse matrix of any format as CSR; others are checked first, since SciPy's conversion does not look."""
    if X.format == "csr":
        return X
    try:
        if X.format == "csc":
            check_compressed(X.indptr, X.indices, X.data, X.shape[0], "row")
            if X.indptr.size != X.shape[1] + 1:
                msg = f"X: indptr of length {X.indptr.size} for {X.shape[1]} columns; one more is needed: {_REBUILD}"
                raise ValueError(msg)
        else:
            if X.format == "bsr":
                _check_blocks(X)
            X = X.tocoo()
            for place, length, what in zip((X.row, X.col), X.shape, ("row", "column"), strict=True):
                check_compressed(np.array([0, X.data.size]), place, X.data, length, what)
        doubles("X", X.data, "values")
        return X.astype(np.float64).tocsr()
    except (TypeError, IndexError, AttributeError) as error:
        msg = f"X: a sparse matrix of format {X.format!r} that cannot be read ({error}); {_REBUILD}"
        raise ValueError(msg) from error


def _check_blocks(X: scipy.sparse.bsr_matrix) -> None:
    """Refuse parts of a BSR matrix that do not fit together: SciPy makes as much room as they say."""
    shape = np.shape(X.data)
    if len(shape) != 3 or 0 in shape[1:] or X.shape[0] % shape[1] or X.shape[1] % shape[2]:
        msg = f"X: blocks of shape {shape[1:]} in a matrix of shape {X.shape}; they must fill it: {_REBUILD}"
        raise ValueError(msg)
    check_compressed(X.indptr, X.indices, X.data[:, 0, 0], X.shape[1] // shape[2])
    if np.size(X.indptr) != X.shape[0] // shape[1] + 1:
        msg = f"X: indptr of length {np.size(X.indptr)}; one more than rows of blocks is needed: {_REBUILD}"
        raise ValueError(msg)


def _check_finite(rows: AnyRows, names: np.ndarray | None = None) -> None:
    """Refuse NaN and infinity; the first entry that is one is named, its column also by ``names`` if there are any."""
    values = rows.data if isinstance(rows, Rows) else rows
    flat = values.ravel(order="K")
    if flat.size <= FEW:
        if np.logical_and.reduce(np.isfinite(flat)):
            return
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            if math.isfinite(np.dot(flat, flat)):  # one pass and no temporary
                return
    bad = ~np.isfinite(values)
    if not bad.any():  # the squares overflowed, the entries did not
        return
    if isinstance(rows, Rows):
        row = int(np.searchsorted(rows.indptr, np.argmax(bad), side="right")) - 1
        entries = slice(int(rows.indptr[row]), int(rows.indptr[row + 1]))
        column = int(rows.indices[entries][bad[entries]].min())  # a row may list its columns in any order
        value = rows.data[entries][bad[entries]][np.argmin(rows.indices[entries][bad[entries]])]
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

    merged = Rows(*without_repeats(*rows.plain()), rows.width, checked=True)
    _check_finite(merged)  # two finite numbers may have an infinite sum
    return merged
