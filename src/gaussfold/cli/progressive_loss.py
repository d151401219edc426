"""The progressive loss: what predicting each row before learning it has cost so far.

Sums over a stream, added up in the order of its rows, so that they are the same bit for bit however it was cut into
chunks, and a model that is loaded goes on with them. NumPy adds in another order, and Python takes 0.2 µs a row where
a short one is learned in less than 1 µs: so this one loop is compiled, and lives with the others in the engine.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.arrays.progressive_loss import (
    CARRY,
    LEARNED,
    LOSS,
    POSITIVE,
    SEEN,
    WEIGHT,
    add_losses,
)
from gaussfold.types import Array

__all__ = ["CARRY", "LEARNED", "LOSS", "POSITIVE", "SEEN", "WEIGHT", "add_losses", "constant_loss"]


def constant_loss(totals: Array) -> float:
    """Loss of the best constant probability in hindsight: the entropy of the share of positive labels."""
    if not totals[WEIGHT]:
        return float("nan")
    p = np.array([totals[POSITIVE], totals[WEIGHT] - totals[POSITIVE]]) / totals[WEIGHT]
    return float(-(p[p > 0] * np.log(p[p > 0])).sum())
