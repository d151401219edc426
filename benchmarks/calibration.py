"""Can a low-rank posterior be believed? Coverage, predictive loss and KL over rank, condition and prior.

Rows have a rotated spectrum that falls geometrically to 1/condition; weights are drawn, labels follow the model, and
500 fresh rows are predicted. Beside ours (the default projection and block of the estimators) stand the exact posterior
(up to d = 500; where the prior is far too wide or rows are few it does not cover either), the diagonal belief, the
projection that keeps the precision's diagonal ("eigen", the default of 0.1.0, at its block) and, in the picture, the
paper's ("em"). Coverage is of 90 % intervals: of the label where the model is linear, of the latent
otherwise. ``python -m benchmarks lowrank-calibration`` prints who is worse than the diagonal, where and by how much,
the KL on the papers' data where ``../shared`` has them, processor time per row, and draws
``lowrank-calibration.png``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import gaussfold as gf
from benchmarks.report import Report

NOISE = 0.5
BOUND = 1.6448536269514722
"""Of a 90 % interval."""
LIKELIHOODS = {
    "linear": gf.likelihoods.Gaussian(NOISE),
    "logistic": gf.likelihoods.Bernoulli(),
    "poisson": gf.likelihoods.Poisson(),
}
OURS = "calibrated"
METHODS = ("full", "diagonal", OURS, "eigen")
LARGEST_FULL = 500
"""Weights up to which the full covariance is tried, too."""
FIRST_SEED = 1000
"""Nothing was tuned on this and later ones."""
LOOKS = {
    "diagonal": ("#666666", ":"),
    OURS: ("#0072B2", "-"),
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


UNKNOWN = Score(float("nan"), float("nan"), float("nan"))


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
    X = (rng.standard_normal((n + tests, d)) * spectrum / np.linalg.norm(spectrum)) @ rotation(d, seed)
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


@lru_cache(maxsize=10)
def rotation(d: int, seed: int) -> np.ndarray:
    """A random rotation."""
    return np.linalg.qr(np.random.default_rng([seed, d]).standard_normal((d, d)))[0]


def belief(method: str, setting: Setting) -> gf.DenseGaussian | gf.DiagonalGaussian | gf.LowRankGaussian:
    """The prior in the form that a method keeps."""
    if method == "full":
        return gf.DenseGaussian.isotropic(setting.d, setting.prior)
    if method == "diagonal":
        return gf.DiagonalGaussian.isotropic(setting.d, setting.prior)
    block = {OURS: None, "em": 1}.get(method, min(32, setting.p))
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


def measure(setting: Setting, seeds: int, methods: tuple[str, ...] = METHODS, kl: bool = True) -> dict[str, Score]:
    """Means over seeds; without ``kl`` the exact posterior is spared."""
    found: dict[str, list[Score]] = {method: [] for method in methods}
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        data = problem(setting, seed)
        exact = gf.DenseGaussian.isotropic(setting.d, setting.prior) if kl else None
        if exact is not None:
            gf.fold(exact, LIKELIHOODS[setting.kind], data.X, data.y)
        for method in methods:
            if method != "full" or setting.d <= LARGEST_FULL:
                found[method].append(score(method, setting, data, exact))
    return {method: Score(*np.mean(scores, axis=0)) if scores else UNKNOWN for method, scores in found.items()}


def settings(quick: bool) -> list[Setting]:
    """The sweep: each size, likelihood, condition and prior."""
    if quick:
        return [Setting(n=200, d=20, p=3), Setting("logistic", n=200, d=20, p=3)]
    sizes = [(20, 1), (20, 10), (100, 10), (100, 50), (500, 5), (2000, 20)]
    return [
        Setting(kind, d, p, 1000, condition, prior)
        for d, p in sizes
        for kind in LIKELIHOODS
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
                name = f"{method} (ours)" if method == OURS else method
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


def papers() -> list[str]:
    """KL to the exact posterior on the papers' linear data: ours and ``eigen``; nothing where they are not at hand."""
    path = Path("../shared/oracles/lrvga/linreg_d100_sigmas.npz")
    if not path.exists():
        return ["papers' data: not at hand (../shared)"]
    z, notes = np.load(path), []
    for sigma in ("0.3", "3", "10"):
        exact = gf.DenseGaussian(z[f"sigma{sigma}_post_mean"], z[f"sigma{sigma}_post_cov"])
        for p in (1, 2, 10):
            found = []
            for method in (OURS, "eigen"):
                one = belief(method, Setting(d=100, p=p, prior=float(sigma)))
                gf.fold(one, gf.likelihoods.Gaussian(1.0), z["X"], z["y"])
                found.append(one.kl(exact))  # type: ignore[union-attr,arg-type]  # a low-rank one
            notes.append(f"papers' data, prior {sigma}, p = {p}: KL {found[0]:.1f}, eigen {found[1]:.1f}")
    return notes


