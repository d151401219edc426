"""Progressive regret against the true weights: run, tune, and draw R_t / log t."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from experiments.registry import Context
from experiments.sparse.learners import GRIDS, METHODS, Learner
from experiments.sparse.streams import Stream
from gaussfold.types import Array


def checkpoints(n: int) -> np.ndarray:
    """Where the regret is recorded: 20 places per factor of ten, from 100 on."""
    return np.unique(np.geomspace(min(100, n), n, 1 + int(20 * math.log10(max(n / 100, 1.0)))).round().astype(int))


def run(learner: Learner, stream: Stream, n: int, seed: int) -> tuple[Array, float]:
    """Return the regret at the checkpoints, and the seconds that predicting and learning took."""
    marks, curve, total, seconds, seen = checkpoints(n), [], 0.0, 0.0, 0
    for chunk in stream.chunks(n, seed):
        started = time.perf_counter()
        loss = learner.learn(chunk.rows, chunk.y)
        seconds += time.perf_counter() - started
        regret = total + np.cumsum(loss - chunk.true_loss)
        inside = marks[(marks > seen) & (marks <= seen + chunk.y.size)]
        curve.append(regret[inside - seen - 1])
        total, seen = float(regret[-1]), seen + chunk.y.size
    return np.concatenate(curve), seconds


def tune(name: str, stream: Stream, n: int, seed: int) -> float:
    """Return the number of the method's grid with the least regret on n examples of another stream."""
    grid = GRIDS.get(name, (1.0,))
    scale = stream.std if METHODS[name].tuned == "prior std" else 1.0
    if len(grid) == 1:
        return grid[0] * scale
    finals = {value: run(METHODS[name].make(stream.dim, value * scale), stream, n, seed)[0][-1] for value in grid}
    return min(finals, key=lambda value: finals[value]) * scale


def compare(stream: Stream, names: list[str], context: Context, n: int, seeds: int, title: str) -> dict[str, Any]:
    """Run the methods over several streams of one law; tuning happens on a stream of its own."""
    found: dict[str, Any] = {"stream": stream.numbers(), "examples": n, "methods": {}}
    for name in context.track(names, title):
        method = METHODS[name]
        size = max(n // method.slow, min(n, 2000))
        # the best rate and prior depend on the horizon, so the baselines are tuned at theirs
        value = tune(name, stream, size, seed=100)
        runs = [run(method.make(stream.dim, value), stream, size, seed) for seed in range(1, seeds + 1)]
        regret = np.mean([curve for curve, _ in runs], axis=0)
        marks = checkpoints(size)
        found["methods"][name] = {
            "label": method.label,
            "setting": {method.tuned: value} if method.tuned else {},
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
        ax.plot(
            numbers["t"], numbers["regret_over_log_t"], color=method.color, ls=method.dashes, lw=1.8, label=method.label
        )
        top = max(top, numbers["regret_over_log_t"][-1])
    lower_bound = 0.5 * found["stream"]["dim"]
    if lower_bound < 2 * top:
        ax.axhline(lower_bound, color="#BBBBBB", lw=1, zorder=0)
    best = min(numbers["regret_over_log_t"][-1] for numbers in found["methods"].values())
    ax.set(xscale="log", title=title, xlabel="examples t", ylim=(0, max(min(1.1 * top, 6 * best), 1e-3)))
    if label_y:
        ax.set_ylabel("regret / log t")
