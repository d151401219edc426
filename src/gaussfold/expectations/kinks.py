"""The second derivative of an expectation where log p has kinks.

``∂²/∂m² E l(f)`` is E l'' only for l that bends everywhere: the l'' of a double exponential is zero wherever it exists,
and all its curvature sits in the kink. Integrated by parts twice, ``E[((f - m)²/v - 1) l(f)]/v`` holds for both. (Once
would do too, but nodes see a jump of l' far worse than a kink of l.)
"""

from __future__ import annotations

import numpy as np

from gaussfold.types import Array

APART = 0.02
"""Relative difference of the two forms from which on l'' is not believed: nodes agree far better on a smooth l."""
ROUNDED = 1e-10


def mended(second: Array, by_parts: Array, size: Array, variance: Array) -> Array:
    """E l'', or the other form where they differ; ``size`` is that of what v divides in it, for its rounding."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rounding = ROUNDED * size / variance
        apart = np.abs(by_parts - second) > APART * np.maximum(np.abs(by_parts), np.abs(second)) + rounding
        return np.asarray(np.where(apart & np.isfinite(by_parts), by_parts, second))
