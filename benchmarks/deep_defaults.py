"""Posteriors of networks with no option given: nine tasks, several splits, beside plain networks and five of them.

Test NLL (targets standardised) of one network by Adam (rate 0.001, prior precision 1: a little weight decay), of five,
of VIFA, SWAG, one pass, and of five networks with our defaults; the calibration error of classes, how well strangers
are told apart by the uncertainty, and seconds of the processor, compilation included.
``GAUSSFOLD_BENCH_SPLITS`` and ``GAUSSFOLD_BENCH_TASKS`` choose fewer splits and tasks.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.deep_defaults_data import SOURCES, UCI, Task, task
from benchmarks.report import Report
from gaussfold import deep

SPLITS = 10
METHODS = ("Adam", "five networks", "VIFA", "SWAG", "one pass", "five of ours")


class Score(NamedTuple):
    """Of one method on one split."""

    nll: float
    calibration: float
    """Of the probability of the class that is named; NaN for regression."""
    strangers: float
    """Area under the curve: how often a stranger is less sure than a row of the test."""
    seconds: float


def _likelihood(task: Task) -> str:
    return "gaussian" if task.classes == 0 else "bernoulli" if task.classes == 2 else "softmax"


def _fits(task: Task, split: int) -> dict[str, Callable[[], Any]]:
    """What each method does, with the options that nobody gave."""
    function = deep.log_likelihood(task.apply, _likelihood(task))

    def start(seed: int) -> Any:
        first = task.start(seed)
        return deep.with_noise(first) if task.classes == 0 else first

    several = [
        deep.MAP(function, start(10 * split + k), prior_precision=1.0, learning_rate=1e-3, seed=k) for k in range(5)
    ]
    ours = [deep.MAP(function, start(10 * split + k), seed=k) for k in range(5)]
    return {
        "Adam": lambda: several[0].fit(task.train),
        "five networks": lambda: deep.Ensemble(several).fit(task.train),
        "VIFA": lambda: deep.VIFA(function, start(10 * split)).fit(task.train),
        "SWAG": lambda: deep.SWAG(function, start(10 * split)).fit(task.train),
        "one pass": lambda: deep.LRVGA(task.apply, _likelihood(task), task.start(10 * split)).fit(*task.train),
        "five of ours": lambda: deep.Ensemble(ours).fit(task.train),
    }


def _score(task: Task, posterior: Any, seconds: float) -> Score:
    X, y = task.test
    told, strange = posterior.predict(task.apply, X), posterior.predict(task.apply, task.stranger)
    nll = float(-told.log_prob(y).mean())
    if task.classes == 0:
        doubt = np.ravel(told.epistemic_std), np.ravel(strange.epistemic_std)
        calibration = float("nan")
    else:
        doubt = told.entropy(), strange.entropy()
        calibration = _calibration(np.asarray(told.mean), y)
    labels = np.r_[np.zeros(len(doubt[0])), np.ones(len(doubt[1]))]
    return Score(nll, calibration, float(roc_auc_score(labels, np.concatenate(doubt))), seconds)


def _calibration(mean: np.ndarray, y: np.ndarray) -> float:
    """Mean distance between how sure the named class is and how often it is right, in ten groups of equal size."""
    if mean.ndim == 1:
        mean = np.stack([1.0 - mean, mean], axis=1)
    sure, right = mean.max(axis=1), mean.argmax(axis=1) == y
    groups = np.array_split(np.argsort(sure), 10)
    return float(sum(len(g) * abs(sure[g].mean() - right[g].mean()) for g in groups) / len(y))


def run(quick: bool = False) -> Report:
    """Every task, split and method."""
    splits = 1 if quick else int(os.environ.get("GAUSSFOLD_BENCH_SPLITS", SPLITS))
    wanted = os.environ.get("GAUSSFOLD_BENCH_TASKS", "cancer" if quick else " ".join(SOURCES)).split()
    report = Report("Networks with no option given: test NLL", ("task", *METHODS, "best ≤ five", "each ≤ Adam"))
    every: dict[str, dict[str, list[Score]]] = {}
    for name in wanted:
        if name in ("boston", "concrete", "energy", "yacht") and not (UCI / "yacht.npz").is_file():
            report.notes.append(f"{name}: ../shared/data is absent")
            continue
        found: dict[str, list[Score]] = {method: [] for method in METHODS}
        for split in range(splits):
            here = task(name, split)
            for method, fit in _fits(here, split).items():
                began = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    posterior = fit()
                found[method].append(_score(here, posterior, time.process_time() - began))
            line = ", ".join(f"{m} {each[-1].nll:.3f}" for m, each in found.items())
            print(f"{name} {split}: {line}", file=sys.stderr, flush=True)
        every[name] = found
        means = {method: float(np.mean([score.nll for score in each])) for method, each in found.items()}
        ours = [means[method] for method in METHODS[2:5]]
        report.rows.append(
            [name, *means.values(), min(ours) <= means["five networks"], all(each <= means["Adam"] for each in ours)]
        )
    for what in ("calibration", "strangers", "seconds"):
        for name, found in every.items():
            each = ", ".join(f"{m} {np.mean([getattr(s, what) for s in scores]):.3g}" for m, scores in found.items())
            report.notes.append(f"{what}, {name}: {each}")
    report.numbers["scores"] = {
        name: {m: [list(s) for s in each] for m, each in f.items()} for name, f in every.items()
    }
    return report
