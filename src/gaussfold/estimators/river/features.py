"""From a dictionary of features to columns and values; columns are given out as names come.

Most streams send the same names with every row: the columns of recent sets of names are kept, and values that are all
numbers go into an array as they are. Whatever else comes (texts, missing values, new names) goes the longer way.
"""

from __future__ import annotations

import datetime
import math
from array import array
from collections.abc import Hashable, Iterable, Mapping
from typing import NamedTuple, NoReturn, SupportsFloat, TypeAlias, cast

import numpy as np

from gaussfold.checks import refuse
from gaussfold.estimators.river.labels import is_missing
from gaussfold.rows import Rows
from gaussfold.types import Array

Example: TypeAlias = Mapping[Hashable, object]
"""Names of features and their values."""
Named: TypeAlias = dict[Hashable, float]
"""Features of one row: no missing values, texts turned into features of their own."""
INTERCEPT = "gaussfold.intercept"
RECENT = 256
"""So many sets of names are remembered at most."""
_DATES = datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64


class Entries(NamedTuple):
    """One row: columns, each once, and values."""

    columns: np.ndarray
    values: Array


class Columns:
    """Which column a feature has; the intercept, if there is one, the first."""

    def __init__(self, names: Iterable[Hashable] = (), *, intercept: bool) -> None:
        self.intercept = intercept
        self.places: dict[Hashable, int] = {name: place for place, name in enumerate(names)}
        if intercept and not self.places:
            self.places[INTERCEPT] = 0
        self._recent: dict[tuple[Hashable, ...], np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.places)

    def quick(self, x: Example) -> Entries | None:
        """The row, if all its values are numbers (NaN among them is left to the loops) under names that are known."""
        columns = self._recent.get(names := tuple(x))
        if columns is None:
            columns = self._find(names)
            if columns is None:
                return None
        try:
            values = array("d", cast("tuple[float, ...]", (1.0, *x.values()) if self.intercept else tuple(x.values())))
        except TypeError:
            return None
        return Entries(columns, np.frombuffer(values))

    def _find(self, names: tuple[Hashable, ...]) -> np.ndarray | None:
        places = [self.places.get(name, -1) for name in names]
        if -1 in places or (self.intercept and 0 in places):
            return None
        columns = np.array([0, *places] if self.intercept else places, dtype=np.int64)
        if len(self._recent) >= RECENT:
            self._recent.clear()
        self._recent[names] = columns
        return columns

    def named(self, x: object) -> Named:
        """Features of a row by name: a text is the feature "name=value" of value 1, what is missing is left out."""
        if not isinstance(x, Mapping):
            refuse("x", x, "a dictionary of features", "such as {'weight': 0.7, 'colour': 'red'}")
        found: Named = {INTERCEPT: 1.0} if self.intercept else {}
        for name, value in x.items():
            if is_missing(value):
                continue
            key, number = (
                (name, _number(name, value)) if isinstance(value, SupportsFloat) else (_text(name, value), 1.0)
            )
            if not math.isnan(number):
                if self.intercept and self.places.get(key) == 0:
                    msg = f"x[{name!r}]: the name {INTERCEPT!r} is taken by the intercept; call the feature otherwise"
                    raise ValueError(msg)
                found[key] = found.get(key, 0.0) + number
        return found

    def learn(self, rows: Iterable[Named]) -> list[Hashable]:
        """Give columns to the features that have none; returns their names, for :meth:`forget`."""
        new = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in self.places]
        for name in new:
            self.places[name] = len(self.places)
        return new

    def forget(self, names: Iterable[Hashable]) -> None:
        """Undo :meth:`learn`."""
        for name in names:
            del self.places[name]
        self._recent.clear()

    def rows(self, rows: Iterable[Named], width: int) -> Rows:
        """Rows of a sparse matrix; features without a column are left out."""
        indptr, indices, data = [0], [], []
        for row in rows:
            for name, value in row.items():
                place = self.places.get(name)
                if place is not None:
                    indices.append(place)
                    data.append(value)
            indptr.append(len(indices))
        return Rows(np.array(indptr), np.array(indices, dtype=np.int64), np.array(data, dtype=np.float64), width)


def _number(name: Hashable, value: SupportsFloat) -> float:
    if isinstance(value, np.datetime64 | np.timedelta64):
        _refuse_date(name, value)
    number = float(value)
    if math.isinf(number):
        msg = f"x[{name!r}]={value!r}: finite numbers are allowed, so clip or drop it"
        raise ValueError(msg)
    return number


def _text(name: Hashable, value: object) -> str:
    if isinstance(value, _DATES):
        _refuse_date(name, value)
    return f"{name}={value}"


def _refuse_date(name: Hashable, value: object) -> NoReturn:
    msg = (
        f"x[{name!r}]={value!r}: a date is neither a number nor a category; give what matters of it, such as the "
        "weekday, the month or the days since a start, as numbers or texts of their own"
    )
    raise ValueError(msg)
