"""Predictions of numbers kept within the labels seen so far: ``--label-range seen``, as Vowpal Wabbit has it.

Of all numbers a in the range [low, high] of the labels so far, the one with the least expected squared error is the
predictive mean m, moved to the nearer end where it lies outside:

    argmin E(y - a)² = argmin (m - a)² + Var y = min(max(m, low), high).

That is a decision, and no belief: the posterior, its variances and the log loss are not touched by it. A label in the
range is never farther from the kept prediction than from m, so an interval around it that is as wide as before covers
every such label that it covered; of n + 1 exchangeable labels the last is outside the range of the others with
probability 2/(n + 1) at most. (Intervals are not cut at the ends: that loses just those labels.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from gaussfold import schema
from gaussfold.cli.noise import learnable
from gaussfold.data.chunks import Chunk
from gaussfold.types import Array

SEEN = "seen"
RANGES = {SEEN: True, "none": False}
"""What ``--label-range`` takes, and whether predictions are kept then."""
PART = schema.Part("range", (2,), "double", optional=True)


@dataclass
class LabelRange:
    """Smallest and largest label learned so far; from inf down to -inf before the first."""

    ends: Array = field(default_factory=lambda: np.array([math.inf, -math.inf]))

    def kept(self, predicted: Array) -> Array:
        """Predictions within the range."""
        low, high = self.ends
        return predicted if low > high else np.clip(predicted, low, high)

    def learned(self, predicted: Array, chunk: Chunk) -> Array:
        """Each prediction within the range before its row; then the range has the labels of the rows."""
        low, high = (self._so_far(chunk, end, grow) for end, grow in ((0, np.fmin), (1, np.fmax)))
        before = low[:-1] <= high[:-1]
        self.ends = np.array([low[-1], high[-1]])
        return np.where(before, np.minimum(np.maximum(predicted, low[:-1]), high[:-1]), predicted)

    def _so_far(self, chunk: Chunk, end: int, grow: np.ufunc) -> Array:
        """One end before each row, and after the last; rows that teach nothing leave it."""
        labels = np.where(learnable(chunk), chunk.label, math.nan)
        return np.asarray(grow.accumulate(np.concatenate([self.ends[end : end + 1], labels])))

    def add(self, ends: Array) -> None:
        """What some shard has seen."""
        self.ends = np.array([min(self.ends[0], ends[0]), max(self.ends[1], ends[1])])

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file: nothing before the first label."""
        return {"range": self.ends} if self.ends[0] <= self.ends[1] else {}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Undo :meth:`arrays`."""
        if "range" not in arrays:
            return cls()
        low, high = arrays["range"].tolist()
        if not low <= high:
            schema.refuse("range", f"from {low!r} to {high!r}", "the smaller end is needed first")
        return cls(arrays["range"].copy())
