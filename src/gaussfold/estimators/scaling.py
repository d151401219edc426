"""Features on a common scale: running moments of the stream, and the coordinates that a belief lives in.

A prior of one width for all weights is only fair if the features are of one size. So a belief is kept over
*standardised* weights: with a reference ``(centre c, scale s)`` row x is seen as ``z = (x - c)/s``, its latent is ``f
= z'w + b``, and in the user's units ``coef = w/s``, ``intercept = b - (c/s)'w``. The reference comes from the moments
of the rows learned so far and is looked at again at fixed row counts, and before a row that lies far outside of what
was known. A new reference is a change of coordinates, ``w_new = w s_new/s`` and ``b_new = b + ((c_new - c)/s)'w``:
exact for a full covariance, so nothing that was learned is lost or counted twice.

A column that is zero in most rows is measured by the others: its standard deviation would make a rare entry many units
long, and a prior of width 1 would let it say as many times more than a common one.

Everything depends on the sequence of learned rows alone, not on how it was cut into calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from gaussfold import schema
from gaussfold.types import Array

PARTS = (
    schema.Part("weight", (1,), "double", low=0.0),
    schema.Part("mean", ("d",), "double"),
    schema.Part("squares", ("d",), "double", low=0.0),
    schema.Part("active", ("d",), "double", low=0.0, optional=True),
)
"""What a model file holds of moments."""
REFERENCE = (schema.Part("centre", ("d",), "double"), schema.Part("scale", ("d",), "double", positive=True))
"""And of a reference."""
RARE = 0.5
"""Share of rows: a column that is not zero in fewer is measured by these."""
CONSTANT = 1e-12
"""A standard deviation below this part of the mean is rounding: the column does not vary."""


@dataclass(frozen=True)
class Spread:
    """Weighted mean and sum of squared deviations of each column, over the rows so far."""

    weight: float
    mean: Array
    squares: Array
    active: Array
    """Weight of the rows in which a column is not zero."""

    @classmethod
    def nothing(cls, width: int) -> Self:
        """No rows yet."""
        return cls(0.0, np.zeros(width), np.zeros(width), np.zeros(width))

    def add(self, values: Array, weight: Array | None = None) -> Self:
        """More rows, all of weight > 0: Chan's update, one row at a time or many."""
        n, known = len(values), self.weight
        if n == 1:
            added = 1.0 if weight is None else float(weight[0])
            mean, within, active = values[0], np.zeros(1), added * (values[0] != 0.0)
        elif n == 0:
            return self
        elif weight is None:
            added, mean, active = float(n), values.mean(axis=0), np.count_nonzero(values, axis=0)
            with np.errstate(over="ignore", invalid="ignore"):
                within = np.square(values - mean).sum(axis=0)
        else:
            added = float(weight.sum())
            mean, active = weight @ values / added, weight @ (values != 0.0)
            with np.errstate(over="ignore", invalid="ignore"):
                within = weight @ np.square(values - mean)
        total = known + added
        away = mean - self.mean
        with np.errstate(over="ignore", invalid="ignore"):  # found, and named, by whoever asks `finite`
            squares = self.squares + (within + away * away * (known * added / total))
        return type(self)(total, self.mean + away * (added / total), squares, self.active + active)

    @property
    def finite(self) -> bool:
        """Whether the squares of all rows are."""
        return bool(np.isfinite(self.squares.sum()))

    @property
    def std(self) -> Array:
        """Of each column; 0 where it does not vary beyond rounding."""
        std = np.sqrt(self.squares / self.weight) if self.weight > 0.0 else np.zeros(self.mean.size)
        return np.asarray(np.where(std > CONSTANT * np.abs(self.mean), std, 0.0))

    @property
    def rarity(self) -> Array:
        """Root of the share of rows in which a column is not zero, in units of `RARE`; 1 from there on."""
        if not self.weight > 0.0:
            return np.ones(self.mean.size)
        share = self.active / (RARE * self.weight)
        return np.asarray(np.sqrt(np.where(share > 0.0, np.minimum(share, 1.0), 1.0)))

    @property
    def root_mean_square(self) -> Array:
        """Of each column, about zero."""
        if not self.weight > 0.0:
            return np.zeros(self.mean.size)
        return np.asarray(np.sqrt(self.squares / self.weight + self.mean**2))

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything."""
        arrays = {"mean": self.mean.copy(), "squares": self.squares.copy(), "active": self.active.copy()}
        return {"weight": np.array([self.weight])} | arrays

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], width: int) -> Self:
        """Undo `state`."""
        schema.equal("moments", schema.check(arrays, PARTS)["d"], width, "one for each feature")
        weight = float(arrays["weight"][0])
        active = arrays.get("active", np.full(width, weight))  # not counted before 0.3: as if never zero
        return cls(weight, arrays["mean"], arrays["squares"], active)


@dataclass(frozen=True)
class Reference:
    """The coordinates of a belief: what counts as zero and as one unit of each feature."""

    centre: Array
    scale: Array

    @classmethod
    def unknown(cls, width: int) -> Self:
        """Before any row: as the features come."""
        return cls(np.zeros(width), np.ones(width))

    @classmethod
    def of(cls, spread: Spread, *, centred: bool) -> Self:
        """Mean and standard deviation; without an intercept to take up the mean, zero and the root mean square.

        Both by `Spread.rarity`: with a share p < 1/2 of rows that are not zero the unit is √2 times as long as where
        p = 1/2, whatever p, so that an entry of 1 among zeros is about as long as a common one.
        A column that does not vary has no scale of its own; it is lent that of the others (their geometric mean), so
        that what it does when it comes to life is of a size one could expect.
        """
        scale = (spread.std if centred else spread.root_mean_square) / spread.rarity
        varies = scale > 0.0
        lent = float(np.exp(np.log(scale[varies]).mean())) if varies.any() else 1.0
        centre = spread.mean if centred else np.zeros(scale.size)
        return cls(centre, np.where(varies, scale, lent))

    def same(self, other: Reference) -> bool:
        """Whether these are the same coordinates."""
        return np.array_equal(self.centre, other.centre) and np.array_equal(self.scale, other.scale)

    def to(self, other: Reference, *, intercept: bool) -> Array:
        """The matrix A that takes weights (the intercept's last) from these coordinates to others."""
        ratio = other.scale / self.scale
        change = np.diag(np.append(ratio, 1.0) if intercept else ratio)
        if intercept:
            change[-1, :-1] = (other.centre - self.centre) / self.scale
        return change

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything."""
        return {"centre": self.centre.copy(), "scale": self.scale.copy()}

    @classmethod
    def from_state(cls, arrays: dict[str, np.ndarray], width: int) -> Self:
        """Undo `state`."""
        schema.equal("reference", schema.check(arrays, REFERENCE)["d"], width, "one for each feature")
        return cls(arrays["centre"], arrays["scale"])
