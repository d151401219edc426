"""VIFA against the exact posterior of linear regression: Tables 5.1 and B.6, Figures 5.1 to 5.3, B.4 and B.5.

What the thesis leaves open, the averaging of iterates (and in the plane the learning rate of F), is chosen as the
thesis chooses its learning rates: least 2-Wasserstein distance on other data, here other planes and the validation
halves. The data that are reported are looked at once.
"""

from __future__ import annotations

import itertools
import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import BayesianRidge

import gaussfold as gf
from experiments import style
from experiments.deep.problems import (
    NAMES,
    Gaussian,
    authors_plane,
    distances,
    ellipse,
    exact,
    gaussian,
    mean_and_error,
    plane,
    uci,
)
from experiments.registry import Context, Result
from gaussfold import deep

METRICS = ("mean", "covariance", "wasserstein")
POWERS = (1.0, 3.0, 8.0)
"""Averages of iterates to choose from, weights growing like step^power: half, a quarter, a ninth of the path counts."""
RATES = (1e-4, 1e-3)
"""Learning rates of F to choose from in the plane; the first is the thesis's."""

TABLE51 = {"thesis": (0.0031, 0.0983, 0.0194), "authors_program": (0.0034, 0.0671, 0.0205)}
B5 = {"energy": (25_000, 0.01), "bostonHousing": (25_000, 0.001), "concrete": (20_000, 0.01), "yacht": (45_000, 0.01)}
"""Epochs and learning rates of Table B.5."""
B6 = {
    "energy": {"thesis": (0.0051, 0.0421, 0.0564), "authors_program": (0.0040, 0.0379, 0.0561)},
    "bostonHousing": {"thesis": (0.0262, 0.3185, 0.0468), "authors_program": (0.0266, 0.3202, 0.0475)},
    "concrete": {"thesis": (0.0047, 0.0840, 0.0278), "authors_program": (0.0050, 0.1397, 0.0346)},
    "yacht": {"thesis": (0.0435, 0.0391, 0.1210), "authors_program": (0.0424, 0.0292, 0.1196)},
}


def without_bias(params: Any, X: Any) -> Any:
    """A linear model."""
    return X @ params


def with_bias(params: Any, X: Any) -> Any:
    """A linear model with a bias, which the prior sees too, as in the authors' program."""
    return X @ params["w"] + params["b"]


def _bound(row: dict[str, tuple[float, ...]]) -> list[float]:
    return [max(pair) for pair in zip(row["thesis"], row["authors_program"], strict=True)]


ALPHA, BETA = 0.01, 0.1
PLANE = deep.log_likelihood(without_bias, gf.likelihoods.Gaussian(std=BETA**-0.5))


def fit_planes(data: list[Any], settings: list[tuple[float, float]], steps: int) -> list[Gaussian]:
    """VIFA with the thesis's K, M, L and rates but for F's, each with its (rate of F, power of the average)."""
    methods = [
        deep.VIFA(
            PLANE,
            np.zeros(2, np.float32),
            rank=1,
            prior_precision=ALPHA,
            n_samples=10,
            share_batch=False,
            batch_size=100,
            optimizer="sgd",
            learning_rate={"mean": 0.01, "factors": rate, "log_psi": 0.01},
            max_grad_norm=10.0,
            init_std=1.0,
            average=power,
            seed=number,
        )
        for number, (rate, power) in enumerate(settings)
    ]
    rows = [(X.astype(np.float32), y.astype(np.float32)) for X, y in data]
    return [gaussian(found.belief) for found in deep.fit_many(methods, rows, steps=steps, progress=False) if found]


def chosen_in_planes(trials: int, steps: int) -> tuple[tuple[float, float], dict[str, float]]:
    """The (rate of F, power) with the least mean Wasserstein distance on data sets of their own, and all of them."""
    data = [plane(1000 + trial) for trial in range(trials)]
    truths = [exact(X, y, ALPHA, BETA) for X, y in data]
    table = {}
    for rate, power in itertools.product(RATES, POWERS):
        found = fit_planes(data, [(rate, power)] * trials, steps)
        table[rate, power] = float(np.mean([distances(*pair)[2] for pair in zip(found, truths, strict=True)]))
    best = min(table, key=lambda pair: table[pair])
    return best, {f"rate of F {rate}, power {power:g}": value for (rate, power), value in table.items()}


