"""Long series on the Markov prior: a million binary labels whose truth is known, and a century of daily counts."""

from __future__ import annotations

import time
from datetime import date
from typing import Any

import numpy as np
from scipy.signal import lfilter
from scipy.special import expit

from experiments.gp.data import DATA, read_text
from experiments.registry import Context, Result
from experiments.style import BLACK, BLUE, GREY, LIGHT, ORANGE, canvas
from gaussfold import gp
from gaussfold.types import Array, Moments

VARIANCE, LENGTHSCALE = 2.0, 60.0
WEEK, YEAR = 7.0, 365.2425


def simulated(rows: int, rng: np.random.Generator) -> Array:
    """A Matérn-3/2 process at 0, 1, 2, ...: the recursion ``x ← A x + w``, ``w ~ N(0, Q)``, as two linear filters."""
    space = gp.Matern32(VARIANCE, LENGTHSCALE).state_space()
    A = space.transition(np.ones(1))
    root = np.linalg.cholesky(space.noise(np.ones(1), A)[0])
    a = A[0]
    burn = 40 * int(LENGTHSCALE)
    w = rng.standard_normal((rows + burn, 2)) @ root.T
    poles = [1.0, -np.trace(a), np.linalg.det(a)]
    f = lfilter([1.0, -a[1, 1]], poles, w[:, 0]) + lfilter([0.0, a[0, 1]], poles, w[:, 1])
    return np.asarray(f[burn:])


