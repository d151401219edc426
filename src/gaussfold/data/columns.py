"""Rows from columns: of Parquet and Arrow files, and of dataframes.

A number is one feature, named by its column; a category is the feature (column, text); a missing number is the feature
(column, ""). The hashes are those of the CSV parser, so a model trained on one reads the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from gaussfold.data.interactions import compile_interactions
from gaussfold.data.messages import DataError
from gaussfold.data.naming import Named, pair_name
from gaussfold.data.reading import Column, Reading
from gaussfold.data.strings import murmur_all, murmur_of, murmur_texts
from gaussfold.engine.text.csr_rows import LARGEST
from gaussfold.engine.text.murmur import combine
from gaussfold.engine.text.pairs import interact_table, merge_rows

if TYPE_CHECKING:
    import pyarrow as pa


Arrays: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]
"""``indptr``, ``indices`` and ``data`` of rows."""


class Feature(NamedTuple):
    """One column as features: hash and value per row; NaN values are missing numbers."""

    column: Column
    hashes: np.ndarray
    values: np.ndarray


def numbers(column: Column, values: np.ndarray, source: str, first_row: int = 0) -> Feature:
    """Features of a numeric column."""
    values = values.astype(np.float64)
    missing = np.isnan(values)
    bad = ~missing & ~(np.abs(values) <= LARGEST)
    if bad.any():
        row = int(np.argmax(bad))
        place = f"{source}: column {column.name!r}, row {first_row + row}"
        msg = f"{place}: {values[row]}; numbers between -1e30 and 1e30 are allowed"
        raise DataError(msg)
    seed = murmur_of(column.name)
    hashes = np.where(missing, np.uint32(murmur_of("", seed)), np.uint32(seed))
    return Feature(column, hashes, np.where(missing, 1.0, values))


def categories(column: Column, texts: Sequence[str], codes: np.ndarray) -> Feature:
    """Features of a categorical column: its distinct texts, and which one each row has (-1: none)."""
    hashes = murmur_all([*texts, ""], murmur_of(column.name))
    return Feature(column, hashes[codes], np.ones(len(codes)))


class CodedTexts:
    """Hashes of the distinct texts of each column, kept as long as the next batch has the same ones."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[pa.StringArray, np.ndarray]] = {}

    def feature(self, column: Column, texts: pa.StringArray, codes: np.ndarray) -> Feature:
        """As :func:`categories`, of texts in an Arrow array (none of them missing), which stay there."""
        known = self._known.get(column.name)
        if known is None or not known[0].equals(texts):
            seed = murmur_of(column.name)
            known = texts, np.append(murmur_texts(texts, seed), np.uint32(murmur_of("", seed)))
            self._known[column.name] = known
        return Feature(column, known[1][codes], np.ones(len(codes)))


class Room:
    """Memory for rows of several chunks, used in turns, so that a chunk lives while the next ones are made."""

    def __init__(self, ring: int) -> None:
        self._ring: list[Arrays | None] = [None] * ring
        self._turn = 0

    def take(self, n_rows: int, entries: int) -> Arrays:
        """For so many rows and entries: that of the chunk used longest ago, if it is large enough."""
        self._turn = (self._turn + 1) % len(self._ring)
        found = self._ring[self._turn]
        if found is None or found[0].size <= n_rows or found[1].size < entries:
            found = np.empty(n_rows + 1, np.int32), np.empty(entries, np.int32), np.empty(entries)
            self._ring[self._turn] = found
        return found


def assemble(features: Sequence[Feature], n_rows: int, reading: Reading, room: Room | None = None) -> Arrays:
    """CSR arrays of the features side by side, with interactions and constant, duplicates added up.

    They lie in ``room``; without one in memory of their own.
    """
    hashes = np.empty((len(features), n_rows), np.uint32)
    values = np.empty((len(features), n_rows))
    for k, feature in enumerate(features):
        hashes[k], values[k] = feature.hashes, feature.values
    mask = np.uint32((1 << reading.bits) - 1)
    constant = 1 << reading.bits if reading.constant else -1
    pairs = pairs_of(features, reading)
    indptr, indices, data = (room or Room(1)).take(n_rows, n_rows * (len(features) + len(pairs) + 1))
    end = merge_rows(hashes, values, pairs, mask, constant, indptr, indices, data)
    return indptr[: n_rows + 1], indices[:end], data[:end]


def pairs_of(features: Sequence[Feature], reading: Reading) -> np.ndarray:
    """Pairs of features to multiply, by their places."""
    names = [feature.column.name for feature in features]
    seeds = np.array([murmur_of(name) for name in names], np.int64)
    initials = np.array([(name.encode() or b" ")[0] for name in names], np.int64)
    pairs: np.ndarray = interact_table(compile_interactions(reading.interact), initials, seeds)
    return pairs


def name_features(
    features: Sequence[Feature], texts: Sequence[pa.Array], reading: Reading, seen: set[int]
) -> list[Named]:
    """Names of slots not named before; pairs are named by what was multiplied."""
    mask = np.uint32((1 << reading.bits) - 1)
    found: dict[int, Named] = {}

    def note(hashes: np.ndarray, name: Callable[[int], tuple[str, str]]) -> None:
        slots, rows = np.unique(hashes & mask, return_index=True)
        for slot, row in zip(slots.tolist(), rows.tolist(), strict=True):
            if slot not in seen:
                found.setdefault(slot, Named(slot, *name(row)))

    def both(row: int, a: int, b: int) -> tuple[str, str]:
        return pair_name(_name(features[a], texts[a], row), _name(features[b], texts[b], row))

    for feature, column in zip(features, texts, strict=True):
        note(feature.hashes, partial(_name, feature, column))
    for a, b in pairs_of(features, reading).tolist():
        product = np.array([combine(*pair) for pair in zip(features[a].hashes, features[b].hashes, strict=True)])
        note(product.astype(np.uint32), partial(both, a=a, b=b))
    seen.update(found)
    return list(found.values())


def _name(feature: Feature, texts: pa.Array, row: int) -> tuple[str, str]:
    """Name of a row's feature, and its column."""
    column = feature.column.name
    if feature.column.kind == "number":
        return column + ("" if feature.hashes[row] == murmur_of(column) else "="), column
    value = texts[row].as_py()
    return f"{column}={'' if value is None else value}", column
