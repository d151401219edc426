"""Coal mining disasters in Britain, 1851 to 1962: a Poisson rate by Laplace, VI and EP on the Markov prior."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.special import gammaln

from experiments.gp.data import read_text
from experiments.registry import Context, Result
from experiments.style import BLUE, GREEN, GREY, LIGHT, VERMILION, canvas
from gaussfold import gp
from gaussfold.types import Array

FIRST, LAST, BINS = 1851.0, 1963.0, 333
WIDTH = (LAST - FIRST) / BINS
VARIANCE = 0.7  # of the curves of the energy; close to what is learned
RULES = {
    "newton": ("Laplace", VERMILION, (0, (1.2, 1.2))),
    "ep": ("EP", GREEN, (0, (5, 2))),
    "vi": ("VI", BLUE, "-"),
}


def model(rule: str, variance: float = 1.0, lengthscale: float = 10.0) -> gp.GaussianProcess:
    """Log rate per bin: a Matérn-5/2 around a level that is nearly free."""
    covariance = gp.Matern52(variance, lengthscale) + gp.Constant(4.0)
    return gp.GaussianProcess(covariance, "poisson", rule, structure="markov", verbose=False)


def learned(rule: str, X: Array, y: Array) -> gp.GaussianProcess:
    """The model with variance and length scale at the minimum of the rule's own energy."""
    process = model(rule).fit(X, y)
    process.learn_hyperparameters(fixed=["covariance.1.variance"])
    return process


def rate(process: gp.GaussianProcess, X: Array) -> tuple[Array, Array, Array]:
    """Mean of the rate per year, and the ends of its central 95 %."""
    mean, cov = process.predict_latent(X)
    m, v = mean[:, 0], cov[:, 0, 0]
    low, high = (np.exp(m + sign * 1.959964 * np.sqrt(v)) / WIDTH for sign in (-1, 1))
    return np.exp(m + 0.5 * v) / WIDTH, low, high


def cross_validated(rule: str, X: Array, y: Array, folds: int) -> list[float]:
    """NLPD on each fold of bins left out at random, hyperparameters learned from the others."""
    fold = np.random.default_rng(1).permutation(np.arange(y.size) % folds)
    scores = []
    for k in range(folds):
        process = learned(rule, X[fold != k], y[fold != k])
        scores.append(-float(process.predict_density(X[fold == k], y[fold == k]).mean()))
    return scores


def run(context: Context) -> Result:
    """Rates of the three rules over the counts, and their energies along the length scale."""
    dates = np.array(read_text("coal.txt").split(), dtype=float)
    edges = np.linspace(FIRST, LAST, BINS + 1)
    y = np.histogram(dates, edges)[0].astype(float)
    X = 0.5 * (edges[1:] + edges[:-1])
    grid = np.linspace(FIRST, LAST, 300)
    scales = np.geomspace(3.0, 80.0, 9 if context.quick else 25)
    folds = 3 if context.quick else 10

    figure = canvas(12.0, 5.0)
    axes = figure.subplot_mosaic([["rate", "energy"], ["rate", "difference"]], width_ratios=(2.0, 1.0))
    left, right, lower = axes["rate"], axes["energy"], axes["difference"]
    curves: dict[str, Array] = {}
    years = np.arange(FIRST, LAST + 1)
    per_year = np.histogram(dates, years)[0]
    left.bar(years[:-1] + 0.5, per_year, width=1.0, color=LIGHT, label="disasters per year")
    left.plot(dates, np.full(dates.size, -0.15), "|", color=GREY, ms=6)
    numbers: dict[str, Any] = {"disasters": dates.size, "bins": BINS, "rules": {}}
    for rule in context.track(RULES, "rules"):
        label, colour, dashes = RULES[rule]
        learned(rule, X[:30], y[:30])  # compiles
        began = time.perf_counter()
        process = learned(rule, X, y)
        seconds = time.perf_counter() - began
        mean, low, high = rate(process, grid)
        if rule == "vi":
            left.fill_between(grid, low, high, color=BLUE, alpha=0.2, lw=0, label="VI, 95 %")
        left.plot(grid, mean, color=colour, ls=dashes, lw=2.0, label=f"{label}, mean rate")
        values = process.parameters()
        variance, scale = values["covariance.0.variance"], values["covariance.0.lengthscale"]
        curves[rule] = np.array([model(rule, VARIANCE, s).fit(X, y).energy() for s in scales])
        right.plot(scales, curves[rule], color=colour, ls=dashes, lw=2.0, label=label)
        scores = cross_validated(rule, X, y, folds)
        numbers["rules"][rule] = {
            "variance": variance,
            "lengthscale_years": scale,
            "energy": process.energy(),
            "seconds_to_learn": seconds,
            "nlpd": float(np.mean(scores)),
            "nlpd_std_error": float(np.std(scores, ddof=1) / np.sqrt(folds)),
            "rate_1860": float(np.interp(1860.0, grid, mean)),
            "rate_1930": float(np.interp(1930.0, grid, mean)),
        }
    flat = y.mean()
    numbers["nlpd_constant_rate"] = float(np.mean(flat - y * np.log(flat) + gammaln(y + 1.0)))
    left.set(title="Coal mining disasters", xlabel="year", ylabel="disasters per year", xlim=(FIRST, LAST))
    left.legend(loc="upper right")
    for rule in ("newton", "vi"):
        label, colour, dashes = RULES[rule]
        lower.plot(scales, curves[rule] - curves["ep"], color=colour, ls=dashes, lw=2.0, label=f"{label} - EP")
    right.set(title=f"energy of each rule, variance {VARIANCE}", ylabel="energy (nats)")
    lower.set(xlabel="length scale (years)", ylabel="difference (nats)")
    for ax in (right, lower):
        ax.set_xscale("log")
        ax.set_xticks([3, 10, 30, 80], ["3", "10", "30", "80"])
        ax.minorticks_off()
        ax.legend()
    numbers["scales"], numbers["energies"] = scales, curves
    return Result(figure, numbers)
