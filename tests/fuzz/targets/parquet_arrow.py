"""Parquet and Arrow files, whole and damaged, beside Python objects of the same tables."""

from __future__ import annotations

import io
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gaussfold.data.reading import Reading
from tests.fuzz.reading import Outcome, assert_rows, damaged, outcome
from tests.reference import parsers

_TEXTS = ("red", "green", "", "é", "日本", "a,b", "NA", "7", None)
_LABELS = (pa.int8(), pa.int64(), pa.float64(), pa.float32())
_KINDS = ("double", "float", "int", "bool", "text", "large", "dictionary", "null", "nested")


def _column(rng: np.random.Generator, kind: str, n: int) -> pa.Array:
    missing = rng.random(n) < 0.1
    if kind == "bool":
        return pa.array(rng.random(n) < 0.5, mask=missing)
    if kind == "int":
        types = (pa.int8(), pa.uint16(), pa.int32(), pa.int64())
        return pa.array(rng.integers(0, 100, n), types[int(rng.integers(4))], mask=missing)
    if kind in ("double", "float"):
        values = np.round(rng.normal(size=n) * 10.0 ** rng.integers(-3, 5), 3)
        return pa.array(values, pa.float64() if kind == "double" else pa.float32(), mask=missing)
    if kind == "null":
        return pa.nulls(n)
    if kind == "nested":
        return pa.array([[float(k)] * (k % 3) for k in range(n)], pa.list_(pa.float64()))
    texts = [_TEXTS[int(k)] for k in rng.integers(0, len(_TEXTS), n)]
    if kind == "dictionary":
        return pa.array(texts, pa.string()).dictionary_encode()
    return pa.array(texts, pa.string() if kind == "text" else pa.large_string())


def _table(rng: np.random.Generator) -> pa.Table:
    n = int(rng.integers(0, 40))
    label = pa.array(rng.integers(-1, 2, n), _LABELS[int(rng.integers(4))], mask=rng.random(n) < 0.05)
    columns = {"label": label}
    for k in range(rng.integers(0, 5)):
        kind = _KINDS[int(rng.integers(len(_KINDS) - (rng.random() < 0.9)))]
        columns[f"{kind}{k}"] = _column(rng, kind, n)
    return pa.table(columns)


def _bytes(rng: np.random.Generator, table: pa.Table, kind: str) -> bytes:
    sink = io.BytesIO()
    rows = int(rng.integers(1, 30))
    if kind == "parquet":
        packing = ("none", "snappy", "zstd", "gzip")[int(rng.integers(4))]
        pq.write_table(
            table, sink, compression=packing, row_group_size=rows, use_dictionary=bool(rng.random() < 0.5),
            data_page_version=("1.0", "2.0")[int(rng.integers(2))], write_page_checksum=bool(rng.random() < 0.3),
        )  # fmt: skip
        return sink.getvalue()
    packing = (None, "lz4", "zstd")[int(rng.integers(3))]
    options = pa.ipc.IpcWriteOptions(compression=packing)
    new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    with new(sink, table.schema, options=options) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=rows)
    return sink.getvalue()


def _number(value: object) -> float:
    return math.nan if value is None else float(value)


def _twin(table: pa.Table, bits: int) -> list[tuple[float, float, dict[int, float], int]]:
    """Rows by Python, value by value."""
    rows = []
    for at, record in enumerate(table.to_pylist(), 1):
        groups = []
        label = _number(record["label"])
        for name, value in record.items():
            seed = parsers.murmur(name)
            kind = table.schema.field(name).type
            if name == "label":
                continue
            if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
                missing = math.isnan(_number(value))
                feature = (parsers.murmur("", seed), 1.0) if missing else (seed, _number(value))
            else:
                feature = (parsers.murmur("" if value is None else value, seed), 1.0)
            groups.append((name, seed, [feature]))
        rows.append((0.0 if label == -1.0 else label, 1.0, parsers.close(groups, bits), at))
    return rows


def case(rng: np.random.Generator, folder: Path) -> None:
    """A table written in one of the ways that there are; read as it is, or after damage."""
    kind = ("parquet", "arrow", "stream")[int(rng.integers(3))]
    table, reading = _table(rng), Reading(bits=9)
    path = folder / ("input.parquet" if kind == "parquet" else "input.arrow")
    raw = _bytes(rng, table, kind)
    if rng.random() < 0.2:
        path.write_bytes(raw)
        _check_whole(outcome(path, reading, keep_names=bool(rng.random() < 0.3)), table, reading.bits)
        return
    path.write_bytes(damaged(rng, raw))
    found = outcome(path, reading, max_bad=int(rng.integers(0, 2)) * 1000)
    assert found == outcome(path, reading, max_bad=1000) or found.error is not None


def _check_whole(found: Outcome, table: pa.Table, bits: int) -> None:
    if any(name.startswith("nested") for name in table.column_names) and table.num_rows:
        assert found.error is not None
        return
    assert found.error is None, found.error
    assert_rows(found, _twin(table, bits))
