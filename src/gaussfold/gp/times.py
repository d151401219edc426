"""Dates as inputs: numbers in one unit of time, the same for fitting and for predicting, whatever unit they come in."""

from __future__ import annotations

import datetime
from contextlib import suppress
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from gaussfold.checks import one_of
from gaussfold.types import Array, ArrayLike

UNITS = ("W", "D", "h", "m", "s", "ms", "us", "ns")
_KEPT = ("W", "D", "h", "m", "s")
"""Units that NumPy arrays bring with them; others, months, and pandas (whose unit nobody chose) count days."""


@runtime_checkable
class Period(Protocol):
    """A stretch of time, as pandas has them; it counts as the moment when it begins."""

    @property
    def start_time(self) -> datetime.datetime:
        """That moment."""
        ...


class Clock(NamedTuple):
    """How dates become numbers: units since 1970, from dates with a time zone or without one."""

    unit: str
    zoned: bool
    columns: tuple[int, ...] | None = None
    """Which columns hold dates, where others hold numbers; None: all of them."""


def unit_of(unit: str | None) -> str | None:
    """A unit of time by its NumPy name."""
    return None if unit is None else one_of("time_unit", unit, UNITS)


def read(X: ArrayLike, name: str, unit: str | None, clock: Clock | None) -> tuple[ArrayLike, Clock | None]:
    """Numbers, and how dates were turned into them; what holds no dates passes.

    ``unit`` is the one asked for, ``clock`` that of the data the model was fitted on.
    """
    array = np.asarray(X)
    _refuse_other_times(array, name, clock)
    columns = _date_columns(array)
    found = _dates(array if columns is None else array[:, columns], name) if array.dtype.kind in "MO" else None
    if found is None:
        return X, None
    dates, zoned = found
    _refuse_missing(dates, name)
    if clock is None:
        clock = Clock(unit or _own_unit(X), zoned, columns)
    _refuse_another_kind(Clock(clock.unit, zoned, columns), clock, name)
    numbers = _numbers(dates, clock.unit)
    return numbers if columns is None else _filled(array, columns, numbers), clock


def _refuse_other_times(array: np.ndarray, name: str, clock: Clock | None) -> None:
    """Durations, and dates that somebody has written."""
    if array.dtype.kind == "m":
        msg = f"{name} holds durations ({array.dtype}); give dates, or numbers: X / np.timedelta64(1, 'h')"
        raise ValueError(msg)
    if array.dtype.kind in "US" and (clock is not None or _reads_as_dates(array)):
        msg = f"{name} holds text ({str(array.flat[0])!r}); give dates: np.array(X, dtype='datetime64[s]')"
        raise ValueError(msg)


def _refuse_another_kind(found: Clock, fitted: Clock, name: str) -> None:
    """Dates with a time zone beside dates without one, or in other columns."""
    if found.zoned != fitted.zoned:
        here, there = ("have a", "have none") if found.zoned else ("have no", "have one")
        msg = (
            f"{name}: these dates {here} time zone where those that the model was fitted on {there}; convert them, "
            "with tz_convert or tz_localize of pandas"
        )
        raise ValueError(msg)
    if found.columns != fitted.columns:
        here, there = ("all columns" if c is None else f"columns {list(c)}" for c in (found.columns, fitted.columns))
        msg = f"{name} holds dates in {here}, and the model was fitted on dates in {there}; give the same columns"
        raise ValueError(msg)


def _reads_as_dates(text: np.ndarray) -> bool:
    """Whether the first entry is a date that somebody has written, and no number."""
    first = str(text.flat[0]) if text.size else ""
    with suppress(ValueError):
        float(first)
        return False
    with suppress(ValueError):
        np.datetime64(first)
        return True
    return False


def _date_columns(array: np.ndarray) -> tuple[int, ...] | None:
    """Columns that begin with a date in a table of which others do not; None if there are no others, or no dates."""
    if array.dtype.kind != "O" or array.ndim != 2 or len(array) == 0:
        return None
    known = [any(_is_date(value) for value in column) for column in array.T]
    return None if all(known) or not any(known) else tuple(int(i) for i in np.flatnonzero(known))


