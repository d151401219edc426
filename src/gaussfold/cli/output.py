"""Predictions, written as they come: CSV, JSON lines or Parquet."""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO, TypeAlias

import numpy as np

from gaussfold.cli.errors import CANNOT_WRITE, USAGE, Failure, close_output, fail
from gaussfold.cli.options import PREDICTION_FORMATS
from gaussfold.cli.targets import check_output

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Columns: TypeAlias = "dict[str, np.ndarray | list[str]]"
_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}


class Writer:
    """Writes predictions, columns of numbers (and tags), to a file or standard output.

    The file is begun with the first rows, or at the end if there are none: whoever is refused before has lost nothing.
    """

    def __init__(self, path: str, kind: str | None = None) -> None:
        self.kind = kind or _ENDINGS.get(Path(path).suffix.lower(), "csv")
        if self.kind not in PREDICTION_FORMATS:
            msg = f"output-format={self.kind!r}: allowed are {', '.join(PREDICTION_FORMATS)}"
            raise Failure(msg, USAGE)
        check_output(path)
        self._path = path
        self._header = True
        self._tagged: bool | None = None
        self._arrow = ArrowFile(path, self.kind) if self.kind == "parquet" else None
        self._text: TextIO | None = None
        self._stack = contextlib.ExitStack()

    def write_rows(self, columns: Columns, tags: list[str] | None) -> None:
        """Append rows; every call has the same columns; tags are a column if the first rows have any."""
        if self._tagged is None:
            self._tagged = bool(tags and any(tags))
        if self._tagged:
            columns = {**columns, "tag": tags or []}
        if self._arrow is not None:
            self._arrow.write(columns)
            return
        names, values = list(columns), [_plain(column) for column in columns.values()]
        rows = zip(*values, strict=True)
        text = _json_lines(names, rows) if self.kind == "jsonl" else self._csv_lines(names, rows)
        with naming_output(self._path):
            self._begun().write(text)

    def _begun(self) -> TextIO:
        if self._text is None:
            self._text = self._stack.enter_context(open_text(self._path))
        return self._text

    def _csv_lines(self, names: list[str], rows: Iterable[Sequence[float | str]]) -> str:
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        if self._header:
            table.writerow(names)
            self._header = False
        table.writerows(rows)
        return text.getvalue()

    def close(self) -> None:
        """Flush and close."""
        if self._arrow is not None:
            self._arrow.close()
            return
        with naming_output(self._path):
            self._begun()
            self._stack.close()

    def give_up(self) -> None:
        """Close what was begun, as far as that works; a file that was not begun stays as it was."""
        with contextlib.suppress(OSError, Failure):
            if self._arrow is not None:
                self._arrow.close(also_empty=False)
            self._stack.close()


class SideOutput:
    """Predictions beside something that matters more: trouble is told and remembered, and the work goes on.

    A pipe that nobody reads any more is left to the caller.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._writer: Writer | None = Writer(path)
        self.failed = False

    def write_rows(self, columns: Columns, tags: list[str] | None) -> None:
        """Append rows, if that still works."""
        if self._writer is not None:
            with self._telling():
                self._writer.write_rows(columns, tags)

    def close(self) -> None:
        """Flush and close."""
        if self._writer is not None:
            with self._telling():
                self._writer.close()

    def give_up(self) -> None:
        """Close what was begun; a file that was not stays as it was."""
        if self._writer is not None:
            self._writer.give_up()

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except Failure as error:
            fail(f"{error}; going on without it", 0)
            self._abandon()

    def _abandon(self) -> None:
        self.failed = True
        writer, self._writer = self._writer, None
        if self._path == "-":
            close_output()  # what waits in buffers would fail again
        if writer is not None:
            writer.give_up()


def _json_lines(names: list[str], rows: Iterable[Sequence[float | str]]) -> str:
    return "".join(f"{json.dumps(dict(zip(names, row, strict=True)))}\n" for row in rows)


class ArrowFile:
    """A Parquet or Arrow file, written batch by batch; the first one tells the columns' types."""

    def __init__(self, path: str, kind: str) -> None:
        if path == "-":
            msg = f"{kind.capitalize()} cannot be written to standard output; name a file"
            raise Failure(msg, USAGE)
        try:
            importlib.import_module("pyarrow")
        except ImportError as error:
            msg = f"writing {kind} needs pyarrow; pip install 'gaussfold[arrow]'"
            raise Failure(msg, USAGE) from error
        check_output(path)
        self._path, self._kind = path, kind
        self._writer: pq.ParquetWriter | pa.ipc.RecordBatchFileWriter | None = None

    def write(self, columns: Columns) -> None:
        """Append columns of values."""
        import pyarrow as pa

        self.write_batch(pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()}))

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append a batch of the same columns as the first, in types that can become the first's."""
        import pyarrow as pa

        with naming_output(self._path):
            if self._writer is None:
                self._schema = batch.schema
                if self._kind == "parquet":
                    import pyarrow.parquet as pq

                    self._writer = pq.ParquetWriter(self._path, self._schema)
                else:
                    self._writer = pa.ipc.new_file(self._path, self._schema)
            self._writer.write_table(pa.Table.from_batches([batch]).cast(self._schema))

    def close(self, also_empty: bool = True) -> None:
        """Write the end of the file; without any rows it is left empty, or as it was."""
        with naming_output(self._path):
            if self._writer is not None:
                self._writer.close()
            elif also_empty:
                Path(self._path).open("wb").close()


@contextlib.contextmanager
def naming_output(path: str) -> Iterator[None]:
    """Say which output the system complains of; a pipe that nobody reads any more is no complaint."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "<stdout>" if path == "-" else path
        msg = f"{name}: cannot be written ({error.strerror or error})"
        raise Failure(msg, CANNOT_WRITE) from error


@contextlib.contextmanager
def open_text(path: str) -> Iterator[TextIO]:
    """Open a file of text for writing, or standard output with "-"."""
    with naming_output(path):
        if path == "-":
            file = standard_output()
            yield file
            file.flush()
        else:
            with open(path, "w", encoding="utf-8", newline="") as file:
                yield file


def standard_output() -> TextIO:
    """Return standard output with a buffer of its own.

    With PYTHONUNBUFFERED Python's own one forgets what a pipe did not take at once.
    """
    try:
        return open(sys.stdout.fileno(), "w", encoding="utf-8", newline="", closefd=False)
    except (OSError, ValueError):  # replaced by something that is no file
        return sys.stdout


def _plain(column: np.ndarray | list[str]) -> list[float] | list[str]:
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return [float(f"{value:.9g}") for value in column.tolist()]
    return list(column)
