"""Tables as they are, for conversion: records of text from CSV and TSV, batches of columns from Parquet and Arrow."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from gaussfold.data import tables
from gaussfold.data.messages import BadRecord, BadRecordError, DataError
from gaussfold.data.reading import Column, Roles
from gaussfold.data.sources import Source
from gaussfold.engine.text.csr_rows import EXPECTED_COLUMNS, EXPECTED_VALUE

SEPARATORS = {"csv": ",", "tsv": "\t"}
_BATCH = 8192


@dataclass(frozen=True)
class TextTable:
    """Columns of a table of text, which of them hold numbers, and its records with their line numbers."""

    columns: tuple[Column, ...]
    numeric: tuple[bool, ...]
    records: Iterator[tuple[int, list[str]]]


class _Bytes(io.RawIOBase):
    """A `Source` as a file."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, view: Any) -> int:
        read, ended = 0, False
        while not read and not ended:
            read, ended = self._source.fill(memoryview(view))
        return read


def open_text(source: Source, separator: str, roles: Roles) -> TextTable:
    """Read the first records to learn the columns; the rest comes as it is asked for."""
    text = io.TextIOWrapper(io.BufferedReader(_Bytes(source)), encoding="utf-8-sig", errors="replace", newline="")
    reader = csv.reader(text, delimiter=separator)
    records = ((reader.line_num, record) for record in reader if record)
    with _naming(source.name):
        sample = list(itertools.islice(records, tables.SAMPLE + 1))
    columns, header = tables.describe([record for _, record in sample], roles, source.name)
    body = sample[1:] if header else sample
    numeric = tuple(
        column.kind == "number"
        or (column.kind in ("label", "weight") and tables.is_numeric([row[k] for _, row in body if k < len(row)]))
        for k, column in enumerate(columns)
    )
    return TextTable(columns, numeric, itertools.chain(body, records))


class Badness:
    """Counts bad records, and raises at one too many."""

    def __init__(self, allowed: int, tell: Callable[[BadRecord], None]) -> None:
        self._allowed, self._tell, self._count = allowed, tell, 0

    def add(self, record: BadRecord) -> None:
        """One more."""
        self._count += 1
        if self._count > self._allowed:
            raise BadRecordError(record, self._allowed)
        self._tell(record)


def good_records(table: TextTable, name: str, bad: Badness) -> Iterator[list[str]]:
    """Records with as many fields as there are columns."""
    for _, record in _whole_records(table, name, bad):
        yield record


def _whole_records(table: TextTable, name: str, bad: Badness) -> Iterator[tuple[int, list[str]]]:
    with _naming(name):
        for line, record in table.records:
            if len(record) == len(table.columns):
                yield line, record
            else:
                bad.add(BadRecord(name, line, EXPECTED_COLUMNS, b""))


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say of which input Python's csv module complains."""
    try:
        yield
    except csv.Error as error:
        msg = f"{name}: it is no table ({error}); is a quote never closed?"
        raise DataError(msg) from error


def typed_batches(table: TextTable, name: str, bad: Badness) -> Iterator[dict[str, list[Any]]]:
    """Columns of values, numbers as numbers (None where one is missing)."""
    batch: list[list[Any]] = []
    for line, record in _whole_records(table, name, bad):
        row: list[Any] = list(record)
        wrong = None
        for k, (column, numeric) in enumerate(zip(table.columns, table.numeric, strict=True)):
            if numeric:
                row[k] = _value(record[k])
                if row[k] is _WRONG and wrong is None:
                    wrong = BadRecord(name, line, EXPECTED_VALUE, record[k].encode(), column=column.name)
        if wrong is not None:
            bad.add(wrong)
            continue
        batch.append(row)
        if len(batch) == _BATCH:
            yield _columns(table, batch)
            batch = []
    yield _columns(table, batch)


_WRONG = object()


def _value(text: str) -> Any:
    if tables.is_missing(text):
        return None
    return float(text) if tables.is_number(text) else _WRONG


def _columns(table: TextTable, batch: list[list[Any]]) -> dict[str, list[Any]]:
    return {column.name: [row[k] for row in batch] for k, column in enumerate(table.columns)}
