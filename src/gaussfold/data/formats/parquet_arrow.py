"""Parquet and Arrow files, batch by batch: tables whose columns have types."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gaussfold.data import tables, tabular
from gaussfold.data.arrow_files import TypedTable
from gaussfold.data.chunks import Chunk
from gaussfold.data.classes import places
from gaussfold.data.columns import CodedTexts, Feature, Room, assemble, name_features, numbers
from gaussfold.data.formats.base import Format
from gaussfold.data.intake import Intake
from gaussfold.data.messages import BadRecord, BadRecordError, DataError, explained_by
from gaussfold.data.plain_numbers import number_text
from gaussfold.data.reading import Column, Reading, Roles
from gaussfold.data.refusals import refuse_mistyped, refuse_other_roles
from gaussfold.data.sources import Source
from gaussfold.engine.text import expected
from gaussfold.engine.text.csr_rows import LARGEST

if TYPE_CHECKING:
    import pyarrow as pa


class _Place(NamedTuple):
    """What a batch's columns mean, where it stands in its file, and what is kept from batch to batch."""

    columns: Sequence[Column]
    reading: Reading
    source: str
    row: int
    texts: CodedTexts
    room: Room


def _reader(kind: str) -> Callable[[Source, Intake], Iterator[Chunk]]:
    def read(source: Source, intake: Intake) -> Iterator[Chunk]:
        return _read(TypedTable(source, kind, coded=True), source.name, intake)

    return read


def _read(table: TypedTable, name: str, intake: Intake) -> Iterator[Chunk]:
    columns = _columns(table, name, intake)
    seen: set[int] = set()
    texts, room = CodedTexts(), Room(intake.ring)
    row = 1
    for batch in table.batches():
        if row == 1:
            _refuse_mistyped(batch.slice(0, tables.SAMPLE), columns, intake.reading, name)
        place = _Place(columns, intake.reading, name, row, texts, room)
        with table.trouble():
            bad = _find_bad(batch, place)
            bad_left = intake.max_bad - intake.n_bad
            end = bad[bad_left].line - row if len(bad) > bad_left else batch.num_rows
            skipped = bad[:bad_left]
            chunk = _chunk(batch.slice(0, end), place, skipped, seen if intake.keep_names else None)
        intake.n_bad += len(skipped)
        row += batch.num_rows
        yield chunk
        if end < batch.num_rows:
            raise BadRecordError(bad[len(skipped)], intake.max_bad)


def _refuse_mistyped(batch: pa.RecordBatch, columns: Sequence[Column], reading: Reading, source: str) -> None:
    for column, values in zip(columns, batch.columns, strict=True):
        if column.kind == "label" and reading.positive is not None:
            texts = _dictionary(values.dictionary_decode() if _is_coded(values) else values, column.name, source)[0]
            refuse_mistyped(texts.to_pylist(), reading.positive, source)


def _columns(table: TypedTable, name: str, intake: Intake) -> tuple[Column, ...]:
    """What the columns mean: as known, or as their types say, which is then known."""
    names = [str(field.name) for field in table.schema]
    if intake.reading.columns is not None:
        refuse_other_roles(intake.reading.columns, intake.roles, name)
        return tables.match(intake.reading.columns, names, name, intake.roles.tag)
    if not names:
        msg = f"{name}: it has no columns; a table needs at least one"
        raise DataError(msg)
    columns = tables.assign(names, [_holds_numbers(field.type) for field in table.schema], intake.roles, name)
    intake.reading = dataclasses.replace(intake.reading, columns=columns)
    return columns


