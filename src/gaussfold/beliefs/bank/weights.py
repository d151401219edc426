"""How much each member of a bank is believed: the numbers of fixed share, and what they must be like in a file."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from gaussfold import schema
from gaussfold.checks import positive_entries
from gaussfold.engine.arrays.fixed_share import follow_rows
from gaussfold.types import Array

SHARES = (0.01, 0.001, 0.0001)
"""Of the weight that is handed out anew after each row: the members' best changes every hundred rows, or thousands."""
PARTS = (
    schema.Part("table", ("A", "K"), "double", low=0.0, high=1.0),
    schema.Part("prior_weights", ("K",), "double", high=1.0, positive=True),
    schema.Part("shares", ("A",), "double", high=1.0, positive=True),
)


class SharedWeights(NamedTuple):
    """Weights of K members under A shares side by side (``engine.arrays.fixed_share``)."""

    table: Array
    """(A, K), adding up to 1."""
    prior: Array
    """Where shares go: (K,), adding up to 1."""
    shares: Array

    @classmethod
    def start(cls, prior: Array, shares: tuple[float, ...] = SHARES) -> Self:
        """Before any row: the prior weights, scaled so that they add up to 1."""
        positive_entries("prior_weights", prior)
        positive_entries("shares", np.asarray(shares))
        prior = prior / prior.sum()
        return cls(np.tile(prior / len(shares), (len(shares), 1)), prior, np.array(shares))

    @property
    def members(self) -> Array:
        """One weight per member."""
        return np.asarray(self.table.sum(axis=0))

    def follow(self, scores: Array, weight: Array) -> tuple[Self, Array]:
        """The weights after rows that the members scored so, (n, K), and the members' weights before each row."""
        table, before = self.table.copy(), np.empty_like(scores)
        follow_rows(table, self.prior, self.shares, scores, weight, before)
        return self._replace(table=table), before

    def arrays(self) -> dict[str, np.ndarray]:
        """For a file."""
        return {"table": self.table.copy(), "prior_weights": self.prior.copy(), "shares": self.shares.copy()}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Self:
        """Undo :meth:`arrays`, bit for bit."""
        schema.check(arrays, PARTS)
        for name in ("table", "prior_weights"):
            total = float(arrays[name].sum())
            if not abs(total - 1.0) <= schema.ROUNDING:
                schema.refuse(name, f"weights that add up to {total!r}", "1 is needed")
        return cls(*(arrays[part.name].copy() for part in PARTS))
