"""Where a chain begins if the rows before it are gone."""

from __future__ import annotations

from typing import NamedTuple

from gaussfold.types import Array

GONE = (
    "earlier rows are gone (partial_fit on a sparse model, or with keep_history=False), and what is left of them holds "
    "for these hyperparameters and for later times alone; learn with fit on some rows first, then stream"
)


class Anchor(NamedTuple):
    """The filtered state at the last point before the window."""

    time: float
    mean: Array
    cov: Array
