"""Rows from columns: of Parquet and Arrow files, and of dataframes.

A number is one feature, named by its column; a category is the feature (column, text); a missing number is the feature
(column, ""). The hashes are those of the CSV parser, so a model trained on one reads the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from gaussfold.data.interactions import compile_interactions
from gaussfold.data.messages import DataError
from gaussfold.data.naming import Named, pair_name
from gaussfold.data.reading import Column, Reading
from gaussfold.data.strings import murmur_all, murmur_of
from gaussfold.engine.text.csr_rows import LARGEST
from gaussfold.engine.text.murmur import combine
from gaussfold.engine.text.pairs import interact_table, merge_rows


class Feature(NamedTuple):
    """One column as features: hash and value per row; NaN values are missing numbers."""

    column: Column
    hashes: np.ndarray[Any, Any]
    values: np.ndarray[Any, Any]


def numbers(column: Column, values: np.ndarray[Any, Any], source: str, first_row: int = 0) -> Feature:
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
    mask = np.uint32((1 << reading.bits) - 1)
    constant = 1 << reading.bits if reading.constant else -1
    return merge_rows(hashes, values, pairs_of(features, reading), mask, constant)


def pairs_of(features: Sequence[Feature], reading: Reading) -> np.ndarray[Any, Any]:
    """Pairs of features to multiply, by their places."""
    names = [feature.column.name for feature in features]
    seeds = np.array([murmur_of(name) for name in names], np.int64)
    initials = np.array([(name.encode() or b" ")[0] for name in names], np.int64)
    pairs: np.ndarray[Any, Any] = interact_table(compile_interactions(reading.interact), initials, seeds)
    return pairs


def name_features(features: Sequence[Feature], texts: Sequence[Any], reading: Reading, seen: set[int]) -> list[Named]:
    """Names of slots not named before; pairs are named by what was multiplied."""
    mask = np.uint32((1 << reading.bits) - 1)
    found: dict[int, Named] = {}

    def note(hashes: np.ndarray[Any, Any], name: Callable[[int], tuple[str, str]]) -> None:
        slots, rows = np.unique(hashes & mask, return_index=True)
        for slot, row in zip(slots.tolist(), rows.tolist(), strict=True):
            if slot not in seen:
                found.setdefault(slot, Named(slot, *name(row)))

    def one(k: int) -> Callable[[int], tuple[str, str]]:
        column = features[k].column
        alone = murmur_of(column.name)

        def name(row: int) -> tuple[str, str]:
            if column.kind == "number":
                return column.name + ("" if features[k].hashes[row] == alone else "="), column.name
            value = texts[k][row].as_py()
            return f"{column.name}={'' if value is None else value}", column.name

        return name

    def both(left: Callable[[int], tuple[str, str]], right: Callable[[int], tuple[str, str]]) -> Any:
        return lambda row: pair_name(left(row), right(row))

    for k, feature in enumerate(features):
        note(feature.hashes, one(k))
    for a, b in pairs_of(features, reading).tolist():
        product = np.array([combine(*pair) for pair in zip(features[a].hashes, features[b].hashes, strict=True)])
        note(product.astype(np.uint32), both(one(a), one(b)))
    seen.update(found)
    return list(found.values())