def fig51(context: Context) -> Result:
    """Table 5.1 and Figure 5.1: two weights, one factor, ten trials."""
    trials, steps = (2, 2500) if context.quick else (10, 5000)  # 5000 epochs of 10 batches, L = 10 batches a step
    started = time.perf_counter()
    best, validation = chosen_in_planes(trials, steps)
    data = [plane(trial) if context.oracles is None else authors_plane(trial) for trial in range(trials)]
    truths = [exact(X, y, ALPHA, BETA) for X, y in data]
    fits = {
        name: fit_planes(data, [setting] * trials, steps)
        for name, setting in (("last iterate", (RATES[0], 0.0)), ("averaged", best))
    }
    found = {name: [distances(*pair) for pair in zip(each, truths, strict=True)] for name, each in fits.items()}
    shown = {"exact": truths[0]} | {name: each[0] for name, each in fits.items()}
    seconds = time.perf_counter() - started
    table = {name: [mean_and_error(column) for column in np.transpose(rows)] for name, rows in found.items()}
    bound = _bound(TABLE51)
    numbers = {
        "data": "our own" if context.oracles is None else "authors' data",
        "metrics": METRICS,
        "K, M, L, epochs": [1, 100, 10, steps],
        "chosen_rate_of_F_and_power": best,
        "wasserstein_on_other_planes": validation,
        "mean_and_standard_error": table,
        **TABLE51,
        "at_or_below_the_larger_of_both": [m <= b for (m, _), b in zip(table["averaged"], bound, strict=True)],
        "seconds": seconds,
    }
    return Result(_figure51(shown, table), numbers)


def _figure51(shown: dict[str, Gaussian], table: dict[str, list[tuple[float, float]]]) -> Any:
    figure = style.canvas(10.5, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.25))
    looks = {
        "exact": (style.BLACK, "-", 2.6, "exact posterior"),
        "last iterate": (style.ORANGE, (0, (5, 2)), 1.8, "VIFA, last iterate"),
        "averaged": (style.BLUE, (0, (2, 1)), 2.0, "VIFA, averaged iterates"),
    }
    for name, (color, dashes, width, label) in looks.items():
        for mass in (0.5, 0.9):
            curve = ellipse(shown[name], mass)
            left.plot(*curve.T, color=color, ls=dashes, lw=width, label=label if mass == 0.9 else None)
    left.set(xlabel="first weight", ylabel="second weight", title="Figure 5.1: half and 90 % of the mass")
    left.legend(loc="lower left")
    rows = {**{key: ([v for v, _ in row], [e for _, e in row]) for key, row in table.items()}}
    bars = [
        ("thesis, Table 5.1", style.LIGHT, TABLE51["thesis"], (0.0005, 0.0129, 0.0023)),
        ("authors' program", style.GREY, TABLE51["authors_program"], (0.0005, 0.0138, 0.0019)),
        ("ours, last iterate", style.ORANGE, *rows["last iterate"]),
        ("ours, averaged", style.BLUE, *rows["averaged"]),
    ]
    _bars(right, bars, ["mean,\nrelative", "covariance,\nrelative", "2-Wasserstein\n/ D"], "Table 5.1: ten data sets")
    return figure


def _bars(ax: Any, bars: list[Any], groups: list[str], title: str) -> None:
    width = 0.8 / len(bars)
    for i, (label, color, heights, errors) in enumerate(bars):
        at = np.arange(len(groups)) + (i - 0.5 * (len(bars) - 1)) * width
        ax.bar(at, heights, width * 0.92, yerr=errors, color=color, label=label, error_kw={"elinewidth": 1.0})
    ax.set_yscale("log")
    ax.set(xticks=range(len(groups)), xticklabels=groups, ylabel="distance from the exact posterior", title=title)
    ax.legend(loc="upper right")


class Ridge(NamedTuple):
    """Scaled inputs and targets of the thesis's test half, α, β, the exact posterior of the weights, and the bias."""

    X: np.ndarray
    y: np.ndarray
    alpha: float
    beta: float
    truth: Gaussian
    bias: float


def ridge(name: str, half: str = "test") -> Ridge:
    """By scikit-learn, which finds α and β by the evidence."""
    data = uci(name)
    rows = data[f"thesis_{half}_idx"]
    X, y = data["X"][rows], data["y"][rows]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = BayesianRidge().fit(X, y)
    truth = Gaussian(model.coef_, model.sigma_)
    return Ridge(X, y, float(model.lambda_), float(model.alpha_), truth, float(model.intercept_))


class Fit(NamedTuple):
    """VIFA's posterior of the weights, the exact one, and Table B.6's three distances.

    That of the mean is the authors': the bias counts, which their prior sees and scikit-learn's does not, so it cannot
    be 0. The other two are of the weights.
    """

    ours: Gaussian
    truth: Gaussian
    found: np.ndarray


