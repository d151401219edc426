"""How much labels scatter, learned beside the weights: ``--noise-std learn``.

Labels are told to the belief as ``(y - centre) / std``, so that there the noise is 1 and a prior is in units of the
noise. That is the normal-inverse-gamma family of `gaussfold.estimators.noise`: given σ the weights are N(μ, σ² P), so
another σ leaves P and, in the labels' units, μ as they are. With ``r = y - x'μ`` and ``v = x'P x`` before a row of
weight w is learned,

    a += w / 2,      b += w r² / (2 (1 + w v)),      σ² = b / a.

The units change after so many learned rows as `_BEGIN` and `_next` say, which the stream alone decides: however it is
cut into chunks, and whatever is saved on the way, the numbers are the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from gaussfold import schema
from gaussfold.data.chunks import Chunk
from gaussfold.trace import Trace
from gaussfold.types import Array

LEARN = "learn"
_BEGIN = 8
"""After so many rows residuals tell the noise; before, the labels' own spread does, and their mean is the centre."""
_ENOUGH = 0.02
"""Of the logarithm: a smaller change is not worth the trouble."""
_N, _MEAN, _SQUARES, _SHAPE, _SCALE, _CENTRE, _STD = range(7)
PART = schema.Part("noise", (7,), "double", free=True, optional=True)


class NewUnits(NamedTuple):
    """How large the new unit is, in old ones, and what is added to the constant then."""

    ratio: float
    shift: float


def learnable(chunk: Chunk) -> np.ndarray:
    """Which rows have a label and a weight."""
    return np.asarray(~np.isnan(chunk.label) & (chunk.weight > 0.0))


def _next(n: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, ... after n."""
    power = 1 << (n.bit_length() - 1) if n else 0
    return n + 1 if n < 4 else next(k for k in (power * 3 // 2, 2 * power) if k > n)


def added(start: float, terms: Array) -> float:
    """The terms added one after the other: the same however they come."""
    return float(np.cumsum(np.concatenate([[start], terms]))[-1])


@dataclass
class LabelNoise:
    """Centre and unit of the labels, and what is known of their noise."""

    numbers: Array = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))

    @property
    def centre(self) -> float:
        """What is 0 for the belief."""
        return float(self.numbers[_CENTRE])

    @property
    def std(self) -> float:
        """What is 1 for the belief: standard deviation of the noise."""
        return float(self.numbers[_STD])

    def until(self, chunk: Chunk, at: int, *, constant: bool) -> int:
        """Where rows from ``at`` on end that see the same units."""
        n = int(self.numbers[_N])
        places = np.flatnonzero(learnable(chunk)[at:])
        if not n and places.size:
            if places[0]:  # rows without a label come first
                return at + int(places[0])
            # Nobody knows how large labels are before the first of them; to the constant it is nothing new.
            first = float(chunk.label[at])
            self.numbers[_CENTRE], self.numbers[_STD] = first if constant else 0.0, abs(first) or 1.0
        left = _next(n) - n
        return at + int(places[left - 1]) + 1 if places.size >= left else len(chunk)

    def inward(self, y: Array) -> Array:
        """Labels as the belief sees them."""
        if self.std == 1.0 and self.centre == 0.0:
            return y
        return np.asarray((y - self.centre) / self.std)

    def outward(self, trace: Trace) -> Trace:
        """What the belief says, in the labels' units; the precision of a row's site is that of its noise."""
        noise = np.full(trace.mean.size, self.std**-2)
        mean, variance = self.centre + self.std * trace.mean, self.std**2 * trace.variance
        scores = trace.log_predictive - math.log(self.std)
        if not self.numbers[_N] and self.centre:  # the first label, which was the centre: what was predicted is 0
            mean, scores = mean - self.centre, scores - 0.5 * self.centre**2 / (variance + self.std**2)
        return Trace(mean, variance, scores, noise, trace.site_shift)

    def note(self, chunk: Chunk, told: Trace, *, constant: bool) -> NewUnits | None:
        """Learn from rows and what was told of them (in the labels' units); new units if they are due."""
        rows = learnable(chunk)
        y, w = chunk.label[rows], chunk.weight[rows]
        numbers = self.numbers
        n = int(numbers[_N])
        if n < _BEGIN:
            for label in y[: _BEGIN - n].tolist():
                numbers[_N] += 1.0
                away = label - numbers[_MEAN]
                numbers[_MEAN] += away / numbers[_N]
                numbers[_SQUARES] += away * (label - numbers[_MEAN])
        else:
            spread = told.variance[rows] / self.std**2
            gains = w * (y - told.mean[rows]) ** 2 / (1.0 + w * spread)
            numbers[_SHAPE] = added(float(numbers[_SHAPE]), w / 2.0)
            numbers[_SCALE] = added(float(numbers[_SCALE]), gains / 2.0)
            numbers[_N] += y.size
        return self._settle(constant=constant) if y.size and numbers[_N] == _next(n) else None

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Of a file."""
        numbers = arrays["noise"].copy()
        if not (np.isfinite(numbers).all() and numbers[-1] > 0.0 and numbers[0] >= 0.0):
            needed = "finite numbers, with a count >= 0 and a unit > 0, are needed"
            schema.refuse("noise", f"{numbers.tolist()}", needed)
        return cls(numbers)

    def _settle(self, *, constant: bool) -> NewUnits | None:
        n, mean, squares, shape, scale, centre, std = self.numbers.tolist()
        if n <= _BEGIN:
            new_centre = mean if constant else 0.0
            variance = squares / n if constant else squares / n + mean**2
            if n == _BEGIN:  # what the spread says is worth one row
                self.numbers[_SHAPE], self.numbers[_SCALE] = 0.5, 0.5 * (variance or std**2)
        else:
            new_centre, variance = centre, scale / shape
            if abs(math.log(variance / std**2)) < 2.0 * _ENOUGH:
                return None
        new_std = math.sqrt(variance) or std
        self.numbers[_CENTRE], self.numbers[_STD] = new_centre, new_std
        return NewUnits(new_std / std, (centre - new_centre) / new_std)
