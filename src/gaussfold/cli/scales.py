"""Scales of the features of a stream: learned with it, kept in the model file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Self

import numpy as np

from gaussfold import schema
from gaussfold.data.chunks import Chunk
from gaussfold.data.reading import Reading
from gaussfold.data.strings import murmur_of
from gaussfold.engine.sparse.scaling import MOST, divide, standardise

PARTS = (
    schema.Part("scales.slots", ("scaled",), "whole", low=0, high="width"),
    schema.Part("scales.columns", ("scaled", 3), "double", optional=True),
    schema.Part("scales.values", ("scaled", 2), low=0.0, optional=True),
)
"""Of columns count, mean and sum of squares around it; of values of sparse features count and root mean square."""


@dataclass
class Scales:
    """Of a table: the slots of its columns of numbers, and their moments. Of text: one scale for each slot of 2^bits.

    Both are empty until they are needed: ``slots`` until the columns are known, ``values`` until a value is not 1.
    """

    slots: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0, np.int64))
    columns: np.ndarray = dataclasses.field(default_factory=lambda: np.empty((0, 3)))
    values: np.ndarray = dataclasses.field(default_factory=lambda: np.empty((0, 2), np.float32))

    def scaled(self, chunk: Chunk, reading: Reading, *, learn: bool) -> Chunk:
        """The rows with their features scaled; ``learn``: those with label and weight count."""
        if reading.columns is not None:
            return self._standardised(chunk, reading, learn=learn)
        if not self.values.size:
            if not (chunk.data != 1.0).any():
                return chunk
            self.values = np.zeros((chunk.width, 2), np.float32)
        out = np.empty_like(chunk.data)
        divide(self.values, chunk.indptr, chunk.indices, chunk.data, _counts(chunk, learn=learn), out)
        return dataclasses.replace(chunk, data=out)

    def _standardised(self, chunk: Chunk, reading: Reading, *, learn: bool) -> Chunk:
        if not self.slots.size:
            names = [column.name for column in reading.columns or () if column.kind == "number"]
            mask = (1 << reading.bits) - 1
            self.slots = np.unique(np.array([murmur_of(name) & mask for name in names], np.int64))
            self.columns = np.zeros((self.slots.size, 3))
        if not self.slots.size:
            return chunk
        out = np.empty_like(chunk.data)
        learned = _counts(chunk, learn=learn)
        standardise(self.slots, self.columns, chunk.indptr, chunk.indices, chunk.data, learned, out)
        return dataclasses.replace(chunk, data=out)

    def remembered(self, chunk: Chunk) -> tuple[np.ndarray, ...]:
        """What :meth:`scaled` may write over, for :meth:`put_back`."""
        places = np.unique(chunk.indices) if self.values.size else np.empty(0, np.int64)
        return places, self.values[places], self.columns.copy()

    def put_back(self, remembered: tuple[np.ndarray, ...]) -> None:
        """Undo what was learned since."""
        places, values, columns = remembered
        if places.size:
            self.values[places] = values
        elif self.values.size:
            self.values[:] = 0.0
        if columns.size:
            self.columns[:] = columns
        else:
            self.columns[:] = 0.0

    # Several workers.

    def copy(self) -> Self:
        """In memory of their own."""
        return type(self)(self.slots, self.columns.copy(), self.values.copy())

    def take_gained(self, before: Scales, slots: np.ndarray) -> dict[str, np.ndarray]:
        """What has been learned since ``before`` of features in these slots; then this is as before.

        Of columns count, mean and sum of squares of what came; of values how many came, and their squares added up.
        """
        found: dict[str, np.ndarray] = {}
        if self.values.size:
            slots = self._measured(before, slots)  # of text most values are 1, which is no measurement
            old = before.values[slots] if before.values.size else np.zeros((slots.size, 2), np.float32)
            count, root = self.values[slots].astype(float).T
            count_before, root_before = old.astype(float).T
            more, squares = count - count_before, count * root**2 - count_before * root_before**2
            self.values[slots] = old
            came = more > 0.0
            found = {"slots": slots[came], "values": np.stack([more, np.maximum(squares, 0.0)], axis=1)[came]}
        elif self.slots.size:
            old = before.columns if before.columns.size else np.zeros_like(self.columns)
            found = {"slots": self.slots, "columns": _without(self.columns, old)}
            self.columns = old.copy()
        return found

    def _measured(self, before: Scales, slots: np.ndarray) -> np.ndarray:
        """Those of the slots whose values differ: count and size are looked at as one word."""
        now = self.values.view(np.uint64)[slots, 0]
        known = before.values.view(np.uint64)[slots, 0] if before.values.size else np.uint64(0)
        return np.asarray(slots[now != known])

    def add(self, found: dict[str, np.ndarray], width: int) -> None:
        """What some shard has learned: see :meth:`take_gained`."""
        if "values" in found:
            if not self.values.size:
                self.values = np.zeros((width, 2), np.float32)
            count, root = self.values[found["slots"]].astype(float).T
            more, squares = found["values"].T
            total = count + more
            rms = np.sqrt((count * root**2 + squares) / total)
            self.values[found["slots"]] = np.stack([np.minimum(total, MOST), rms], axis=1)
        elif "columns" in found:
            if not self.slots.size:
                self.slots, self.columns = found["slots"], np.zeros_like(found["columns"])
            self.columns = _together(self.columns, found["columns"])

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file: of the slots only those of which a value is known."""
        if self.values.size:
            known = np.flatnonzero(self.values[:, 0])
            return {"scales.slots": known, "scales.values": self.values[known]}
        return {"scales.slots": self.slots, "scales.columns": self.columns} if self.slots.size else {}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], width: int) -> Self:
        """Undo :meth:`arrays`, bit for bit."""
        if "scales.slots" not in arrays:
            return cls()
        schema.check(arrays, PARTS, {"width": width})
        slots = arrays["scales.slots"].astype(np.int64)
        if (np.diff(slots) <= 0).any():
            schema.refuse("scales.slots", "not in order", "slots that increase are needed")
        if "scales.columns" in arrays:
            if (arrays["scales.columns"][:, [0, 2]] < 0.0).any():
                schema.refuse("scales.columns", "a count or a sum of squares below 0", ">= 0 is needed")
            return cls(slots, arrays["scales.columns"].copy())
        if "scales.values" not in arrays:
            schema.refuse("scales.values", "missing", "'scales.slots' needs it, or 'scales.columns'")
        values = np.zeros((width, 2), np.float32)
        values[slots] = arrays["scales.values"]
        return cls(values=values)


def _counts(chunk: Chunk, *, learn: bool) -> np.ndarray:
    return (~np.isnan(chunk.label) & (chunk.weight > 0.0)) if learn else np.zeros(len(chunk), bool)


def _together(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Count, mean and sum of squares around it, of both."""
    count = one[:, 0] + other[:, 0]
    share = other[:, 0] / np.maximum(count, 1.0)
    away = other[:, 1] - one[:, 1]
    return np.stack(
        [count, one[:, 1] + share * away, one[:, 2] + other[:, 2] + share * one[:, 0] * away**2], axis=1
    )  # fmt: skip


def _without(both: np.ndarray, one: np.ndarray) -> np.ndarray:
    """Undo :func:`_together`."""
    count = both[:, 0] - one[:, 0]
    mean = np.where(count > 0.0, (both[:, 0] * both[:, 1] - one[:, 0] * one[:, 1]) / np.maximum(count, 1.0), 0.0)
    between = count * one[:, 0] / np.maximum(both[:, 0], 1.0) * (mean - one[:, 1]) ** 2
    return np.stack([count, mean, np.maximum(both[:, 2] - one[:, 2] - between, 0.0)], axis=1)
