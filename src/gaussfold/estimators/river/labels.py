"""What River passes as y and as w: read, or refused with the remedy. Of a row without a label nothing is learned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sized
from numbers import Real
from typing import TypeAlias

import numpy as np

from gaussfold.checks import not_negative
from gaussfold.types import Array, ArrayLike

Label: TypeAlias = bool | int | float | str
"""A class, as River's users name them."""


def is_missing(y: object) -> bool:
    """None, NaN, and pandas' words for them."""
    if y is None or type(y).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(y, Real) and bool(y != y)


def binary(y: object) -> float:
    """0 or 1 of False or True, 0 or 1; NaN where there is no label."""
    if is_missing(y):
        return math.nan
    if isinstance(y, bool | np.bool_ | Real) and (y in (0, 1)):
        return float(y)
    msg = (
        f"y={y!r}: True or False (or 1 or 0) is needed, or None for a row without a label; compare first, as in "
        "y == 'yes', or use RiverMulticlassClassifier, which takes labels of any kind"
    )
    raise ValueError(msg)


def class_label(y: object) -> Label | None:
    """The label of a class as a Python object; None where there is none."""
    if type(y) is str or type(y) is bool or type(y) is int:  # most are, and the questions below take long
        return y
    if is_missing(y):
        return None
    plain = y.item() if isinstance(y, np.generic) else y
    if isinstance(plain, bool | int | str) or (isinstance(plain, float) and math.isfinite(plain)):
        return plain
    msg = f"y={y!r}: a text, a number or a truth value names a class, or None for a row without a label; convert it"
    raise ValueError(msg)


def number(y: object) -> float:
    """A finite number; NaN where there is no label."""
    if type(y) is float and y - y == 0.0:  # most are, and the questions below take longer than a row
        return y
    if is_missing(y):
        return math.nan
    if not isinstance(y, bool | np.bool_ | str) and isinstance(y, Real) and math.isfinite(y):
        return float(y)
    msg = f"y={y!r}: a finite number is needed, or None for a row without a label; convert it, or use a classifier"
    raise ValueError(msg)


def weight(w: object) -> float:
    """A finite number >= 0."""
    if w == 1.0:
        return 1.0
    return not_negative("w", w, remedy="it is the power of the row's likelihood; 0 leaves the row out")


def one_each(X: Sized, y: Iterable[object], w: ArrayLike | None) -> tuple[list[object], Array]:
    """Labels and weights of a batch, one for each row."""
    found = list(y)
    if len(found) != len(X):
        msg = f"y has {len(found)} labels but X has {len(X)} rows; there must be one label per row"
        raise ValueError(msg)
    if w is None:
        return found, np.ones(len(X))
    given = [weight(each) for each in w] if np.ndim(w) else [weight(w)] * len(X)
    if len(given) != len(X):
        msg = f"w has {len(given)} weights but X has {len(X)} rows; one per row, or one for all, is needed"
        raise ValueError(msg)
    return found, np.array(given)
