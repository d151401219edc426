"""As ``sequences``, with few rows in most calls: more sequences in the same time, for the order of calls."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.fuzz.targets.sequences import walk

OFTEN = (0.35, 0.3, 0.25, 0.08, 0.02)


def case(rng: np.random.Generator, folder: Path) -> None:
    """One setting, up to eight calls."""
    walk(rng, folder, OFTEN)
