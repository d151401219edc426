"""Rows from columns: Parquet and Arrow files batch by batch, and dataframes.

A number is one feature, named by its column; a category is the feature (column, text); a missing number is the feature
(column, ""). The hashes are those of the CSV parser, so a model trained on one reads the other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from gaussfold.data import tables
from gaussfold.data.chunks import Chunk
from gaussfold.data.interactions import compile_interactions
from gaussfold.data.messages import DataError
from gaussfold.data.reading import Column, Reading, Roles
from gaussfold.data.strings import murmur_all, murmur_of
from gaussfold.engine.pairs import interact_table, merge_rows

_BATCH = 8192


class Feature(NamedTuple):
    """One column as features: hash and value per row; NaN values are missing numbers."""

    column: Column
    hashes: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]


def numbers(column: Column, values: np.ndarray[Any, Any], source: str, first_row: int = 0) -> Feature:
    """Features of a numeric column."""
    values = values.astype(np.float64)
    missing = np.isnan(values)
    bad = ~missing & ~(np.abs(values) <= 1e30)
    if bad.any():
        row = int(np.argmax(bad))
        place = f"{source}: column {column.name!r}, row {first_row + row}"
        msg = f"{place}: {values[row]}; numbers between -1e30 and 1e30 are allowed"
        raise DataError(msg)
    seed = murmur_of(column.name)
    hashes = np.where(missing, np.uint32(murmur_of("", seed)), np.uint32(seed))
    return Feature(column, hashes, np.where(missing, 1.0, values))


def categories(column: Column, texts: Sequence[str], codes: np.ndarray[Any, Any]) -> Feature:
    """Features of a categorical column: its distinct texts, and which one each row has (-1: none)."""
    hashes = murmur_all([*texts, ""], murmur_of(column.name))
    return Feature(column, hashes[codes], np.ones(len(codes)))


def assemble(
    features: Sequence[Feature], n_rows: int, reading: Reading
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """CSR arrays of the features side by side, with interactions and constant, duplicates added up."""
    hashes = np.empty((n_rows, len(features)), np.uint32)
    values = np.empty((n_rows, len(features)))
    for k, feature in enumerate(features):
        hashes[:, k], values[:, k] = feature.hashes, feature.values
    names = [feature.column.name for feature in features]
    seeds = np.array([murmur_of(name) for name in names], np.int64)
    initials = np.array([(name.encode() or b" ")[0] for name in names], np.int64)
    pairs = interact_table(compile_interactions(reading.interact), initials, seeds)
    mask = np.uint32((1 << reading.bits) - 1)
    constant = 1 << reading.bits if reading.constant else -1
    return merge_rows(hashes, values, pairs, mask, constant)


def read_columns(
    name: str, kind: str, reading: Reading, roles: Roles, keep_names: bool
) -> Iterator[tuple[Reading, Chunk]]:
    """Chunks of a Parquet or Arrow file, each with the reading that the first batch completed."""
    schema, batches = _open(name, kind)
    names = [str(field.name) for field in schema]
    if reading.columns is None:
        columns = tables.assign(names, [_is_number(field.type) for field in schema], roles, name)
        reading = dataclasses.replace(reading, columns=columns)
    else:
        columns = tables.match(reading.columns, names, name)
    seen: set[int] = set()
    row = 1
    for batch in batches:
        chunk = _chunk(batch, columns, reading, name, row)
        if keep_names:
            chunk = dataclasses.replace(chunk, names=_names(batch, columns, reading, seen))
        row += len(chunk)
        yield reading, chunk


def _open(name: str, kind: str) -> tuple[Any, Iterator[Any]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        msg = f"{name}: reading {kind} needs pyarrow; pip install 'gaussfold[arrow]'"
        raise DataError(msg) from error
    if name == "-":
        msg = f"<stdin>: {kind} cannot be read from a pipe; give the file's path"
        raise DataError(msg)
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


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    )


def _chunk(batch: Any, columns: Sequence[Column], reading: Reading, source: str, row: int) -> Chunk:
    n = batch.num_rows
    label, weight = np.full(n, math.nan), np.ones(n)
    tags: list[str] | None = None
    features = []
    for column, values in zip(columns, batch.columns, strict=True):
        if column.kind == "label":
            label = _labels(values, reading, column.name, source, row)
        elif column.kind == "weight":
            weight = _doubles(values, column.name, source)
            if not ((weight >= 0) & (weight <= 1e30)).all():
                msg = f"{source}: column {column.name!r}: expected importance weights >= 0"
                raise DataError(msg)
        elif column.kind == "tag":
            tags = ["" if value is None else str(value) for value in values.to_pylist()]
        elif column.kind == "number":
            features.append(numbers(column, _doubles(values, column.name, source), source, row))
        elif column.kind == "category":
            features.append(categories(column, *_dictionary(values, column.name, source)))
    indptr, indices, data = assemble(features, n, reading)
    lines = np.arange(row, row + n, dtype=np.int32)
    return Chunk(indptr, indices, data, label, weight, reading.width, source, lines, tags)


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


def _labels(values: Any, reading: Reading, name: str, source: str, row: int) -> np.ndarray[Any, Any]:
    if reading.positive is not None:
        texts, codes = _dictionary(values, name, source)
        hits = np.array([text == reading.positive for text in texts] + [False])
        return np.where(codes < 0, np.nan, hits[codes])
    label = _doubles(values, name, source)
    allowed = np.isnan(label) | (np.isin(label, (-1.0, 0.0, 1.0)) if reading.binary else np.abs(label) <= 1e30)
    if not allowed.all():
        bad = int(np.argmin(allowed))
        wanted = "-1, 0 or 1" if reading.binary else "a finite number"
        msg = f"{source}: column {name!r}, row {row + bad}: expected a label of {wanted}, found {label[bad]}"
        raise DataError(msg)
    return np.where(label == -1.0, 0.0, label) if reading.binary else label


def _names(batch: Any, columns: Sequence[Column], reading: Reading, seen: set[int]) -> list[tuple[int, str]]:
    """Names of slots not named before; pairs are named by what was multiplied."""
    mask = (1 << reading.bits) - 1
    found: dict[int, str] = {}
    for column, values in zip(columns, batch.columns, strict=True):
        seed = murmur_of(column.name)
        if column.kind == "number":
            found.setdefault(seed & mask, column.name)
            found.setdefault(murmur_of("", seed) & mask, f"{column.name}=")
        elif column.kind == "category":
            texts, _ = _dictionary(values, column.name, "")
            for text, h in zip([*texts, ""], murmur_all([*texts, ""], seed).tolist(), strict=True):
                found.setdefault(h & mask, f"{column.name}={text}")
    new = [(slot, name) for slot, name in found.items() if slot not in seen]
    seen.update(slot for slot, _ in new)
    return new