def fit_ridges(name: str, problem: Ridge, powers: list[float], seeds: list[int], shorter: int = 1) -> list[Fit]:
    """VIFA with Table B.5's settings, for each power of the average and seed."""
    X, y, alpha, beta, truth, bias = problem
    epochs, rate = B5[name]
    function = deep.log_likelihood(with_bias, gf.likelihoods.Gaussian(std=beta**-0.5))
    methods = [
        deep.VIFA(
            function,
            {"b": np.zeros((), np.float32), "w": np.zeros(X.shape[1], np.float32)},
            rank=3,
            prior_precision=alpha,
            n_samples=10,
            share_batch=False,
            batch_size=100,
            optimizer="sgd",
            learning_rate=rate,
            max_grad_norm=10.0,
            init_std=1.0,
            average=power,
            seed=seed,
        )
        for power, seed in zip(powers, seeds, strict=True)
    ]
    batches = -(-len(y) // 100)  # the authors' epochs have a last, smaller batch; ours are all full, and as many
    data = [(X.astype(np.float32), y.astype(np.float32))] * len(methods)
    fits = deep.fit_many(methods, data, steps=epochs * batches // (10 * shorter), progress=False)
    exact_mean = np.append(bias, truth.mean)
    answer = []
    for posterior in filter(None, fits):
        ours = gaussian(posterior.belief, slice(1, None))  # leaves in the order of their names: b, then w
        found = distances(ours, truth)
        found[0] = np.linalg.norm(posterior.belief.mean - exact_mean) / np.linalg.norm(exact_mean)
        answer.append(Fit(ours, truth, found))
    return answer


def fig52(context: Context) -> Result:
    """Table B.6 and Figures 5.2, 5.3, B.4, B.5: four data sets, three factors."""
    names = ("yacht", "bostonHousing") if context.quick else ("yacht", "bostonHousing", "energy", "concrete")
    seeds, shorter = (1, 10) if context.quick else (3, 1)
    figure = style.canvas(11.0, 2.7 * len(names))
    axes = figure.subplots(len(names), 4, width_ratios=(1.2, 1.2, 1.0, 1.0), squeeze=False)
    numbers: dict[str, Any] = {}
    started = time.perf_counter()
    for name, row in zip(context.track(names, "data sets"), axes, strict=True):
        other, problem = ridge(name, "val"), ridge(name)
        tried = fit_ridges(name, other, list(POWERS), [0] * len(POWERS), shorter)
        validation = {f"power {power:g}": run.found[2] for power, run in zip(POWERS, tried, strict=True)}
        best = POWERS[int(np.argmin(list(validation.values())))]
        runs = fit_ridges(name, problem, [best] * seeds, list(range(seeds)), shorter)
        found = np.array([run.found for run in runs])
        last = fit_ridges(name, problem, [0.0], [0])[0].found if not context.quick else None
        bound = _bound(B6[name])
        numbers[name] = {
            "K, M, L, epochs, learning rate": [3, 100, 10, *B5[name]],
            "chosen_power": best,
            "wasserstein_on_the_validation_half": validation,
            "mean": found.mean(axis=0),
            "seeds": found,
            "last_iterate": last,
            **B6[name],
            "at_or_below_the_larger_of_both": [bool(v <= b) for v, b in zip(found.mean(axis=0), bound, strict=True)],
        }
        _row(row, name, runs[0], found.mean(axis=0))
    axes[0, 0].legend(loc="best")
    return Result(figure, {"metrics": METRICS, "data_sets": numbers, "seconds": time.perf_counter() - started})


def _row(row: Any, name: str, run: Fit, found: np.ndarray) -> None:
    ours, truth = run.ours, run.truth
    for ax, what, true, own in (
        (row[0], "mean", truth.mean, ours.mean),
        (row[1], "variance", truth.cov.diagonal(), ours.cov.diagonal()),
    ):
        at = np.arange(len(true))
        ax.bar(at - 0.2, true, 0.38, color=style.GREY, label="exact")
        ax.bar(at + 0.2, own, 0.38, color=style.BLUE, label="VIFA, K = 3")
        ax.set(xlabel="weight", ylabel=f"posterior {what}", title=f"{NAMES[name]}: {what}")
    largest = np.abs(truth.cov - np.diag(truth.cov.diagonal())).max()
    for ax, title, cov in ((row[2], "exact covariance", truth.cov), (row[3], "VIFA's", ours.cov)):
        off = cov - np.diag(cov.diagonal())
        picture = ax.imshow(off, cmap="PuOr", vmin=-largest, vmax=largest)
        ax.grid(visible=False)
        ax.set(title=title, xlabel="weight", ylabel="weight")
    row[3].figure.colorbar(picture, ax=row[3], label="diagonal set to 0")
    row[3].set_title(f"VIFA's, distance {found[1]:.3f}")
