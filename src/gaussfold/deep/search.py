"""Random search of hyperparameters with k-fold cross-validation of the marginal likelihood (factor-analysis 5.2.3).

A trial's settings depend on the seed and the trial's number only, and every finished trial is a line of JSON: a search
that was interrupted goes on where it stopped, and one with more trials starts with the same ones.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import jax
import numpy as np

from gaussfold.checks import whole
from gaussfold.deep.batches import check_data
from gaussfold.deep.training import TrainingError
from gaussfold.deep.types import Batch, Document
from gaussfold.progress import Progress
from gaussfold.types import ArrayLike

Settings: TypeAlias = Document
"""A value for each name of a space."""
Evaluate: TypeAlias = Callable[[Settings, Batch, Batch], ArrayLike]
"""``evaluate(settings, train, held_out)``: log probabilities of the held-out rows, or their mean; higher is better."""
EvaluateFolds: TypeAlias = Callable[[Settings, list[Batch], list[Batch]], Sequence[ArrayLike]]
"""With ``together``: all folds of a trial in one call."""
EvaluateTrials: TypeAlias = Callable[[list[Settings], list[Batch], list[Batch]], Sequence[Sequence[ArrayLike]]]
"""With ``at_once``: all folds of several trials in one call."""


@dataclass(frozen=True)
class LogUniform:
    """A number whose logarithm is uniform between two numbers > 0."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0.0 < self.low < self.high < math.inf:
            msg = f"low={self.low!r}, high={self.high!r}: 0 < low < high is needed"
            raise ValueError(msg)

    def draw(self, rng: np.random.Generator) -> float:
        """One number."""
        return float(np.exp(rng.uniform(math.log(self.low), math.log(self.high))))


@dataclass(frozen=True)
class Choice:
    """One of several values, all as likely."""

    values: tuple[object, ...]

    def __post_init__(self) -> None:
        if not self.values:
            msg = "values: empty; at least one value is needed"
            raise ValueError(msg)

    def draw(self, rng: np.random.Generator) -> object:
        """One of them."""
        return self.values[int(rng.integers(len(self.values)))]


@dataclass(frozen=True)
class Trial:
    """Settings, the mean log probability on each fold (-∞ where training failed), and how long it took."""

    number: int
    settings: Settings
    scores: tuple[float, ...]
    seconds: float
    error: str | None = None

    @property
    def score(self) -> float:
        """Mean over the folds: the estimate of the marginal log likelihood of a new row."""
        return float(np.mean(self.scores))


@dataclass(frozen=True)
class Search:
    """All trials, in order."""

    trials: tuple[Trial, ...]

    @property
    def best(self) -> Trial:
        """The trial with the highest score; the first of them if several have it."""
        return max(self.trials, key=lambda trial: trial.score)

    @property
    def seconds(self) -> float:
        """Time spent, that of interrupted and resumed searches included."""
        return sum(trial.seconds for trial in self.trials)


