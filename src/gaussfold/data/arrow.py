"""Rows of Parquet and Arrow files, batch by batch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gaussfold.data import tables
from gaussfold.data.chunks import Chunk
from gaussfold.data.columns import assemble, categories, name_features, numbers
from gaussfold.data.messages import BadRecord, BadRecordError, DataError
from gaussfold.data.reading import Column, Reading, Roles
from gaussfold.engine.text.csr_rows import EXPECTED_LABEL, EXPECTED_SMALLER, EXPECTED_WEIGHT, LARGEST

_BATCH = 8192


def read_columns(
    name: str, kind: str, reading: Reading, roles: Roles, keep_names: bool, max_bad: int = 0, bad_left: int = 0
) -> Iterator[tuple[Reading, Chunk]]:
    """Chunks of a Parquet or Arrow file, each with the reading that the first batch completed.

    ``bad_left`` of the ``max_bad`` bad records allowed in all inputs may still come.
    """
    schema, batches = open_batches(name, kind)
    names = [str(field.name) for field in schema]
    if reading.columns is None:
        columns = tables.assign(names, [is_number(field.type) for field in schema], roles, name)
        reading = dataclasses.replace(reading, columns=columns)
    else:
        columns = tables.match(reading.columns, names, name)
    seen: set[int] = set()
    row = 1
    for batch in batches:
        bad = find_bad(batch, columns, reading, name, row)
        end = bad[bad_left].line - row if len(bad) > bad_left else batch.num_rows
        skipped = bad[:bad_left]
        chunk = _chunk(batch.slice(0, end), columns, reading, name, row, skipped, keep_names, seen)
        bad_left -= len(skipped)
        row += batch.num_rows
        yield reading, chunk
        if end < batch.num_rows:
            raise BadRecordError(bad[len(skipped)], max_bad)


def open_batches(name: str, kind: str) -> tuple[Any, Iterator[Any]]:
    """Schema and record batches of a file."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        msg = f"{name}: reading {kind} needs pyarrow; pip install 'gaussfold[arrow]'"
        raise DataError(msg) from error
    try:
        if kind == "parquet":
            file = pq.ParquetFile(name)
            return file.schema_arrow, file.iter_batches(batch_size=_BATCH)
        source = pa.memory_map(name)
        try:
            reader = pa.ipc.open_file(source)
            return reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            stream = pa.ipc.open_stream(pa.memory_map(name))
            return stream.schema, iter(stream)
    except (pa.ArrowInvalid, OSError) as error:
        msg = f"{name}: it cannot be read as {kind} ({error})"
        raise DataError(msg) from error


def is_number(kind: Any) -> bool:
    """Whether a column of this type holds numbers."""
    import pyarrow as pa

    return any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    )


def find_bad(batch: Any, columns: Sequence[Column], reading: Reading, source: str, row: int) -> list[BadRecord]:
    """Rows with a label, weight or number that cannot be learned, in order; one reason each."""
    found: dict[int, BadRecord] = {}
    for column, values in zip(columns, batch.columns, strict=True):
        if column.kind == "label" and reading.positive is None:
            expected, allowed = EXPECTED_LABEL, _ALLOWED[reading.labels]
        elif column.kind == "weight":
            expected, allowed = EXPECTED_WEIGHT, _is_weight
        elif column.kind == "number":
            expected, allowed = EXPECTED_SMALLER, _is_real
        else:
            continue
        numbers = _doubles(values, column.name, source)
        for k in np.flatnonzero(~allowed(numbers)).tolist():
            text = str(numbers[k]).encode()
            found.setdefault(k, BadRecord(source, row + k, expected, text, reading.labels, column.name))
    return [found[k] for k in sorted(found)]


def _is_real(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """NaN is a missing value, which is no error."""
    return np.asarray(np.isnan(values) | (np.abs(values) <= LARGEST))


def _is_weight(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.asarray((values >= 0.0) & (values <= LARGEST))


_ALLOWED: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "binary": lambda y: np.isnan(y) | np.isin(y, (-1.0, 0.0, 1.0)),
    "real": _is_real,
    "count": lambda y: np.isnan(y) | (_is_weight(y) & (np.floor(y) == y)),
}


def _chunk(
    batch: Any,
    columns: Sequence[Column],
    reading: Reading,
    source: str,
    row: int,
    bad: list[BadRecord],
    keep_names: bool,
    seen: set[int],
) -> Chunk:
    lines = np.arange(row, row + batch.num_rows, dtype=np.int32)
    if bad:
        good = ~np.isin(lines, [record.line for record in bad])
        batch, lines = batch.filter(good), lines[good]
    n = batch.num_rows
    label, weight = np.full(n, math.nan), np.ones(n)
    tags: list[str] | None = None
    features, texts = [], []
    for column, values in zip(columns, batch.columns, strict=True):
        if column.kind == "label":
            label = _labels(values, reading, column.name, source)
        elif column.kind == "weight":
            weight = _doubles(values, column.name, source)
        elif column.kind == "tag":
            tags = ["" if value is None else str(value) for value in values.to_pylist()]
        elif column.kind == "number":
            features.append(numbers(column, _doubles(values, column.name, source), source, row))
            texts.append(values if keep_names else None)
        elif column.kind == "category":
            features.append(categories(column, *_dictionary(values, column.name, source)))
            texts.append(values if keep_names else None)
    indptr, indices, data = assemble(features, n, reading)
    names = name_features(features, texts, reading, seen) if keep_names else []
    return Chunk(
        indptr, indices, data, label, weight, reading.width, source, lines, tags, names, bad=bad, n_bad=len(bad)
    )


def _doubles(values: Any, name: str, source: str) -> np.ndarray[Any, Any]:
    import pyarrow as pa

    try:
        return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = f"{source}: column {name!r} does not hold numbers ({error})"
        raise DataError(msg) from error


def _dictionary(values: Any, name: str, source: str) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Distinct texts and codes; missing is -1."""
    import pyarrow as pa

    try:
        if not pa.types.is_dictionary(values.type):
            values = values.cast(pa.string()).dictionary_encode()
        texts = [str(text) for text in values.dictionary.cast(pa.string()).to_pylist()]
        codes = values.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = f"{source}: column {name!r} of type {values.type} does not hold text or numbers"
        raise DataError(msg) from error
    return texts, np.asarray(codes, np.int64)


def _labels(values: Any, reading: Reading, name: str, source: str) -> np.ndarray[Any, Any]:
    if reading.positive is not None:
        texts, codes = _dictionary(values, name, source)
        hits = np.array([text == reading.positive for text in texts] + [False])
        return np.where(codes < 0, np.nan, hits[codes])
    label = _doubles(values, name, source)
    return np.where(label == -1.0, 0.0, label) if reading.labels == "binary" else label
