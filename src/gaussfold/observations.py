"""Checked data: what every function that looks at a whole data set asks of X, y and sample_weight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.checks import doubles
from gaussfold.protocols import Likelihood
from gaussfold.rows import AnyRows, Rows, as_rows
from gaussfold.types import Array, ArrayLike

LARGEST = 1e150
"""Of labels: the square of a larger one, or a sum of such squares, is no number."""


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
        Array or sparse matrix of shape (n, dim), finite; or :class:`gaussfold.rows.Rows`.
    y
        Labels, shape (n,).
    dim
        Number of parameters.
    sample_weight
        Power of each row's likelihood: finite, not negative; ``None`` is all ones.
    """
    rows = as_rows(X, dim)
    labels = _column(y, "y", rows.shape[0])
    likelihood.check_labels(labels)
    large = np.abs(labels) > LARGEST
    if np.count_nonzero(large):
        row = int(np.argmax(large))
        msg = f"y: row {row} is {labels[row]}; its square is no number, so choose another unit, or drop the row"
        raise ValueError(msg)
    return Observations(rows, labels, check_weight(sample_weight, rows.shape[0]))


def check_weight(sample_weight: ArrayLike | None, n: int) -> Array:
    """One finite weight >= 0 for each of n rows; ``None`` is all ones."""
    if sample_weight is None:
        weight = np.empty(n)
        weight.fill(1.0)  # a row by itself is learned in less time than np.ones takes beyond this
        return weight
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


def admit(data: Observations, dim: int, *loose: object) -> Observations:
    """Let data pass that are what :func:`check` returns, after a look that takes no time; make others so, or refuse.

    Every belief asks for it before its compiled loop sees an array: records can be made by hand, and rows, labels and
    weights were arguments of their own once (0.1.0), which is how ``loose`` ones come.
    """
    if loose or not isinstance(data, Observations):
        msg = (
            f"data: a {type(data).__name__}; Observations(X, y, weight) is needed, rows, labels and weights in one; "
            "gaussfold.fold makes it of arrays"
        )
        raise ValueError(msg)
    X, y, weight = data
    known = X.checked if isinstance(X, Rows) else type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
    if known and X.shape[1] == dim and _is_column(y, X.shape[0]) and _is_column(weight, X.shape[0]):
        return data
    rows = as_rows(X, dim)
    n = rows.shape[0]
    return Observations(rows, _column(y, "y", n), check_weight(weight, n))


def _is_column(values: Array, n: int) -> bool:
    return type(values) is np.ndarray and values.dtype == np.float64 and values.shape == (n,)


def _column(values: ArrayLike, name: str, n: int) -> Array:
    column = doubles(name, values, "one per row of X")
    if column.shape != (n,):
        msg = f"{name}: shape {column.shape}; ({n},) is needed, one value per row of X"
        raise ValueError(msg)
    return np.ascontiguousarray(column)
