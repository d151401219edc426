"""Comma- and tab-separated values: a table as text, its columns' meaning told by the user, a header or the values."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np

from gaussfold.data import tables, tabular
from gaussfold.data.chunks import Chunk, Parse
from gaussfold.data.formats.base import Format
from gaussfold.data.intake import Intake
from gaussfold.data.messages import DataError, NulBytesError
from gaussfold.data.plain_numbers import is_float
from gaussfold.data.reading import KINDS, Column, Reading, Roles
from gaussfold.data.refusals import refuse_mistyped, refuse_other_roles
from gaussfold.data.sources import Source, skip_mark
from gaussfold.data.strings import murmur_of
from gaussfold.data.text import LONGEST_RECORD, TextReader
from gaussfold.engine.text.parse_csv import TableColumns, parse_csv
from gaussfold.engine.text.report import POSITION
from gaussfold.engine.text.row_memory import Options, Rows, Scratch

_LOOK = 1 << 20


def _reader(separator: str) -> Callable[[Source, Intake], Iterator[Chunk]]:
    """Read tables with this separator, unless the user says another."""

    def read(source: Source, intake: Intake) -> Iterator[Chunk]:
        def begin(source: Source) -> tuple[Parse, int]:
            if source.begins:
                return _begin(source, intake, intake.reading.separator or separator)
            with Source(source.path) as first:  # a part of a file: what its columns are is told by the first lines
                first.take(skip_mark(first.peek(3)))
                return _begin(first, intake, intake.reading.separator or separator)[0], 0

        return TextReader(intake).read(source, begin)

    return read


def _begin(source: Source, intake: Intake, separator: str) -> tuple[Parse, int]:
    """Look at the first records; return the parser and the length of the header."""
    known, positive = intake.reading.columns, intake.reading.positive
    if known is not None:
        refuse_other_roles(known, intake.roles, source.name)
    sample = _sample(source, separator, 1 if known is not None and positive is None else tables.SAMPLE + 1)
    records = sample.records
    if not records and known is not None:
        return _skip_all, 0
    columns, has_header = _described(sample, intake, source.name)
    if known is not None:
        columns = tables.match(known, [column.name for column in columns], source.name, intake.roles.tag)
    else:
        intake.reading = dataclasses.replace(intake.reading, columns=columns)
    refuse_mistyped(_labels(records[has_header:], columns), positive, source.name)
    parse = _parser(separator, columns, positive)
    return parse, (sample.first or 0) if has_header else 0


def _described(sample: tables.Sample, intake: Intake, source: str) -> tuple[tuple[Column, ...], bool]:
    """Columns by the first records, and whether the first of these is a header."""
    roles = _roles_for(sample, intake.reading.columns, intake.roles)
    if roles.header and sample.first is None:
        msg = f"{source}: its first line is no header: a quote in it is not closed; mend it, or say --no-header"
        raise DataError(msg)
    columns, has_header = tables.describe(sample.records, roles, source)
    if intake.refuse_nul and any("\0" in column.name for column in columns):
        place = "header"
        raise NulBytesError(source, place)
    return columns, has_header


def _labels(records: list[list[str]], columns: tuple[Column, ...]) -> Iterator[str]:
    places = [k for k, column in enumerate(columns) if column.kind == "label"]
    return (record[k] for k in places for record in records if k < len(record))


def _sample(source: Source, separator: str, wanted: int) -> tables.Sample:
    """The first records, so many or those in the first MB (in more, if a header and a record are not complete by then).

    A pipe is waited for: what the columns mean must not depend on how fast the records come.
    """
    size = _LOOK

    def enough(head: bytes) -> bool:
        lines = head.count(b"\n") >= wanted
        return lines and len(tables.sample_records(head, separator, whole=False).records) >= wanted

    while True:
        head = source.peek(size, enough)
        whole = source.all_peeked and len(head) < size
        sample = tables.sample_records(head, separator, whole=whole)
        if len(sample.records) >= min(2, wanted) or whole or size >= LONGEST_RECORD:
            return tables.Sample(sample.records[:wanted], sample.first)
        size *= 2


def _roles_for(sample: tables.Sample, known: tuple[Column, ...] | None, roles: Roles) -> Roles:
    """With known columns a header is told by their names, not by the looks of the values."""
    if roles.header is None and sample.first is None:
        return dataclasses.replace(roles if known is None else Roles(), header=False)
    if known is None:
        return roles
    if roles.header is not None:
        return Roles(header=roles.header)
    return Roles(header=sample.records[0][0] in {column.name for column in known})


def _skip_all(
    _buffer: np.ndarray, stop: int, _options: Options, _rows: Rows, _scratch: Scratch, report: np.ndarray
) -> None:
    report[POSITION] = stop


def _parser(separator: str, columns: tuple[Column, ...], positive: str | None) -> Parse:
    token = bytearray((positive or "").encode())
    table = TableColumns(
        separator=ord(separator),
        kinds=np.array([KINDS.index(column.kind) for column in columns], np.int64),
        hashes=np.array([murmur_of(column.name) for column in columns], np.uint32),
        initials=np.array([(column.name.encode() or b" ")[0] for column in columns], np.int64),
        positive=np.frombuffer(token or bytearray(1), np.uint8)[: len(token)],
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


def _opener(separator: str) -> Callable[[Source, Reading, Roles], tabular.Table]:
    def open_table(source: Source, reading: Reading, roles: Roles) -> tabular.Table:
        return tabular.open_text(source, reading.separator or separator, roles)

    return open_table


def _looks_like_csv(line: bytes) -> bool:
    words = line.split(b"#")[0].split()
    return b"\t" not in line and (b"," in line or b";" in line or (len(words) == 1 and not is_float(words[0])))


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