def _filled(array: np.ndarray, columns: tuple[int, ...], numbers: Array) -> np.ndarray:
    """The table with these columns as numbers; what the others hold is looked at later."""
    table = array.copy()
    table[:, columns] = numbers
    return table


def _own_unit(X: ArrayLike) -> str:
    """That of a NumPy array, if it is one that somebody has chosen."""
    unit = np.datetime_data(X.dtype)[0] if isinstance(X, np.ndarray) and X.dtype.kind == "M" else "D"
    return unit if unit in _KEPT else "D"


def _refuse_missing(dates: np.ndarray, name: str) -> None:
    missing = np.isnat(dates)
    if missing.any():
        row = int(np.argmax(missing.reshape(len(dates), -1).any(axis=1)))
        msg = f"{name}[{row}] is NaT: inputs must be dates; drop the row, or put NaN into Y to predict there"
        raise ValueError(msg)


def check_kind(clock: Clock | None, fitted: Clock | None, name: str) -> None:
    """Refuse numbers where the model was fitted on dates, and dates where it was fitted on numbers."""
    if (clock is None) != (fitted is None):
        given, known = ("numbers", "dates") if clock is None else ("dates", "numbers")
        msg = f"{name} holds {given}, and the model was fitted on {known}; give {known}"
        raise ValueError(msg)


def _numbers(dates: np.ndarray, unit: str) -> Array:
    """Units since 1970: whole ones and the rest apart, so that nanoseconds are not lost in a double."""
    whole = dates.astype(f"datetime64[{unit}]")
    finest = "ns" if {unit, np.datetime_data(dates.dtype)[0]} & {"ns", "ps", "fs", "as"} else "us"
    rest = (dates.astype(f"datetime64[{finest}]") - whole.astype(f"datetime64[{finest}]")).astype(np.float64)
    one = np.ones(1, f"timedelta64[{unit}]").astype(f"timedelta64[{finest}]").astype(np.float64)
    return np.asarray(whole.astype(np.int64) + rest / one)


def _is_date(value: object) -> bool:
    return isinstance(value, datetime.date | np.datetime64 | Period)


def _dates(array: np.ndarray, name: str) -> tuple[np.ndarray, bool] | None:
    """Dates as NumPy has them, in universal time, and whether they had a time zone; None if these are none."""
    if array.dtype.kind == "M":
        return array, False
    flat = [value.start_time if isinstance(value, Period) else value for value in array.ravel()]
    known = [_is_date(value) for value in flat]
    if not any(known):
        return None
    if not all(known):
        row = known.index(False)
        msg = (
            f"{name} mixes dates and what is none: entry {row} is {flat[row]!r}; give dates alone, or turn them into "
            "numbers first"
        )
        raise ValueError(msg)
    zoned = _have_zone([value for value in flat if value == value], name)
    found = np.array(["NaT" if value != value else _universal(value) for value in flat], dtype="datetime64[us]")
    return found.reshape(array.shape), zoned


def _have_zone(dates: list[datetime.date | np.datetime64], name: str) -> bool:
    """Whether these dates have a time zone, the same for all; a mixture is refused."""
    zones = {str(value.tzinfo) for value in dates if isinstance(value, datetime.datetime) and value.tzinfo is not None}
    with_zone = sum(isinstance(value, datetime.datetime) and value.tzinfo is not None for value in dates)
    if 0 < with_zone < len(dates):
        msg = (
            f"{name} mixes dates with a time zone and dates without one; convert them first, with tz_localize of pandas"
        )
        raise ValueError(msg)
    if len(zones) > 1:
        msg = f"{name} mixes time zones; convert them to one first, with tz_convert('UTC') of pandas"
        raise ValueError(msg)
    return bool(zones)


def _universal(value: datetime.date | np.datetime64) -> str:
    """In universal time, as NumPy reads it."""
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return str(value) if isinstance(value, np.datetime64) else value.isoformat()
