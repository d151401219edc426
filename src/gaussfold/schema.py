"""What the arrays of a model file must be like, said once per kind and checked before anything is built from them.

A kind lists its arrays as :class:`Part` records: shape, type, range. Sizes have names, ``("d", "p")``, and a name means
one number throughout a file; :func:`check` returns what the names stood for. A checksum tells accidents from files as
they were written, not honest writers from others: compiled loops trust lengths and indices, so these are looked at
here, and a size that a file only *claims* is compared with the arrays before room is made for it.

Every refusal is a ValueError that names the part; `gaussfold.load` puts the file's name in front.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, NoReturn

import numpy as np

STRETCH = 1 << 20
"""Entries that are looked at together: a check must not take memory of the array's size."""
ROUNDING = 1e-4
"""How far two halves of a symmetric matrix may be apart, of its largest entry: single precision, and to spare."""

Type = Literal["double", "stored", "whole", "bytes"]
TYPES: dict[Type, tuple[str, str]] = {
    "double": ("f8", "float64"),
    "stored": ("f8 f4", "float64 or float32, the same for all that may be either"),
    "whole": ("i1 i2 i4 i8 u1 u2 u4 u8", "whole numbers"),
    "bytes": ("u1", "bytes"),
}


class Part(NamedTuple):
    """One array of a file."""

    name: str
    shape: tuple[int | str, ...]
    """Numbers, and names of sizes."""
    type: Type = "stored"
    low: float = -math.inf
    """The smallest that is allowed."""
    high: float | str = math.inf
    """The largest that is allowed; a name: entries are indices below that size."""
    positive: bool = False
    """Whether zero is too small."""
    gaps: bool = False
    """Whether NaN is allowed, for what is missing."""
    free: bool = False
    """Whether anything is allowed: numbers that are only shown."""
    optional: bool = False
    symmetric: bool = False
    """Of the last two axes."""
    pointers: str = ""
    """Starts with 0, never decreases and ends with that size: where the rows of a sparse matrix begin."""


def check(
    arrays: Mapping[str, np.ndarray], parts: Sequence[Part], sizes: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Refuse arrays that are not as the parts say; returns the sizes, those given included.

    Examples
    --------
    >>> parts = (Part("mean", ("d",)), Part("variance", ("d",), positive=True))
    >>> check({"mean": np.zeros(3), "variance": np.ones(3)}, parts)
    {'d': 3}
    >>> check({"mean": np.zeros(3), "variance": np.zeros(3)}, parts)
    Traceback (most recent call last):
    ValueError: part 'variance': entry 0 is 0.0; finite numbers > 0 are needed
    """
    known = dict(sizes or {})
    for part in parts:
        if part.name in arrays:
            _check_shape(arrays[part.name], part, known)
        elif not part.optional:
            refuse(part.name, "missing", "a file of this kind has it")
    present = [part for part in parts if part.name in arrays]
    _check_types(arrays, present)
    for part in present:
        if not part.free:
            _check_entries(arrays[part.name], part, known)
        if part.symmetric:
            _check_symmetric(arrays[part.name], part.name)
        if part.pointers:
            _check_pointers(arrays[part.name], part.name, known[part.pointers])
    return known


def together(arrays: Mapping[str, np.ndarray], names: Sequence[str]) -> bool:
    """Whether these arrays are there; some of them without the others are refused.

    Examples
    --------
    >>> together({"seen": np.zeros(1)}, ("seen", "clock"))
    Traceback (most recent call last):
    ValueError: part 'clock': missing; 'seen' needs it
    """
    there = [name for name in names if name in arrays]
    for name in names:
        if there and name not in arrays:
            refuse(name, "missing", f"{there[0]!r} needs it")
    return bool(there)


def part_of(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def equal(name: str, found: object, needed: object, because: str) -> None:
    """Refuse a number or name that does not fit the rest of the file."""
    if found != needed:
        refuse(name, f"{found!r}", f"{needed!r} is needed, {because}")


def refuse(name: str, found: str, needed: str) -> NoReturn:
    """Raise the error for one part."""
    msg = f"part {name!r}: {found}; {needed}"
    raise ValueError(msg)


def _check_shape(array: np.ndarray, part: Part, known: dict[str, int]) -> None:
    """Compare the lengths of the axes with the numbers, and with the names that have a number already."""
    fits = array.ndim == len(part.shape)
    for length, size in zip(array.shape, part.shape if fits else (), strict=False):
        fits = fits and length == (known.setdefault(size, length) if isinstance(size, str) else size)
    if not fits:
        needed = ", ".join(f"{size}={known[size]}" if size in known else f"{size}" for size in part.shape)
        refuse(part.name, f"shape {array.shape}", f"({needed}) is needed")


def _check_types(arrays: Mapping[str, np.ndarray], parts: Sequence[Part]) -> None:
    for part in parts:
        allowed, said = TYPES[part.type]
        if arrays[part.name].dtype.str.lstrip("<=|") not in allowed.split():
            refuse(part.name, f"dtype {arrays[part.name].dtype}", f"{said} is needed")
    stored = [part for part in parts if part.type == "stored"]
    for part in stored[1:]:
        first = arrays[stored[0].name].dtype
        if arrays[part.name].dtype != first:
            refuse(part.name, f"dtype {arrays[part.name].dtype}", f"{first} as of {stored[0].name!r} is needed")


def _check_entries(array: np.ndarray, part: Part, known: Mapping[str, int]) -> None:
    high = known[part.high] - 1 if isinstance(part.high, str) else part.high
    start = 0
    for entries in _stretches(array):
        good = (entries > 0) if part.positive else (entries >= part.low)
        good &= entries <= high
        if entries.dtype.kind == "f":
            good &= np.isfinite(entries)
            if part.gaps:
                good |= np.isnan(entries)
        if not good.all():
            first = int(np.argmin(good))
            refuse(part.name, f"entry {start + first} is {entries[first].item()!r}", f"{_said(part, high)} are needed")
        start += entries.size


def _said(part: Part, high: float) -> str:
    what = "whole numbers" if part.type in ("whole", "bytes") else "finite numbers"
    if part.positive:
        what += " > 0"
    elif part.low > -math.inf:
        what += f" >= {part.low:g}"
    return what if high == math.inf else f"{what} up to {high:g}"


def _stretches(array: np.ndarray) -> Iterator[np.ndarray]:
    """All entries, some at a time; only those are copied, if any."""
    if array.ndim == 0 or array.size == 0:
        return iter([array.reshape(-1)])
    step = max(1, STRETCH * len(array) // array.size)
    return (array[start : start + step].reshape(-1) for start in range(0, len(array), step))


def _check_symmetric(array: np.ndarray, name: str) -> None:
    apart = np.abs(array - np.swapaxes(array, -1, -2)).max(initial=0.0)
    if not apart <= ROUNDING * np.abs(array).max(initial=0.0):
        refuse(name, f"two halves that differ by {float(apart):.3g}", "a symmetric matrix is needed")


def _check_pointers(array: np.ndarray, name: str, total: int) -> None:
    if array.size == 0 or int(array[0]) != 0 or int(array[-1]) != total or (array[1:] < array[:-1]).any():
        refuse(name, "it does not lead from row to row", f"numbers that grow from 0 to {total} are needed")
