"""One look for all figures: a colour and a dash per method that never change, and readable sizes."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure
from PIL import Image

DPI = 120

# Okabe and Ito's palette: distinguishable with any of the common colour vision deficiencies.
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE, BLACK = "#0072B2", "#D55E00", "#CC79A7", "#000000"
GREY, LIGHT = "#666666", "#BBBBBB"


class Line(NamedTuple):
    """How one method is drawn everywhere; dashes differ too, so that grey print stays legible."""

    label: str
    color: str
    dashes: Any
    width: float
    zorder: int


LINES = {
    "ekf": Line("EKF", ORANGE, (0, (5, 2)), 1.8, 3),
    "qkf": Line("QKF", SKY, (0, (5, 1.5, 1, 1.5)), 1.8, 3),
    "explicit": Line("R-VGA explicit", GREEN, (0, (1.2, 1.2)), 2.2, 4),
    "implicit": Line("R-VGA implicit", BLUE, "-", 2.2, 5),
    "exact": Line("gaussfold default (exact)", PURPLE, (0, (3, 2)), 1.6, 6),
    "laplace": Line("Laplace (batch)", VERMILION, "-", 1.6, 2),
    "variational": Line("best Gaussian (batch)", GREY, (0, (1, 1.5)), 1.6, 2),
}

# Posterior mass that every ellipse and the bold contour of the true posterior enclose.
MASS = 0.9


def look() -> AbstractContextManager[None]:
    """Return the settings under which a figure is made and saved."""
    return mpl.rc_context(
        {
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "axes.titlesize": 10.5,
            "axes.labelsize": 10,
            "legend.fontsize": 9,
            "xtick.labelsize": 9,
            "ytick.labelsize": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#E6E6E6",
            "grid.linewidth": 0.7,
            "legend.frameon": False,
            "lines.solid_capstyle": "round",
            "path.simplify": True,
            "mathtext.fontset": "dejavusans",
        }
    )


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure of that many inches, without pyplot and its global state."""
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def save(figure: Figure, path: Path) -> None:
    """Write a PNG with its own palette of 256 colours: a third of the size, flat areas exact.

    No version or date goes inside, so that the same numbers give the same file.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, facecolor="white")
    image = Image.open(buffer).convert("RGB")
    image.quantize(256, Image.Quantize.MEDIANCUT, kmeans=3, dither=Image.Dither.NONE).save(path, optimize=True)
