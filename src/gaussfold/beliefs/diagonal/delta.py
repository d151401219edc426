"""What a diagonal belief has learned since another: sparse, in whole numbers, so that sums do not depend on order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from gaussfold.engine.sparse.deltas import BITS, FixedCells, merge_fixed
from gaussfold.types import Array

ALIKE = "deltas are added that were taken from one belief; take both with delta(base) of the same base"
MOST = 2.0**42
"""Nats that a component's evidence may change by."""


@final
@dataclass(frozen=True, eq=False)
class CellDelta:
    """Changes of natural parameters of some of ``dim`` cells, and of the logarithms of the components' weights.

    Made by ``belief.delta(base)``, added up by :meth:`merge`, put into a belief by ``belief.apply(delta)``. Numbers are
    whole multiples of units that the base decides (``gaussfold.engine.sparse.deltas``: about a millionth of what the
    base knew): any order and any grouping of merges gives the same bits.
    """

    dim: int
    cells: FixedCells
    evidence: np.ndarray
    """(K,), int64, units of 2^-20 nats: logarithms by which weights of components are multiplied."""

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return sum(part.nbytes for part in self.cells) + self.evidence.nbytes

    def merge(self, other: Self) -> Self:
        """Both changes together. Refuses, and changes nothing, if they come from different bases."""
        if (other.dim, other.evidence.size) != (self.dim, self.evidence.size):
            ours, theirs = (f"{each.dim} features and {each.evidence.size} components" for each in (self, other))
            msg = f"other: of {theirs}, this one has {ours}; {ALIKE}"
            raise ValueError(msg)
        n = self.cells.slots.size + other.cells.slots.size
        out = FixedCells(*(np.empty((n, *part.shape[1:]), part.dtype) for part in self.cells))
        size, alike, fits = merge_fixed(self.cells, other.cells, out)
        if not (alike and fits):
            slot = int(out.slots[size])
            why = f"from another base: {ALIKE}" if not alike else f"too large for 64 bits; {SCALE}"
            msg = f"other: the change of feature {slot} is {why}"
            raise ValueError(msg)
        cells = FixedCells(*(part[:size] for part in out))
        return type(self)(self.dim, cells, self.evidence + other.evidence)

    def log_evidence(self) -> Array:
        """Logarithms by which the components' weights are multiplied."""
        return np.asarray(np.ldexp(self.evidence.astype(float), -BITS))


SCALE = "rescale the features, or give the prior a smaller standard deviation"


def fixed_evidence(log_likelihood: Array) -> np.ndarray:
    """Nats as whole numbers; a component that is ruled out loses as much as can be written."""
    finite = np.clip(np.nan_to_num(log_likelihood, nan=0.0, neginf=-MOST, posinf=MOST), -MOST, MOST)
    return np.rint(np.ldexp(finite, BITS)).astype(np.int64)
