"""Figures 2 and 3: heteroscedastic noise on the motorcycle data, four folds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import style
from experiments.bayes_newton import methods
from experiments.bayes_newton.kept import kept
from experiments.registry import ORACLES, Context, Result
from gaussfold.gp import GaussianProcess, Matern32
from gaussfold.likelihoods import HeteroscedasticGaussian
from gaussfold.types import Array

DATA = ORACLES.parent / "data"
DAMPING, RATE = 0.5, 0.3


def load(folder: Path = DATA) -> tuple[Array, Array, Array]:
    """Standardised times and accelerations, and the rows of the four test sets."""
    if not (folder / "mcycle.csv").is_file():
        msg = f"{folder / 'mcycle.csv'} is absent: the motorcycle figures need the data folder ../shared/data"
        raise FileNotFoundError(msg)
    raw = np.genfromtxt(folder / "mcycle.csv", delimiter=",")[:, -2:]
    values = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    split = ORACLES / "bayesnewton" / "motorcycle_data.npz"
    if split.is_file():  # the authors' folds, so that their numbers can stand beside ours
        with np.load(split) as found:
            return values[:, 0], values[:, 1], found["ind_split"]
    order = np.genfromtxt(folder / "mcycle_cvind.csv", delimiter=",").astype(int).ravel()
    return values[:, 0], values[:, 1], order[: 4 * 33].reshape(4, 33)


def make(rule: Any, curvature: Any) -> GaussianProcess:
    """Two unit Matérn-3/2 processes: the mean and, through a softplus, the noise."""
    kernels = [Matern32(1.0, 1.0), Matern32(1.0, 1.0)]
    return GaussianProcess(kernels, HeteroscedasticGaussian(), rule, curvature, "markov", damping=RATE, verbose=False)


def nlpd(model: GaussianProcess, X: Array, Y: Array) -> float:
    """Mean negative log predictive density, the inner latent integrated exactly."""
    mean, cov = model.predict_latent(X)
    return float(-model.likelihood.log_predictive(Y[:, None], mean, cov).mean())


def fig3(context: Context) -> Result:
    """NLPD against iterations for every method, mean of four folds; and where each one ended."""
    X, Y, folds = load()
    last = 20 if context.quick else 500
    names = methods.methods(DAMPING)
    traces: dict[str, list[methods.Trace]] = {name: [] for name in names}
    runs = [(i, name) for i in range(1 if context.quick else 4) for name in names]
    for fold, name in context.track(runs, "runs"):
        test = folds[fold]
        train = np.setdiff1d(np.arange(len(X)), np.concatenate([test, _left_out(len(X), folds)]))
        make_trace = partial(
            methods.run, make, X[train], Y[train], *names[name],
            lambda m, t=test: (nlpd(m, X[t], Y[t]), np.nan), last,
        )  # fmt: skip
        traces[name].append(kept(f"motorcycle-{name}-{fold}-{last}", make_trace, context))
    numbers = methods.table(traces, methods.authors(ORACLES, "motorcycle"), rmse=False)
    return Result(
        scoreboard(traces, numbers, "nlpd", "test NLPD", (0.3, 1.3)), {"iterations": last, "methods": numbers}
    )


def _left_out(n: int, folds: Array) -> Array:
    """The rows that are in no fold: 133 points make 4 x 33, and one too many."""
    return np.setdiff1d(np.arange(n), folds.ravel())


def scoreboard(traces: Any, numbers: Any, what: str, label: str, limits: tuple[float, float]) -> Any:
    """Left: convergence. Right: the final score of every method with its spread over folds, ours and the authors'."""
    figure = style.canvas(13.0, 6.2)
    left, right = figure.subplots(1, 2, width_ratios=[1.15, 1.0])
    methods.convergence(left, traces, what)
    left.set(xscale="log", xlabel="iteration", ylabel=label, ylim=limits)
    left.set_title("mean over data sets (a cross: some run failed there)")
    ends(right, numbers, what, label)
    left.legend(fontsize=7, ncols=2, frameon=True, framealpha=0.9, edgecolor="none")
    return figure


