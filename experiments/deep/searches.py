"""Settings of Table 5.2, from the training rows of a split alone: cross-validation inside them, never a test row of it.

VIFA: a random search as in 5.2.3. Descent (SWAG and its kin): a small grid; noise only scales its loss, so that the
noise is read off the held-out rows of each training rather than tried out. Both choose by the mean log predictive
density of the held-out rows. What is tried was written down beforehand, and then shortened for time: VIFA from 16
trials to 12 and 8, descent by a second rate, 0.001, which had not been the best for any of the 29 splits until then.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.linear_model import BayesianRidge

from experiments.deep.predictors import MODELS, Problem, fit_all
from gaussfold.deep.search import LogUniform, random_search

EPOCHS = 120.0
SPACE = {"noise": LogUniform(0.02, 1.0), "precision": LogUniform(0.01, 10.0), "rate": LogUniform(0.01, 0.02)}
"""Prior and rate as in the thesis; the noise in units of the targets' spread, from a fiftieth of it to all of it."""

RATE = 3e-3
GRID = {"epochs": (60, 240), "decay": (1e-5, 1e-4, 1e-3)}
"""Descent by Adam: a short and a long training, weight decays λ = αβ⁻¹/N."""
NOISES = np.geomspace(0.02, 1.0, 30)


def folds_for(rows: int) -> int:
    """Three folds; two of the larger data sets, half of which has as many rows as two thirds of the smaller ones."""
    return 3 if rows < 600 else 2


def trials_for(rows: int) -> int:
    """The time there was: twelve trials (Energy, Boston), eight of the smallest and the largest (Yacht, Concrete)."""
    return 12 if 300 < rows < 900 else 8


def variational(X: np.ndarray, y: np.ndarray, seed: int, quick: bool, results: Path | None) -> dict[str, Any]:
    """Noise, prior precision and learning rate of VIFA with the network, and the seconds it took to find them."""
    apply, folds = MODELS["NN"].apply, folds_for(len(y))
    held = -(-len(y) // folds)

    def evaluate(settings: list[dict[str, Any]], trains: Any, held_outs: Any) -> list[list[Any]]:
        problems = [Problem(*_first(train, held, len(y)), each["noise"]) for each in settings for train in trains]
        repeated = [each for each in settings for _ in trains]
        fits = fit_all("VIFA", "NN", problems, repeated, [seed] * len(problems), 10.0 if quick else EPOCHS)
        scores = []
        for problem, fit, rows in zip(problems, fits, list(held_outs) * len(settings), strict=True):
            losses = [math.inf] if fit is None else problem.score(fit, apply, *_filled(rows, held))[0][: len(rows[1])]
            scores.append(-np.asarray(losses))
        return [scores[at : at + folds] for at in range(0, len(scores), folds)]

    trials = 2 if quick else trials_for(len(y))
    search = random_search(
        evaluate,
        SPACE,
        (X, y),
        trials=trials,
        folds=folds,
        together=True,
        at_once=trials,
        seed=seed,
        results=results,
        progress=False,
    )
    return search.best.settings | {"score": search.best.score, "search_seconds": search.seconds}


def descent(X: np.ndarray, y: np.ndarray, seed: int, quick: bool, results: Path | None) -> dict[str, Any]:
    """Epochs, rate, decay and noise of SWAG, and the seconds it took to find them."""
    if results is not None and results.is_file():
        return dict(json.loads(results.read_text(encoding="utf-8")))
    started = time.perf_counter()
    pieces = np.array_split(np.random.default_rng([seed, 0]).permutation(len(y)), folds_for(len(y)))
    held, every = len(pieces[0]), np.arange(len(y))
    folds = [(np.setdiff1d(every, piece), np.sort(piece)) for piece in pieces]
    tried: list[dict[str, Any]] = []
    for epochs in (6, 12) if quick else GRID["epochs"]:
        settings = [{"epochs": epochs, "rate": RATE, "decay": decay, "noise": 1.0} for decay in GRID["decay"]]
        problems = [Problem(*_first((X[part], y[part]), held, len(y)), 1.0) for _ in settings for part, _ in folds]
        repeated = [each for each in settings for _ in folds]
        fits = fit_all("SWAG", "NN", problems, repeated, [seed] * len(problems))
        for at, each in enumerate(settings):
            here = slice(at * len(folds), (at + 1) * len(folds))
            scores = [
                _by_noise(problem, fit, (X[out], y[out]), held)
                for problem, fit, (_, out) in zip(problems[here], fits[here], folds, strict=True)
            ]
            density = np.concatenate(scores, axis=1).mean(axis=1)
            best = int(np.argmax(density))
            tried.append(each | {"noise": float(NOISES[best]), "score": float(density[best])})
    found = max(tried, key=lambda each: each["score"]) | {"search_seconds": time.perf_counter() - started}
    if results is not None:
        results.write_text(json.dumps(found | {"tried": tried}), encoding="utf-8")
    return found


def _by_noise(problem: Problem, fit: Any, rows: tuple[np.ndarray, np.ndarray], held: int) -> np.ndarray:
    """Log predictive density of held-out rows for each noise of NOISES, (noises, rows); -∞ if training failed."""
    if fit is None:
        return np.full((len(NOISES), len(rows[1])), -np.inf)
    inputs, targets = problem.scaled(*_filled(rows, held))
    away = (fit.predict(MODELS["NN"].apply, inputs, 100).outputs - targets)[:, : len(rows[1])].astype(float)
    spread = NOISES[:, None, None]
    each = -0.5 * (away / spread) ** 2 - np.log(spread * math.sqrt(2.0 * math.pi))
    return np.asarray(logsumexp(each, axis=1) - math.log(len(away)) - math.log(problem.unit))


def evidence(X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Noise and prior precision of the linear model, by the evidence of the training rows."""
    scaled = Problem(X, y, 1.0).train
    model = BayesianRidge().fit(scaled.X[:, :-1].astype(float), scaled.y.astype(float))
    return {"noise": float(model.alpha_**-0.5), "precision": float(model.lambda_), "rate": 0.01}


def _first(rows: Any, held: int, total: int) -> tuple[np.ndarray, np.ndarray]:
    """As many training rows in each fold, so that folds train side by side: at most one row is left out."""
    return rows[0][: total - held], rows[1][: total - held]


def _filled(rows: tuple[np.ndarray, np.ndarray], held: int) -> tuple[np.ndarray, np.ndarray]:
    """Held-out rows, some repeated, so that folds have as many and one compiled prediction serves them all."""
    at = np.resize(np.arange(len(rows[1])), held)
    return rows[0][at], rows[1][at]
