"""Pieces of a figure that several figures share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from experiments.rvga.methods import Steps
from experiments.rvga.settings import Problem
from experiments.style import BLACK, GREY, LINES, MASS
from gaussfold.batch import GridPosterior
from gaussfold.types import Array

Box = tuple[float, float, float, float]


def data(ax: Any, problem: Problem, title: str) -> None:
    """Scatter the inputs; classes differ by marker and shade, since colours belong to methods."""
    classes(ax, problem, ("none", BLACK), (GREY, BLACK), s=17, linewidths=0.9)
    ax.set(title=title, xlabel="$x_1$", ylabel="$x_2$")
    ax.set_aspect("equal", "datalim")
    ax.legend(loc="best", handletextpad=0.1, borderaxespad=0.2, frameon=True, framealpha=0.85, edgecolor="none")


def classes(ax: Any, problem: Problem, faces: tuple[str, str], edges: tuple[str, str], **look: float) -> None:
    """Scatter the inputs' first two columns: circles for class 0, triangles for class 1."""
    for label, marker, face, edge in zip((0.0, 1.0), ("o", "^"), faces, edges, strict=True):
        rows = problem.X[problem.y == label].T[:2]
        ax.scatter(*rows, marker=marker, facecolors=face, edgecolors=edge, label=f"y = {label:.0f}", **look)


def kl_curves(ax: Any, steps: Steps, curves: Mapping[str, Sequence[float]], title: str, ylabel: str) -> None:
    """Draw KL against the number of observations, on a log axis; batch methods are level lines."""
    for key, values in curves.items():
        line = LINES[key]
        if len(values) == 1:
            style = {"color": line.color, "ls": line.dashes, "lw": line.width, "zorder": line.zorder}
            ax.axhline(values[0], label=line.label, **style)
        else:
            ax.plot(
                steps,
                values,
                color=line.color,
                ls=line.dashes,
                lw=line.width,
                zorder=line.zorder,
                label=line.label,
            )
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if high / low < 100.0:  # powers of ten alone would leave the axis bare
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set(title=title, xlabel="observations", ylabel=ylabel, xlim=(0, steps[-1]))


def ellipse(mean: Array, cov: Array, mass: float = MASS) -> Array:
    """Return points (2, 181) of the ellipse that holds the given probability of a 2-D Gaussian."""
    angle = np.linspace(0.0, 2.0 * math.pi, 181)
    circle = math.sqrt(-2.0 * math.log1p(-mass)) * np.vstack([np.cos(angle), np.sin(angle)])
    return np.asarray(mean)[:, None] + np.linalg.cholesky(cov) @ circle


def surface(grid: GridPosterior, box: Box, n: int) -> tuple[Array, Array, Array]:
    """Return the axes of a window and the log density of the true posterior in it."""
    first, second = np.linspace(box[0], box[1], n), np.linspace(box[2], box[3], n)
    return first, second, grid.log_prob(np.stack(np.meshgrid(first, second), axis=-1))


def levels(log_density: Array, masses: Sequence[float]) -> list[float]:
    """Return the log densities whose superlevel sets hold the given masses (highest density regions)."""
    flat = np.sort(log_density, axis=None)[::-1]
    held = np.cumsum(np.exp(flat - flat[0]))
    return [float(flat[np.searchsorted(held / held[-1], mass)]) for mass in masses]


def contours(ax: Any, first: Array, second: Array, log_density: Array) -> None:
    """Fill the regions that hold 99, 90 and 50 % of the true posterior, the 90 % one outlined."""
    low, middle, high = levels(log_density, (0.99, MASS, 0.5))
    top = float(log_density.max()) + 1.0
    ax.contourf(first, second, log_density, [low, middle, high, top], colors=["#EDEDED", "#D9D9D9", "#BFBFBF"])
    ax.contour(first, second, log_density, [middle], colors=[GREY], linewidths=1.0, linestyles="solid")


def around(clouds: Sequence[Array], margin: float = 0.06) -> Box:
    """Return the box that holds all the points (each cloud is (2, n)), with a margin."""
    points = np.concatenate(clouds, axis=1)
    low, high = points.min(axis=1), points.max(axis=1)
    pad = margin * (high - low)
    return (low[0] - pad[0], high[0] + pad[0], low[1] - pad[1], high[1] + pad[1])


def region(grid: GridPosterior) -> Array:
    """Return the grid points (2, k) inside the 99 % region of the true posterior."""
    inside: Array = grid.points[grid.log_density >= levels(grid.log_density, (0.99,))[0]]
    return inside.T
