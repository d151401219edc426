"""Low-rank posteriors: lrvga figures 2 and 3, table 3, and error against cost for the projections."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import gaussfold as gf
from experiments import style
from experiments.lowrank.problems import Regression, linear, logistic
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
        found.append(kl_to_posterior_exact(belief.to_dense(), problem.prior, problem.likelihood, problem.X, problem.y))
    return found


def _ranks(context: Context, problem: Regression, title: str, level: tuple[str, float]) -> Result:
    d, n = problem.X.shape[1], len(problem.y)
    steps = np.unique(np.linspace(0, n, 6 if context.quick else 26).astype(int))
    figure = style.canvas(11.0, 4.6)
    left, right = figure.subplots(1, 2)
    numbers: dict[str, Any] = {"steps": steps, level[0]: level[1], "kl": {}}
    for ax, options, name in (
        (left, {}, "eigen-projection, 1 loop"),
        (right, {"projection": "em", "inner_loops": 3}, "recursive EM, 3 loops"),
    ):
        for p, color in context.track([(p, c) for p, c in RANKS.items() if p <= d], name):
            belief = gf.LowRankGaussian.isotropic(d, p, problem.prior_std, **options)
            curve = _curve(problem, belief, steps)
            numbers["kl"].setdefault(name, {})[f"p={p}"] = curve
            ax.plot(steps, np.array(curve) - level[1], color=color, label=f"p = {p}")
        ax.set(title=f"{title}: {name}", xlabel="rows seen", ylabel=f"KL above {level[0]}", yscale="symlog")
    left.legend()
    return Result(figure, numbers)


def fig2(context: Context) -> Result:
    """Linear regression, d = 200: KL to the exact posterior for several ranks."""
    problem = linear(40 if context.quick else 200, 150 if context.quick else 1000, 1.0)
    exact = batch.exact_linear(problem.prior, problem.X, problem.y, 1.0)
    level = kl_to_posterior_exact(exact, problem.prior, problem.likelihood, problem.X, problem.y)
    return _ranks(context, problem, "linear", ("the exact posterior", level))


def fig3(context: Context) -> Result:
    """Logistic regression, prior std 4: KL for several ranks, against the batch Laplace approximation."""
    problem = logistic(40 if context.quick else 200, 150 if context.quick else 1000, 4.0)
    laplace = batch.laplace(problem.prior, problem.likelihood, problem.X, problem.y)
    level = kl_to_posterior_exact(laplace, problem.prior, problem.likelihood, problem.X, problem.y)
    return _ranks(context, problem, "logistic", ("batch Laplace", level))


def cost(context: Context) -> Result:
    """Error against time: projections and loops, by row and by block, linear and logistic."""
    d, n = (40, 150) if context.quick else (200, 800)
    settings: list[tuple[str, int, int]] = [
        ("eigen", 1, 1), ("eigen", 3, 1), ("eigen", 1, 8), ("eigen", 1, 32), ("eigen", 3, 32),
        ("em", 1, 1), ("em", 2, 1), ("em", 3, 1), ("em", 10, 1), ("em", 3, 32), ("em", 10, 32),
    ]  # fmt: skip
    figure = style.canvas(11.0, 4.6)
    numbers: dict[str, Any] = {}
    for ax, (name, problem) in zip(
        figure.subplots(1, 2), (("linear", linear(d, n, 3.0)), ("logistic", logistic(d, n, 3.0))), strict=True
    ):
        dense = problem.prior
        gf.fold(dense, problem.likelihood, problem.X, problem.y)
        level = kl_to_posterior_exact(dense, problem.prior, problem.likelihood, problem.X, problem.y)
        for projection, loops, block in context.track(settings, name):
            options: dict[str, Any] = {"projection": projection, "inner_loops": loops, "block_size": block}
            belief = gf.LowRankGaussian.isotropic(d, 10, 3.0, **options)
            started = time.perf_counter()
            gf.fold(belief, problem.likelihood, problem.X, problem.y)
            seconds = (time.perf_counter() - started) / n
            found = kl_to_posterior_exact(belief.to_dense(), problem.prior, problem.likelihood, problem.X, problem.y)
            numbers.setdefault(name, {})[f"{projection} loops={loops} block={block}"] = [seconds, found - level]
            color = style.BLUE if projection == "eigen" else style.GREEN
            ax.scatter(seconds * 1e3, found - level, color=color, marker="o" if block == 1 else "s", s=30)
            ax.annotate(f" {loops}×{block}", (seconds * 1e3, found - level), fontsize=7)
        ax.set(title=f"{name}, d = {d}, p = 10", xlabel="ms per row", ylabel="KL above the dense filter", xscale="log")
        ax.set_yscale("log")
    figure.suptitle("eigen-projection (blue) and recursive EM (green); labels: loops × block")
    return Result(figure, numbers)


def table3(context: Context) -> Result:
    """Ensemble sampling: E σ(x'θ) and the trace from samples, against exact values."""
    d, p, seeds = (500, 10, 20) if context.quick else (10_000, 10, 50)
    rng = np.random.default_rng(3)
    belief = gf.LowRankGaussian(
        rng.standard_normal(d) / np.sqrt(d), rng.standard_normal((d, p)), np.arange(1.0, d + 1.0)
    )
    x = rng.standard_normal(d) / np.sqrt(d)
    mean, variance = belief.marginal(x[None])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    exact = float((weights / weights.sum()) @ (1.0 / (1.0 + np.exp(-(mean + np.sqrt(variance) * nodes)))))
    found, traces = [], []
    for seed in range(seeds):
        samples = belief.sample(10, np.random.default_rng(100 + seed))
        found.append(float((1.0 / (1.0 + np.exp(-samples @ x))).mean()))
        traces.append(float(np.square(samples - belief.mean).sum(axis=1).mean()))
    figure = style.canvas(10.0, 4.6)
    for ax, values, truth, name in zip(
        figure.subplots(1, 2), (found, traces), (exact, belief.trace()), ("E σ(x'θ), 10 samples", "trace, 10 samples"),
        strict=True,
    ):  # fmt: skip
        ax.hist(values, bins=15, color=style.SKY)
        ax.axvline(truth, color=style.VERMILION, label="exact")
        ax.set(title=name)
        ax.legend()
    return Result(
        figure,
        {"E_sigma": {"exact": exact, "samples": found}, "trace": {"exact": belief.trace(), "samples": traces}},
    )
