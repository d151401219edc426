"""The formats that rows are read from: the list of them stands here and nowhere else.

A format is one module of this package with a `Format` record in it, and one line in `_HOMES`. Modules are imported when
they are needed: the command line lists the names in its help, which must answer at once. A format from outside the
package is made known by `register`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from gaussfold.data.formats.base import PACKED, Format

_HOMES = {
    "vw": "vw",
    "svmlight": "svmlight",
    "csv": "csv_tsv",
    "tsv": "csv_tsv",
    "parquet": "parquet_arrow",
    "arrow": "parquet_arrow",
}
"""Names and modules, in the order in which they are asked whether a file is theirs."""
OF_NOTHING = "vw"
"""What an empty input without a telling name is taken for: it has no rows in any format."""
_registered: dict[str, Format] = {}


def names() -> tuple[str, ...]:
    """All formats, our own first."""
    return (*_HOMES, *_from_outside())


def _from_outside() -> tuple[str, ...]:
    return tuple(name for name in _registered if name not in _HOMES)


def _asked() -> Iterator[Format]:
    """All formats in the order in which they are asked: first those from outside, which know what they look like."""
    return (find(name) for name in (*_from_outside(), *_HOMES))


def find(name: str) -> Format:
    """Return the format of this name; any other is an error that lists those that are allowed."""
    if name in _HOMES and name not in _registered:
        for found in importlib.import_module(f"{__name__}.{_HOMES[name]}").FORMATS:
            _registered.setdefault(found.name, found)
    if name not in _registered:
        from gaussfold.checks import refuse_name  # brings NumPy, which --help does without

        refuse_name("format", name, names())
    return _registered[name]


def register(found: Format) -> None:
    """Make a format known under its name."""
    _registered[found.name] = found


def unregister(found: Format) -> None:
    """Undo `register`."""
    del _registered[found.name]


def format_of_name(path: str) -> str | None:
    """Guess the format from a file's name."""
    lower = path.lower()
    for packing in PACKED:
        lower = lower.removesuffix(packing)
    return next((found.name for found in _asked() if lower.endswith(found.endings)), None)


def _says_something(line: bytes) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith(b"#")


def is_telling(head: bytes) -> bool:
    """Whether `format_of_bytes` would say the same, whatever follows: a first line that says something is complete."""
    return any(line.endswith((b"\n", b"\r")) and _says_something(line) for line in head.splitlines(keepends=True))


def format_of_bytes(head: bytes, source: str) -> str:
    """Guess the format from the beginning of a file: its first bytes, else its first line that says something."""
    known = list(_asked())
    line = next(filter(_says_something, head.splitlines()), b"")
    for found in known:
        if found.magic and head.startswith(found.magic):
            return found.name
    for found in known:
        if line and found.looks_like(line):
            return found.name
    from gaussfold.data.messages import DataError  # as above

    msg = f"{source}: its format cannot be told from its name or first line; say --format ({', '.join(names())})"
    raise DataError(msg)
