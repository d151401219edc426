"""Checked data: what every function that looks at a whole data set asks of X, y and sample_weight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy

from gaussfold import checks
from gaussfold.protocols import Likelihood
from gaussfold.types import Array, ArrayLike


class Observations(NamedTuple):
    """Rows, labels and weights that passed the checks."""

    X: Any
    y: Array
    weight: Array


def check(
    likelihood: Likelihood, X: ArrayLike, y: ArrayLike, dim: int, sample_weight: ArrayLike | None = None
) -> Observations:
    """Check the data against a likelihood and a belief's dimension; every row is kept.

    Parameters
    ----------
    likelihood
        Its ``check_labels`` decides which labels are allowed. NaN always is.
    X
        Array or sparse matrix of shape (n, dim), finite.
    y
        Labels, shape (n,).
    dim
        Number of parameters.
    sample_weight
        Power of each row's likelihood: finite, not negative; ``None`` is all ones.
    """
    rows = scipy.sparse.csr_matrix(X, dtype=float) if scipy.sparse.issparse(X) else np.asarray(X, dtype=float)
    checks.columns("X", rows, dim)
    _check_finite(rows)
    labels = _column(y, "y", rows.shape[0])
    likelihood.check_labels(labels)
    if sample_weight is None:
        return Observations(rows, labels, np.ones(rows.shape[0]))
    weight = _column(sample_weight, "sample_weight", rows.shape[0])
    bad = ~((weight >= 0.0) & (weight < np.inf))
    if bad.any():
        row = int(np.argmax(bad))
        msg = f"sample_weight: row {row} is {weight[row]}; finite numbers >= 0 are allowed, 0 learns nothing"
        raise ValueError(msg)
    return Observations(rows, labels, weight)


def observe(
    likelihood: Likelihood, X: ArrayLike, y: ArrayLike, dim: int, sample_weight: ArrayLike | None = None
) -> Observations:
    """As :func:`check`, keeping only the rows that say something: label not missing, weight not zero."""
    rows, labels, weight = check(likelihood, X, y, dim, sample_weight)
    keep = ~np.isnan(labels) & (weight > 0.0)
    return Observations(rows[keep], labels[keep], weight[keep])


def _check_finite(rows: Any) -> None:
    values = rows.data if scipy.sparse.issparse(rows) else rows
    if not np.isfinite(values).all():
        dense = rows.tocoo() if scipy.sparse.issparse(rows) else rows
        if scipy.sparse.issparse(rows):
            row = int(dense.row[~np.isfinite(dense.data)].min())
        else:
            row = int(np.argmax(~np.isfinite(dense).all(axis=1)))
        msg = f"X: row {row} has NaN or infinity; finite numbers are allowed, so impute or drop it"
        raise ValueError(msg)


def _column(values: ArrayLike, name: str, n: int) -> Array:
    column = np.asarray(values, dtype=float)
    if column.shape != (n,):
        msg = f"{name}: shape {column.shape}; ({n},) is needed, one value per row of X"
        raise ValueError(msg)
    return column