def ends(ax: Any, numbers: Any, what: str, label: str) -> None:
    """Final scores: filled ours, open the authors'; bars are one standard deviation over folds, crosses failures."""
    for row, (name, entry) in enumerate(numbers.items()):
        color = methods.line(name)["color"]
        if entry["failed"]:
            ax.plot(entry[what]["before_failure"]["mean"], row - 0.14, "x", ms=6, color=color)
        else:
            ax.errorbar(entry[what]["mean"], row - 0.14, xerr=entry[what]["std"], fmt="o", ms=5, color=color, lw=1.2)
        theirs = entry.get(f"authors_{what}")
        if theirs and entry["authors_failed"]:
            ax.plot(theirs["mean"], row + 0.14, "x", ms=5, color=style.GREY)
        elif theirs:
            ax.errorbar(
                theirs["mean"], row + 0.14, xerr=theirs["std"], fmt="o", ms=5, mfc="white", color=style.GREY, lw=1.0
            )
    ax.set_yticks(range(len(numbers)), [methods.line(name)["label"] for name in numbers], fontsize=8)
    ax.invert_yaxis()
    ax.set(xlabel=f"final {label}")
    ax.set_title("colour: ours, grey: the authors'; a cross: some run failed")


def fig2(context: Context) -> Result:
    """The posterior under three curvatures, and the joint posterior of both latents at three times."""
    X, Y, _ = load()
    last = 20 if context.quick else 300
    names = methods.methods(DAMPING)
    shown = {"vi_heuristic": style.GREY, "vi_gaussnewton": style.SKY, "vi_quasinewton": style.VERMILION}
    figure = style.canvas(12.0, 7.0)
    grid = figure.add_gridspec(2, 3, height_ratios=[1.5, 1.0])
    top = figure.add_subplot(grid[0, :])
    below = [figure.add_subplot(grid[1, i]) for i in range(3)]
    times = [-1.1, -0.35, 0.6]
    wide = np.linspace(X.min() - 0.1, X.max() + 0.1, 300)
    top.plot(X, Y, "x", color=style.BLACK, ms=4, label="data")
    numbers: dict[str, Any] = {"iterations": last}
    for name, color in context.track(shown.items(), "methods"):
        model = make(*names[name]).fit(X, Y, iterations=last)
        mean, cov = model.likelihood.predictive(*model.predict_latent(wide))
        std = np.sqrt(cov[:, 0, 0])
        label = methods.line(name)["label"]
        top.plot(wide, mean[:, 0], color=color, lw=1.8, label=label)
        for side in (-2.0, 2.0):
            top.plot(wide, mean[:, 0] + side * std, color=color, lw=1.0, ls=(0, (4, 2)))
        at_mean, at_cov = model.predict_latent(np.array(times))
        correlation = at_cov[:, 0, 1] / np.sqrt(at_cov[:, 0, 0] * at_cov[:, 1, 1])
        numbers[name] = {"energy": model.energy(), "correlation": correlation, "times": times}
        for ax, m, C in zip(below, at_mean, at_cov, strict=True):
            _ellipse(ax, m, C, color)
    for ax, t, r in zip(below, times, np.transpose([numbers[n]["correlation"] for n in shown]), strict=True):
        top.axvline(t, color=style.LIGHT, lw=1.0, zorder=0)
        ax.set(xlabel="f₁ (mean)", ylabel="f₂ (noise)")
        ax.set_title(f"x = {t:g}: correlations " + ", ".join(f"{value:+.2f}" for value in r))
    top.set(xlabel="time (standardised)", ylabel="acceleration (standardised)")
    top.set_title("posterior predictive mean and two standard deviations")
    top.legend(ncols=4)
    return Result(figure, numbers)


def _ellipse(ax: Any, mean: Array, cov: Array, color: str) -> None:
    turn = np.linspace(0.0, 2.0 * np.pi, 100)
    for size in (1.0, 2.0):
        ring = mean[:, None] + size * np.linalg.cholesky(cov) @ np.stack([np.cos(turn), np.sin(turn)])
        ax.plot(*ring, color=color, lw=1.6 if size == 1.0 else 1.0)
