"""Progressive regret against the true weights: run, tune, and draw R_t / log t."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.registry import Context
from experiments.sparse.learners import METHODS, Learner
from experiments.sparse.streams import Stream
from experiments.style import LIGHT
from gaussfold.types import Array


def checkpoints(n: int) -> np.ndarray:
    """Where the regret is recorded: 20 places per factor of ten, from 100 on."""
    return np.unique(np.geomspace(min(100, n), n, 1 + int(20 * math.log10(max(n / 100, 1.0)))).round().astype(int))


def run(learners: Sequence[Learner], stream: Stream, n: int, seed: int) -> list[tuple[Array, float]]:
    """Run learners side by side; per learner its regret at the checkpoints, and its processor seconds."""
    marks, seen = checkpoints(n), 0
    curves: list[list[Array]] = [[] for _ in learners]
    totals, seconds = np.zeros(len(learners)), np.zeros(len(learners))
    for chunk in stream.chunks(n, seed):
        inside = marks[(marks > seen) & (marks <= seen + chunk.y.size)] - seen - 1
        for k, learner in enumerate(learners):
            started = time.thread_time()
            loss = learner.learn(chunk.rows, chunk.y)
            seconds[k] += time.thread_time() - started
            regret = totals[k] + np.cumsum(loss - chunk.true_loss)
            curves[k].append(regret[inside])
            totals[k] = regret[-1]
        seen += chunk.y.size
    return [(np.concatenate(curve), float(spent)) for curve, spent in zip(curves, seconds, strict=True)]


def tune(name: str, stream: Stream, n: int, seed: int = 100) -> dict[str, float]:
    """Return the method's setting with the least regret on n examples of another stream.

    The best rate and prior depend on the horizon, so the last choice, among five, is made at full length; which five
    is seen on a tenth of it.
    """
    settings = METHODS[name].candidates(name, stream.std)
    for size, keep in ((max(n // 10, 1000), 5), (n, 1)):
        if len(settings) <= keep:
            continue
        runs = run([METHODS[name].make(stream.dim, *setting.values()) for setting in settings], stream, size, seed)
        final = np.array([curve[-1] for curve, _ in runs])
        settings = [settings[k] for k in np.argsort(np.where(np.isnan(final), np.inf, final), kind="stable")[:keep]]
    return settings[0]


def compare(stream: Stream, names: list[str], context: Context, n: int, seeds: int, title: str) -> dict[str, Any]:
    """Run the methods over several streams of one law; tuning happens on a stream of its own."""
    found: dict[str, Any] = {"stream": stream.numbers(), "examples": n, "methods": {}}
    for name in context.track(names, title):
        method = METHODS[name]
        size = max(n // method.slow, min(n, 2000))
        setting = tune(name, stream, size)
        runs = [
            run([method.make(stream.dim, *setting.values())], stream, size, seed)[0] for seed in range(1, seeds + 1)
        ]
        regret = np.mean([curve for curve, _ in runs], axis=0)
        marks = checkpoints(size)
        found["methods"][name] = {
            "label": method.label if size == n else f"{method.label} (first {size:,})",
            "setting": setting,
            "examples": size,
            "seconds": float(np.mean([seconds for _, seconds in runs])),
            "t": marks,
            "regret_over_log_t": regret / np.log(marks),
            "r_T": float(regret[-1] / math.log(size)),
            "r_T_each": [float(curve[-1] / math.log(size)) for curve, _ in runs],
        }
    _level(found, n)
    return found


def _level(found: dict[str, Any], n: int) -> None:
    """Beside a method that was given fewer examples, note where the marginal method stood at that point."""
    marginal = found["methods"].get("gauss")
    for numbers in found["methods"].values():
        if marginal is not None and numbers["examples"] < n:
            at = int(np.searchsorted(marginal["t"], numbers["examples"], side="right")) - 1
            numbers["marginal_at_the_same_t"] = float(marginal["regret_over_log_t"][max(at, 0)])


def draw(ax: Any, found: dict[str, Any], title: str, label_y: bool = True) -> None:
    """One panel: R_t / log t over t; a line that becomes flat is logarithmic regret."""
    top = 0.0
    for name, numbers in found["methods"].items():
        method = METHODS[name]
        values = numbers["regret_over_log_t"]
        # sampled VB lies on top of the marginal method wherever both are: a broad band behind it shows both
        band = {"lw": 5.0, "alpha": 0.4, "zorder": 1} if name.startswith("vb") else {"lw": 1.8}
        ax.plot(numbers["t"], values, color=method.color, ls=method.dashes, label=numbers["label"], **band)
        top = max(top, values[-1])
    best = min(numbers["regret_over_log_t"][-1] for numbers in found["methods"].values())
    ax.set(xscale="log", title=title, xlabel="examples t", ylim=(0, max(min(1.1 * top, 6 * best), 1e-3)))
    lower_bound = 0.5 * found["stream"]["dim"]
    if lower_bound < ax.get_ylim()[1]:
        ax.axhline(lower_bound, color=LIGHT, lw=1.2, zorder=0, label="½ per weight (lower bound)")
    if label_y:
        ax.set_ylabel("regret / log t")


def draw_table(ax: Any, found: dict[str, Any], paper: dict[str, float], title: str) -> None:
    """Table 1 as bars: r_T and processor seconds per million examples, with the paper's r_T as a mark."""
    names = list(found["methods"])
    for k, name in enumerate(names):
        numbers = found["methods"][name]
        ax.barh(k, numbers["r_T"], 0.6, color=METHODS[name].color)
        cost = numbers["seconds"] * 1e6 / numbers["examples"]
        right = max(numbers["r_T"], paper.get(name, 0.0) if found["examples"] == numbers["examples"] else 0.0)
        ax.text(right, k, f"   {numbers['r_T']:.1f}   ({cost:.3g} s per million)", va="center", fontsize=8.5)
        if name in paper and found["examples"] == numbers["examples"]:
            ax.plot(paper[name], k, marker="D", ms=5, color="black", ls="none", label="the paper's")
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[:1], labels[:1], loc="lower right")
    ax.set_yticks(range(len(names)), [found["methods"][name]["label"] for name in names])
    ax.invert_yaxis()
    ax.set_xlim(0.0, 2.0 * max(numbers["r_T"] for numbers in found["methods"].values()))
    ax.set(title=title, xlabel="regret / log T")
