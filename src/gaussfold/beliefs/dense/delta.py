"""What a dense belief has learned since another, in whole numbers, so that sums do not depend on their order.

Entry (i, j) of the change of precision is a multiple of ``2^(h_i + h_j - 52)``, entry i of the change of Λ·mean one of
``2^(h_i - 52)``, where ``2^h_i`` is about the square root of the base's precision Λ_ii: as fine as floating point. Such
a number has 96 bits and is kept as two: whole multiples of 2^-20, and the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from gaussfold.checks import same_dim
from gaussfold.types import Array

BITS, REST = 20, 32
"""Binary digits after the point that the first number has, and that the second one adds."""
LIMIT = 2.0**62
"""No number may be as large: the sum of two that are smaller is one of 64 bits."""


@final
@dataclass(frozen=True, eq=False)
class MatrixDelta:
    """Changes of Λ (its lower triangle, row by row) and, after them, of Λ·mean; see ``DenseGaussian.delta``."""

    exponent: np.ndarray
    """(d,), int16: h above."""
    numbers: np.ndarray
    """(2, d (d + 3)/2), int64."""

    @property
    def nbytes(self) -> int:
        """Bytes that travel."""
        return self.exponent.nbytes + self.numbers.nbytes

    @classmethod
    def between(cls, base: tuple[Array, Array], now: tuple[Array, Array]) -> Self:
        """From natural parameters (Λ, Λ·mean) to others."""
        exponent = (np.frexp(np.diag(base[0]))[1] >> 1).astype(np.int16)
        gained = np.concatenate([_lower(now[0] - base[0]), now[1] - base[1]])
        scaled = np.ldexp(gained, BITS - _units(exponent))
        if not (np.abs(scaled) < LIMIT).all():
            msg = "delta: more was learned than 64 bits hold; rescale the features, or use a prior that is less flat"
            raise ValueError(msg)
        whole = np.floor(scaled)
        rest = np.rint(np.ldexp(scaled - whole, REST))
        return cls(exponent, _carried(whole.astype(np.int64), rest.astype(np.int64)))

    def merge(self, other: Self) -> Self:
        """Both changes together. Refuses, and changes nothing, if they come from different bases."""
        same_dim("other", other.exponent.size, self.exponent.size)
        if not np.array_equal(self.exponent, other.exponent):
            msg = "other: it comes from another base; take both with delta(base) of the same base"
            raise ValueError(msg)
        numbers = _carried(*(self.numbers + other.numbers))
        if not (np.abs(numbers[0].astype(float)) < LIMIT).all():
            msg = "other: the sum is too large for 64 bits; rescale the features, or use a prior that is less flat"
            raise ValueError(msg)
        return type(self)(self.exponent, numbers)

    def natural(self) -> tuple[Array, Array]:
        """The change of Λ, and that of Λ·mean."""
        d = self.exponent.size
        whole, rest = self.numbers.astype(float)
        flat = np.ldexp(whole + np.ldexp(rest, -REST), _units(self.exponent) - BITS)
        matrix = np.zeros((d, d))
        matrix[np.tril_indices(d)] = flat[:-d]
        return matrix + np.tril(matrix, -1).T, flat[-d:]


def _lower(matrix: np.ndarray) -> np.ndarray:
    return np.asarray(matrix[np.tril_indices(matrix.shape[0])])


def _units(exponent: np.ndarray) -> np.ndarray:
    """Exponents of the units of all numbers, in their order."""
    h = exponent.astype(np.int32)
    return np.concatenate([_lower(h[:, None] + h[None, :]), h])


def _carried(whole: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """The second number brought below 2^32, the first one counting what was above: one way to write each value."""
    return np.stack([whole + (rest >> REST), rest & ((1 << REST) - 1)])
