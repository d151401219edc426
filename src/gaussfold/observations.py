"""Checked data: what every function that looks at a whole data set asks of X, y and sample_weight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.protocols import Likelihood
from gaussfold.rows import AnyRows, Rows, as_rows, check_finite
from gaussfold.types import Array, ArrayLike


class Observations(NamedTuple):
    """Rows, labels and weights that passed the checks."""

    X: AnyRows
    y: Array
    weight: Array

    def part(self, chosen: slice | np.ndarray) -> Observations:
        """Some of them, by a slice or a mask."""
        return Observations(self.X[chosen], self.y[chosen], self.weight[chosen])

    @property
    def learned(self) -> np.ndarray:
        """Which rows say something: label not missing, weight not zero."""
        return ~np.isnan(self.y) & (self.weight > 0.0)


def check(
    likelihood: Likelihood, X: ArrayLike, y: ArrayLike, dim: int, sample_weight: ArrayLike | None = None
) -> Observations:
    """Check the data against a likelihood and a belief's dimension; every row is kept.

    Parameters
    ----------
    likelihood
        Its ``check_labels`` decides which labels are allowed. NaN always is.
    X
        Array or sparse matrix of shape (n, dim), finite; or :class:`gaussfold.rows.Rows`, which are already.
    y
        Labels, shape (n,).
    dim
        Number of parameters.
    sample_weight
        Power of each row's likelihood: finite, not negative; ``None`` is all ones.
    """
    rows = as_rows(X, dim)
    if not isinstance(X, Rows):
        check_finite(rows)
    labels = _column(y, "y", rows.shape[0])
    likelihood.check_labels(labels)
    return Observations(rows, labels, check_weight(sample_weight, rows.shape[0]))


def check_weight(sample_weight: ArrayLike | None, n: int) -> Array:
    """One finite weight >= 0 for each of n rows; ``None`` is all ones."""
    if sample_weight is None:
        return np.ones(n)
    weight = _column(sample_weight, "sample_weight", n)
    if not (weight.min(initial=0.0) >= 0.0 and weight.max(initial=0.0) < np.inf):  # so that NaN fails
        row = int(np.argmin((weight >= 0.0) & (weight < np.inf)))
        msg = f"sample_weight: row {row} is {weight[row]}; finite numbers >= 0 are allowed, 0 learns nothing"
        raise ValueError(msg)
    return weight


def observe(
    likelihood: Likelihood, X: ArrayLike, y: ArrayLike, dim: int, sample_weight: ArrayLike | None = None
) -> Observations:
    """As :func:`check`, keeping only the rows that say something: label not missing, weight not zero."""
    data = check(likelihood, X, y, dim, sample_weight)
    return data.part(data.learned)


def _column(values: ArrayLike, name: str, n: int) -> Array:
    try:
        column = np.asarray(values, dtype=float)
    except (ValueError, TypeError) as error:
        msg = f"{name}: {error}; numbers are needed, one per row of X"
        raise ValueError(msg) from error
    if column.shape != (n,):
        msg = f"{name}: shape {column.shape}; ({n},) is needed, one value per row of X"
        raise ValueError(msg)
    return column