def costs(quick: bool) -> list[str]:
    """Processor time per row, ours over ``eigen``, at the blocks of each."""
    sizes = (
        [(100, 10)] if quick else [(100, 1), (100, 10), (1000, 5), (1000, 32), (10**4, 10), (10**4, 100), (10**5, 10)]
    )
    notes = []
    for d, p in sizes:
        rng = np.random.default_rng(0)
        n = 3200 if d <= 1000 else 800 if d <= 10**4 else 160
        X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
        best = dict.fromkeys((OURS, "eigen"), np.inf)
        for _ in range(2 if quick else 5):
            for method in best:
                one = belief(method, Setting(d=d, p=p))
                started = time.process_time()
                gf.fold(one, LIKELIHOODS["linear"], X, y)
                best[method] = min(best[method], (time.process_time() - started) / n)
        notes.append(
            f"d = {d}, p = {p}: {1e6 * best[OURS]:.1f} µs a row, {best[OURS] / best['eigen']:.2f} times eigen's"
        )
    return notes


def within(coverage: float) -> bool:
    """Whether 90 % intervals cover as stated."""
    return 0.85 <= coverage <= 0.95


def run(quick: bool = False, picture: Path = Path("output/benchmarks/lowrank-calibration.png")) -> Report:
    """The sweep, its summary, and the picture."""
    seeds = 1 if quick else 10
    report = Report(
        "Low-rank posteriors: are their error bars true?",
        ["setting", *(f"{name} {field}" for field in ("loss", "coverage") for name in METHODS)],
    )
    chosen = settings(quick)
    found: list[dict[str, Score]] = []
    for setting in chosen:
        scores = measure(setting, seeds, kl=False)
        found.append(scores)
        name = f"{setting.kind} d={setting.d} p={setting.p} c={setting.condition:g} s={setting.prior:g}"
        report.rows.append([name, *(scores[m].loss for m in METHODS), *(scores[m].coverage for m in METHODS)])
        print(*report.rows[-1], flush=True)
    for kind in LIKELIHOODS:
        report.notes += summary(
            kind, [each for setting, each in zip(chosen, found, strict=True) if setting.kind == kind]
        )
    report.notes += papers() + costs(quick)
    draw(picture, seeds, 200 if quick else 1000)
    report.notes.append(f"picture: {picture}")
    return report


def summary(kind: str, found: list[dict[str, Score]]) -> list[str]:
    """How often, and by how much, what should hold does not."""
    if not found:
        return []
    gaps = np.array([each[OURS].loss - each["diagonal"].loss for each in found])
    worse = gaps[gaps > 0.0]
    notes = [
        f"{kind}: loss above the diagonal's in {worse.size} of {gaps.size} settings, by more than 0.01 in "
        f"{int((worse > 0.01).sum())}, by {worse.max(initial=0.0):.3f} at most; median difference {np.median(gaps):.4f}"
    ]
    exact = np.array([each["full"].coverage for each in found])
    for method in METHODS:
        cover = np.array([each[method].coverage for each in found])
        tried = ~np.isnan(cover)
        outside = tried & np.array([not within(value) for value in cover])
        span = f", from {cover[outside].min():.2f} to {cover[outside].max():.2f}" if outside.any() else ""
        alone = int(sum(within(value) for value in exact[outside]))
        notes.append(
            f"{kind}: coverage outside 85 to 95 % with {method} in {outside.sum()} of {tried.sum()}{span}; in {alone} "
            "of them the exact posterior is within"
        )
    return notes
