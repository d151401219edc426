"""Running sums over a stream, in the order of its rows, so that they do not depend on how it was cut into chunks."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled

LOSS, CARRY, WEIGHT, LEARNED, POSITIVE, SEEN = range(6)


@compiled
def add_losses(
    totals: np.ndarray,
    log_predictive: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    start: int,
    stop: int,
) -> None:
    """Add rows ``start:stop``: weighted log loss (compensated sum), weight, labelled rows, positive weight, rows."""
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
