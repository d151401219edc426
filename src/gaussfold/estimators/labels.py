"""Class labels at the door: any values in, positions in ``classes_`` out, missing ones marked.

Everything here is a pure function of its arguments: nothing can fail half way through an update.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gaussfold.checks import not_negative, refuse_name
from gaussfold.estimators.validation import column, weights
from gaussfold.types import Array, ArrayLike

MANY = 50
"""Classes that are numbers: more are likely to be quantities."""
_REMEDY = "use strings, whole numbers or booleans; None or NaN for a row to predict and not to learn"


@dataclass(frozen=True)
class Labels:
    """One column of labels: ``values`` of the rows that have one, and which rows these are."""

    values: np.ndarray
    labelled: np.ndarray

    @property
    def soft(self) -> bool:
        """Whether some label is a fraction: the probability of class 1 rather than a class."""
        return self.values.dtype.kind == "f" and bool(np.any(self.values != np.rint(self.values)))


def read(y: ArrayLike, n_rows: int, owner: str) -> Labels:
    """Read labels of whatever type, telling missing ones (None, NaN, NA) from the others."""
    y = column(y, n_rows, owner)
    if y.dtype.kind == "f":
        _check_no_infinity(y, np.arange(n_rows))
        labelled = ~np.isnan(y)
        return Labels(y[labelled], labelled)
    if y.dtype.kind in "biuU":
        return Labels(y, np.ones(n_rows, dtype=bool))
    if y.dtype.kind == "T":  # NumPy's strings of any length
        y = y.astype(object)
    if y.dtype.kind != "O":
        msg = f"Unknown label type: y has dtype {y.dtype}; {_REMEDY}"
        raise ValueError(msg)
    labelled = np.fromiter((not _missing(value) for value in y), dtype=bool, count=n_rows)
    return Labels(_unboxed(y, labelled), labelled)


def find_classes(labels: Labels, classes: ArrayLike | None) -> np.ndarray:
    """Sort out the classes: those announced, or those the labels show."""
    if classes is not None:
        known = np.array(classes) if not isinstance(classes, list | tuple) else np.array(classes, dtype=object)
        if known.ndim != 1 or known.size == 0:
            msg = f"classes must be a list of at least two class labels, got {classes!r}"
            raise ValueError(msg)
        found = read(known, len(known), "classes")
        if not found.labelled.all():
            msg = f"classes must not contain missing values, got {classes!r}"
            raise ValueError(msg)
        if len(unique := np.unique(found.values)) < 2:
            msg = f"classes={classes!r} is one class; a classifier needs at least two, so name all that may come"
            raise ValueError(msg)
        return unique
    if len(labels.values) == 0:
        msg = (
            "y has no labelled row, so the classes are unknown; "
            "pass labelled rows first, or name the classes: partial_fit(X, y, classes=[...])"
        )
        raise ValueError(msg)
    if labels.soft:
        _check_soft(labels)
        return np.array([0, 1])
    unique = np.unique(labels.values)
    _warn_of_quantities(unique)
    if len(unique) < 2:
        msg = (
            f"y contains one class only ({_plain(unique[0])!r}), and a classifier needs at least two; "
            "if the others come later in the stream, name them all: partial_fit(X, y, classes=[...])"
        )
        raise ValueError(msg)
    return unique


def _warn_of_quantities(unique: np.ndarray) -> None:
    """Ask whether so many numbers are classes."""
    if len(unique) > MANY and not _text(unique):
        msg = (
            f"y has {len(unique)} different numbers and each is taken for a class; for quantities use "
            "StreamingRegressor, for counts StreamingPoissonRegressor, or name the classes: "
            "partial_fit(X, y, classes=[...])"
        )
        warnings.warn(msg, UserWarning, stacklevel=6)


def encode(labels: Labels, classes: np.ndarray) -> Array:
    """Position of each label in ``classes``, as floats; NaN where there is no label.

    For the two classes 0 and 1 a fraction is a soft label and stays what it is.
    """
    codes = np.full(len(labels.labelled), np.nan)
    if len(labels.values) == 0:
        return codes
    if labels.soft:
        if len(classes) != 2 or _text(classes) or not np.array_equal(classes.astype(float), [0.0, 1.0]):
            msg = (
                "y is continuous, and soft labels (probabilities of class 1) need the classes 0 and 1; "
                f"here classes are {[_plain(c) for c in classes]}"
            )
            raise ValueError(msg)
        _check_soft(labels)
        codes[labels.labelled] = labels.values
        return codes
    if _text(labels.values) != _text(classes):
        _unseen(labels, np.zeros(len(labels.values), dtype=bool), classes)
    position = np.minimum(np.searchsorted(classes, labels.values), len(classes) - 1)
    seen = classes[position] == labels.values
    if not seen.all():
        _unseen(labels, seen, classes)
    codes[labels.labelled] = position
    return codes


def _unseen(labels: Labels, seen: np.ndarray, classes: np.ndarray) -> None:
    first = int(np.argmin(seen))
    row = int(np.flatnonzero(labels.labelled)[first])
    msg = (
        f"y[{row}] = {_plain(labels.values[first])!r} is not one of the classes "
        f"{[_plain(c) for c in classes]}; name all classes in the first call: "
        "partial_fit(X, y, classes=[...])"
    )
    raise ValueError(msg)


def _check_soft(labels: Labels) -> None:
    outside = (labels.values < 0) | (labels.values > 1)
    if outside.any():
        first = int(np.argmax(outside))
        row = int(np.flatnonzero(labels.labelled)[first])
        msg = (
            f"Unknown label type: continuous: y[{row}] = {labels.values[first]!r} is neither a class nor a "
            "soft label in [0, 1]; for a continuous target use StreamingRegressor"
        )
        raise ValueError(msg)


def _unboxed(y: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """Turn Python objects into an array of their own kind; mixing text and numbers is an error."""
    values = y[labelled]
    if len(values) == 0:
        return np.empty(0)
    _check_one_kind(values, labelled)
    array = np.array(values.tolist())
    if array.dtype.kind == "f":
        _check_no_infinity(array, np.flatnonzero(labelled))
    return array


def _check_one_kind(values: np.ndarray, labelled: np.ndarray) -> None:
    """All text or all numbers (booleans are numbers)."""
    kinds = np.array([_kind(value) for value in values])
    wrong = kinds == "other"
    if wrong.any():
        first, problem = int(np.argmax(wrong)), f"holds a {type(values[int(np.argmax(wrong))]).__name__}"
    elif len({"number" if kind == "bool" else kind for kind in kinds}) > 1:
        first, problem = int(np.argmax(kinds != kinds[0])), "mixes text and numbers"
    else:
        return
    row = int(np.flatnonzero(labelled)[first])
    msg = f"Unknown label type: y {problem}, first at row {row} ({values[first]!r}); {_REMEDY}"
    raise ValueError(msg)


def _check_no_infinity(values: np.ndarray, rows: np.ndarray) -> None:
    infinite = np.isinf(values)
    if infinite.any():
        msg = f"y contains infinity at row {int(rows[np.argmax(infinite)])}; {_REMEDY}"
        raise ValueError(msg)


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool | np.bool_):
        return "bool"
    return "number" if isinstance(value, numbers.Real) else "other"


def _missing(value: object) -> bool:
    # pandas.NA and NaT by name: pandas is not a dependency, and NA == NA is not a truth value
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, numbers.Real) and bool(value != value)


def _text(values: np.ndarray) -> bool:
    return values.dtype.kind == "U"


def _plain(value: object) -> object:
    """Return a NumPy scalar as the Python object it stands for, for messages."""
    return value.item() if isinstance(value, np.generic) else value


def class_weights(
    class_weight: ArrayLike, y: ArrayLike, sample_weight: ArrayLike, owner: str, *, whole: bool
) -> ArrayLike:
    """Sample weights times those of the labels' classes; ``whole``: y is all there is, so it can be balanced."""
    if class_weight is None:
        return sample_weight
    found = read(y, len(y), owner)
    if found.soft:
        msg = f"class_weight={class_weight!r}: soft labels belong to two classes at once; use sample_weight"
        raise ValueError(msg)
    unique, place = np.unique(found.values, return_inverse=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        if not whole:
            msg = (
                "class_weight='balanced' needs all labels at once, as fit has them; give partial_fit a dict of weights"
            )
            raise ValueError(msg)
        shares = len(place) / (len(unique) * np.bincount(place, minlength=len(unique)))
    elif isinstance(class_weight, Mapping):
        for label, weight in class_weight.items():
            not_negative(f"class_weight[{label!r}]", weight)
        shares = np.array([float(class_weight.get(_plain(label), 1.0)) for label in unique])
    else:
        refuse_name("class_weight", class_weight, ("balanced",), also="a dict from labels to numbers >= 0, or None")
    weight = np.ones(len(found.labelled))
    weight[found.labelled] = shares[place]
    given = weights(sample_weight, len(weight))
    return weight if given is None else weight * given
