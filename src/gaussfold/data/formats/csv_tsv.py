"""Comma- and tab-separated values: a table as text, its columns' meaning told by the user, a header or the values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from gaussfold.data import tables, tabular
from gaussfold.data.chunks import Chunk, Parse
from gaussfold.data.formats.base import Format
from gaussfold.data.intake import Intake
from gaussfold.data.plain_numbers import is_float
from gaussfold.data.reading import KINDS, Column, Reading, Roles
from gaussfold.data.sources import Source
from gaussfold.data.strings import murmur_of
from gaussfold.data.text import TextReader
from gaussfold.engine.text.parse_csv import TableColumns, parse_csv
from gaussfold.engine.text.report import POSITION
from gaussfold.engine.text.row_memory import Options, Rows, Scratch

_NEWLINE, _QUOTE = 10, 34


def _reader(separator: str) -> Callable[[Source, Intake], Iterator[Chunk]]:
    """Read tables with this separator, unless the user says another."""

    def read(source: Source, intake: Intake) -> Iterator[Chunk]:
        def begin(head: memoryview, whole: bool) -> tuple[Parse, int]:
            return _begin(bytes(head), whole, source.name, intake, intake.reading.separator or separator)

        return TextReader(intake).read(source, begin)

    return read


def _begin(head: bytes, whole: bool, source: str, intake: Intake, separator: str) -> tuple[Parse, int]:
    """Look at the first records; return the parser and the length of the header."""
    known = intake.reading.columns
    records = tables.sample_records(head.decode("utf-8", "replace"), separator, whole=whole)
    if not records and known is not None:
        return _skip_all, 0
    columns, has_header = tables.describe(records, _roles_for(records, known, intake.roles), source)
    if known is not None:
        columns = tables.match(known, [column.name for column in columns], source)
    else:
        intake.reading = dataclasses.replace(intake.reading, columns=columns)
    parse = _parser(separator, columns, (intake.reading.positive or "").encode())
    return parse, _header_length(head) if has_header else 0


def _roles_for(records: list[list[str]], known: tuple[Column, ...] | None, roles: Roles) -> Roles:
    """With known columns a header is told by their names, not by the looks of the values."""
    if known is None:
        return roles
    if roles.header is not None:
        return Roles(header=roles.header)
    return Roles(header=records[0][0] in {column.name for column in known})


def _skip_all(
    _buffer: np.ndarray, stop: int, _options: Options, _rows: Rows, _scratch: Scratch, report: np.ndarray
) -> None:
    report[POSITION] = stop


def _parser(separator: str, columns: tuple[Column, ...], positive: bytes) -> Parse:
    table = TableColumns(
        separator=ord(separator),
        kinds=np.array([KINDS.index(column.kind) for column in columns], np.int64),
        hashes=np.array([murmur_of(column.name) for column in columns], np.uint32),
        initials=np.array([(column.name.encode() or b" ")[0] for column in columns], np.int64),
        positive=np.frombuffer(bytearray(positive) or bytearray(1), np.uint8)[: len(positive)],
    )
    unquoted = np.empty(0, np.uint8)

    def parse(
        buffer: np.ndarray, stop: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray
    ) -> None:
        nonlocal unquoted
        if unquoted.size < buffer.size:
            unquoted = np.empty(buffer.size, np.uint8)
        parse_csv(buffer, stop, table, unquoted, options, rows, scratch, report)

    return parse


def _header_length(head: bytes) -> int:
    """Bytes up to the end of the first record that is not empty; newlines inside quotes do not end it."""
    quoted, seen = False, False
    for at, byte in enumerate(head):
        if byte == _QUOTE:
            quoted = not quoted
        seen = seen or byte not in b"\r\n"
        if byte == _NEWLINE and not quoted and seen:
            return at + 1
    return len(head)


def _opener(separator: str) -> Callable[[Source, Reading, Roles], tabular.Table]:
    def open_table(source: Source, reading: Reading, roles: Roles) -> tabular.Table:
        return tabular.open_text(source, reading.separator or separator, roles)

    return open_table


def _looks_like_csv(line: bytes) -> bool:
    words = line.split(b"#")[0].split()
    return b"\t" not in line and (b"," in line or (len(words) == 1 and not is_float(words[0])))


FORMATS = (
    Format(
        name="csv",
        read=_reader(","),
        endings=(".csv",),
        looks_like=_looks_like_csv,
        open_table=_opener(","),
        separator=",",
    ),
    Format(
        name="tsv",
        read=_reader("\t"),
        endings=(".tsv",),
        looks_like=lambda line: b"\t" in line,
        open_table=_opener("\t"),
        separator="\t",
    ),
)
