"""Inputs in units that workers read on their own: row groups of Parquet, ranges of lines of text, other files whole.

Which units there are depends on the files alone. A range of text is given in bytes, and means the lines that begin in
it: nobody has to look for line ends beforehand. What is compressed has no middle to begin at, so it is one unit.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gaussfold.data import formats, tables
from gaussfold.data.chunks import Chunk
from gaussfold.data.intake import Intake
from gaussfold.data.messages import DataError
from gaussfold.data.readers import Stream, format_of
from gaussfold.data.reading import Reading, Roles
from gaussfold.data.sources import Source, expand, skip_mark
from gaussfold.data.unpacking import packing_of

LEAST_BYTES = 1 << 10
"""Of a unit of text."""
_LOOK, _ENDS = 1 << 20, 1 << 16
_PACKED_TO = 5
"""How much text a byte of a compressed file is taken to hold; it decides who reads what, not what is read."""


class Unit(NamedTuple):
    """A part of an input that is read in one go."""

    path: str
    format: str
    rows: int
    """How many, or of text about how many."""
    span: tuple[int, int] | None = None
    """Of text: the lines that begin in this range of bytes."""
    group: int | None = None
    """Of Parquet: the row group."""

    def __str__(self) -> str:
        if self.span is not None:
            return f"{self.path} [bytes {self.span[0]} to {self.span[1]}]"
        return self.path if self.group is None else f"{self.path} [row group {self.group}]"


class Units(NamedTuple):
    """All units of some inputs in order, how their rows are read, and a digest by which they are known again."""

    units: tuple[Unit, ...]
    reading: Reading
    digest: int


def units_of(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    reading: Reading,
    roles: Roles,
    unit_rows: int,
    *,
    labelled: bool = True,
) -> Units:
    """Cut inputs into units, of text about so many rows each; refuses inputs that do not go together.

    ``labelled``: each has the label, if any has; rows that are only predicted need none.
    """
    names = expand(paths)
    if "-" in names:
        msg = "-: workers cannot share standard input; give files"
        raise DataError(msg)
    digest = hashlib.sha256()
    found: list[Unit] = []
    first: _Typed | None = None
    for name in names:
        with Source(name) as source:
            kind = format_of(name, reading, source).name
            digest.update(_mark(name, kind))
            if Path(name).stat().st_size == 0:
                continue
            reading = _settled(name, kind, reading, roles)
            if kind == "parquet":
                table = _Typed.of(source, reading, labelled=labelled)
                if first is not None:
                    first.check_same(table)
                first = first or table
                found += [Unit(name, kind, n, group=k) for k, n in enumerate(table.groups) if n]
            elif formats.find(kind).from_pipe:
                _check_label(source, reading, formats.find(kind).separator, labelled=labelled)
                found += _of_text(name, kind, source, unit_rows)
            else:
                found.append(Unit(name, kind, max(1, Path(name).stat().st_size // 64)))
    if not found:
        msg = f"{names[0]}: there are no rows in the input; give files that have some"
        raise DataError(msg)
    settled = dataclasses.replace(reading, format=None)  # what columns mean, whether the user said so or a model did
    digest.update(repr((unit_rows, settled.to_json())).encode())
    return Units(tuple(found), reading, int.from_bytes(digest.digest()[:7], "big"))


def read_unit(unit: Unit, intake: Intake) -> Iterator[Chunk]:
    """Rows of one unit, chunk by chunk; bad records count in ``intake``."""
    with Source(unit.path, span=unit.span, group=unit.group) as source:
        if unit.span is not None and formats.find(unit.format).separator is not None:
            _check_quotes(unit)
        yield from formats.find(unit.format).read(source, intake)


def _mark(name: str, kind: str) -> bytes:
    """A file as it is known again: size, first and last bytes; where it lies and when it was written may change."""
    size = Path(name).stat().st_size
    with open(name, "rb") as file:
        first = zlib.crc32(file.read(_ENDS))
        file.seek(max(0, size - _ENDS))
        last = zlib.crc32(file.read(_ENDS))
    return f"{Path(name).name} {kind} {size} {first} {last};".encode()


def _settled(name: str, kind: str, reading: Reading, roles: Roles) -> Reading:
    """What the columns of tables mean, as the first rows of a file say; checked against what is known."""
    if reading.columns is not None and kind == "parquet":  # its schema is compared
        return reading
    if kind in ("parquet", "arrow") or formats.find(kind).separator is not None:
        stream = Stream(name, reading, roles, max_bad=1 << 30, background=False)
        next(iter(stream), None)
        return dataclasses.replace(stream.reading, format=reading.format)
    if reading.columns is not None:
        msg = f"{name}: {kind}, but the files before it are tables with named columns; give files of one kind"
        raise DataError(msg)
    return reading


def _of_text(name: str, kind: str, source: Source, unit_rows: int) -> list[Unit]:
    with open(name, "rb") as file:
        packed = packing_of(file.read(4), name) is not None
    head = source.peek(_LOOK)
    size = Path(name).stat().st_size
    a_row = max(1.0, len(head) / max(1, head.count(b"\n")))
    if packed:
        return [Unit(name, kind, max(1, int(_PACKED_TO * size / a_row)))]
    step = max(LEAST_BYTES, int(unit_rows * a_row))
    ranges = [(begin, min(begin + step, size)) for begin in range(0, size, step)]
    return [Unit(name, kind, max(1, round((end - begin) / a_row)), (begin, end)) for begin, end in ranges]


def _check_label(source: Source, reading: Reading, separator: str | None, *, labelled: bool) -> None:
    """Refuse a table whose header has the other columns, and not the label, unless it needs none."""
    if not labelled or separator is None or reading.columns is None:
        return
    label = next((column.name for column in reading.columns if column.kind == "label"), None)
    head = source.peek(_LOOK)
    records = tables.sample_records(head[skip_mark(head) :], reading.separator or separator, whole=True).records[:1]
    known = {column.name for column in reading.columns} - {label}
    if records and known & set(records[0]) and label not in records[0]:
        msg = f"{source.name}: the label {label!r}, which other files have, is not among its columns; leave it out"
        raise DataError(msg)


def _check_quotes(unit: Unit) -> None:
    """Refuse a range in which a quoted field begins that does not end in it: lines are no records then."""
    room, quotes, ended = bytearray(1 << 20), 0, False
    with Source(unit.path, span=unit.span) as source:
        while not ended:
            filled, ended = source.fill(memoryview(room))
            quotes += room.count(b'"', 0, filled)
    if quotes % 2:
        msg = f"{unit}: a quoted field runs over the end of a line; use Parquet ('gaussfold convert'), or one process"
        raise DataError(msg)


class _Typed(NamedTuple):
    """What a Parquet file says of itself: rows per group, columns and types."""

    name: str
    groups: list[int]
    types: dict[str, str]

    @classmethod
    def of(cls, source: Source, reading: Reading, *, labelled: bool) -> _Typed:
        from gaussfold.data.arrow_files import TypedTable

        table = TypedTable(source, "parquet")
        apart = {"ignored", "tag"} if labelled else {"ignored", "tag", "label", "weight"}
        used = {column.name for column in reading.columns or () if column.kind not in apart}
        types = {str(field.name): str(field.type) for field in table.schema if field.name in used}
        missing = sorted(used - set(types))
        if missing:
            msg = f"{source.name}: column {missing[0]!r} is missing, which the first file has; leave the file out"
            raise DataError(msg)
        return cls(source.name, table.group_rows(), types)

    def check_same(self, other: _Typed) -> None:
        for name, kind in self.types.items():
            if other.types[name] != kind:
                what = f"column {name!r} holds {other.types[name]}, in {self.name} {kind}"
                msg = f"{other.name}: {what}; write all files with the same types"
                raise DataError(msg)
