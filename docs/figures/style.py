"""Colours and the one shape that several drawings share."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Ellipse

BELIEF, SITE, LABEL, INK = "#1f77b4", "#d95f02", "#7a3e9d", "#222222"


def ellipse(axis: Axes, mean: np.ndarray, cov: np.ndarray, colour: str, *, dashed: bool = False) -> None:
    """One and two standard deviations of a Gaussian in the plane."""
    values, vectors = np.linalg.eigh(cov)
    angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
    for k in (1.0, 2.0):
        width, height = 2 * k * np.sqrt(values[1]), 2 * k * np.sqrt(values[0])
        shape = Ellipse(tuple(mean), width, height, angle=angle, fill=not dashed, alpha=0.5 if dashed else 0.25)
        shape.set(color=colour, linestyle=":" if dashed else "-")
        axis.add_patch(shape)
    if not dashed:
        axis.plot(*mean, "o", color=colour, ms=4)
