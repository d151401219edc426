"""As many factors as parameters: how fast the projections approach the Kalman filter, by loops and by time."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import gaussfold as gf
from experiments import style
from experiments.lowrank.problems import linear
from experiments.registry import Context, Result
from gaussfold import batch

PAPER = {1: 71.97, 2: 39.73, 3: 20.74, 10: 4.07, 30: 0.875}
"""KL of the authors' program on data of the same law (d = p = 100, N = 1000)."""


def full_rank(context: Context) -> Result:
    """KL to the exact posterior for p = d: recursive EM with 1 to 30 loops, and the eigen-projection."""
    d, n = (20, 60) if context.quick else (100, 1000)
    problem = linear(d, n, 1.0)
    exact = batch.exact_linear(problem.prior, problem.X, problem.y, 1.0)
    figure = style.canvas(11.0, 4.6)
    left, right = figure.subplots(1, 2)
    numbers: dict[str, Any] = {"d": d, "rows": n, "kl0": problem.prior.kl(exact), "authors": PAPER}
    curves: dict[str, tuple[str, Any, list[dict[str, Any]]]] = {
        "recursive EM": (style.GREEN, "o", [{"projection": "em", "inner_loops": loops} for loops in PAPER]),
        "eigen-projection": (style.BLUE, "s", [{"projection": "eigen"}]),
        "eigen-projection, block 32": (style.SKY, "^", [{"projection": "eigen", "block_size": 32}]),
        "calibrated": (style.VERMILION, "v", [{}]),
    }
    for name, (color, marker, settings) in curves.items():
        found = []
        for options in context.track(settings, name):
            belief = gf.LowRankGaussian.isotropic(d, d, 1.0, **options)
            started = time.process_time()
            gf.fold(belief, problem.likelihood, problem.X, problem.y)
            seconds = time.process_time() - started
            found.append((options.get("inner_loops", 1), seconds / n, max(belief.kl(exact), 1e-12)))
        loops, seconds_each, kl = (list(column) for column in zip(*found, strict=True))
        numbers[name] = {"loops": loops, "seconds_per_row": seconds_each, "kl": kl}
        left.plot(loops, kl, color=color, marker=marker, ls="-", label=name)
        right.plot(np.array(seconds_each) * 1e3, kl, color=color, marker=marker, ls="-", label=name)
    left.plot(list(PAPER), list(PAPER.values()), color=style.GREY, ls=":", marker="x", label="authors' program")
    left.set(title=f"p = d = {d}", xlabel="inner loops", ylabel="KL to the exact posterior", xscale="log", yscale="log")
    right.set(title="the same against cost", xlabel="processor ms per row", xscale="log", yscale="log")
    left.legend()
    return Result(figure, numbers)
