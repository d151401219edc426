"""Rows, weights and numeric labels at the door: checked whole before any belief is touched.

scikit-learn does the conversions; what is added here are dataframes of every make (through narwhals), and a quick way
in for a plain array of doubles, because a stream may arrive one row at a time. Rows and weights are refused in the
words of `gaussfold.rows` and `gaussfold.observations`, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import column_or_1d, validate_data

from gaussfold.checks import doubles
from gaussfold.estimators import frames
from gaussfold.observations import check_weight
from gaussfold.rows import AnyRows, Block, Rows, as_matrix, as_rows, is_sparse
from gaussfold.types import Array, ArrayLike


@contextmanager
def whole_or_nothing(model: object) -> Iterator[None]:
    """Put every attribute of the model back if the block fails.

    Beliefs are changed in place only by `fold`, which is itself all or nothing and comes last.
    """
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        vars(model).clear()
        vars(model).update(before)
        raise


def rows(model: frames.Features, X: ArrayLike, *, reset: bool) -> AnyRows:
    """Turn X into finite doubles, a dense C-ordered array or sparse rows; set or check the names and the width."""
    if not reset and _plain_rows(model, X):
        array = X
    elif is_sparse(X) and len(X.shape) == 2:
        sparse = as_rows(X, X.shape[1])  # before scikit-learn, whose conversions follow indices without looking
        _validated(model, as_matrix(sparse), reset=reset)
        return sparse
    elif frames.is_frame(X):
        array = frames.read(model, X, reset=reset)
    else:
        array = _validated(model, X, reset=reset)
    return as_rows(array, array.shape[1], frames.names_of(model))


def _validated(model: frames.Features, X: ArrayLike, *, reset: bool) -> ArrayLike:
    """As scikit-learn sees X: names and number of the columns set or compared, at least one row and column, doubles."""
    return checked(model, X, reset=reset, accept_sparse="csr", order="C", ensure_all_finite=False)


def checked(model: object, X: ArrayLike, y: ArrayLike = "no_validation", **how: object) -> Any:
    """What scikit-learn's ``validate_data`` returns, doubles; whatever is wrong with X or y is a ValueError."""
    frames.refuse_any_dates(X)  # NumPy would make numbers of them, in whatever unit they come
    with _told("X" if isinstance(y, str) else "X, y"):
        return validate_data(model, X, y, dtype=np.float64, **how)


class NotNumbersError(ValueError, TypeError):
    """No numbers: a ValueError, as all refusals are, and the TypeError that scikit-learn asks for."""


@contextmanager
def _told(name: str) -> Iterator[None]:
    """Tell what NumPy, scikit-learn or an object's own conversion says of an argument as everything is told here."""
    try:
        yield
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        msg = f"{name}: {error}; numbers are needed: encode texts first, with OneHotEncoder for example, or drop them"
        raise ValueError(msg) from error
    except (TypeError, OverflowError, AttributeError, RuntimeError) as error:
        msg = f"{name}: {error}; numbers are needed, as an array, a dataframe or, where it is said, a sparse matrix"
        raise NotNumbersError(msg) from error


def _plain_rows(model: frames.Features, X: ArrayLike) -> bool:
    """Whether X needs no conversion and its width is right (the error for a wrong one is below)."""
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.flags.c_contiguous
        and X.shape[0] > 0
        and X.shape[1] == model.n_features_in_
        and frames.names_of(model) is None
    )


def column(y: ArrayLike, n_rows: int, owner: str) -> np.ndarray:
    """One label per row as a 1-D array, of whatever type they are."""
    if y is None:
        msg = f"{owner} requires y to be passed, but the target y is None"
        raise ValueError(msg)
    if isinstance(y, list | tuple):
        # as objects: NumPy would turn ["a", nan] into the label "nan"
        y = np.array(y, dtype=object)
    if not (type(y) is np.ndarray and y.ndim == 1):
        with _told("y"):
            y = column_or_1d(y, warn=True)
    elif y.dtype.kind == "c":
        msg = f"Complex data not supported: y has dtype {y.dtype}"
        raise ValueError(msg)
    if len(y) != n_rows:
        msg = f"y has {len(y)} labels but X has {n_rows} rows; there must be one label per row"
        raise ValueError(msg)
    return np.asarray(y)


def numeric_labels(y: ArrayLike, n_rows: int, owner: str) -> Array:
    """Labels as doubles; None, NaN and NA become NaN: predict that row, don't learn it."""
    values = column(y, n_rows, owner)
    if values.dtype.kind in "mM":
        frames.refuse_dates("y", values.dtype)
    try:
        return np.array(values, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        pass  # find out which one it is
    numbers = np.full(n_rows, np.nan)
    for row, value in enumerate(values):
        if value is None or type(value).__name__ in ("NAType", "NaTType"):
            continue
        try:
            numbers[row] = float(value)
        except (ValueError, TypeError, OverflowError):
            msg = f"y[{row}] = {value!r} is not a number; {owner} needs numbers (or NaN: predict, don't learn)"
            raise ValueError(msg) from None
    return numbers


def weights(sample_weight: ArrayLike, n_rows: int) -> Array | None:
    """One finite weight >= 0 per row; None stands for ones, and a number for itself on every row."""
    if sample_weight is None:
        return None
    given = doubles("sample_weight", sample_weight, "one per row of X")
    return check_weight(np.full(n_rows, given) if given.ndim == 0 else given, n_rows)


def with_intercept(X: AnyRows, intercept: bool) -> Rows | Block:
    """Append a column of ones to checked rows, so that the last parameter is the intercept."""
    if not intercept:
        return X if isinstance(X, Rows) else Block(X)
    n, d = X.shape
    if isinstance(X, Rows):
        wider = sp.hstack([X.matrix(), sp.csr_array(np.ones((n, 1)))], format="csr")
        return Rows(wider.indptr, wider.indices, wider.data, d + 1, checked=True)
    design = np.empty((n, d + 1))
    design[:, :d] = X
    design[:, d] = 1.0
    return Block(design)
