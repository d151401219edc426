"""Arguments at the door: one wording for every refusal.

A message names the argument, its value, what is allowed and the remedy::

    rank=0: a whole number >= 1 is needed; give one, such as rank=1

With ``owner`` it also says who asks (``std=0.0: Gaussian needs a finite number > 0; ...``). Every function returns the
value that passed, in Python's own type, and raises a ValueError before anything has changed, whatever is wrong with the
value: a caller catches one kind of error. This file lies below everything else and needs NumPy only.

A check of many rows says itself which row is the first bad one: ``if bad.any(): row = int(np.argmax(bad)); msg = ...``
stands in a few files with another sentence each, which is put together only where a row is bad.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Iterable
from functools import cache
from typing import Literal, NoReturn, Protocol, SupportsFloat, cast

import numpy as np
from numpy.typing import DTypeLike

from gaussfold.types import Array, ArrayLike

Brackets = Literal["[]", "(]", "[)", "()"]


class Shaped(Protocol):
    """An array, dense or sparse."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        ...


def whole(
    name: str, value: object, least: int = 1, most: int | None = None, *, owner: str = "", remedy: str = ""
) -> int:
    """A whole number, at least ``least`` and at most ``most``.

    Examples
    --------
    >>> whole("rank", 3)
    3
    >>> whole("rank", 2.5)
    Traceback (most recent call last):
    ValueError: rank=2.5: a whole number >= 1 is needed; give one, such as rank=1
    """
    found = None if isinstance(value, bool) or not isinstance(value, numbers.Integral) else int(value)
    if found is None or found < least or (most is not None and found > most):
        limits = f">= {least}" if most is None else f"from {least} to {most}"
        refuse(name, value, f"a whole number {limits}", remedy or _example(name, least), owner)
    return found


def room(name: str, value: object, entries: int, remedy: str) -> None:
    """Refuse a size whose ``entries``, of eight bytes each, this machine's memory cannot hold, before any is taken."""
    if 8 * entries > (memory := _memory()):
        msg = f"{name}={value!r}: {8e-9 * entries:.3g} GB are needed, this machine has {1e-9 * memory:.3g}; {remedy}"
        raise ValueError(msg)


