"""Sums of losses over a stream, added up in the order of its rows, the losses with Kahan's correction."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.types import Array

LOSS, CARRY, WEIGHT, LEARNED, POSITIVE, SEEN = range(6)
"""Places in the totals: weighted losses, what adding them lost, weights, rows learned, positive weights, rows."""


@compiled
def add_losses(totals: Array, log_predictive: Array, label: Array, weight: Array, start: int, stop: int) -> None:
    """Add rows ``start:stop`` with a label to the totals; those without one are only counted."""
    for i in range(start, stop):
        totals[SEEN] += 1.0
        w = weight[i]
        if np.isnan(label[i]) or not w > 0.0:
            continue
        term = -w * log_predictive[i] - totals[CARRY]
        grown = totals[LOSS] + term
        totals[CARRY] = (grown - totals[LOSS]) - term
        totals[LOSS] = grown
        totals[WEIGHT] += w
        totals[POSITIVE] += w * label[i]
        totals[LEARNED] += 1.0