def _holds_numbers(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers."""
    import pyarrow as pa

    return any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    )


def _find_bad(batch: pa.RecordBatch, place: _Place) -> list[BadRecord]:
    """Rows with a label, weight or number that cannot be learned, in order; one reason each."""
    columns, reading, source, row, _, _ = place
    found: dict[int, BadRecord] = {}
    for column, values in zip(columns, batch.columns, strict=True):
        if column.kind == "label" and reading.classes:
            found |= _unknown_classes(column, values, place)
            continue
        if column.kind == "label" and reading.positive is None:
            wanted, allowed = expected.LABEL, _ALLOWED[reading.labels]
        elif column.kind == "weight":
            wanted, allowed = expected.WEIGHT, _is_weight
        elif column.kind == "number":
            wanted, allowed = expected.SMALLER, _is_real
        else:
            continue
        found_here = _doubles(values, column.name, source, column.kind)
        for k in np.flatnonzero(~allowed(found_here)).tolist():
            text = str(found_here[k]).encode()
            found.setdefault(k, BadRecord(source, row + k, wanted, text, reading.labels, column.name))
    return [found[k] for k in sorted(found)]


def _unknown_classes(column: Column, values: pa.Array, place: _Place) -> dict[int, BadRecord]:
    """Rows whose label is none of the classes."""
    _, reading, source, row, _, _ = place
    texts, codes = _dictionary(values, column.name, source)
    unknown = np.append(places(texts.to_pylist(), reading.classes) < 0, False)[codes]
    return {
        k: BadRecord(source, row + k, expected.CLASS, str(texts[int(codes[k])]).encode(), reading.labels, column.name)
        for k in np.flatnonzero(unknown).tolist()
    }


def _is_real(values: np.ndarray) -> np.ndarray:
    """NaN is a missing value, which is no error."""
    return np.asarray(np.isnan(values) | (np.abs(values) <= LARGEST))


def _is_weight(values: np.ndarray) -> np.ndarray:
    return np.asarray((values >= 0.0) & (values <= LARGEST))


_ALLOWED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "binary": lambda y: np.isnan(y) | np.isin(y, (-1.0, 0.0, 1.0)),
    "real": _is_real,
    "count": lambda y: np.isnan(y) | (_is_weight(y) & (np.floor(y) == y)),
}


def _chunk(batch: pa.RecordBatch, place: _Place, bad: list[BadRecord], seen: set[int] | None) -> Chunk:
    """Rows of a batch without the bad ones; ``seen`` are the slots named so far, None if names are not kept."""
    columns, reading, _, row, _, room = place
    lines = np.arange(row, row + batch.num_rows)
    if bad:
        good = ~np.isin(lines, [record.line for record in bad])
        batch, lines = batch.filter(good), lines[good]
    cells = list(zip(columns, batch.columns, strict=True))
    used = [(column, values) for column, values in cells if column.kind in ("number", "category")]
    features = [_feature(column, values, place) for column, values in used]
    indptr, indices, data = assemble(features, batch.num_rows, reading, room)
    names = [] if seen is None else name_features(features, [values for _, values in used], reading, seen)
    by_kind = {column.kind: (values, column.name) for column, values in cells}
    label, weight, tags = _single(by_kind, batch.num_rows, place)
    return Chunk(
        indptr, indices, data, label, weight, reading.width, place.source, lines, tags, names, bad=bad, n_bad=len(bad)
    )


def _single(
    cells: dict[str, tuple[pa.Array, str]], n: int, place: _Place
) -> tuple[np.ndarray, np.ndarray, list[str] | None]:
    """Label, weight and tags, from columns (values and name, by what they mean), or what goes without them."""
    label, weight, tags = np.full(n, math.nan), np.ones(n), None
    if "label" in cells:
        label = _labels(*cells["label"], place.reading, place.source)
    if "weight" in cells:
        weight = _doubles(*cells["weight"], place.source)
    if "tag" in cells:
        tags = ["" if value is None else str(value) for value in cells["tag"][0].to_pylist()]
    return label, weight, tags


def _feature(column: Column, values: pa.Array, place: _Place) -> Feature:
    if column.kind == "number":
        return numbers(column, _doubles(values, column.name, place.source), place.source, place.row)
    return place.texts.feature(column, *_dictionary(values, column.name, place.source))


def _doubles(values: pa.Array, name: str, source: str, kind: str = "number") -> np.ndarray:
    import pyarrow as pa

    if _is_coded(values):
        values = values.dictionary_decode()
    try:
        return np.asarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        remedy = f"; {explained_by(b'text', 'real')}" if kind == "label" else ""
        msg = f"{source}: column {name!r} does not hold numbers ({error}){remedy}"
        raise DataError(msg) from error


def _is_coded(values: pa.Array) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_dictionary(values.type))


def _dictionary(values: pa.Array, name: str, source: str) -> tuple[pa.StringArray, np.ndarray]:
    """Texts, none of them missing, and codes: which of them a row has, -1 for none."""
    import pyarrow as pa

    try:
        if not _is_coded(values):
            values = values.cast(pa.string()).dictionary_encode()
        texts = values.dictionary.cast(pa.string())
        codes = np.asarray(values.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        msg = f"{source}: column {name!r} of type {values.type} does not hold text or numbers"
        raise DataError(msg) from error
    if texts.null_count:
        missing = np.append(texts.is_null().to_numpy(zero_copy_only=False), False)
        codes = np.where(missing[codes], -1, codes)
        texts = texts.fill_null("")
    return texts, codes


def _labels(values: pa.Array, name: str, reading: Reading, source: str) -> np.ndarray:
    if reading.positive is not None:
        texts, codes = _dictionary(values, name, source)
        hits = np.array([text == reading.positive for text in texts.to_pylist()] + [False])
        return np.where(codes < 0, np.nan, hits[codes])
    if reading.classes:
        texts, codes = _dictionary(values, name, source)
        return np.asarray(np.append(places(texts.to_pylist(), reading.classes).astype(float), np.nan)[codes])
    label = _doubles(values, name, source, "label")
    return np.where(label == -1.0, 0.0, label) if reading.labels == "binary" else label


class _ColumnTable:
    """The columns of a file, as text or as they are."""

    def __init__(self, source: Source, kind: str, roles: Roles) -> None:
        self._table = TypedTable(source, kind)
        names = [str(field.name) for field in self._table.schema]
        columns = tables.assign(names, [False] * len(names), roles, source.name)
        self.names = [column.name for column in columns if column.kind != "ignored"]

    def records(self, names: list[str], bad: tabular.Badness) -> Iterator[tuple[str, ...]]:
        for batch in self.batches(names, bad):
            with self._table.trouble():
                rows = list(zip(*(map(_text, column.to_pylist()) for column in batch.columns), strict=True))
            yield from rows

    def batches(self, names: list[str], _bad: tabular.Badness) -> Iterator[pa.RecordBatch]:
        return (batch.select(names) for batch in self._table.batches())


def _opener(kind: str) -> Callable[[Source, Reading, Roles], tabular.Table]:
    def open_table(source: Source, _reading: Reading, roles: Roles) -> tabular.Table:
        return _ColumnTable(source, kind, roles)

    return open_table


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return "" if value != value else number_text(value)
    return str(value)


FORMATS = (
    Format(
        name="parquet",
        read=_reader("parquet"),
        endings=(".parquet", ".pq"),
        magic=(b"PAR1",),
        from_pipe=False,
        open_table=_opener("parquet"),
    ),
    Format(
        name="arrow",
        read=_reader("arrow"),
        endings=(".arrow", ".feather", ".ipc"),
        magic=(b"ARROW1", b"\xff\xff\xff\xff"),
        from_pipe=False,
        open_table=_opener("arrow"),
    ),
)
