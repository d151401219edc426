"""Lrvga tables 1 and 2: time per row and memory of full matrices against factors."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import gaussfold as gf
from experiments import style
from experiments.registry import Context, Result

Case = tuple[Callable[[], Any], Callable[[Any, np.ndarray], Any]]


def table1(context: Context) -> Result:
    """Factor analysis of one covariance: batch EM on the d×d matrix, online EM, recursive EM; p = 10 (full: 100)."""
    p = 100 if context.full else 10
    cases: dict[str, Case] = {
        "batch EM, d×d": (_batch_start, _batch_step),
        "online EM": (lambda: _stream(p, method="online-em", block_size=1), lambda model, X: model.partial_fit(X)),
        "recursive EM, 1 loop": (lambda: _stream(p, projection="em", block_size=1), lambda m, X: m.partial_fit(X)),
        "eigen-projection": (lambda: _stream(p, block_size=1), lambda model, X: model.partial_fit(X)),
    }
    return _table(context, cases, f"factor analysis, p = {p}", limit={"batch EM, d×d": 1000})


def table2(context: Context) -> Result:
    """Linear regression: the Kalman filter and L-RVGA with p = 1, 2, 10, 100."""
    likelihood = gf.likelihoods.Gaussian(1.0)

    def fold(belief: Any, X: np.ndarray) -> Any:
        gf.fold(belief, likelihood, X, np.ones(len(X)))
        return belief

    cases: dict[str, Case] = {"full Kalman filter": (lambda: gf.DenseGaussian.isotropic(_DIM[0], 1.0), fold)}
    for p in (1, 2, 10, 100):
        cases[f"L-RVGA, p = {p}"] = (lambda p=p: gf.LowRankGaussian.isotropic(_DIM[0], p, 1.0), fold)
    return _table(context, cases, "linear regression", limit={"full Kalman filter": 1000})


_DIM = [0]
"""The dimension that is being measured."""


def _stream(p: int, **options: Any) -> Any:
    return gf.StreamingFactorAnalysis(p, center=False, random_state=0, **({"warm_up": 1} | options))


def _batch_start() -> Any:
    return np.zeros((_DIM[0], _DIM[0]))


def _batch_step(S: np.ndarray, X: np.ndarray) -> np.ndarray:
    """What a row costs a batch method: the covariance grows; a fit comes on top."""
    S += X.T @ X
    return S


def _table(context: Context, cases: dict[str, Case], title: str, limit: dict[str, int]) -> Result:
    dims: tuple[int, ...] = (200, 400) if context.quick else (300, 1000, 10_000, 100_000)
    dims += (10**6,) if context.full else ()
    figure = style.canvas(11.0, 4.6)
    left, right = figure.subplots(1, 2)
    numbers: dict[str, Any] = {}
    colors = [style.VERMILION, style.ORANGE, style.GREEN, style.BLUE, style.PURPLE]
    for color, (name, (start, step)) in zip(colors, context.track(cases.items(), title), strict=False):
        rows = [(d, *_measure(d, start, step)) for d in dims if d <= limit.get(name, d)]
        sizes, seconds, megabytes = (list(column) for column in zip(*rows, strict=True))
        numbers[name] = {"d": sizes, "seconds_per_row": seconds, "megabytes": megabytes}
        left.plot(sizes, np.array(seconds) * 1e3, color=color, marker="o", label=name)
        right.plot(sizes, megabytes, color=color, marker="o", label=name)
    square = [8e-6 * d * d for d in dims]
    right.plot(dims, square, color=style.GREY, ls=":", label="one d×d matrix")
    numbers["one d×d matrix, megabytes"] = dict(zip(map(str, dims), square, strict=True))
    left.set(title=title, xlabel="d", ylabel="processor ms per row", xscale="log", yscale="log")
    right.set(title="memory at the peak", xlabel="d", ylabel="MB", xscale="log", yscale="log")
    right.legend()
    return Result(figure, numbers)


def _measure(d: int, start: Callable[[], Any], step: Callable[[Any, np.ndarray], Any]) -> tuple[float, float]:
    """Best processor time of a row over eight, and the peak of what Python allocates for the model and a row."""
    _DIM[0] = d
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((16, 1, d))
    model = start()
    best = np.inf
    for k in range(12):
        started = time.process_time()
        model = step(model, rows[k])
        if k >= 4:
            best = min(best, time.process_time() - started)
    del model
    tracemalloc.start()
    model = start()
    for k in range(3):
        model = step(model, rows[k])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return best, peak / 1e6
