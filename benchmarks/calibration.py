"""Can a low-rank posterior be believed? Coverage, predictive loss and KL over rank, condition and prior.

Rows have a rotated spectrum that falls geometrically to 1/condition; weights are drawn, labels follow the model, and
500 fresh rows are predicted. Beside ours (the default projection and block of the estimators) stand the full
covariance, the diagonal belief, the projection that keeps the precision's diagonal ("eigen") and the paper's ("em").
Coverage is of 90 % intervals: of the label where the model is linear, of the latent otherwise.
``python -m benchmarks lowrank-calibration`` prints who is worse than the diagonal, where and by how much, and draws
``lowrank-calibration.png``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import gaussfold as gf
from benchmarks.report import Report
from gaussfold.estimators.priors import lowrank_block

NOISE = 0.5
BOUND = 1.6448536269514722
"""Of a 90 % interval."""
LIKELIHOODS = {
    "linear": gf.likelihoods.Gaussian(NOISE),
    "logistic": gf.likelihoods.Bernoulli(),
    "poisson": gf.likelihoods.Poisson(),
}
METHODS = ("full", "diagonal", "marginal", "eigen", "em")
LOOKS = {
    "diagonal": ("#666666", ":"),
    "marginal": ("#0072B2", "-"),
    "eigen": ("#E69F00", "--"),
    "em": ("#D55E00", "-."),
}


class Setting(NamedTuple):
    """One cell of the sweep."""

    kind: str = "linear"
    d: int = 50
    p: int = 5
    n: int = 1000
    condition: float = 100.0
    prior: float = 1.0


class Score(NamedTuple):
    """What is measured of one posterior."""

    loss: float
    coverage: float
    kl: float


class Problem(NamedTuple):
    """Rows to learn from and rows to predict."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    f_test: np.ndarray


def problem(setting: Setting, seed: int, tests: int = 500) -> Problem:
    """Draw one: latents have a standard deviation of about one, or of ten times the noise where the model is linear."""
    kind, d, _, n, condition, prior = setting
    rng = np.random.default_rng(seed)
    spectrum = np.logspace(0.0, -0.5 * np.log10(condition), d)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = (rng.standard_normal((n + tests, d)) * spectrum / np.linalg.norm(spectrum)) @ turn.T
    size = min(prior, 1.0)
    if kind == "linear":
        X *= 5.0
    f = X @ (size * rng.standard_normal(d))
    y = {
        "linear": lambda: f + NOISE * rng.standard_normal(f.size),
        "logistic": lambda: (rng.random(f.size) < 1.0 / (1.0 + np.exp(-f))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(f)).astype(float),
    }[kind]()
    return Problem(X[:n], y[:n], X[n:], y[n:], f[n:])


def belief(method: str, setting: Setting) -> gf.DenseGaussian | gf.DiagonalGaussian | gf.LowRankGaussian:
    """The prior in the form that a method keeps."""
    if method == "full":
        return gf.DenseGaussian.isotropic(setting.d, setting.prior)
    if method == "diagonal":
        return gf.DiagonalGaussian.isotropic(setting.d, setting.prior)
    block = lowrank_block(setting.p, None)
    return gf.LowRankGaussian.isotropic(setting.d, setting.p, setting.prior, projection=method, block_size=block)


def score(method: str, setting: Setting, data: Problem, exact: gf.DenseGaussian | None) -> Score:
    """Learn and predict; KL(ours ‖ exact) where the exact posterior is given."""
    one = belief(method, setting)
    likelihood = LIKELIHOODS[setting.kind]
    gf.fold(one, likelihood, data.X, data.y)
    seen = gf.fold(one.copy(), likelihood, data.X_test, data.y_test, sample_weight=np.zeros(data.y_test.size))
    linear = setting.kind == "linear"
    away = np.abs((data.y_test if linear else data.f_test) - seen.mean)
    inside = away < BOUND * np.sqrt(seen.variance + (NOISE**2 if linear else 0.0))
    dense = gf.DenseGaussian(one.mean, np.diag(one.variance())) if method == "diagonal" else one
    kl = float("nan") if exact is None else dense.kl(exact)  # type: ignore[arg-type,union-attr]  # all know a dense one
    return Score(-float(np.mean(seen.log_predictive)), float(inside.mean()), float(kl))


