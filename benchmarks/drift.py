"""Drift that finds itself: ``drift_std="auto"`` and ``forgetting="auto"`` beside every single pace.

Progressive log loss (each row is predicted before it is learned) in nats a row: elec2 in its order, from
``../shared/data`` where that exists, standardised by what has come before; and weights that stand still, walk slowly,
turn on a sine, change suddenly, come and go, or walk one feature alone, under three likelihoods. The best single pace
is chosen afterwards. ``python -m benchmarks drift``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gaussfold as gf
from benchmarks.report import Report

DRIFTS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
MEMORIES = (1.0, 0.9999, 0.9997, 0.999, 0.997, 0.99, 0.97, 0.9)
D = 6
ELEC2 = Path(__file__).resolve().parents[2] / "shared" / "data" / "elec2.csv"
MODELS: dict[str, Callable[..., Any]] = {
    "logistic": gf.StreamingClassifier,
    "linear": lambda **options: gf.StreamingRegressor(noise_std="learn", **options),
    "poisson": gf.StreamingPoissonRegressor,
}


def paths(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Weights at every row, (n, D)."""
    start, other = rng.standard_normal((2, D))
    still = np.tile(start, (n, 1))
    time = np.arange(n)
    return {
        "none": lambda: still,
        "slow": lambda: still + np.cumsum(0.01 * rng.standard_normal((n, D)), axis=0),
        "turning": lambda: 1.5 * np.sin(4.0 * np.pi * time[:, None] / n + rng.uniform(0.0, 2.0 * np.pi, D)),
        "sudden": lambda: np.where(time[:, None] < n // 2, start, other),
        "recurring": lambda: np.where((10 * time[:, None] // n) % 2 == 0, start, other),
        "one feature": lambda: still + np.eye(D)[0] * np.cumsum(0.05 * rng.standard_normal(n))[:, None],
    }[kind]()


def stream(kind: str, model: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels."""
    rng = np.random.default_rng([seed, 3])
    X = rng.standard_normal((n, D))
    f = (X * paths(kind, n, rng)).sum(axis=1)
    if model == "linear":
        return X, 3.0 * (f + rng.standard_normal(n))
    if model == "poisson":
        return X, rng.poisson(np.exp(np.clip(0.4 * f, -8.0, 8.0))).astype(float)
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-f))).astype(float)


def elec2(path: Path = ELEC2) -> tuple[np.ndarray, np.ndarray]:
    """Columns that are numbers and vary, standardised by the rows before each, and whether the price goes up."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))[1:]

    def number(text: str) -> float:
        try:
            return float(text)
        except ValueError:
            return float("nan")

    table = np.array([[number(cell) for cell in row[:-1]] for row in rows])
    X = table[:, np.isfinite(table).all(axis=0) & (np.nanstd(table, axis=0) > 0)]
    labels = np.array([row[-1] for row in rows])
    count = np.arange(1, len(X) + 1)[:, None]
    mean = np.cumsum(X, axis=0) / count
    std = np.sqrt(np.maximum(np.cumsum(X**2, axis=0) / count - mean**2, 1e-12))
    Z = np.zeros_like(X)
    Z[1:] = np.clip((X[1:] - mean[:-1]) / std[:-1], -5.0, 5.0)
    return Z, (labels == np.unique(labels)[-1]).astype(float)


def losses(make: Callable[..., Any], X: np.ndarray, y: np.ndarray, name: str, paces: tuple[float, ...]) -> list[float]:
    """Of "auto", then of each pace."""
    found = []
    for pace in ("auto", *paces):
        model = make(**{name: pace}, **PLAIN)
        learn = {"classes": [0.0, 1.0]} if isinstance(model, gf.StreamingClassifier) else {}
        found.append(float(model.partial_fit(X, y, **learn).progressive_log_loss_))
    return found


PLAIN: dict[str, Any] = {"prior_std": 1.0}
"""What the models are told besides: a prior, so that no default decides."""
if "scale" in gf.StreamingClassifier().get_params():
    PLAIN["scale"] = False


def run(quick: bool = False) -> Report:
    """All streams."""
    report = Report(
        "Drift that finds itself: progressive log loss, nats a row",
        [
            "stream",
            "rows",
            "parameter",
            "auto",
            "best single",
            "its pace",
            "auto - best",
            "no drift",
            "auto - no drift",
        ],
    )
    sizes, seeds = ((300,), 1) if quick else ((1000, 5000), 5)
    streams = [(f"{model}, {kind}", model, kind, n) for model in MODELS for kind in KINDS for n in sizes]
    for name, paces in (("drift_std", DRIFTS), ("forgetting", MEMORIES)):
        chosen = streams[:: len(sizes) * 3] if quick else streams
        for title, model, kind, n in chosen:
            each = [losses(MODELS[model], *stream(kind, model, n, seed), name, paces) for seed in range(seeds)]
            report.rows.append([title, n, name, *_summary(np.array(each), paces)])
        if not quick and ELEC2.exists():
            X, y = elec2()
            found = np.array([losses(MODELS["logistic"], X, y, name, paces)])
            report.rows.append(["elec2", len(y), name, *_summary(found, paces)])
    report.notes.append("means over data sets; the best single pace is chosen for each of them afterwards")
    return report


KINDS = ("none", "slow", "turning", "sudden", "recurring", "one feature")


def _summary(found: np.ndarray, paces: tuple[float, ...]) -> list[Any]:
    auto, singles = found[:, 0], found[:, 1:]
    best = singles.min(axis=1)
    pace = paces[int(singles.mean(axis=0).argmin())]
    cells = [auto.mean(), best.mean(), pace, (auto - best).mean(), singles[:, 0].mean(), (auto - singles[:, 0]).mean()]
    return [round(float(cell), 5) for cell in cells]