def million(context: Context, ax: Any, reliability: Any) -> dict[str, Any]:
    """Fit, learn, predict a tenth that was left out; draw a window and the reliability of the probabilities."""
    rows = 20_000 if context.quick else 1_000_000
    rng = np.random.default_rng(5)
    f = simulated(rows, rng)
    y = (rng.random(rows) < expit(f)).astype(float)
    t = np.arange(rows, dtype=float)
    test = rng.random(rows) < 0.1
    seen = np.where(test, np.nan, y)  # a missing label: predict there, do not learn
    process = gp.GaussianProcess(gp.Matern32(1.0, 20.0), "bernoulli", structure="markov", verbose=False)
    process.fit(t[:100], y[:100]).learn_hyperparameters(max_iter=2)  # compiles
    process = gp.GaussianProcess(gp.Matern32(1.0, 20.0), "bernoulli", structure="markov", verbose=False)
    began = time.perf_counter()
    process.fit(t, seen)
    fitted = time.perf_counter()
    learned = process.learn_hyperparameters()
    done = time.perf_counter()
    mean, variance = process.marginals_.mean[:, 0], process.marginals_.cov[:, 0, 0]
    p = process.likelihood.predictive(Moments(mean, variance)).mean
    log_p = np.log(np.where(y == 1.0, p, 1.0 - p))
    true_p = expit(f)
    inside = np.abs(f - mean) < 1.959964 * np.sqrt(variance)

    window = slice(rows // 2, rows // 2 + 1500)
    low, high = (expit(mean[window] + s * 1.959964 * np.sqrt(variance[window])) for s in (-1, 1))
    ax.fill_between(t[window], low, high, color=BLUE, alpha=0.25, lw=0, label="95 %")
    ax.plot(t[window], p[window], color=BLUE, label="posterior probability")
    ax.plot(t[window], true_p[window], color=BLACK, lw=1.0, ls=(0, (4, 2)), label="truth")
    ax.plot(t[window][::3], 1.08 * y[window][::3] - 0.04, "|", color=GREY, ms=4, alpha=0.6)
    ax.set(title=f"{rows:,} binary labels: 1,500 of them", xlabel="time", ylabel="probability of 1")
    ax.legend(loc="lower left", frameon=True, framealpha=0.9)
    edges = np.linspace(0.0, 1.0, 21)
    cell = np.digitize(p[test], edges[1:-1])
    said, was, count = (
        np.bincount(cell, weights=w, minlength=20) for w in (p[test], y[test], np.ones(int(test.sum())))
    )
    kept = count > 30
    share = was[kept] / count[kept]
    error = 2.0 * np.sqrt(share * (1 - share) / count[kept])
    reliability.plot([0, 1], [0, 1], color=GREY, lw=1, ls=(0, (4, 2)), label="perfect")
    reliability.errorbar(
        said[kept] / count[kept], share, yerr=error, fmt="o", ms=4, color=BLUE, capsize=2, label="ours"
    )
    reliability.set(title=f"{int(test.sum()):,} labels left out", xlabel="predicted probability", ylabel="frequency")
    reliability.legend()
    rate = y[~test].mean()
    return {
        "rows": rows,
        "left_out": int(test.sum()),
        "iterations_of_first_fit": process.result_.iterations,
        "seconds_first_fit": fitted - began,
        "seconds_learning": done - fitted,
        "evaluations": learned.evaluations,
        "true": {"variance": VARIANCE, "lengthscale": LENGTHSCALE},
        "learned": process.parameters(),
        "nlpd": -float(log_p[test].mean()),
        "nlpd_of_the_truth": -float(np.log(np.where(y == 1.0, true_p, 1.0 - true_p))[test].mean()),
        "nlpd_constant": -float(np.where(y == 1.0, np.log(rate), np.log(1.0 - rate))[test].mean()),
        "truth_inside_95_percent": float(inside.mean()),
    }


def aircraft(context: Context, trend: Any, cycle: Any) -> dict[str, Any]:
    """Daily counts of accidents: slow trend × yearly shape × weekly shape, all in the log rate."""
    days = np.array([date.fromisoformat(line).toordinal() for line in read_text("aircraft_accidents.txt").split()])
    first = days.min()
    y = np.bincount(days - first).astype(float)
    if context.quick:
        y = y[-4000:]
        first = days.max() - 3999
    t = np.arange(y.size, dtype=float)
    covariance = (
        gp.Matern52(1.0, 2000.0)
        + gp.Constant(9.0)
        + gp.Periodic(0.1, 1.0, YEAR, order=2)
        + gp.Periodic(0.1, 1.0, WEEK, order=3)
    )
    test = np.random.default_rng(2).random(y.size) < 0.1
    names = [f"covariance.{i}" for i in range(4)]
    fixed = [f"{names[1]}.variance", *(f"{names[i]}.{what}" for i in (2, 3) for what in ("period", "lengthscale"))]
    process = gp.GaussianProcess(covariance, "poisson", structure="markov", verbose=False)
    began = time.perf_counter()
    process.fit(t, np.where(test, np.nan, y))
    fitted = time.perf_counter()
    learned = process.learn_hyperparameters(max_iter=5 if context.quick else 12, fixed=fixed)
    done = time.perf_counter()
    nlpd = -float(process.predict_density(t[test], y[test]).mean())
    flat = y[~test].mean()
    baseline = -float(_log_poisson(y[test], flat).mean())

    # a whole year around every day averages the seasons out
    mean, cov = process.marginals_.mean[:, 0], process.marginals_.cov[:, 0, 0]
    year = 1.0 + (first - 1.0 + t) / YEAR
    daily = np.exp(mean + 0.5 * cov)
    box = np.ones(round(YEAR)) / round(YEAR)
    smooth, low, high = (
        YEAR * np.convolve(curve, box, mode="valid")
        for curve in (daily, np.exp(mean - 1.959964 * np.sqrt(cov)), np.exp(mean + 1.959964 * np.sqrt(cov)))
    )
    at = year[box.size // 2 :][: smooth.size]
    starts = np.arange(np.ceil(year[0]), np.floor(year[-1]))
    counts = [y[(year >= s) & (year < s + 1)].sum() for s in starts]
    trend.bar(starts + 0.5, counts, width=1.0, color=LIGHT, label="accidents per year")
    trend.fill_between(at, low, high, color=BLUE, alpha=0.25, lw=0, label="95 % of the daily rate, averaged")
    trend.plot(at, smooth, color=BLUE, label="rate, averaged over a year")
    trend.set(title=f"aircraft accidents: {y.size:,} days", xlabel="year", ylabel="per year")
    trend.legend(loc="upper left")
    last = slice(-round(20 * YEAR) if y.size > 20 * YEAR else None, None)
    weekday = (first + t[last].astype(int) - 1) % 7
    relative = {}
    for values, label, colour, marker in ((y, "counted", ORANGE, "s"), (daily, "model", BLUE, "o")):
        share = np.array([values[last][weekday == d].mean() for d in range(7)]) / values[last].mean()
        relative[label] = share
        cycle.plot(range(7), share, marker=marker, color=colour, label=label)
    cycle.axhline(1.0, color=GREY, lw=1, ls=(0, (4, 2)))
    cycle.set(title="day of the week, last 20 years", ylabel="relative rate", xlabel="day")
    cycle.set_xticks(range(7), ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"])
    cycle.legend()
    return {
        "days": y.size,
        "accidents": float(y.sum()),
        "states": sum(each.state_space().size for each in process.covariances),
        "seconds_first_fit": fitted - began,
        "iterations_of_first_fit": process.result_.iterations,
        "seconds_learning": done - fitted,
        "evaluations": learned.evaluations,
        "learned": process.parameters(),
        "nlpd": nlpd,
        "nlpd_constant_rate": baseline,
        "weekday": relative,
    }


def _log_poisson(y: Array, rate: float) -> Array:
    from scipy.special import gammaln

    return np.asarray(y * np.log(rate) - rate - gammaln(y + 1.0))


def run(context: Context) -> Result:
    """Both series; the real one only where the data are."""
    figure = canvas(12.0, 7.4)
    axes = figure.subplots(2, 2, width_ratios=(2.2, 1.0))
    numbers: dict[str, Any] = {"million": million(context, *axes[0])}
    if (DATA / "aircraft_accidents.txt").is_file():
        numbers["aircraft"] = aircraft(context, *axes[1])
    return Result(figure, numbers)
