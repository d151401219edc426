"""Figure 11: iso-probability maps of the integrated prediction (62)."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import BoundaryNorm
from scipy.special import expit

import gaussfold as gf
from experiments.registry import Context, Result
from experiments.rvga import panels, settings
from experiments.rvga.methods import LOGISTIC, METHODS, history, laplace
from experiments.rvga.settings import Problem
from experiments.style import BLACK, LINES, canvas
from gaussfold import batch
from gaussfold.types import Array

HALF_WIDTH = 8.0
LEVELS = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
TITLES = {
    "implicit": "R-VGA implicit",
    "explicit": "R-VGA explicit",
    "exact": "gaussfold default",
    "truth": "true posterior (grid)",
    "ekf": "EKF",
    "qkf": "QKF",
    "laplace": "Laplace (batch)",
    "map": "MAP, plugged in",
}


def fig11(context: Context) -> Result:
    """Draw maps of P(y = 1 | x) for every method, beside the same integral over the true posterior."""
    problem = settings.load(settings.FIG11, context.oracles)
    n = 41 if context.quick else 121
    axis = np.linspace(-HALF_WIDTH, HALF_WIDTH, n)
    X = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    end = np.array([len(problem.y)])
    batch_belief = laplace(problem)
    maps: dict[str, Array] = {"truth": _under_the_true_posterior(problem, X, context)}
    for key, method in METHODS.items():
        belief = history(method, problem, end)[0]
        maps[key] = _integrated(belief, X, method.likelihood)
    maps["laplace"] = _integrated(batch_belief, X, METHODS["implicit"].likelihood)
    maps["map"] = expit(X @ batch_belief.mean)

    figure = canvas(13.0, 6.5)
    axes = figure.subplots(2, 4, sharex=True, sharey=True)
    norm = BoundaryNorm(LEVELS, 256)
    for ax, (key, title) in zip(axes.flat, TITLES.items(), strict=True):
        values = maps[key].reshape(n, n)
        filled = ax.contourf(axis, axis, values, LEVELS, cmap="PuOr_r", norm=norm)
        ax.contour(axis, axis, values, [0.05, 0.5, 0.95], colors=[BLACK], linewidths=[0.7, 1.3, 0.7])
        panels.classes(ax, problem, ("white", BLACK), (BLACK, BLACK), s=9, linewidths=0.5, alpha=0.7)
        ax.set_title(title, color=LINES[key].color if key in LINES else BLACK, fontweight="bold")
        ax.grid(visible=False)
        ax.set_aspect("equal")
        ax.set(xticks=range(-8, 9, 4), yticks=range(-8, 9, 4))
    for ax in axes[1]:
        ax.set_xlabel("$x_1$")
    for ax in axes[:, 0]:
        ax.set_ylabel("$x_2$")
    figure.colorbar(filled, ax=axes, label="P(y = 1 | x)", ticks=LEVELS, shrink=0.85)

    error = {key: np.abs(values - maps["truth"]) for key, values in maps.items()}
    numbers: dict[str, Any] = {
        "data": problem.source,
        "setting": settings.FIG11.numbers(),
        "map_half_width": HALF_WIDTH,
        "mean_confidence": {key: float(np.mean(np.abs(values - 0.5) + 0.5)) for key, values in maps.items()},
        "mean_abs_error": {key: float(values.mean()) for key, values in error.items()},
        "max_abs_error": {key: float(values.max()) for key, values in error.items()},
    }
    return Result(figure, numbers)


def _integrated(belief: gf.DenseGaussian, X: Array, likelihood: Any) -> Array:
    return np.asarray(likelihood.predictive(belief.marginal(X)).mean)


def _under_the_true_posterior(problem: Problem, X: Array, context: Context) -> Array:
    """Average σ(x'θ) over the true posterior on a grid."""
    grid = batch.GridPosterior(problem.prior, LOGISTIC, problem.X, problem.y)
    weight = np.exp(grid.log_density - grid.log_density.max())
    kept = weight > 1e-9
    theta, weight = grid.points[kept], weight[kept] / weight[kept].sum()
    chunks = np.array_split(X, max(1, len(X) // 200))
    tracked = context.track(chunks, "average over the true posterior")
    return np.concatenate([expit(rows @ theta.T) @ weight for rows in tracked])
