"""Iterates of gradient descent as posterior samples: Table B.3, Figures B.2 and B.3 (a negative result).

The loss of the thesis is the mean squared error with weight decay λ: a Gaussian likelihood of precision 2 and a prior
of precision λN. Descent starts from the posterior mean, which its pre-training reaches.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gaussfold as gf
from experiments import style
from experiments.deep.linear import METRICS, without_bias
from experiments.deep.problems import Gaussian, distances, ellipse, exact, gaussian, mean_and_error, plane
from experiments.registry import Context, Result
from gaussfold import deep
from gaussfold.types import Array

LOSS = deep.log_likelihood(without_bias, gf.likelihoods.Gaussian(std=0.5**0.5))
B3 = {
    (0.1, 0.1): (0.0666, 0.6200, 0.4946),
    (0.1, 0.001): (0.0006, 0.8065, 0.0439),
    (0.01, 0.1): (0.0620, 1.7110, 0.4641),
    (0.01, 0.001): (0.0010, 0.9870, 0.0739),
}
WINDOWS = {"batches of 100, windows of 10": (100, 10), "batches of 10, windows of 50": (10, 50)}


class Recorded(deep.SWAG):
    """SWAG that also keeps every sample, to draw it."""

    def forget(self) -> None:
        """Begin with no samples."""
        super().forget()
        self.samples: list[Array] = []

    def take(self, samples: Array) -> None:
        """Look at them, and keep them."""
        super().take(samples)
        self.samples.append(samples)


def descend(trial: int, rate: float, decay: float, size: int, window: int, epochs: int) -> dict[str, Any]:
    """Samples, their Gaussian, SWAG's, the factor analysis' of all of them, and the exact posterior."""
    X, y = plane(trial)
    truth = exact(X, y, 0.01, 0.1)
    options: dict[str, Any] = {
        "prior_precision": decay * len(y),
        "batch_size": size,
        "optimizer": "sgd",
        "learning_rate": rate,
        "burn_in": 0,
        "every": window,
        "windows": window > 1,
        "seed": trial,
    }
    data, start = (X.astype(np.float32), y.astype(np.float32)), truth.mean.astype(np.float32)
    swag = Recorded(LOSS, start, rank=2, **options)
    posterior = swag.fit(data, epochs=epochs)
    samples = np.concatenate(swag.samples)
    analysis = deep.FactorIterates(LOSS, start, rank=1, **options).fit(data, epochs=epochs)
    return {
        "truth": truth,
        "samples": samples,
        "iterates": Gaussian(samples.mean(axis=0), np.cov(samples.T)),
        "SWAG": gaussian(posterior.belief),
        "online FA": gaussian(analysis.belief),
    }


def figb2(context: Context) -> Result:
    """All of it."""
    trials, epochs = (2, 30) if context.quick else (10, 100)
    figure = style.canvas(11.5, 7.4)
    axes = figure.subplots(2, 3)
    numbers: dict[str, Any] = {}
    for ax, (rate, decay) in zip((axes[0, 0], axes[0, 1], axes[1, 0], axes[1, 1]), B3, strict=True):
        runs = [descend(trial, rate, decay, 100, 1, epochs) for trial in context.track(range(trials), f"rate {rate}")]
        row = _summary(runs)
        numbers[f"learning rate {rate}, λ = {decay}"] = row | {"thesis": B3[rate, decay]}
        _scatter(ax, runs[0], f"rate {rate}, λ = {decay}: covariance {row['iterates'][1][0]:.2f} off")
    windows = {}
    for ax, (name, (size, window)) in zip(axes[:, 2], WINDOWS.items(), strict=True):
        runs = [descend(trial, 0.1, 0.001, size, window, epochs) for trial in range(trials)]
        windows[name] = _summary(runs)
        _scatter(ax, runs[0], f"{name}:\nrate 0.1, λ = 0.001, {windows[name]['iterates'][1][0]:.2f} off")
    axes[0, 0].legend(loc="best")
    least = min(row[kind][1][0] for row in numbers.values() for kind in ("iterates", "SWAG"))
    return Result(
        figure,
        {
            "metrics": METRICS,
            "table_b3": numbers,
            "windows_figure_b3": windows,
            "least_covariance_distance_of_swag_and_of_all_iterates": least,
        },
    )


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    table = {}
    for kind in ("iterates", "SWAG", "online FA"):
        found = np.array([distances(run[kind], run["truth"]) for run in runs])
        table[kind] = [mean_and_error(column) for column in found.T]
    return table


def _scatter(ax: Any, run: dict[str, Any], title: str) -> None:
    samples, truth = run["samples"], run["truth"]
    ax.plot(*samples.T, ".", ms=3, color=style.ORANGE, alpha=0.6, label="iterates", zorder=1)
    for mass in (0.5, 0.9, 0.99):
        ax.plot(*ellipse(truth, mass).T, color=style.BLUE, lw=1.8, label="exact posterior" if mass == 0.5 else None)
    ax.plot(*ellipse(run["iterates"], 0.9).T, color=style.VERMILION, ls="--", lw=1.8, label="Gaussian of the iterates")
    ax.plot(*truth.mean, "o", ms=6, mfc="white", mec=style.BLACK, label="start")
    ax.plot(*samples.mean(axis=0), "*", ms=9, color=style.BLACK, label="mean of the iterates")
    ax.set(xlabel="first weight", ylabel="second weight", title=title)
