"""Tables as they are, for conversion: what a format with columns gives, and records of text from CSV and TSV."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gaussfold.data import tables
from gaussfold.data.messages import BadRecord, BadRecordError, DataError
from gaussfold.data.reading import Column, Roles
from gaussfold.data.sources import Source
from gaussfold.engine.text import expected

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import WriteableBuffer

_BATCH = 8192


class Table(Protocol):
    """An open table: the columns that are not ignored, and their values once, as text or typed."""

    @property
    def names(self) -> list[str]:
        """The columns."""
        ...

    def records(self, names: list[str], bad: Badness) -> Iterator[Sequence[str]]:
        """Rows of text, their columns in this order."""
        ...

    def batches(self, names: list[str], bad: Badness) -> Iterator[pa.RecordBatch]:
        """Arrow batches of these columns."""
        ...


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


class _Bytes(io.RawIOBase):
    """A `Source` as a file."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, view: WriteableBuffer) -> int:
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
    return TextTable(source.name, columns, numeric, itertools.chain(body, records))


@dataclass(frozen=True)
class TextTable:
    """Columns of a table of text, which of them hold numbers, and its records with their line numbers."""

    source: str
    columns: tuple[Column, ...]
    numeric: tuple[bool, ...]
    lines: Iterator[tuple[int, list[str]]]

    @property
    def names(self) -> list[str]:
        """The columns that are not ignored."""
        return [column.name for column in self.columns if column.kind != "ignored"]

    def records(self, names: list[str], bad: Badness) -> Iterator[list[str]]:
        """Records with as many fields as there are columns."""
        places = self._places(names)
        return ([record[k] for k in places] for _, record in self._whole_records(bad))

    def batches(self, names: list[str], bad: Badness) -> Iterator[pa.RecordBatch]:
        """Columns of values, numbers as numbers (None where one is missing)."""
        import pyarrow as pa

        places = self._places(names)
        for rows in self._typed_rows(bad):
            columns = {
                name: pa.array([row[k] for row in rows], type=pa.float64() if self.numeric[k] else pa.string())
                for name, k in zip(names, places, strict=True)
            }
            yield pa.RecordBatch.from_pydict(columns)

    def _places(self, names: list[str]) -> list[int]:
        own = [column.name for column in self.columns]
        return [own.index(name) for name in names]

    def _whole_records(self, bad: Badness) -> Iterator[tuple[int, list[str]]]:
        with _naming(self.source):
            for line, record in self.lines:
                if len(record) == len(self.columns):
                    yield line, record
                else:
                    bad.add(BadRecord(self.source, line, expected.COLUMNS, b""))

    def _typed_rows(self, bad: Badness) -> Iterator[list[list[str | float | None]]]:
        """Rows with their numbers read, so many at a time; at the end the rest, also if there is none."""
        batch: list[list[str | float | None]] = []
        for line, record in self._whole_records(bad):
            row: list[str | float | None] = list(record)
            wrong = None
            for k in (k for k, numeric in enumerate(self.numeric) if numeric):
                row[k], ok = _value(record[k])
                if not ok and wrong is None:
                    name = self.columns[k].name
                    wrong = BadRecord(self.source, line, expected.VALUE, record[k].encode(), column=name)
            if wrong is not None:
                bad.add(wrong)
                continue
            batch.append(row)
            if len(batch) == _BATCH:
                yield batch
                batch = []
        yield batch


def _value(text: str) -> tuple[float | None, bool]:
    """Return the number that a text is, None for a missing one; and whether it is either."""
    if tables.is_missing(text):
        return None, True
    return (float(text), True) if tables.is_number(text) else (None, False)


@contextlib.contextmanager
def _naming(name: str) -> Iterator[None]:
    """Say of which input Python's csv module complains."""
    try:
        yield
    except csv.Error as error:
        msg = f"{name}: it is no table ({error}); is a quote never closed?"
        raise DataError(msg) from error