@cache
def _memory() -> float:
    """Bytes of memory of this machine, as far as it says."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * float(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def number(name: str, value: object, *, owner: str = "", remedy: str = "") -> float:
    """A finite number."""
    found = _float(value)
    if not math.isfinite(found):
        refuse(name, value, "a finite number", remedy or _example(name, 1.0), owner)
    return found


def positive(name: str, value: object, *, owner: str = "", remedy: str = "") -> float:
    """A finite number > 0."""
    found = _float(value)
    if not 0.0 < found < math.inf:
        refuse(name, value, "a finite number > 0", remedy or _example(name, 1.0), owner)
    return found


def not_negative(name: str, value: object, *, owner: str = "", remedy: str = "") -> float:
    """A finite number >= 0."""
    found = _float(value)
    if not 0.0 <= found < math.inf:
        refuse(name, value, "a finite number >= 0", remedy or _example(name, 1.0), owner)
    return found


def between(
    name: str, value: object, low: float, high: float, brackets: Brackets = "[]", *, owner: str = "", remedy: str = ""
) -> float:
    """A number in an interval; a round bracket leaves that end out.

    Examples
    --------
    >>> between("forgetting", 1.2, 0, 1, "(]")
    Traceback (most recent call last):
    ValueError: forgetting=1.2: a number in (0, 1] is needed; give one, such as forgetting=0.5
    """
    found = _float(value)
    left = found > low if brackets[0] == "(" else found >= low
    right = found < high if brackets[1] == ")" else found <= high
    if not (left and right):
        interval = f"{brackets[0]}{low:g}, {high:g}{brackets[1]}"
        remedy = remedy or _example(name, (low + high) / 2)
        refuse(name, value, f"a number in {interval}", remedy, owner)
    return found


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, bool | np.bool_):
        refuse(name, value, "True or False", _example(name, True))
    return bool(value)


def one_of(name: str, value: object, allowed: Iterable[str], *, owner: str = "", also: str = "") -> str:
    """One of a few names; ``also`` says what else may be given, where names are not all.

    Examples
    --------
    >>> one_of("tick", "hourly", ("observation", "clock"))
    Traceback (most recent call last):
    ValueError: tick='hourly': allowed are 'observation', 'clock'; choose one of them
    """
    names = tuple(allowed)
    if not isinstance(value, str) or value not in names:
        refuse_name(name, value, names, owner=owner, also=also)
    return value


def refuse_name(name: str, value: object, allowed: Iterable[str], *, owner: str = "", also: str = "") -> NoReturn:
    """Refuse a name that is not among those allowed."""
    names = tuple(allowed)
    takes = f"{owner} takes one of" if owner else "allowed is" if len(names) == 1 and not also else "allowed are"
    remedy = f", or {also}" if also else "; choose one of them" if len(names) > 1 else ""
    msg = f"{name}={value!r}: {takes} {', '.join(map(repr, names))}{remedy}"
    raise ValueError(msg)


def refuse(name: str, value: object, needed: str, remedy: str, owner: str = "") -> NoReturn:
    """Refuse one value: argument, value, what is needed and the remedy."""
    needs = f"{owner} needs {needed}" if owner else f"{needed} is needed"
    msg = f"{name}={value!r}: {needs}; {remedy}"
    raise ValueError(msg)


def positive_entries(name: str, array: Array) -> None:
    """Every entry a finite number > 0; the first that is not is named."""
    _entries(name, array, (array > 0.0) & np.isfinite(array), "finite numbers > 0")


def finite_entries(name: str, array: Array) -> None:
    """Every entry finite; the first that is not is named."""
    _entries(name, array, np.isfinite(array), "finite numbers")


def scales(name: str, array: Array) -> None:
    """Standard deviations: entries > 0 whose squares, the variances, are numbers too."""
    positive_entries(name, array)
    least, most = math.sqrt(np.finfo(np.float64).tiny), math.sqrt(np.finfo(np.float64).max)
    _entries(name, array, (array >= least) & (array <= most), f"numbers from {least:.2g} to {most:.2g}")


def doubles(name: str, values: ArrayLike, needed: str) -> Array:
    """Real numbers as an array of doubles, whatever they came as; ``needed`` says of what shape, for the message."""
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "cmM":  # NumPy would drop an imaginary part, and count days
            return array.astype(np.float64, copy=False)
        problem = "complex numbers or dates"
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        problem = str(error)
    msg = f"{name}: {problem}; numbers are needed, {needed}"
    raise ValueError(msg)


def finite_vector(name: str, values: ArrayLike, dim: int) -> Array:
    """A vector of ``dim`` finite numbers."""
    vector = doubles(name, values, f"{dim} of them")
    if vector.shape != (dim,):
        msg = f"{name}: shape {vector.shape}; ({dim},) is needed, one number per parameter of the belief"
        raise ValueError(msg)
    finite_entries(name, vector)
    return vector


def variances(name: str, values: ArrayLike, dim: int) -> Array:
    """Variances that may be zero: one number for all parameters, or one each; returned one each."""
    array = doubles(name, values, "one number, or one per parameter")
    if array.shape not in ((), (dim,)):
        msg = f"{name}: shape {array.shape}; one number or ({dim},), one per parameter, is needed"
        raise ValueError(msg)
    _entries(name, np.atleast_1d(array), np.atleast_1d((array >= 0.0) & (array < np.inf)), "finite numbers >= 0")
    return np.broadcast_to(array, (dim,))


def places(name: str, columns: ArrayLike, dim: int) -> np.ndarray:
    """Places among ``dim`` parameters: whole numbers, from the end where negative, or a mask; as counted from 0.

    Raises an IndexError where a place is out of range, as a list would.
    """
    found = np.asarray(columns)
    if found.dtype == bool and found.shape == (dim,):
        return np.flatnonzero(found)
    if found.size == 0:
        return np.empty(0, np.int64)
    if found.dtype.kind not in "iu" or found.ndim > 1:
        msg = f"{name}: shape {found.shape} and type {found.dtype}; a row of whole numbers below {dim} is needed"
        raise IndexError(msg)
    if not (found.min() >= -dim and found.max() < dim):
        msg = (
            f"{name}: from {found.min()} to {found.max()}; {-dim} to {dim - 1} are allowed, so look up which are meant"
        )
        raise IndexError(msg)
    found = found.astype(np.int64).reshape(-1)
    return np.where(found < 0, found + dim, found) if found.min() < 0 else found


def same_dim(name: str, dim: int, ours: int) -> None:
    """Another belief must be over as many parameters."""
    if dim != ours:
        msg = f"{name}: {dim} parameters, this belief has {ours}; both must be over the same ones"
        raise ValueError(msg)


def columns(name: str, rows: Shaped, dim: int) -> None:
    """A matrix of ``dim`` columns, dense or sparse."""
    if len(rows.shape) != 2 or rows.shape[1] != dim:
        hint = "; labels come after rows, and a single row is X[None, :]" if len(rows.shape) == 1 else ""
        msg = f"{name}: shape {rows.shape}; (n, {dim}) is needed, one column per parameter of the belief{hint}"
        raise ValueError(msg)


def floating(dtype: DTypeLike) -> np.dtype[np.float64]:
    """Double or single precision; typed as double, as arrays of either are in this package."""
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        refuse_name("dtype", dtype, ("float64", "float32"))
    return cast("np.dtype[np.float64]", kind)


def _entries(name: str, array: Array, good: np.ndarray, allowed: str) -> None:
    if not good.all():
        first = int(np.argmin(good))
        which = "" if array.ndim == 0 else f"entry {first} is "
        msg = f"{name}: {which}{float(array.flat[first])!r}; {allowed} are allowed, so change or drop it"
        raise ValueError(msg)


def _float(value: object) -> float:
    """As a float; NaN, which no check lets pass, for what is no single number. True and "1" are none either."""
    if type(value) is float:
        return value
    if isinstance(value, bool | np.bool_ | str) or not isinstance(value, SupportsFloat) or np.ndim(value):  # type: ignore[arg-type]
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _example(name: str, value: object) -> str:
    return f"give one, such as {name}={value!r}"


def generator(
    random_state: int | np.random.Generator | np.random.RandomState | None, name: str = "random_state"
) -> np.random.Generator:
    """Make a NumPy generator from None, a seed, a RandomState or a generator (which is used as it is)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is None:
        return np.random.default_rng()
    return np.random.default_rng(whole(name, random_state, least=0))
