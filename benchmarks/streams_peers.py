"""Progressive losses of Vowpal Wabbit and River on one stream, at several settings each, to be judged in hindsight."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from pathlib import Path

from river import base, compose, linear_model, optim, preprocessing

from benchmarks.streams_data import Stream

VOWPAL = {
    "default": "",
    "-l 0.05": "-l 0.05",
    "-l 2": "-l 2",
    "-l 10": "-l 10",
    "--power_t 0": "--power_t 0",
    "--power_t 0 -l 5": "--power_t 0 -l 5",
    "--coin": "--coin",
    "--ftrl": "--ftrl",
}
"""Eight settings that people try; the first is what VW does by itself."""
RIVER: dict[str, Callable[[], base.Estimator]] = {
    "SGD 0.01": lambda: optim.SGD(0.01),
    "SGD 0.1": lambda: optim.SGD(0.1),
    "SGD 1": lambda: optim.SGD(1.0),
    "Adam 0.01": lambda: optim.Adam(0.01),
    "AdaGrad 0.1": lambda: optim.AdaGrad(0.1),
}
"""Linear models behind River's StandardScaler, by their optimiser; SGD 0.1 without the scaler is the sixth."""
SMALLEST = 1e-15


def vowpal(stream: Stream, folder: Path) -> dict[str, float]:
    """Mean log loss, or squared error, of predict-then-learn for each setting."""
    if importlib.util.find_spec("vowpalwabbit") is None:
        return {}
    from vowpalwabbit import Workspace

    path = stream.write_vw(folder / "peer.vw")
    loss = "squared" if stream.numbers else "logistic"
    found = {}
    for name, options in VOWPAL.items():
        run = Workspace(f"-d {path} --loss_function {loss} --quiet {options}")
        found[name] = run.get_sum_loss() / run.get_weighted_examples()
        run.finish()
    path.unlink()
    return found


def river(stream: Stream) -> dict[str, float]:
    """The same of River's linear models."""
    rows = list(stream.features())
    makers: dict[str, Callable[[], base.Estimator]] = {
        name: (lambda make=make: preprocessing.StandardScaler() | _linear(stream, make()))
        for name, make in RIVER.items()
    }
    makers["SGD 0.1, not scaled"] = lambda: compose.Pipeline(_linear(stream, optim.SGD(0.1)))
    return {name: _progressive(make(), rows, stream) for name, make in makers.items()}


def _linear(stream: Stream, optimiser: optim.base.Optimizer) -> base.Estimator:
    model = linear_model.LinearRegression if stream.numbers else linear_model.LogisticRegression
    return model(optimizer=optimiser, intercept_lr=0.1)


def _progressive(model: base.Estimator, rows: list[dict[str, float]], stream: Stream) -> float:
    total = 0.0
    for x, y in zip(rows, stream.labels, strict=True):
        if stream.numbers:
            total += (model.predict_one(x) - y) ** 2
            model.learn_one(x, y)
            continue
        p = model.predict_proba_one(x).get(bool(y), 0.0)
        total -= math.log(min(max(p, SMALLEST), 1.0))
        model.learn_one(x, bool(y))
        if not total < math.inf:
            break
    return total / len(rows)
