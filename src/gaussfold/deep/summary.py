"""What became of a training: how long, how good, and what had not settled when it ended."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gaussfold.types import Array

FEWEST = 50
"""Steps below which a tenth of them says nothing."""
FALL = 0.01
"""Share of the objective by which it may still fall in the last tenth."""
SURE = 3.0
"""Standard errors by which a fall must stand out of the noise of batches and draws."""


class NotSettledWarning(UserWarning):
    """The objective was still falling when the training ended."""


@dataclass(frozen=True)
class Summary:
    """How a training went; ``print`` it.

    Attributes
    ----------
    method, steps, skipped
        Which method, how many steps, and how many of them were not numbers and left out.
    bound
        The objective (for VIFA minus the evidence lower bound, up to a constant), averaged over the last tenth.
    fall
        By how much it fell in the last tenth, as a share of itself; NaN after fewer than 50 steps.
    settled
        Whether that is at most 1 %, or within the noise.
    temperature
        At which the likelihood was taken.
    prior_precision
        Of each leaf, by its path; None where it differs within leaves.
    """

    method: str
    steps: int
    skipped: int
    bound: float
    fall: float
    settled: bool
    temperature: float
    prior_precision: dict[str, float | None]

    def __str__(self) -> str:
        fall = f"fell by {100.0 * self.fall:.2g} % in the last tenth"
        if math.isnan(self.fall):
            fall = f"fewer than {FEWEST} good steps do not tell how it falls"
        lines = [
            f"{self.method}: {self.steps} steps, {self.skipped} skipped",
            f"objective {self.bound:.6g}, {fall}: " + ("settled" if self.settled else "not settled, train longer"),
            f"temperature {self.temperature:g}",
        ]
        lines += [
            f"prior precision of {name}: " + ("differs by entry" if value is None else f"{value:.3g}")
            for name, value in self.prior_precision.items()
        ]
        return "\n".join(lines)


def last_tenth(losses: Array) -> tuple[float, float, bool]:
    """The objective there, by which share it fell from the tenth before, and whether it has settled."""
    good = losses[np.isfinite(losses)]
    if not len(good):
        return math.nan, math.nan, False
    size = max(1, len(good) // 10)
    late, before = good[-size:], good[-2 * size : -size]
    if len(good) < FEWEST:
        return float(late.mean()), math.nan, False
    drop = before.mean() - late.mean()
    noise = math.sqrt((before.var() + late.var()) / size)
    share = float(drop / max(abs(late.mean()), 1e-12))
    return float(late.mean()), share, bool(share <= FALL or drop <= SURE * noise)
