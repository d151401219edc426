"""Dataframes of every make, through narwhals: their numbers, and the names of their columns.

Names are kept by the conventions of scikit-learn (only if all are strings; checked on later calls), but
not by its code: which frames that knows depends on its version.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn, Protocol

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_array

from gaussfold.types import ArrayLike


class Features(Protocol):
    """What a model keeps of the columns it was shown first, by scikit-learn's convention."""

    n_features_in_: int
    feature_names_in_: np.ndarray
    """Absent, rather than None, where the columns had no names: see `names_of`."""


def names_of(model: object) -> np.ndarray | None:
    """Names of the columns that a model was shown first, if they had any."""
    return vars(model).get("feature_names_in_")


def is_frame(X: ArrayLike) -> bool:
    """Whether X is a dataframe that narwhals knows: pandas, polars, pyarrow, ..."""
    if isinstance(X, nw.LazyFrame):
        X = X.to_native()
    if isinstance(X, nw.DataFrame):
        return True
    if nw.dependencies.is_polars_lazyframe(X):
        msg = "X is a lazy frame; collect it first: X.collect()"
        raise ValueError(msg)
    return bool(nw.dependencies.is_into_dataframe(X))


def read(model: Features, X: ArrayLike, *, reset: bool) -> ArrayLike:
    """Turn a frame into doubles (CSR if it is sparse throughout); set or check the names and the width."""
    native = X.to_native() if isinstance(X, nw.DataFrame) else X
    names = _names(native)
    _check_names(model, names, reset=reset)
    array = _numbers(model, native)
    if reset:
        model.n_features_in_ = array.shape[1]
    elif array.shape[1] != model.n_features_in_:
        msg = (
            f"X has {array.shape[1]} features, but {type(model).__name__} is expecting "
            f"{model.n_features_in_} features as input"
        )
        raise ValueError(msg)
    return array


def _names(native: ArrayLike) -> np.ndarray | None:
    """Names of the columns, or None unless they are strings."""
    if nw.dependencies.is_pandas_dataframe(native) and not native.columns.is_unique:
        name = native.columns[native.columns.duplicated()][0]
        msg = f"X has more than one column named {name!r}; column names must differ"
        raise ValueError(msg)
    names = nw.from_native(native, eager_only=True).columns
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        first = names[text.index(False)]
        msg = f"X has the column name {first!r} among strings; name all columns by strings, or none"
        raise ValueError(msg)
    return np.array(names, dtype=object) if all(text) and names else None


def _check_names(model: Features, names: np.ndarray | None, *, reset: bool) -> None:
    known = names_of(model)
    if reset:
        if names is not None:
            model.feature_names_in_ = names
        elif known is not None:
            del model.feature_names_in_
        return
    owner = type(model).__name__
    if known is None and names is None:
        return
    if known is None:
        msg = f"X has feature names, but {owner} was fitted without feature names"
        warnings.warn(msg, UserWarning, stacklevel=2)
    elif names is None:
        msg = f"X does not have valid feature names, but {owner} was fitted with feature names"
        warnings.warn(msg, UserWarning, stacklevel=2)
    elif not np.array_equal(known, names):
        raise ValueError(_difference(list(known), list(names)))


def _difference(known: list[str], names: list[str]) -> str:
    """Say how names differ, in the words that users of scikit-learn know."""
    lines = ["The feature names should match those that were passed during fit."]
    unseen, missing = sorted(set(names) - set(known)), sorted(set(known) - set(names))
    for title, some in (
        ("Feature names unseen at fit time:", unseen),
        ("Feature names seen at fit time, yet now missing:", missing),
    ):
        if some:
            lines += [title, *(f"- {name}" for name in some[:5]), *(["- ..."] if len(some) > 5 else [])]
    if not unseen and not missing:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"


def refuse_dates(name: str, kind: object) -> NoReturn:
    """Say what to do with a column of dates; a number since 1970 is rarely what one wants of it."""
    msg = (
        f"{name} holds dates or durations ({kind}); give what matters of them as numbers, such as the days since a "
        "start, (when - when.min()) / np.timedelta64(1, 'D'), the month or the weekday"
    )
    raise ValueError(msg)


def refuse_any_dates(X: ArrayLike) -> None:
    """Refuse an array or a frame that holds dates."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        refuse_dates("X", X.dtype)
    if is_frame(X):
        _refuse_date_columns(nw.from_native(X, eager_only=True))


def _refuse_date_columns(frame: nw.DataFrame[Any]) -> None:
    for name, kind in frame.schema.items():
        if kind.is_temporal():
            refuse_dates(f"X: column {name!r}", kind)


def _numbers(model: Features, native: ArrayLike) -> ArrayLike:
    frame = nw.from_native(native, eager_only=True)
    _refuse_date_columns(frame)
    # pandas may be sparse throughout, which scikit-learn turns into CSR
    source = native if nw.dependencies.is_pandas_dataframe(native) else frame.to_numpy()
    try:
        return check_array(
            source,
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            ensure_all_finite=False,
            input_name="X",
            estimator=model,
        )
    except (ValueError, TypeError, OverflowError) as error:
        for name in frame.columns:
            try:
                np.asarray(frame[name].to_numpy(), dtype=np.float64)
            except (ValueError, TypeError, OverflowError):
                msg = (
                    f"X: column {name!r} of type {frame[name].dtype} does not hold numbers ({error}); "
                    "encode it (for example with OneHotEncoder) or leave it out"
                )
                raise ValueError(msg) from error
        raise
