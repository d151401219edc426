"""Classification, which the thesis left open: scikit-learn's digits, calibration, and inputs that are no digits."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

from experiments.deep import digits_picture, networks
from experiments.deep.classifiers import NAMES, fitted
from experiments.deep.scores import log_loss, measured, summary
from experiments.registry import Context, Result

HELD_OUT = 0.2
"""Share of the training rows that are not learned from: each method's prior precision is chosen there."""


class Digits(NamedTuple):
    """Pixels in [-0.5, 0.5] and labels 0 to 9, shuffled."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray

    def strangers(self) -> dict[str, np.ndarray]:
        """Inputs that are no digits, made of the test digits.

        Each pixel from another image (so that every pixel is as dark as usual), pixels of an image in another order
        (the same for all), and a quarter turn.
        """
        rng = np.random.default_rng(17)
        turned = np.rot90(self.X_test.reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64)
        return {
            "mixed pixels": rng.permuted(self.X_test, axis=0),
            "reordered pixels": self.X_test[:, rng.permutation(64)],
            "quarter turn": np.ascontiguousarray(turned),
        }


def digits(quick: bool, seed: int = 0) -> Digits:
    """1000 rows to train (quick: 300), 797 to test."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng([5, seed]).permutation(len(y))
    X, y = (X[order] / 16.0 - 0.5).astype(np.float32), y[order].astype(np.int32)
    count = 300 if quick else 1000
    return Digits(X[:count], y[:count], X[1000:], y[1000:])


class Run(NamedTuple):
    """What one posterior said: probabilities of the test digits, of the first strangers, and all scores."""

    p: np.ndarray
    outside: np.ndarray
    y: np.ndarray
    numbers: dict[str, float]


def run(name: str, apply: Any, params: Any, data: Digits, grid: Sequence[float], epochs: int, seed: int) -> Run:
    """Fit with every prior precision, take the one with the smallest log loss on held-out rows, predict."""
    keep = round(len(data.y) * (1.0 - HELD_OUT))
    best = np.inf
    for precision in grid:
        started = time.perf_counter()
        predict = fitted(name, apply, params, (data.X[:keep], data.y[:keep]), precision, epochs, seed)
        seconds = time.perf_counter() - started
        loss = log_loss(predict(data.X[keep:]), data.y[keep:])
        if loss < best or best == np.inf:
            best, chosen, spent, found = loss, precision, seconds, predict
    p = found(data.X_test)
    outside = {key: found(X) for key, X in data.strangers().items()}
    numbers = measured(p, outside, data.y_test) | {"prior_precision": chosen, "seconds": spent}
    return Run(p, outside["mixed pixels"], data.y_test, numbers)


def compare(context: Context) -> Result:
    """Six posteriors of one perceptron beside its single network."""
    grid = (1.0,) if context.quick else (0.1, 0.3, 1.0)
    seeds = range(1)
    epochs = 20 if context.quick else 100
    runs: dict[str, list[Run]] = {name: [] for name in NAMES}
    for name, seed in context.track([(name, seed) for name in NAMES for seed in seeds], "posteriors"):
        start = networks.perceptron_params(seed)
        tried = [100.0 * precision for precision in grid] if name == "L-RVGA" else grid
        runs[name].append(run(name, networks.perceptron, start, digits(context.quick, seed), tried, epochs, seed))
    table = {name: summary([each.numbers for each in found]) for name, found in runs.items()}
    numbers = {"parameters": 2410, "epochs": epochs, "splits": len(seeds), "mean and standard error": table}
    return Result(digits_picture.methods(runs, table), numbers)


ARCHITECTURES = {
    "perceptron": (networks.perceptron, networks.perceptron_params),
    "convolutional": (networks.convolutional, networks.convolutional_params),
    "attention": (networks.attention, networks.attention_params),
}


POSTERIORS = {
    "one network": "one network",
    "SWAG": "SWAG",
    "VIFA": "VIFA, slow factors",
    "mean field": "mean field",
}
"""What a picture of architectures calls each method."""


def architectures(context: Context) -> Result:
    """Posteriors of three architectures with the same lines of code."""
    epochs, seeds = (4, range(1)) if context.quick else (100, range(3))
    grid = (0.3,) if context.quick else (0.1, 0.3, 1.0, 3.0)
    names = ("one network", "VIFA") if context.quick else tuple(POSTERIORS)
    runs: dict[tuple[str, str], list[Run]] = {(kind, name): [] for kind in ARCHITECTURES for name in names}
    cases = [(kind, name, seed) for kind, name in runs for seed in seeds]
    for kind, name, seed in context.track(cases, "networks"):
        apply, first = ARCHITECTURES[kind]
        data = digits(context.quick, seed)
        runs[kind, name].append(run(POSTERIORS[name], apply, first(seed), data, grid, epochs, seed))
    table = {
        kind: {name: summary([each.numbers for each in runs[kind, name]]) for name in names} for kind in ARCHITECTURES
    }
    numbers = {
        "parameters": {
            kind: sum(leaf.size for leaf in first(0).values()) for kind, (_, first) in ARCHITECTURES.items()
        },
        "epochs": epochs,
        "splits": len(seeds),
        "prior precisions tried": grid,
        "prior precisions chosen": {
            kind: {name: [each.numbers["prior_precision"] for each in runs[kind, name]] for name in names}
            for kind in ARCHITECTURES
        },
        "mean and standard error": table,
    }
    return Result(digits_picture.architectures(runs, table), numbers)
