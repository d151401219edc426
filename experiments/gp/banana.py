"""Banana: classification with a sparse Gaussian process whose inducing inputs and hyperparameters are learned."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from experiments.gp.data import path
from experiments.registry import Context, Result
from experiments.style import BLACK, BLUE, GREY, ORANGE, canvas
from gaussfold import gp
from gaussfold.types import Array

TRAIN = 400  # as in the usual splits of these data; the other 4900 rows are for testing
DRAWN = (4, 8, 32)


def load() -> tuple[Array, Array]:
    """All 5300 rows in the order of the file, labels 0 and 1."""
    table = np.loadtxt(path("banana_large.csv"), delimiter=",", skiprows=1)
    return table[:, :2], (table[:, 2] > 0).astype(float)


def scores(process: gp.GaussianProcess, X: Array, y: Array) -> dict[str, float]:
    """Error rate and NLPD."""
    nlpd = -float(process.predict_density(X, y).mean())
    return {"error_rate": float(np.mean((process.predict(X) > 0.5) != (y > 0.5))), "nlpd": nlpd}


def fitted(X: Array, y: Array, inducing: int | None, seed: int) -> tuple[gp.GaussianProcess, dict[str, float]]:
    """Sparse with so many inducing inputs, or dense for None; everything learned."""
    options: dict[str, Any] = {"structure": "dense", "damping": 0.5}  # undamped, large variances make it oscillate
    if inducing is not None:
        options = {"structure": "sparse", "inducing": inducing, "random_state": seed}
    process = gp.GaussianProcess(gp.Matern52(4.0, 1.0), "bernoulli", verbose=False, **options)
    began = time.perf_counter()
    process.fit(X, y)
    found = process.learn_hyperparameters(max_iter=60)
    numbers = {"seconds": time.perf_counter() - began, "energy": found.energy, "evaluations": found.evaluations}
    return process, numbers | {k.removeprefix("covariance."): v for k, v in process.parameters().items()}


def draw(ax: Any, process: gp.GaussianProcess, X: Array, y: Array, title: str) -> None:
    """Data, contours of the probability, and where the inducing inputs ended."""
    a, b = np.meshgrid(np.linspace(-3.2, 3.2, 90), np.linspace(-2.8, 2.8, 90))
    p = process.predict(np.column_stack([a.ravel(), b.ravel()])).reshape(a.shape)
    ax.scatter(*X[y > 0.5].T, s=7, color=ORANGE, marker="o", alpha=0.7, lw=0, label="class 1")
    ax.scatter(*X[y < 0.5].T, s=9, color=BLUE, marker="x", alpha=0.7, lw=0.8, label="class -1")
    lines = ax.contour(a, b, p, levels=[0.1, 0.5, 0.9], colors=GREY, linewidths=[0.9, 2.0, 0.9])
    ax.clabel(lines, fontsize=7)
    if process.structure == "sparse":
        Z = process.prior_.Z
        ax.scatter(*Z.T, s=42, facecolor="white", edgecolor=BLACK, lw=1.4, zorder=5, label="inducing inputs")
    ax.set(title=title, xlabel="first input", ylabel="second input", xlim=(-3.2, 3.2), ylim=(-2.8, 2.8))


def run(context: Context) -> Result:
    """Three fits over the data, and error and NLPD against the number of inducing inputs."""
    X, y = load()
    splits = 1 if context.quick else 3
    counts = (4, 8) if context.quick else (4, 8, 16, 32, 64)
    orders = [np.random.default_rng(seed).permutation(y.size) for seed in range(splits)]
    figure = canvas(12.0, 7.6)
    axes = figure.subplots(2, 3)
    for inducing in (4, None):
        fitted(X[:30], y[:30], inducing, 0)  # compiles
    rows: dict[str, list[dict[str, float]]] = {}
    keys = [(count, seed) for count in (*counts, None) for seed in range(splits)]
    for count, seed in context.track(keys, "fits"):
        train, test = orders[seed][:TRAIN], orders[seed][TRAIN:]
        process, numbers = fitted(X[train], y[train], count, seed)
        rows.setdefault("dense" if count is None else str(count), []).append(
            numbers | scores(process, X[test], y[test])
        )
        if seed == 0 and count in DRAWN:
            draw(axes[0, DRAWN.index(count)], process, X[train], y[train], f"{count} inducing inputs")
    axes[0, 0].legend(loc="lower left", framealpha=0.9, frameon=True, fontsize=7)
    panels = (("error_rate", "test error rate"), ("nlpd", "test NLPD (nats)"), ("seconds", "seconds to learn"))
    for ax, (key, label) in zip(axes[1], panels, strict=True):
        mean, spread = (
            np.array([f([row[key] for row in rows[str(count)]]) for count in counts]) for f in (np.mean, np.std)
        )
        ax.errorbar(counts, mean, yerr=spread, color=BLUE, marker="o", capsize=3, label="sparse")
        dense = float(np.median([row[key] for row in rows["dense"]]))
        ax.axhline(dense, color=BLACK, ls=(0, (5, 2)), label="dense, median")
        ax.set(xlabel="inducing inputs", ylabel=label, xscale="log")
        ax.set_xticks(counts, [str(count) for count in counts], minor=False)
        ax.minorticks_off()
        ax.legend()
    numbers = {
        name: {key: float(np.mean([row[key] for row in found])) for key in found[0]}
        | {f"{key}_per_split": [row[key] for row in found] for key in ("error_rate", "nlpd", "energy")}
        for name, found in rows.items()
    }
    return Result(figure, {"train": TRAIN, "test": y.size - TRAIN, "splits": splits, "models": numbers})
