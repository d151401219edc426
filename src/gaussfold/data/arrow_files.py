"""Parquet and Arrow files, opened with suspicion: what they hold is checked in full before anybody looks at it.

Arrow reads a file's own word for lengths and places. Files are therefore read, not mapped (a file that is cut would end
the process), every batch is validated before use (texts that point elsewhere, codes without a text, texts that are no
text), and whatever Arrow raises becomes one error with the file and the place.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gaussfold.data.messages import BrokenInputError, DataError
from gaussfold.data.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ROWS, DECODED = 16384, 65536
"""Rows of a batch as it is handed on, and as Parquet is decoded: many at a time are quicker, few stay in the caches."""
_ROWS_PER_BYTE = 64
_FILE_MAGIC = b"ARROW1"
_STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"


class TypedTable:
    """An open file: its schema, and its rows in valid batches of a few thousand."""

    def __init__(self, source: Source, kind: str, *, coded: bool = False) -> None:
        """``coded``: columns of text come as codes and distinct texts, as Parquet has most of them."""
        _need_pyarrow(source.name, kind)
        self._source, self._kind = source, kind
        self._place = "it"
        with self.trouble():
            self._stream = _file_of(source.path) if kind == "arrow" else None
            self._file = _open(source, self._stream, coded=coded)
            self.schema: pa.Schema = self._file.schema_arrow if kind == "parquet" else self._file.schema
            for field in self.schema:
                str(field.name), str(field.type)  # texts that are no text are found here

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in batches that are valid; raises at the first that is not, or if the end is missing."""
        found = self._of_parquet() if self._kind == "parquet" else self._of_arrow()
        while True:
            with self.trouble():
                batch = next(found, None)
                if batch is None:
                    break
                _refuse_nothing_repeated(batch)
                batch.validate(full=True)
            for start in range(0, batch.num_rows, ROWS):
                yield batch.slice(start, ROWS)
        self._source.check_unchanged()

    def group_rows(self) -> list[int]:
        """Rows of each group, of a Parquet file."""
        with self.trouble():
            about = self._file.metadata
            return [int(about.row_group(k).num_rows) for k in range(about.num_row_groups)]

    def _of_parquet(self) -> Iterator[pa.RecordBatch]:
        group = self._source.group
        for k in range(self._file.num_row_groups) if group is None else (group,):
            self._place = f"row group {k}"
            yield from self._file.iter_batches(batch_size=DECODED, row_groups=[k])

    def _of_arrow(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        if isinstance(self._file, pa.ipc.RecordBatchFileReader):
            for k in range(self._file.num_record_batches):
                self._place = f"record batch {k}"
                yield self._file.get_batch(k)
            return
        for k in range(1 << 62):
            self._place = f"record batch {k}"
            try:
                yield self._file.read_next_batch()
            except StopIteration:
                break
        self._place = "its end"
        if self._stream is not None and self._stream.tell() != self._stream.size():
            msg = f"there are bytes after byte {self._stream.tell()}, where the stream ends"
            raise ValueError(msg)

    @contextlib.contextmanager
    def trouble(self) -> Iterator[None]:
        """Turn whatever Arrow complains about into one error, with the file and the place."""
        try:
            yield
        except DataError:
            raise
        except Exception as error:  # Arrow raises its own, OSError, IndexError, UnicodeDecodeError, SystemError, ...
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            self._source.check_unchanged()
            what = f"{self._place} cannot be read as {self._kind} ({reason})"
            msg = f"{self._source.name}: {what}; the file is damaged or of another kind, copy or make it again"
            raise BrokenInputError(msg) from error


def _need_pyarrow(name: str, kind: str) -> None:
    try:
        importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        msg = f"{name}: reading {kind} needs pyarrow; pip install 'gaussfold[arrow]'"
        raise DataError(msg) from error


def _file_of(name: str) -> pa.OSFile:
    import pyarrow as pa

    return pa.OSFile(name)


def _open(
    source: Source, file: pa.OSFile | None, *, coded: bool
) -> pq.ParquetFile | pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    """Open a Parquet file by its name, or an Arrow file or stream that is open already."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if file is None:
        texts = _texts(pq.read_schema(source.path)) if coded else []
        return pq.ParquetFile(source.path, memory_map=False, page_checksum_verification=True, read_dictionary=texts)
    if source.peek(len(_FILE_MAGIC)) == _FILE_MAGIC:
        return pa.ipc.open_file(file)
    file.seek(max(0, file.size() - len(_STREAM_END)))
    if file.read(len(_STREAM_END)) != _STREAM_END:
        msg = "the mark at the end of the stream is missing; was it cut?"
        raise EOFError(msg)
    file.seek(0)
    return pa.ipc.open_stream(file)


def _texts(schema: pa.Schema) -> list[str]:
    """Columns of text of a schema."""
    import pyarrow as pa

    return [str(field.name) for field in schema if pa.types.is_string(field.type)]


def _refuse_nothing_repeated(batch: pa.RecordBatch) -> None:
    """Columns without values need no memory, so a damaged length would keep us busy for years."""
    most = _ROWS_PER_BYTE * max(batch.get_total_buffer_size(), 1 << 14)
    if batch.num_rows > most:
        msg = f"it says that it has {batch.num_rows} rows, and holds next to nothing"
        raise ValueError(msg)
