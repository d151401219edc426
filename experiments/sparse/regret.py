"""Progressive regret against the true weights: run, tune, and draw R_t / log t."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments.registry import Context
from experiments.sparse.keeping import kept
from experiments.sparse.learners import METHODS, Learner
from experiments.sparse.sampled_vb import SampledVB
from experiments.sparse.streams import Stream
from experiments.style import LIGHT
from gaussfold.types import Array


def checkpoints(n: int) -> np.ndarray:
    """Where the regret is recorded: 20 places per factor of ten, from 100 on."""
    return np.unique(np.geomspace(min(100, n), n, 1 + int(20 * math.log10(max(n / 100, 1.0)))).round().astype(int))


def run(learners: Sequence[Learner], stream: Stream, n: int, seed: int) -> list[tuple[Array, float]]:
    """Run learners side by side; per learner its regret at the checkpoints, and its processor seconds.

    Those that sample draw with the stream's seed.
    """
    for learner in learners:
        if isinstance(learner, SampledVB):
            learner.draw(1000 + seed)
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


def tune(names: Sequence[str], stream: Stream, n: int, seed: int = 100) -> dict[str, dict[str, float]]:
    """Return each method's setting with the least regret on n examples of another stream.

    The best rate and prior depend on the horizon, so the choice is made at full length; of more than eight candidates
    among the four that are best on a tenth of it.
    """
    left = {name: METHODS[name].candidates(name, stream.std) for name in names}
    for size, few, keep in ((max(n // 10, 1000), 8, 4), (n, 1, 1)):
        tried = [(name, setting) for name in names if len(left[name]) > few for setting in left[name]]
        final: dict[str, list[float]] = {name: [] for name in names}
        for together in _groups(tried, stream):
            learners = [METHODS[name].make(stream.dim, *setting.values()) for name, setting in together]
            for (name, _), (curve, _) in zip(together, run(learners, stream, size, seed), strict=True):
                final[name].append(math.inf if math.isnan(curve[-1]) else curve[-1])
        for name, losses in final.items():
            if losses:
                left[name] = [left[name][k] for k in np.argsort(losses, kind="stable")[:keep]]
    return {name: settings[0] for name, settings in left.items()}


def _groups(items: Sequence[Any], stream: Stream) -> Iterator[Sequence[Any]]:
    """As many learners side by side as fit into a gigabyte: a stream is drawn once for all of them."""
    size = max(1, 2**26 // stream.dim)
    return (items[k : k + size] for k in range(0, len(items), size))


def compare(
    stream: Stream, names: list[str], context: Context, n: int, seeds: int, title: str, tuned_at: int | None = None
) -> dict[str, Any]:
    """Run the methods over several streams of one law; tuning happens on a stream of its own, as long or shorter."""
    length = tuned_at or n
    settings = kept(context, (stream, length, "settings"), names, lambda missing: tune(missing, stream, length))
    runs = [
        kept(context, (stream, n, seed), names, lambda missing, seed=seed: _runs(missing, settings, stream, n, seed))
        for seed in context.track(range(1, seeds + 1), title)
    ]
    marks = checkpoints(n)
    found: dict[str, Any] = {"stream": stream.numbers(), "examples": n, "seeds": seeds, "methods": {}}
    for name in names:
        regret = np.array([each[name]["regret"] for each in runs])
        found["methods"][name] = {
            "label": METHODS[name].label,
            "setting": settings[name],
            "seconds": float(np.mean([each[name]["seconds"] for each in runs])),
            "t": marks,
            "regret_over_log_t": regret.mean(axis=0) / np.log(marks),
            "r_T": float(regret[:, -1].mean() / math.log(n)),
            "r_T_each": regret[:, -1] / math.log(n),
        }
    return found


def _runs(
    names: Sequence[str], settings: dict[str, dict[str, float]], stream: Stream, n: int, seed: int
) -> dict[str, dict[str, Any]]:
    found = {}
    for together in _groups(names, stream):
        learners = [METHODS[name].make(stream.dim, *settings[name].values()) for name in together]
        for name, (curve, seconds) in zip(together, run(learners, stream, n, seed), strict=True):
            found[name] = {"regret": curve.tolist(), "seconds": seconds}
    return found


def by_prior(
    stream: Stream, names: list[str], factors: Sequence[float], told_nothing: str, context: Context, n: int, seeds: int
) -> dict[str, Any]:
    """r_T of methods whose prior is so many times as wide as the weights, and of one that is told nothing."""

    def compute(missing: list[str], seed: int) -> dict[str, Any]:
        pairs = [(name, factor) for name in missing for factor in (factors if name != told_nothing else (None,))]
        found: dict[str, Any] = {name: [] for name in missing}
        for together in _groups(pairs, stream):
            learners = [
                METHODS[name].make(stream.dim, *(() if factor is None else (factor * stream.std,)))
                for name, factor in together
            ]
            for (name, _), (curve, _) in zip(together, run(learners, stream, n, seed), strict=True):
                found[name].append(float(curve[-1]) / math.log(n))
        return found

    every = [*names, told_nothing]
    runs = [
        kept(context, (stream, n, seed, tuple(factors)), every, lambda missing, seed=seed: compute(missing, seed))
        for seed in context.track(range(1, seeds + 1), stream.law)
    ]
    return {
        "stream": stream.numbers(), "examples": n, "seeds": seeds, "prior_over_true_std": list(factors),
        "methods": {
            name: {"label": METHODS[name].label, "r_T": np.mean([each[name] for each in runs], axis=0)}
            for name in every
        },
    }  # fmt: skip


def draw_by_prior(ax: Any, found: dict[str, Any], title: str, label_y: bool = True) -> None:
    """r_T over the width of the prior; a level line for the method that has no prior to choose."""
    factors = found["prior_over_true_std"]
    for name, numbers in found["methods"].items():
        method, values = METHODS[name], np.asarray(numbers["r_T"])
        if values.size == 1:
            ax.axhline(float(values[0]), color=method.color, ls=method.dashes, label=numbers["label"])
        else:
            ax.plot(factors, values, color=method.color, ls=method.dashes, marker="o", ms=3, label=numbers["label"])
    ax.set(xscale="log", yscale="log", title=title, xlabel="prior std / true std")
    if label_y:
        ax.set_ylabel("regret / log t")


def draw(ax: Any, found: dict[str, Any], title: str, label_y: bool = True) -> None:
    """One panel: R_t / log t over t; a line that becomes flat is logarithmic regret."""
    top = 0.0
    for name, numbers in found["methods"].items():
        method = METHODS[name]
        values = numbers["regret_over_log_t"]
        # VB lies near the marginal method if it integrates well: broad bands behind show all
        band = {"vb": {"lw": 9.0, "zorder": 1}, "vb1000": {"lw": 5.0, "zorder": 1.5}}.get(name, {"lw": 1.8})
        ax.plot(numbers["t"], values, color=method.color, ls=method.dashes, label=numbers["label"], **band)
        top = max(top, values[-1])
    best = min(numbers["regret_over_log_t"][-1] for numbers in found["methods"].values())
    ax.set(xscale="log", title=title, xlabel="examples t", ylim=(0, max(min(1.1 * top, 6 * best), 1e-3)))
    lower_bound = 0.5 * found["stream"]["dim"]
    if lower_bound < ax.get_ylim()[1]:
        ax.axhline(lower_bound, color=LIGHT, lw=1.2, zorder=0, label="½ per weight (as t grows)")
    if label_y:
        ax.set_ylabel("regret / log t")


def draw_table(ax: Any, found: dict[str, Any], paper: dict[str, float], title: str, size: int = 1_000_000) -> None:
    """Table 1 as bars: r_T and processor seconds per million examples, with the paper's r_T as a mark."""
    names, at_paper_size = list(found["methods"]), found["examples"] == size
    for k, name in enumerate(names):
        numbers = found["methods"][name]
        ax.barh(k, numbers["r_T"], 0.6, color=METHODS[name].color)
        right = max(numbers["r_T"], paper.get(name, 0.0) if at_paper_size else 0.0)
        cost = numbers["seconds"] * 1e6 / found["examples"]
        ax.text(right, k, f"   {numbers['r_T']:.1f}   ({cost:.2g} s per million)", va="center", fontsize=8.5)
        if name in paper and at_paper_size:
            ax.plot(paper[name], k, marker="D", ms=5, color="black", ls="none", label="the paper's")
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[:1], labels[:1], loc="lower right")
    ax.set_yticks(range(len(names)), [found["methods"][name]["label"] for name in names])
    ax.invert_yaxis()
    ax.set_xlim(0.0, 2.0 * max(numbers["r_T"] for numbers in found["methods"].values()))
    ax.set(title=title, xlabel="regret / log T")
