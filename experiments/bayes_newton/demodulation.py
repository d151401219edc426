"""Figures 4 and 5: a carrier times an amplitude, and who finds the two again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import style
from experiments.bayes_newton import methods
from experiments.bayes_newton.kept import kept
from experiments.bayes_newton.motorcycle import ends
from experiments.registry import ORACLES, Context, Result
from gaussfold.expectations.cubature import GaussHermite
from gaussfold.gp import Cosine, GaussianProcess, Matern32, Matern52
from gaussfold.likelihoods import ProductGaussian
from gaussfold.types import Array

VARIANCE, RATE = 0.1, 0.1
NODES = GaussHermite(10)  # the paper's 20 change the posterior means by less than 1e-6 here


def kernels() -> list[Any]:
    """A nearly perfect sinusoid of period 5, and an envelope of length scale 3."""
    return [Cosine(0.4 * np.pi) * Matern32(1.0, 500.0), Matern52(2.0, 3.0)]


def load(folder: Path = ORACLES) -> tuple[Array, Array, Array, Array, str]:
    """Times, signal, both latents and the four test sets: the authors' where we have them, else drawn anew."""
    path = folder / "bayesnewton" / "product_data.npz"
    if path.is_file():
        with np.load(path) as found:
            return found["X"], found["Y"], found["f_true"], found["ind_split"], "authors"
    rng = np.random.default_rng(73)
    X = np.linspace(0.0, 200.0, 1000)
    latents = np.stack(
        [
            np.linalg.cholesky(k(X[:, None], X[:, None]) + 1e-8 * np.eye(1000)) @ rng.standard_normal(1000)
            for k in kernels()
        ],
        axis=1,
    )
    signal = latents[:, 0] * np.log1p(np.exp(latents[:, 1]))
    Y = signal + np.sqrt(VARIANCE) * rng.standard_normal(1000)
    return X, Y, latents, rng.permutation(1000).reshape(4, 250), "synthetic"


def make(rule: Any, curvature: Any) -> GaussianProcess:
    """The paper's model with its true hyperparameters."""
    nodes = None if rule.name == "ep" else NODES
    likelihood = ProductGaussian(std=np.sqrt(VARIANCE))
    return GaussianProcess(
        kernels(), likelihood, rule, curvature, "markov", damping=RATE, cubature=nodes, verbose=False
    )


def scores(model: GaussianProcess, X: Array, Y: Array, latents: Array, test: Array) -> tuple[float, float]:
    """NLPD of the test points, and the distance of both posterior means from the true latents."""
    mean, cov = model.predict_latent(X)
    nlpd = -model.likelihood.log_predictive(Y[test, None], mean[test], cov[test]).mean()
    return float(nlpd), float(np.sqrt(((mean - latents) ** 2).mean()))


def fig5(context: Context) -> Result:
    """NLPD and ground-truth RMSE against iterations, mean of four folds."""
    X, Y, latents, folds, source = load()
    last = 15 if context.quick else 300
    names = methods.methods(0.5)
    traces: dict[str, list[methods.Trace]] = {name: [] for name in names}
    runs = [(i, name) for i in range(1 if context.quick else 4) for name in names]
    for fold, name in context.track(runs, "runs"):
        test = folds[fold]
        train = np.setdiff1d(np.arange(len(X)), test)
        make_trace = partial(
            methods.run, make, X[train], Y[train], *names[name],
            lambda m, t=test: scores(m, X, Y, latents, t), last, 20,
        )  # fmt: skip
        traces[name].append(kept(f"product-{source}-{name}-{fold}-{last}", make_trace, context))
    theirs = methods.authors(ORACLES, "product") if source == "authors" else {}
    numbers = methods.table(traces, theirs, rmse=True)
    figure = style.canvas(14.0, 9.5)
    axes = figure.subplots(2, 2, width_ratios=[1.15, 1.0])
    for row, what, label, limits in zip(
        axes, ("nlpd", "rmse"), ("test NLPD", "RMSE of both latents"), ((-0.2, 1.5), (0.0, 1.6)), strict=True
    ):
        methods.convergence(row[0], traces, what)
        row[0].set(xscale="log", xlabel="iteration", ylabel=label, ylim=limits)
        ends(row[1], numbers, what, label)
    axes[0, 0].legend(fontsize=7, ncols=2, frameon=True, framealpha=0.9, edgecolor="none")
    axes[0, 0].set_title("mean over folds (a cross: some run failed there)")
    return Result(figure, {"data": source, "iterations": last, "methods": numbers})


def fig4(context: Context) -> Result:
    """A segment of the signal, and the latents as heuristic VI and variational Gauss-Newton see them."""
    X, Y, latents, folds, source = load()
    last = 15 if context.quick else 300
    train = np.setdiff1d(np.arange(len(X)), folds[0])
    part = slice(0, 250)
    figure = style.canvas(11.0, 8.0)
    top, middle, bottom = figure.subplots(3, 1, sharex=True)
    top.plot(X[part], Y[part], ".", color=style.GREY, ms=3, label="signal")
    names = methods.methods(0.5)
    numbers: dict[str, Any] = {"data": source, "iterations": last}
    truth = np.log1p(np.exp(latents[:, 1]))
    middle.plot(X[part], truth[part], color=style.BLACK, lw=2.0, label="truth")
    bottom.plot(X[part], latents[part, 0], color=style.BLACK, lw=2.0, label="truth")
    for name, color in {"vi_heuristic": style.ORANGE, "vi_gaussnewton": style.BLUE}.items():
        model = make(*names[name]).fit(X[train], Y[train], iterations=last)
        mean, cov = model.predict_latent(X)
        std = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
        label = methods.line(name)["label"]
        predicted, _ = model.likelihood.predictive(mean, cov)
        top.plot(X[part], predicted[part, 0], color=color, lw=1.2, label=label)
        envelope = [np.log1p(np.exp(mean[:, 1] + s * std[:, 1])) for s in (0.0, -2.0, 2.0)]
        middle.plot(X[part], envelope[0][part], color=color, lw=1.4, label=label)
        middle.fill_between(X[part], envelope[1][part], envelope[2][part], color=color, alpha=0.15, lw=0)
        bottom.plot(X[part], mean[part, 0], color=color, lw=1.4, label=label)
        bottom.fill_between(
            X[part], (mean - 2 * std)[part, 0], (mean + 2 * std)[part, 0], color=color, alpha=0.15, lw=0
        )
        rmse = np.sqrt(((mean - latents) ** 2).mean(axis=0))
        numbers[name] = {"energy": model.energy(), "rmse_carrier": rmse[0], "rmse_envelope": rmse[1]}
    for ax, label in zip((top, middle, bottom), ("signal", "amplitude φ(f₂)", "carrier f₁"), strict=True):
        ax.set_ylabel(label)
        ax.legend(ncols=3, fontsize=8, loc="upper right", frameon=True, framealpha=0.9, edgecolor="none")
    bottom.set_xlabel("x")
    top.set_title("amplitude demodulation: bands are two posterior standard deviations")
    return Result(figure, numbers)
