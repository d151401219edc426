"""What a pass over rows leaves behind: the marginals it met and the sites it made."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.types import Array


class Trace(NamedTuple):
    """Per row of a pass: the marginal before learning, its score, and the site that was absorbed."""

    mean: Array
    variance: Array
    log_predictive: Array
    site_precision: Array
    site_shift: Array

    @classmethod
    def empty(cls, n: int) -> Trace:
        """Room for n rows, no sites yet."""
        return cls(np.empty(n), np.empty(n), np.empty(n), np.zeros(n), np.zeros(n))

    def rows(self, start: int, stop: int) -> Trace:
        """Views of some rows: writing to them writes here."""
        return Trace(*(column[start:stop] for column in self))


class RowError(ValueError):
    """A row whose update would leave the finite, positive definite world; ``row`` counts within the call.

    ``trace`` is that of the rows before it, where they stay learned.
    """

    def __init__(self, row: int, trace: Trace | None = None) -> None:
        super().__init__(
            f"X: row {row} drives the posterior out of range (overflow, or a site that is not finite); "
            f"{'nothing' if trace is None else 'nothing from it on'} was learned from this call. "
            "Scale the features, or drop the row"
        )
        self.row, self.trace = row, trace
