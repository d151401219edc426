"""Streaming covariances: lrvga figure 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.ticker import NullFormatter
from sklearn.utils.extmath import randomized_svd

import gaussfold as gf
from experiments import style
from experiments.lowrank.problems import covariance_data
from experiments.registry import Context, Result

MODELS: dict[str, tuple[str, str, Any, dict[str, Any]]] = {
    "eigen": ("eigen-projection, 1 loop", style.BLUE, "-", {"block_size": 1}),
    "em 1": ("recursive EM, 1 loop", style.GREEN, (0, (1.2, 1.2)), {"projection": "em", "block_size": 1}),
    "em 3": (
        "recursive EM, 3 loops",
        style.GREEN,
        (0, (5, 2)),
        {"projection": "em", "inner_loops": 3, "block_size": 1},
    ),
    "online": (
        "online EM by row, lrvga App. C",
        style.VERMILION,
        (0, (5, 1.5, 1, 1.5)),
        {"method": "online-em", "block_size": 1, "prior_count": 1},
    ),
    "online blocks": (
        "online EM by blocks, from our projection",
        style.ORANGE,
        (0, (1, 1.5)),
        {"method": "online-em"},
    ),
}


def kl(model: np.ndarray, S: np.ndarray) -> float:
    """KL(N(0, S) ‖ N(0, model))."""
    spread = np.trace(np.linalg.solve(model, S)) - len(S)
    return float(0.5 * (spread + np.linalg.slogdet(model)[1] - np.linalg.slogdet(S)[1]))


def fig1(context: Context) -> Result:
    """KL to the covariance of all rows, along the stream, for four data sets; batch EM as a level."""
    names = ("d = 40", "Breast Cancer") if context.quick else ("d = 100", "d = 1000", "Madelon-like", "Breast Cancer")
    figure = style.canvas(11.0, 4.0 * (len(names) // 2))
    axes = figure.subplots(len(names) // 2, 2, squeeze=False).ravel()
    numbers: dict[str, Any] = {}
    for ax, name in zip(axes, context.track(names, "data sets"), strict=True):
        X, p = covariance_data(name, context.quick, full=context.full)
        n, d = X.shape
        S = X.T @ X / n + (1e-9 / d) * np.eye(d)
        steps = np.unique(np.geomspace(120, n, 8 if context.quick else 16).astype(int))
        curves: dict[str, list[float]] = {}
        for key, (label, color, dashes, options) in MODELS.items():
            model, seen, curve = gf.StreamingFactorAnalysis(p, center=False, random_state=7, **options), 0, []
            for step in steps:
                curve.append(kl(model.partial_fit(X[seen:step]).get_covariance(), S))
                seen = step
            curves[key] = curve
            ax.plot(steps, curve, color=color, ls=dashes, label=label)
        levels = [kl(model, S) for model in batch_em(S, p, (5, 300))]
        for level, dashes, passes in zip(levels, (":", "-"), (5, 300), strict=True):
            ax.axhline(level, color=style.GREY, lw=1, ls=dashes, label=f"batch EM from eigenvectors, {passes} passes")
        low_rank = kl(randomised_svd(S, p), S)
        ax.set(title=f"{name}, p = {p}", xlabel="rows seen", ylabel="KL", xscale="log", yscale="log")
        ax.set_xticks([200, 500, 1000, 2000, 4000, 10_000], ["200", "500", "1000", "2000", "4000", "10⁴"])
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xlim(steps[0] * 0.9, n * 1.1)
        numbers[name] = {
            "steps": steps,
            "kl": curves,
            "batch_em_5_300": levels,
            "svd": low_rank,
            "rows": n,
            "features": d,
            "factors": p,
        }
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return Result(figure, numbers)


def batch_em(S: np.ndarray, p: int, stops: tuple[int, ...]) -> list[np.ndarray]:
    """Covariances of batch EM, lrvga (19), (20), after so many passes, from the strongest directions of S."""
    values, vectors = np.linalg.eigh(S)
    W = vectors[:, -p:] * np.sqrt(np.maximum(values[-p:] - values[:-p].mean(), 1e-3 * values[-1]))
    psi = np.full(len(S), values[:-p].mean())
    found = []
    for loop in range(1, max(stops) + 1):
        scaled = W / psi[:, None]
        M = np.eye(p) + W.T @ scaled
        U = S @ np.linalg.solve(M, scaled.T).T
        H = np.linalg.inv(M) + np.linalg.solve(M, scaled.T @ U)
        W = np.linalg.solve(H.T, U.T).T
        psi = np.maximum(np.diag(S) - np.einsum("ij,ij->i", W, U), 1e-9 * np.diag(S))
        if loop in stops:
            found.append(W @ W.T + np.diag(psi))
    return found


def randomised_svd(S: np.ndarray, p: int) -> np.ndarray:
    """The p strongest directions of S by a randomised decomposition, and the diagonal that is left."""
    vectors, values, _ = randomized_svd(S, p, random_state=0)
    low = (vectors * values) @ vectors.T
    return np.asarray(low + np.diag(np.maximum(np.diag(S - low), 1e-3 * np.diag(S))))
