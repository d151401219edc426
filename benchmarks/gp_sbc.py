"""Simulation-based calibration: latents and labels drawn from the model itself, fitted with default options.

For every likelihood a process is drawn from the prior, labels are drawn from the likelihood, and the fitted posterior
says central intervals of the latents at the inputs. Over all draws 50 % and 90 % of the truths should lie inside.
Within one draw the latents depend on each other, so the error that is shown is that of means over draws.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks.report import Report
from gaussfold import likelihoods as lk
from gaussfold.gp import GaussianProcess, Matern32, NotConvergedWarning
from gaussfold.gp.outcomes import drawn

LEVELS = (0.5, 0.9)
NEAR = 0.03
FAMILIES: dict[str, Any] = {
    "Bernoulli": lk.Bernoulli(),
    "Poisson": lk.Poisson(),
    "negative binomial": lk.NegativeBinomial(4.0),
    "Gamma": lk.Gamma(2.0),
    "Beta": lk.Beta(6.0),
    "Student-t": lk.StudentT(4.0, 0.4),
    "ordinal": lk.Ordinal([-1.0, 0.0, 1.0]),
    "heteroscedastic": lk.HeteroscedasticGaussian(),
}
ROWS = 50
GRID = np.linspace(0.02, 0.98, 49)


def calibrated(likelihood: Any, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Ranks of the true latents in their marginals (draws, rows · D), of the labels in theirs, and failed fits."""
    rng = np.random.default_rng(seed)
    kernel = Matern32(1.0, 1.0)
    latents = lk.as_vector(likelihood).latents
    ranks, failed = [], 0
    for _ in range(draws):
        x = np.sort(rng.uniform(0.0, 10.0, ROWS))
        root = np.linalg.cholesky(kernel(x[:, None]) + 1e-10 * np.eye(ROWS))
        F = root @ rng.standard_normal((ROWS, latents))
        y = np.asarray(drawn(likelihood, F, rng), dtype=float)
        y = np.clip(y, 1e-9, 1.0 - 1e-9) if isinstance(likelihood, lk.Beta) else y
        model = GaussianProcess(kernel, likelihood, structure="markov", verbose=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error", NotConvergedWarning)
            try:
                model.fit(x, y)
            except (ValueError, NotConvergedWarning, np.linalg.LinAlgError):
                failed += 1
                continue
        std = np.sqrt(np.diagonal(model.marginals_.cov, axis1=1, axis2=2))
        ranks.append(stats.norm.cdf((F - model.marginals_.mean) / std).ravel())
    return np.array(ranks), np.abs(np.array(ranks) - 0.5), failed


def run(quick: bool = False, folder: Path = Path("output/benchmarks")) -> Report:
    """All families; the picture goes to the folder of the JSON files."""
    draws = 40 if quick else 300
    report = Report(
        "Simulation-based calibration of Gaussian processes, default options",
        ("likelihood", "draws", "50 % covers", "90 % covers", "error of these", "failed fits", "seconds", "holds"),
    )
    curves = {}
    for seed, (name, likelihood) in enumerate(FAMILIES.items()):
        began = time.process_time()
        ranks, away, failed = calibrated(likelihood, draws, 1000 + seed)
        cover = [(away < 0.5 * level).mean(axis=1) for level in LEVELS]
        shares = [float(c.mean()) for c in cover]
        error = max(float(c.std() / np.sqrt(len(c))) for c in cover)
        holds = failed == 0 and all(abs(s - level) <= NEAR for s, level in zip(shares, LEVELS, strict=True))
        row = [name, draws, *(f"{s:.3f}" for s in shares), f"{error:.3f}", failed, time.process_time() - began]
        report.rows.append([*row, "yes" if holds else "NO"])
        print(*row, "yes" if holds else "NO", flush=True)
        curves[name] = [float((ranks.ravel() <= level).mean()) for level in GRID]
    report.numbers["curves"] = curves
    report.notes.append(f"{sum(row[-1] == 'yes' for row in report.rows)} of {len(report.rows)} hold")
    _picture(curves, folder / "gp-sbc.png", draws)
    return report


def _picture(curves: dict[str, list[float]], path: Path, draws: int) -> None:
    """How far the ranks of the truths are from uniform."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(11.0, 5.0), layout="constrained")
    axes = figure.subplots(2, 4, sharex=True, sharey=True)
    for ax, (name, curve) in zip(axes.ravel(), curves.items(), strict=True):
        ax.axhline(0.0, color="grey", lw=1, ls=(0, (4, 2)))
        ax.fill_between(GRID, -NEAR, NEAR, color="tab:green", alpha=0.15, lw=0)
        ax.plot(GRID, np.array(curve) - GRID, color="tab:blue", lw=1.5)
        ax.set(title=name, ylim=(-0.08, 0.08))
    for ax in axes[1]:
        ax.set_xlabel("level")
    for ax in axes[:, 0]:
        ax.set_ylabel("share of truths below - level")
    figure.suptitle(f"Ranks of true latents in their posterior marginals, {draws} draws of {ROWS} labels each")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
