"""Can the error bars be believed? Simulation-based calibration of every estimator, covariance, likelihood and way.

Weights are drawn from the prior that the model is told, labels from its likelihood, and the model learns them: then
the rank of the truth among draws of the posterior is uniform if the posterior is right, and an interval of 90 % covers
in 90 of 100 data sets (Talts and others 2018, "Validating Bayesian inference algorithms with simulation-based
calibration"). One weight, one latent x'θ and one label of a fresh row are looked at in each data set, so that ranks are
independent and their bands those of a binomial distribution; the label's rank is randomised where labels are whole
numbers.

Where the way to learn is drift the weights really take such steps, so that the model is right. With forgetting they
stand still: it then knows less than it could, and being too wide is right.
``python -m benchmarks calibration`` prints coverage at 50, 90 and 99 % and draws ``calibration.png``; ``--quick`` some.
Ranks of each cell are kept in a folder named by the sources that made them, so that a run which was stopped goes on.
"""

from __future__ import annotations

import inspect
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy import stats
from scipy.special import expit

import gaussfold as gf
from benchmarks.report import Report

D, N = 5, 100
"""Weights, and rows to learn."""
NOISE, DF, DISPERSION = 0.8, 5.0, 3.0
STEP = 0.05
"""Of the weights, where they drift."""
DRAWS = 399
"""Of each posterior: ranks are whole numbers from 0 to this."""
LEVELS = (0.5, 0.9, 0.99)
BINS = 10
QUANTITIES = ("weight", "latent", "label")
LOOKS = {"weight": "#0072B2", "latent": "#009E73", "label": "#D55E00"}
WAYS = {
    "full": ("one pass", "second look", "refined", "forgetting", "drift", "drift auto"),
    "lowrank": ("one pass", "forgetting"),
    "diagonal": ("one pass", "forgetting", "ensemble"),
}
"""Ways to learn; rows are visited again with a full covariance only, copies that start apart are for a diagonal one."""
LONGER = 500
"""Rows of the sweep over correlations, where a diagonal posterior has had time to be too sure."""