def measure(setting: Setting, seeds: int, methods: tuple[str, ...] = METHODS) -> dict[str, Score]:
    """Means over seeds."""
    found: dict[str, list[Score]] = {method: [] for method in methods}
    for seed in range(seeds):
        data = problem(setting, seed)
        exact = gf.DenseGaussian.isotropic(setting.d, setting.prior)
        gf.fold(exact, LIKELIHOODS[setting.kind], data.X, data.y)
        for method in methods:
            found[method].append(score(method, setting, data, exact))
    return {method: Score(*np.mean(scores, axis=0)) for method, scores in found.items()}


def settings(quick: bool) -> list[Setting]:
    """The sweep: each size, likelihood, condition and prior."""
    if quick:
        return [Setting(n=200, d=20, p=3), Setting("logistic", n=200, d=20, p=3)]
    sizes = [(20, 1), (20, 10), (100, 10), (100, 50), (500, 5)]
    return [
        Setting(kind, d, p, 1500, condition, prior)
        for kind in LIKELIHOODS
        for d, p in sizes
        for condition in (1.0, 1e2, 1e4, 1e6)
        for prior in (0.1, 1.0, 10.0, 100.0)
    ]


def draw(path: Path, seeds: int, n: int) -> None:
    """Coverage and KL over rank, condition and prior: ours, both other projections, and diagonal."""
    lines: list[tuple[str, list[float], Callable[[float], Setting]]] = [
        ("rank", [1, 2, 5, 10, 25], lambda value: Setting(n=n, p=int(value), prior=10.0)),
        ("condition", [1, 10, 1e2, 1e4, 1e6], lambda value: Setting(n=n, condition=value)),
        ("prior std", [0.1, 1, 10, 100], lambda value: Setting(n=n, prior=value)),
    ]
    figure = Figure(figsize=(11, 6), layout="constrained")
    axes = figure.subplots(2, 3, sharey="row")
    for column, (label, values, setting) in enumerate(lines):
        scores = [measure(setting(value), seeds, tuple(LOOKS)) for value in values]
        for method, (color, dashes) in LOOKS.items():
            for row, field in enumerate(("coverage", "kl")):
                points = [each[method]._asdict()[field] for each in scores]
                name = f"{method} (ours)" if method == "marginal" else method
                axes[row, column].plot(values, points, color=color, ls=dashes, marker="o", ms=4, label=name)
        for row in (0, 1):
            axes[row, column].set(xscale="log", xlabel=label)
        axes[0, column].axhspan(0.85, 0.95, color="#BBBBBB", alpha=0.4, lw=0)
        axes[1, column].set_yscale("log")
    axes[0, 0].set_ylabel("coverage of 90 % intervals")
    axes[1, 0].set_ylabel("KL to the exact posterior")
    axes[0, 0].legend()
    figure.suptitle("Linear regression, d = 50; p = 5, condition 100, prior 1 where not varied")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def run(quick: bool = False, picture: Path = Path("output/benchmarks/lowrank-calibration.png")) -> Report:
    """The sweep, its summary, and the picture."""
    seeds = 1 if quick else 10
    report = Report(
        "Low-rank posteriors: are their error bars true?",
        ["setting", *(f"{name} {field}" for field in ("loss", "coverage") for name in METHODS)],
    )
    worse, gaps, outside = 0, [], dict.fromkeys(METHODS, 0)
    chosen = settings(quick)
    for setting in chosen:
        scores = measure(setting, seeds)
        name = f"{setting.kind} d={setting.d} p={setting.p} c={setting.condition:g} s={setting.prior:g}"
        report.rows.append([name, *(scores[m].loss for m in METHODS), *(scores[m].coverage for m in METHODS)])
        gap = scores["marginal"].loss - scores["diagonal"].loss
        gaps.append(gap)
        worse += gap > 0.0
        for method in METHODS:
            outside[method] += not 0.85 <= scores[method].coverage <= 0.95
    report.notes.append(
        f"loss above the diagonal's in {worse} of {len(chosen)} settings, by {max(gaps):.4f} at most; "
        f"on average it is {-np.mean(gaps):.4f} below"
    )
    shares = ", ".join(f"{method} {count}" for method, count in outside.items())
    report.notes.append(f"settings with a coverage outside 85 to 95 %: {shares} of {len(chosen)}")
    draw(picture, seeds, 200 if quick else 1000)
    report.notes.append(f"picture: {picture}")
    return report
