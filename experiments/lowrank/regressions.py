"""Low-rank posteriors: lrvga figures 2 and 3, table 3, and error against cost for the projections."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import gaussfold as gf
from experiments import style
from experiments.lowrank.covariances import kl as covariance_kl
from experiments.lowrank.problems import Regression, covariance_data, linear, logistic
from experiments.registry import Context, Result
from gaussfold import batch
from gaussfold.metrics import kl_to_posterior_exact

RANKS = {1: style.ORANGE, 2: style.GREEN, 10: style.BLUE, 100: style.PURPLE}


def _curve(problem: Regression, belief: Any, steps: np.ndarray) -> list[float]:
    """Unnormalised KL to the posterior of *all* rows, along the stream."""
    seen, found = 0, []
    for step in steps:
        if step > seen:
            gf.fold(belief, problem.likelihood, problem.X[seen:step], problem.y[seen:step])
        seen = step
        dense = belief if isinstance(belief, gf.DenseGaussian) else belief.to_dense()
        found.append(kl_to_posterior_exact(dense, problem.prior, problem.likelihood, problem.X, problem.y))
    return found


PANELS: dict[str, dict[str, Any]] = {
    "calibrated, 1 loop (ours)": {"projection": "calibrated"},
    "eigen-projection, 1 loop": {"projection": "eigen"},
    "recursive EM, 3 loops": {"projection": "em", "inner_loops": 3},
}


def _ranks(context: Context, problem: Regression, title: str, level: tuple[str, float], full: str) -> Result:
    d, n = problem.X.shape[1], len(problem.y)
    steps = np.unique(np.linspace(0, n, 6 if context.quick else 26).astype(int))
    figure = style.canvas(13.0, 4.6)
    axes = figure.subplots(1, len(PANELS), sharey=True)
    whole = _curve(problem, problem.prior, steps)
    numbers: dict[str, Any] = {"d": d, "steps": steps, level[0]: level[1], "kl": {full: whole}}
    for ax, (name, options) in zip(axes, PANELS.items(), strict=True):
        for p, color in context.track([(p, c) for p, c in RANKS.items() if p <= d], name):
            belief = gf.LowRankGaussian.isotropic(d, p, problem.prior_std, **options)
            curve = _curve(problem, belief, steps)
            numbers["kl"].setdefault(name, {})[f"p={p}"] = curve
            ax.plot(steps, np.array(curve) - level[1], color=color, label=f"p = {p}")
        ax.plot(steps, np.array(whole) - level[1], color=style.BLACK, ls=(0, (1.2, 1.2)), label=full)
        ax.set(title=name, xlabel="rows seen", yscale="symlog")
    axes[0].set_ylabel(f"KL above {level[0]}")
    axes[0].legend()
    figure.suptitle(f"{title} regression, d = {d}, N = {n}, prior std {problem.prior_std:g}")
    return Result(figure, numbers)


def _size(context: Context, paper: tuple[int, int]) -> tuple[int, int]:
    """Dimension and rows: the paper's with ``--full``, of the authors' shorter scripts without."""
    if context.full:
        return paper
    return (40, 150) if context.quick else (200, 1000)


def fig2(context: Context) -> Result:
    """Linear regression: KL to the exact posterior for several ranks, and the Kalman filter."""
    problem = linear(*_size(context, (1000, 3000)), 1.0)
    exact = batch.exact_linear(problem.prior, problem.X, problem.y, 1.0)
    level = kl_to_posterior_exact(exact, problem.prior, problem.likelihood, problem.X, problem.y)
    return _ranks(context, problem, "linear", ("the exact posterior", level), "Kalman filter")


def fig3(context: Context) -> Result:
    """Logistic regression, prior std 4: KL for several ranks, against the batch Laplace approximation."""
    problem = logistic(*_size(context, (1000, 10_000)), 4.0)
    laplace = batch.laplace(problem.prior, problem.likelihood, problem.X, problem.y)
    level = kl_to_posterior_exact(laplace, problem.prior, problem.likelihood, problem.X, problem.y)
    return _ranks(context, problem, "logistic", ("batch Laplace", level), "full R-VGA")


SETTINGS = [
    ("calibrated", 1, 1), ("calibrated", 1, 8), ("calibrated", 1, 20), ("calibrated", 1, 32),
    ("eigen", 1, 1), ("eigen", 3, 1), ("eigen", 1, 8), ("eigen", 1, 32), ("eigen", 3, 32),
    ("em", 1, 1), ("em", 2, 1), ("em", 3, 1), ("em", 10, 1), ("em", 3, 32), ("em", 10, 32),
]  # fmt: skip
"""Projection, inner loops, block size."""


def cost(context: Context) -> Result:
    """Error against time: projections and loops, by row and by block; linear, logistic, a covariance."""
    d, n = (30, 120) if context.quick else (200, 400)
    figure = style.canvas(13.0, 4.8)
    numbers: dict[str, Any] = {"d": d, "rows": n, "rank": 10}
    runs = {"linear": _posterior_run(linear(d, n, 3.0)), "logistic": _posterior_run(logistic(d, n, 3.0))}
    runs["covariance"] = _covariance_run(d, n)
    for ax, (name, run) in zip(figure.subplots(1, 3), runs.items(), strict=True):
        for projection, loops, block in context.track(SETTINGS, name):
            if name == "covariance" and projection == "calibrated":
                continue  # of precisions only
            options: dict[str, Any] = {"projection": projection, "inner_loops": loops, "block_size": block}
            seconds, error = run(options)
            numbers.setdefault(name, {})[f"{projection} loops={loops} block={block}"] = [seconds, error]
            color = {"calibrated": style.VERMILION, "eigen": style.BLUE, "em": style.GREEN}[projection]
            ax.scatter(seconds * 1e3, error, color=color, marker="o" if block == 1 else "s", s=30)
            ax.annotate(f" {loops}×{block}", (seconds * 1e3, error), fontsize=7)
        level = "exact covariance" if name == "covariance" else "dense filter"
        ax.set(title=name, xlabel="processor ms per row", ylabel=f"KL above the {level}", xscale="log", yscale="log")
    figure.suptitle(f"d = {d}, p = 10: calibrated (red), eigen (blue), recursive EM (green); labels: loops × block")
    return Result(figure, numbers)


def _posterior_run(problem: Regression) -> Callable[[dict[str, Any]], tuple[float, float]]:
    def kl(belief: Any) -> float:
        return kl_to_posterior_exact(belief, problem.prior, problem.likelihood, problem.X, problem.y)

    dense = problem.prior
    gf.fold(dense, problem.likelihood, problem.X, problem.y)
    level = kl(dense)

    def run(options: dict[str, Any]) -> tuple[float, float]:
        belief = gf.LowRankGaussian.isotropic(problem.X.shape[1], 10, problem.prior_std, **options)
        started = time.process_time()
        gf.fold(belief, problem.likelihood, problem.X, problem.y)
        return (time.process_time() - started) / len(problem.y), kl(belief.to_dense()) - level

    return run


def _covariance_run(d: int, n: int) -> Callable[[dict[str, Any]], tuple[float, float]]:
    X, p = covariance_data(f"d = {d}", n < 200)
    X = X[: 4 * n]
    S = X.T @ X / len(X) + (1e-9 / d) * np.eye(d)

    def run(options: dict[str, Any]) -> tuple[float, float]:
        model = gf.StreamingFactorAnalysis(p, center=False, random_state=7, **options)
        started = time.process_time()
        model.partial_fit(X)
        return (time.process_time() - started) / len(X), covariance_kl(model.get_covariance(), S)

    return run


def table3(context: Context) -> Result:
    """Ten ensemble samples, ten Cholesky samples, and exact values: E σ(x'θ) and the trace, over many seeds."""
    d, p, seeds = (300, 10, 20) if context.quick else (10_000 if context.full else 2000, 10, 200)
    rng = np.random.default_rng(3)
    W, x = rng.standard_normal((d, p)), rng.standard_normal(d)
    belief = gf.LowRankGaussian(x / np.linalg.norm(x) ** 2, W, np.arange(1.0, d + 1.0))
    mean, variance = belief.marginal(x[None])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    exact = float((weights / weights.sum()) @ (1.0 / (1.0 + np.exp(-(mean + np.sqrt(variance) * nodes)))))
    root = np.linalg.cholesky(belief.to_dense().cov)
    samplers = {
        "ensemble": lambda draw: belief.sample(10, draw) - belief.mean,
        "Cholesky": lambda draw: draw.standard_normal((10, d)) @ root.T,
    }
    found: dict[str, dict[str, list[float]]] = {}
    for number, (name, sampler) in enumerate(samplers.items()):
        away = [sampler(np.random.default_rng([number, seed])) for seed in range(seeds)]
        found[name] = {
            "E_sigma": [float((1.0 / (1.0 + np.exp(-(mean + a @ x)))).mean()) for a in away],
            "trace": [float(np.square(a).sum(axis=1).mean()) for a in away],
        }
    figure = style.canvas(11.0, 5.0)
    truths = {"E_sigma": exact, "trace": belief.trace()}
    labels = {"E_sigma": "E σ(x'θ) from 10 samples", "trace": "trace of the covariance from 10 samples"}
    for ax, (key, truth) in zip(figure.subplots(1, 2), truths.items(), strict=True):
        for name, color, dashes in (("ensemble", style.BLUE, "-"), ("Cholesky", style.ORANGE, (0, (4, 2)))):
            values = np.sort(found[name][key])
            ax.plot(values, np.arange(1, seeds + 1) / seeds, color=color, ls=dashes, lw=2, label=f"{name} sampling")
        ax.axvline(truth, color=style.VERMILION, lw=1, label="exact")
        ax.set(xlabel=labels[key], ylabel=f"share of {seeds} seeds below")
        ax.legend()
    summary = {
        name: {key: {"mean": float(np.mean(v)), "std": float(np.std(v))} for key, v in each.items()}
        for name, each in found.items()
    }
    return Result(figure, {"d": d, "rank": p, "seeds": seeds, "exact": truths, **summary})
