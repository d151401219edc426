"""The progressive loss: what predicting each row before learning it has cost so far.

Sums over a stream, added up in the order of its rows (the losses with Kahan's correction), so that they are the same
bit for bit however it was cut into chunks, and a model that is loaded goes on with them. NumPy adds in another order,
and Python takes 0.2 µs a row where a short one is learned in less than 1 µs: so this one loop is compiled, though it is
not of the engine. It calls nothing else that is compiled, so Numba's own cache serves it (fresh as long as this file).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numba import njit

from gaussfold.types import Array

LOSS, CARRY, WEIGHT, LEARNED, POSITIVE, SEEN = range(6)
"""Places in the totals: weighted losses, what adding them lost, weights, rows learned, positive weights, rows."""

_Add: TypeAlias = Callable[[Array, Array, Array, Array, int, int], None]


def _add_losses(totals: Array, log_predictive: Array, label: Array, weight: Array, start: int, stop: int) -> None:
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


add_losses: _Add = njit(cache=True, nogil=True, error_model="numpy")(_add_losses)
"""Add rows ``start:stop`` with a label to the totals; those without one are only counted."""