Cdf = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""P(Y <= y) given latents f, elementwise."""


class Model(NamedTuple):
    """A likelihood as an estimator and as a law to draw from."""

    make: Callable[..., Any]
    prior_std: float
    draw: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    cdf: Cdf
    whole: bool
    """Whether labels are whole numbers."""


def _nb(f: np.ndarray) -> Any:
    return stats.nbinom(DISPERSION, DISPERSION / (DISPERSION + np.exp(f)))


R, C, P = gf.StreamingRegressor, gf.StreamingClassifier, gf.StreamingPoissonRegressor
MODELS = {
    "gaussian": Model(
        partial(R, noise_std=NOISE), 1.0, lambda f, rng: f + NOISE * rng.standard_normal(f.shape),
        lambda y, f: stats.norm.cdf(y, f, NOISE), False,
    ),
    "noise learned": Model(
        partial(R, noise_std="learn", noise_guess=NOISE, noise_guess_worth=4.0), 1.0,
        lambda f, rng: f + rng.standard_normal(f.shape), lambda y, f: stats.norm.cdf(y, f), False,
    ),
    "student-t": Model(
        partial(R, noise_std=NOISE, df=DF), 1.0, lambda f, rng: f + NOISE * rng.standard_t(DF, f.shape),
        lambda y, f: stats.t.cdf((y - f) / NOISE, DF), False,
    ),
    "logit": Model(
        C, 1.0, lambda f, rng: (rng.random(f.shape) < expit(f)).astype(float),
        lambda y, f: np.where(y < 0, 0.0, np.where(y < 1, expit(-f), 1.0)), True,
    ),
    "probit": Model(
        partial(C, link="probit"), 1.0, lambda f, rng: (rng.random(f.shape) < stats.norm.cdf(f)).astype(float),
        lambda y, f: np.where(y < 0, 0.0, np.where(y < 1, stats.norm.cdf(-f), 1.0)), True,
    ),
    "poisson": Model(
        P, 0.4, lambda f, rng: rng.poisson(np.exp(f)).astype(float), lambda y, f: stats.poisson.cdf(y, np.exp(f)), True
    ),
    "neg. binomial": Model(
        partial(P, dispersion=DISPERSION), 0.4, lambda f, rng: _nb(f).rvs(random_state=rng).astype(float),
        lambda y, f: _nb(f).cdf(y), True,
    ),
}  # fmt: skip


class Cell(NamedTuple):
    """What is tried."""

    model: str
    covariance: str
    way: str
    correlation: float
    rows: int = N


def cells(quick: bool) -> Iterator[Cell]:
    """Every one that is defined, and the diagonal ones over correlations."""
    if quick:
        yield from (Cell("logit", covariance, "one pass", 0.8) for covariance in ("full", "diagonal"))
        yield Cell("gaussian", "full", "drift auto", 0.8)
        return
    for covariance, ways in WAYS.items():
        for way in ways:
            for model in MODELS:
                for correlation in (0.0, 0.8):
                    yield Cell(model, covariance, way, correlation)
    for way in ("one pass", "ensemble"):
        for model in ("gaussian", "logit", "poisson"):
            for correlation in (0.0, 0.5, 0.8, 0.95):
                yield Cell(model, "diagonal", way, correlation, LONGER)


def estimator(cell: Cell) -> Any:
    """The estimator of a cell: everything that matters is said, so that no default decides."""
    model = MODELS[cell.model]
    options: dict[str, Any] = {"covariance": cell.covariance, "prior_std": model.prior_std, "fit_intercept": False}
    options |= {
        "second look": {"second_look": 2 * D},
        "forgetting": {"forgetting": 0.98},
        "drift": {"drift_std": STEP},
        "drift auto": {"drift_std": "auto"},
        "ensemble": {"ensemble": 8},
    }.get(cell.way, {})
    if cell.covariance == "lowrank":
        options["rank"] = 2
    if cell.covariance == "diagonal" and cell.model == "student-t":
        options["coupling"] = "joint"
    if "scale" in inspect.signature(model.make).parameters:
        options["scale"] = False
    return model.make(random_state=0, **options)


def ranks(cell: Cell, seed: int) -> np.ndarray:
    """Of one weight, one latent and one label among draws of the posterior, as numbers in (0, 1)."""
    model = MODELS[cell.model]
    rng = np.random.default_rng([seed, 14])
    noise = 1.0
    if cell.model == "noise learned":  # its prior: an inverse gamma for the variance, and weights in units of the noise
        noise = float(np.sqrt(2.0 * NOISE**2 / rng.gamma(2.0)))
    n = cell.rows
    X = np.sqrt(1.0 - cell.correlation) * rng.standard_normal((n + 1, D))
    X += np.sqrt(cell.correlation) * rng.standard_normal((n + 1, 1))
    steps = (STEP if cell.way.startswith("drift") else 0.0) * rng.standard_normal((n + 1, D))
    steps[0], steps[n] = model.prior_std * rng.standard_normal(D), 0.0  # no time passes before the last row
    theta = np.cumsum(steps, axis=0)
    f = (X * theta).sum(axis=1)
    y = noise * model.draw(f, rng)
    one = estimator(cell)
    learn = {"classes": [0.0, 1.0]} if isinstance(one, C) else {}
    if cell.way == "refined":
        one.fit(X[:n], y[:n], refine=30)
    else:
        one.partial_fit(X[:n], y[:n], **learn)
    draws = one.sample_posterior(DRAWS, rng)
    latents, place = draws @ X[n], seed % D
    truth = noise * np.array([theta[-1, place], f[-1]])
    found = (np.array([np.sum(draws[:, place] < truth[0]), np.sum(latents < truth[1])]) + rng.random(2)) / (DRAWS + 1)
    if cell.model == "noise learned":  # a Student-t of more than a hundred degrees of freedom
        mean, std = one.predict(X[n:], return_std=True)
        return np.array([*found, stats.norm.cdf(y[n], mean[0], std[0])])
    above = model.cdf(np.full(DRAWS, y[n]), latents).mean()
    below = model.cdf(np.full(DRAWS, y[n] - 1.0), latents).mean() if model.whole else above
    return np.array([*found, below + (above - below) * rng.random()])


def covered(rank: np.ndarray, level: float) -> np.ndarray:
    """Share of the central intervals of that level that hold the truth."""
    return np.asarray((np.abs(rank - 0.5) < 0.5 * level).mean(axis=0))


def band(count: int, share: float, error: float = 0.05) -> tuple[float, float]:
    """Between which shares of so many data sets a right model stays, but for so many cases in a hundred."""
    low, high = stats.binom(count, share).interval(1.0 - error)
    return float(low) / count, float(high) / count


def draw(path: Path, results: dict[Cell, np.ndarray]) -> None:
    """Rank histograms: a row for each covariance and way, a column for each likelihood; correlated features."""
    rows = list(dict.fromkeys((cell.covariance, cell.way) for cell in results))
    columns = list(dict.fromkeys(cell.model for cell in results))
    correlation = 0.8
    figure = Figure(figsize=(1.0 + 1.9 * len(columns), 1.0 + 1.15 * len(rows)), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), sharex=True, sharey=True, squeeze=False)
    edges = np.linspace(0.0, 1.0, BINS + 1)
    for r, (covariance, way) in enumerate(rows):
        for c, model in enumerate(columns):
            axis = axes[r, c]
            found = results.get(Cell(model, covariance, way, correlation))
            axis.set(ylim=(0.0, 3.0), xlim=(0.0, 1.0), xticks=[0, 0.5, 1], yticks=[0, 1, 2, 3])
            axis.tick_params(labelsize=7)
            if found is not None:
                low, high = band(len(found), 1.0 / BINS, 0.01)
                axis.axhspan(low * BINS, high * BINS, color="#BBBBBB", alpha=0.5, lw=0)
                for k, name in enumerate(QUANTITIES):
                    height = np.histogram(found[:, k], edges)[0] * BINS / len(found)
                    axis.stairs(np.minimum(height, 2.95), edges, color=LOOKS[name], lw=1.3, label=name)
            if r == 0:
                axis.set_title(model, fontsize=9)
            if c == 0:
                axis.set_ylabel(f"{covariance}\n{way}", fontsize=8)
    axes[0, 0].legend(fontsize=6, loc="upper center", ncols=3, handlelength=0.8, columnspacing=0.6)
    figure.suptitle(
        f"Where the truth lies among draws of the posterior (correlation {correlation:g}; flat within the grey band: "
        "right, high at the ends: too sure, high in the middle: too wide)",
        fontsize=9,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _kept(cell: Cell, count: int, folder: Path) -> np.ndarray:
    """Ranks of a cell, by these very sources; of sources that are not committed they are made anew."""
    tree, dirty = (
        subprocess.run(command.split(), check=False, capture_output=True, text=True).stdout.strip()
        for command in ("git rev-parse HEAD:src", "git status --porcelain src")
    )
    name = "-".join(str(part).replace(" ", "_") for part in (*cell, count))
    path = folder / f"calibration-{tree[:12]}" / f"{name}.npy"
    if tree and not dirty and path.exists():
        return np.asarray(np.load(path))
    found = np.array([ranks(cell, seed) for seed in range(count)])
    if tree and not dirty:
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, found)
    return found


def run(quick: bool = False, picture: Path = Path("output/benchmarks/calibration.png"), count: int = 0) -> Report:
    """All cells, their coverage, those that are outside of the bands, and the picture."""
    count = count or (40 if quick else 200)
    report = Report(
        "Simulation-based calibration: coverage of central intervals, in per cent",
        [
            "covariance",
            "way",
            "likelihood",
            "rows",
            "correlation",
            *(f"{q} {level:.0%}" for q in QUANTITIES for level in LEVELS),
        ],
    )
    results = {cell: _kept(cell, count, picture.parent) for cell in cells(quick)}
    low, high = band(count, 0.9, 0.01)
    outside: dict[str, list[str]] = {name: [] for name in QUANTITIES}
    for cell, found in results.items():
        shares = np.array([covered(found, level) for level in LEVELS])
        model, covariance, way, correlation, rows = cell
        report.rows.append(
            [covariance, way, model, rows, correlation, *(round(100.0 * share) for share in shares.T.ravel())]
        )
        for k, name in enumerate(QUANTITIES):
            if not low <= shares[1, k] <= high:
                where = f"{covariance}, {way}, {model}, {rows} rows, {correlation:g}"
                outside[name].append(f"{where}: {shares[1, k]:.0%}")
    for name, cases in outside.items():
        told = "; ".join(cases)
        report.notes.append(
            f"{name}: coverage at 90 % outside {low:.0%} to {high:.0%} in {len(cases)} of {len(results)} cells"
            + (f" (correlation last: {told})" if cases else "")
        )
    report.numbers["data sets"] = count
    draw(picture, results)
    report.notes.append(f"{count} data sets a cell, {D} weights; picture: {picture}")
    return report
