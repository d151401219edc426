"""Predictions, written as they come: CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from gaussfold.cli.errors import CANNOT_WRITE, USAGE, Failure

FORMATS = ("csv", "jsonl", "parquet")
_ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet"}


class Writer:
    """Writes columns of numbers (and tags) to a file or standard output."""

    def __init__(self, path: str, kind: str | None = None) -> None:
        self.kind = kind or _ENDINGS.get(Path(path).suffix.lower(), "csv")
        if self.kind not in FORMATS:
            msg = f"output-format={self.kind!r}: allowed are {', '.join(FORMATS)}"
            raise Failure(msg, USAGE)
        self._path, self._header = path, True
        self._parquet: Any = None
        self._file: TextIO | None = None
        if self.kind == "parquet":
            if path == "-":
                msg = "Parquet cannot be written to standard output; give a file with -p"
                raise Failure(msg, USAGE)
            try:
                import pyarrow  # noqa: F401
            except ImportError as error:
                msg = "writing Parquet needs pyarrow; pip install 'gaussfold[arrow]'"
                raise Failure(msg, USAGE) from error
        else:
            try:
                self._file = standard_output() if path == "-" else open(path, "w", encoding="utf-8", newline="")  # noqa: SIM115
            except OSError as error:
                msg = f"{path}: cannot be written ({error.strerror})"
                raise Failure(msg, CANNOT_WRITE) from error

    def write(self, columns: dict[str, Any]) -> None:
        """Append rows; every call has the same columns."""
        if self.kind == "parquet":
            self._write_parquet(columns)
            return
        assert self._file is not None
        names, values = list(columns), [_plain(column) for column in columns.values()]
        if self.kind == "jsonl":
            lines = [json.dumps(dict(zip(names, row, strict=True))) for row in zip(*values, strict=True)]
            self._file.write("".join(f"{line}\n" for line in lines))
            return
        text = io.StringIO()
        table = csv.writer(text, lineterminator="\n")
        if self._header:
            table.writerow(names)
            self._header = False
        table.writerows(zip(*values, strict=True))
        self._file.write(text.getvalue())

    def _write_parquet(self, columns: dict[str, Any]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if self._parquet is None:
            self._parquet = pq.ParquetWriter(self._path, table.schema)
        self._parquet.write_table(table)

    def close(self) -> None:
        """Flush and close."""
        if self._parquet is not None:
            self._parquet.close()
        elif self._file is not None and self._path == "-":
            self._file.flush()
        elif self._file is not None:
            self._file.close()


def standard_output() -> TextIO:
    """Return standard output with a buffer of its own.

    With PYTHONUNBUFFERED Python's own one forgets what a pipe did not take at once.
    """
    try:
        return open(sys.stdout.fileno(), "w", encoding="utf-8", newline="", closefd=False)
    except (OSError, ValueError):  # replaced by something that is no file
        return sys.stdout


def _plain(column: Any) -> list[Any]:
    if isinstance(column, np.ndarray) and column.dtype.kind == "f":
        return [float(f"{value:.9g}") for value in column.tolist()]
    return list(column)
