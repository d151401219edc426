"""Our side of `gp_race`, in a process of its own: ``python -m benchmarks.gp_race_ours TASK DATA.npz BUDGET``."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from gaussfold import likelihoods as lk
from gaussfold.gp import BasisMean, GaussianProcess, Matern32, Matern52, SquaredExponential

STEPS = (1, 2, 3, 5, 8, 12, 20, 35, 60)


def _made(task: str, rows: int) -> tuple[Callable[[], GaussianProcess], str]:
    if task == "banana":
        if rows <= 1000:
            return lambda: GaussianProcess(SquaredExponential(1.0, 1.0), "bernoulli"), "dense vi"
        return (
            lambda: GaussianProcess(SquaredExponential(1.0, 1.0), "bernoulli", structure="sparse", random_state=0),
            "sparse vi, M = 100, the default",
        )
    if task == "5-D":
        return (
            lambda: GaussianProcess(
                Matern52(1.0, (1.0,) * 5), lk.Gaussian(0.5), structure="sparse", inducing=200, random_state=0
            ),
            "sparse, M = 200",
        )
    if task == "motorcycle":
        return lambda: GaussianProcess(
            [Matern32(1.0, 1.0)] * 2, lk.HeteroscedasticGaussian(), structure="markov"
        ), "Markov, noise that changes, ep"
    waves = _daily
    return (
        lambda: GaussianProcess(Matern32(1.0, 100.0), "poisson", structure="markov", mean=BasisMean(waves)),
        "Markov Poisson vi, Fourier mean",
    )


def _daily(X: np.ndarray) -> np.ndarray:
    """Three waves a day, and a constant."""
    day = 2.0 * np.pi * X[:, 0] / 24.0
    return np.stack([np.ones(len(X)), *(fn(k * day) for k in (1, 2, 3) for fn in (np.sin, np.cos))], axis=1)


def main(task: str, path: str, budget: float) -> dict[str, Any]:
    """Run with ever more steps of learning until the budget is used up."""
    warnings.simplefilter("ignore")
    data = dict(np.load(path))
    make, what = _made(task, len(data["X"]))
    few = slice(0, 60)
    make().fit(data["X"][few], data["Y"][few]).learn_hyperparameters(max_iter=1)  # compiles
    trace: list[list[float]] = []
    spent = 0.0
    for steps in STEPS:
        began = time.process_time()
        model = make().fit(data["X"], data["Y"])
        learned = model.learn_hyperparameters(max_iter=steps)
        seconds = time.process_time() - began
        trace.append([seconds, -float(model.predict_density(data["X_test"], data["Y_test"]).mean())])
        spent += seconds
        if learned.converged or spent + seconds > 2.0 * budget:
            break
    return {"trace": trace, "what": what}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
