"""Rows of sparse features, as the three arrays of a CSR matrix."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from gaussfold import checks
from gaussfold.engine.text.merge_duplicates import without_repeats


class Rows(NamedTuple):
    """A sparse matrix as its three arrays."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray

    def plain(self, *, narrow: bool) -> Rows:
        """In the few types that loops are compiled for; ``narrow`` leaves 32-bit column indices as they are."""
        kind = np.int32 if narrow and self.indices.dtype == np.int32 else np.int64
        return Rows(
            self.indptr.astype(np.int64, copy=False),
            self.indices.astype(kind, copy=False),
            self.data.astype(np.float64, copy=False),
        )

    @property
    def longest(self) -> int:
        """Number of entries of the longest row."""
        return int(np.diff(self.indptr).max(initial=0))


def sparse_rows(X: Any, dim: int) -> Rows:
    """CSR arrays of a matrix of any kind, each feature at most once a row."""
    csr = X if scipy.sparse.issparse(X) and X.format == "csr" else scipy.sparse.csr_array(X)
    checks.columns("X", csr, dim)
    indices = csr.indices
    if indices.size and not (indices.min() >= 0 and indices.max() < dim):
        msg = f"X: column indices from {indices.min()} to {indices.max()}; 0 to {dim - 1} are allowed"
        raise ValueError(msg)
    rows = Rows(csr.indptr, indices, csr.data).plain(narrow=True)
    return rows if csr.has_canonical_format else Rows(*without_repeats(*rows))
