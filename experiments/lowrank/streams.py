"""Thesis figures 4.1 and B.1, tables B.1 and B.2: how far streaming factor analyses are from the true covariance."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter

import gaussfold as gf
from experiments import style
from experiments.lowrank.problems import factor_model
from experiments.registry import Context, Result

MODELS: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "recursive": ("ours, recursive (default)", style.BLUE, "-", {}),
    "online": ("ours, online EM averaged", style.VERMILION, (0, (5, 1.5, 1, 1.5)), {"method": "online-em"}),
    "thesis em": (
        "thesis's online EM, our code",
        style.ORANGE,
        (0, (5, 2)),
        {"method": "online-em", "step": "average", "prior_count": 0},
    ),
    "gradient": ("gradient ascent, our code", style.GREEN, (0, (1.2, 1.2)), {"method": "gradient"}),
}
MARKS = {"batch SVD": ("D", style.BLACK), "online EM": ("*", style.ORANGE), "online SGA": ("^", style.GREEN)}
# The paper's numbers: two tables with the same cells.
TABLES: dict[str, dict[tuple[int, int], tuple[float, float, float]]] = {
    "distance": {
        (100, 10): (0.0454, 0.0399, 0.0426),
        (100, 100): (0.0631, 0.0613, 0.1309),
        (100, 1000): (0.0608, 0.1767, 0.2350),
        (1000, 10): (0.0204, 0.0207, 0.0546),
        (1000, 100): (0.0217, 0.0238, 0.0472),
        (1000, 1000): (0.0218, 0.0501, 0.0945),
    },
    "wasserstein": {
        (100, 10): (0.0061, 0.0058, 0.0062),
        (100, 100): (0.0256, 0.0246, 0.0446),
        (100, 1000): (0.0780, 0.2137, 0.2855),
        (1000, 10): (0.0015, 0.0016, 0.0023),
        (1000, 100): (0.0048, 0.0049, 0.0062),
        (1000, 1000): (0.0152, 0.0217, 0.0349),
    },
}
"""Tables B.1 and B.2 of the thesis, 100,000 rows: batch SVD, online EM, online SGA."""
LABELS = {"distance": "covariance, relative distance", "wasserstein": "2-Wasserstein / D"}


def wasserstein(found: tuple[np.ndarray, np.ndarray], mean: np.ndarray, root: np.ndarray, trace: float) -> float:
    """2-Wasserstein distance over D of a mean and covariance from a Gaussian whose covariance has this square root."""
    middle = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ found[1] @ root), 0.0)).sum()
    square = ((found[0] - mean) ** 2).sum() + np.trace(found[1]) + trace - 2.0 * middle
    return float(np.sqrt(max(square, 0.0)) / len(mean))


def stream(d: int, top: float, seed: int, steps: np.ndarray, keys: list[str]) -> dict[str, dict[str, list[float]]]:
    """Both distances of each model after so many rows of one factor model."""
    rng = np.random.default_rng(seed)
    c, F, psi = factor_model(rng, d, 10, top)
    truth = F @ F.T + np.diag(psi)
    values, vectors = np.linalg.eigh(truth)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    fits = {key: gf.StreamingFactorAnalysis(10, random_state=100 + seed, **MODELS[key][3]) for key in keys}
    found: dict[str, dict[str, list[float]]] = {
        key: {"distance": [], "wasserstein": [], "seconds": [0.0]} for key in keys
    }
    seen = 0
    for step in steps:
        while seen < step:
            n = min(5000, step - seen)
            X = c + rng.standard_normal((n, 10)) @ F.T + np.sqrt(psi) * rng.standard_normal((n, d))
            for key, fit in fits.items():
                started = time.process_time()
                fit.partial_fit(X)
                found[key]["seconds"][0] += time.process_time() - started
            seen += n
        for key, fit in fits.items():
            cov = fit.get_covariance()
            found[key]["distance"].append(float(np.linalg.norm(cov - truth) / np.linalg.norm(truth)))
            found[key]["wasserstein"].append(wasserstein((fit.mean_, cov), c, root, float(np.trace(truth))))
    return found


def fig41(context: Context) -> Result:
    """Distances as rows come, three spectra in two dimensions, and what the thesis ends at."""
    tops, sizes = ((10.0, 1000.0), (30, 40)) if context.quick else ((10.0, 100.0, 1000.0), (100, 1000))
    total, seeds = (2000, 1) if context.quick else (100_000, 2)  # the thesis has ten
    steps = np.unique(np.geomspace(300, total, 4 if context.quick else 8).astype(int))
    figure = style.canvas(13.0, 3.1 * len(tops))
    axes = figure.subplots(len(tops), 4, squeeze=False)
    numbers: dict[str, Any] = {}
    for row, top in enumerate(context.track(tops, "spectra")):
        for column, d in enumerate(sizes):
            keys = list(MODELS) if d <= 100 else ["recursive", "online"]
            runs = [stream(d, top, seed, steps, keys) for seed in range(seeds)]
            case: dict[str, Any] = {"steps": steps, "seeds": seeds}
            for metric, shift in (("distance", 0), ("wasserstein", 2)):
                curves = {key: np.array([run[key][metric] for run in runs]) for key in keys}
                thesis = TABLES[metric].get((d, int(top))) if total == 100_000 else None
                _panel(axes[row, column + shift], steps, curves, thesis)
                axes[row, column + shift].set(title=f"D = {d}, spectrum [1, {top:g}]", ylabel=LABELS[metric])
                error = 1.0 / np.sqrt(seeds)
                case[metric] = {key: values.mean(axis=0) for key, values in curves.items()}
                case[f"{metric}_standard_error"] = {
                    key: values.std(axis=0, ddof=1) * error if seeds > 1 else None for key, values in curves.items()
                }
                case[f"{metric}_thesis"] = None if thesis is None else dict(zip(MARKS, thesis, strict=True))
                if thesis is not None:
                    ends = {key: float(values[:, -1].mean()) for key, values in curves.items()}
                    case[f"{metric}_at_or_below_thesis_online_em"] = {k: end <= thesis[1] for k, end in ends.items()}
            case["processor_seconds"] = {key: float(np.mean([run[key]["seconds"][0] for run in runs])) for key in keys}
            numbers[f"D={d} [1,{top:g}]"] = case
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return Result(figure, numbers)


def _panel(ax: Any, steps: np.ndarray, curves: dict[str, np.ndarray], thesis: tuple[float, ...] | None) -> None:
    for key, values in curves.items():
        label, color, dashes, _ = MODELS[key]
        ax.plot(steps, values.mean(axis=0), color=color, ls=dashes, label=label)
        ax.fill_between(steps, values.min(axis=0), values.max(axis=0), color=color, alpha=0.15, lw=0)
    for (name, (mark, color)), value in zip(MARKS.items(), thesis or (), strict=False):
        ax.plot(steps[-1], value, mark, color=color, mec=style.BLACK, ms=8, clip_on=False, label=f"thesis, {name}")
    ax.set(xscale="log", yscale="log", xlabel="rows seen")
    ax.xaxis.set_minor_formatter(NullFormatter())
