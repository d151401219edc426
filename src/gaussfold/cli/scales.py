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
from gaussfold.engine.sparse.scaling import divide, standardise

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