def random_search(
    evaluate: Evaluate | EvaluateFolds | EvaluateTrials,
    space: Mapping[str, object],
    data: Batch,
    *,
    trials: int = 30,
    folds: int = 5,
    together: bool = False,
    at_once: int = 1,
    seed: int = 0,
    results: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Search:
    """Try settings drawn at random, each on k folds of the data.

    Parameters
    ----------
    evaluate
        ``evaluate(settings, train, held_out)`` fits on the rows ``train`` and returns the log predictive density of
        the rows ``held_out``, one per row or their mean. Scale inputs in here, from ``train`` alone.
    space
        For each name a :class:`LogUniform`, a :class:`Choice`, or a fixed value.
    data
        A tree of arrays with one row per example in front, such as ``(X, y)``.
    trials, folds, seed
        30 and 5 as in the thesis; the folds are the same for all trials.
    together
        Call ``evaluate(settings, trains, held_outs)`` once per trial, with the lists of all folds; it returns one
        score, or one array of log probabilities, per fold. For :func:`gaussfold.deep.fit_together`.
    at_once
        With ``together``, so many trials in one call: ``evaluate(list of settings, trains, held_outs)`` returns what
        ``together`` asks for, once per trial.
    results
        A file of JSON lines: finished trials are read from it, new ones are added to it.
    progress
        Show a bar: True, False, or None for "on a terminal".

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(3.0, 2.0, size=60)
    >>> def evaluate(settings, train, held_out):
    ...     away = (held_out - train.mean()) / settings["std"]
    ...     return -0.5 * away**2 - np.log(settings["std"])
    >>> search = random_search(evaluate, {"std": LogUniform(0.1, 40.0)}, y, trials=20)
    >>> print(round(search.best.settings["std"], 1))
    1.7
    """
    count, parts = whole("trials", trials), whole("folds", folds, least=2)
    if whole("at_once", at_once) > 1 and not together:
        msg = f"at_once={at_once}: several trials in one call need together=True"
        raise ValueError(msg)
    _, rows = check_data(data)
    if parts > rows:
        msg = f"folds={parts}: the data have {rows} rows; at most so many folds are possible"
        raise ValueError(msg)
    arrays = jax.tree.map(np.asarray, data)
    header = {"space": {name: repr(law) for name, law in space.items()}, "folds": parts, "seed": seed, "rows": rows}
    done = _read(results, header, count)
    parted = _parted(arrays, np.array_split(np.random.default_rng([seed, 0]).permutation(rows), parts))
    look = _several(evaluate, together, at_once)
    with Progress("search", count, len(done), progress) as bar:
        for first in range(len(done), count, at_once):
            numbers = range(first, min(first + at_once, count))
            for trial in _try(look, {number: _draw(space, seed, number) for number in numbers}, parted):
                done.append(trial)
                _append(results, trial)
            best = Search(tuple(done)).best
            bar.show(len(done), f"best {best.score:.4f} (trial {best.number})")
    return Search(tuple(done))


def _draw(space: Mapping[str, object], seed: int, number: int) -> Settings:
    rng = np.random.default_rng([seed, 1, number])
    return {name: law.draw(rng) if isinstance(law, LogUniform | Choice) else law for name, law in space.items()}


def _parted(data: Batch, pieces: list[np.ndarray]) -> list[tuple[Batch, Batch]]:
    """Rows to learn from and rows held out, for each fold."""
    every = np.arange(sum(map(len, pieces)))
    pairs = ((np.setdiff1d(every, piece), np.sort(piece)) for piece in pieces)
    return [tuple(jax.tree.map(lambda a, part=part: a[part], data) for part in pair) for pair in pairs]


def _one_by_one(evaluate: Evaluate, settings: Settings, trains: list[Batch], held_outs: list[Batch]) -> list[float]:
    """Fold after fold; after one that failed, the mean over the folds is lost, so the rest is left out."""
    scores: list[float] = []
    for train, held_out in zip(trains, held_outs, strict=True):
        scores.append(float(np.mean(evaluate(dict(settings), train, held_out))))
        if not math.isfinite(scores[-1]):
            break
    return scores


def _several(evaluate: Callable[..., ArrayLike], together: bool, at_once: int) -> EvaluateTrials:
    """What to call with a list of settings and the lists of all folds."""
    if at_once > 1:
        return evaluate
    look = evaluate if together else partial(_one_by_one, evaluate)
    return lambda settings, trains, held_outs: [look(each, trains, held_outs) for each in settings]


def _try(evaluate: EvaluateTrials, settings: dict[int, Settings], parted: list[tuple[Batch, Batch]]) -> list[Trial]:
    started, error = time.perf_counter(), None
    trains, held_outs = ([pair[part] for pair in parted] for part in (0, 1))
    try:
        found = evaluate([dict(each) for each in settings.values()], trains, held_outs)
        scores = [[float(np.mean(score)) for score in each] for each in found]
    except TrainingError as failure:
        scores, error = [[-math.inf]] * len(settings), str(failure)
    seconds = (time.perf_counter() - started) / len(settings)
    return [
        Trial(number, each, tuple(s if math.isfinite(s) else -math.inf for s in row), seconds, error)
        for (number, each), row in zip(settings.items(), scores, strict=True)
    ]


def _append(results: str | os.PathLike[str] | None, trial: Trial) -> None:
    if results is None:
        return
    line = {
        "trial": trial.number,
        "settings": trial.settings,
        "scores": [score if math.isfinite(score) else None for score in trial.scores],
        "seconds": trial.seconds,
        "error": trial.error,
    }
    with Path(results).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _read(results: str | os.PathLike[str] | None, header: Document, count: int) -> list[Trial]:
    """Trials that are in the file; a last line that was cut off is dropped, and the header written if it is new."""
    if results is None:
        return []
    path = Path(results)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    whole_lines = text[: text.rfind("\n") + 1]
    if whole_lines != text:
        path.write_text(whole_lines, encoding="utf-8")
    lines = [_parsed(path, i, line) for i, line in enumerate(whole_lines.splitlines(), start=1)]
    if not lines:
        path.write_text(json.dumps(header) + "\n", encoding="utf-8")
        return []
    _check_header(path, lines[0], header)
    return [_trial(line) for line in lines[1:][:count]]


def _check_header(path: Path, found: Document, header: Document) -> None:
    for name, value in header.items():
        if found.get(name) != value:
            msg = f"results: {str(path)!r} is of a search with {name} {found.get(name)!r}, not {value!r}; "
            msg += "give the same, or another file"
            raise ValueError(msg)


def _trial(line: Document) -> Trial:
    """Undo :func:`_append`."""
    scores = tuple(-math.inf if score is None else float(score) for score in line["scores"])
    return Trial(line["trial"], line["settings"], scores, float(line["seconds"]), line["error"])


def _parsed(path: Path, number: int, line: str) -> Document:
    try:
        return dict(json.loads(line))
    except (ValueError, TypeError) as error:
        msg = f"results: line {number} of {str(path)!r} is not an object in JSON; repair it, or give another file"
        raise ValueError(msg) from error
