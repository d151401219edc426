"""Random search with k-fold cross-validation of the marginal likelihood, factor-analysis 5.2.3; resumable."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from gaussfold.deep.batches import check_data
from gaussfold.deep.likelihoods import Apply
from gaussfold.deep.method import Method, whole
from gaussfold.deep.together import fit_together
from gaussfold.deep.training import Progress

Config = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One setting and its score; lower is better, infinity is a failure."""

    config: Config
    score: float


def random_search(
    score: Callable[[Config], float],
    space: Mapping[str, Any],
    trials: int = 30,
    *,
    path: str | os.PathLike[str] | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> list[Trial]:
    """Score settings drawn at random; the best comes first.

    Parameters
    ----------
    score
        ``score(config)``: lower is better; NaN counts as infinity.
    space
        Name -> (low, high), drawn log-uniformly, or a list of choices.
    trials
        How many settings.
    path
        A file of JSON lines to which each trial is appended as it ends. Trials that are in it already are not run
        again: the same call resumes an interrupted search.
    seed
        The same seed draws the same settings.
    progress
        Show a bar: True, False, or None for "on a terminal".

    Examples
    --------
    >>> best = random_search(lambda config: abs(config["x"] - 2.0), {"x": (0.1, 10.0)}, trials=40)[0]
    >>> abs(best.config["x"] - 2.0) < 0.5
    True
    """
    configs = draw_configs(space, whole("trials", trials), seed)
    file = None if path is None else Path(path)
    known = _read(file)
    done: list[Trial] = []
    bar = Progress("search", trials, 0, progress)
    try:
        for number, config in enumerate(configs):
            value = known.get(_key(config))
            if value is None:
                found = float(score(dict(config)))
                value = math.inf if math.isnan(found) else found
                if file is not None:
                    _append(file, config, value)
            done.append(Trial(config, value))
            bar.show(number + 1, f"best {min(trial.score for trial in done):.4g}")
    finally:
        bar.close()
    return sorted(done, key=lambda trial: trial.score)


def draw_configs(space: Mapping[str, Any], trials: int, seed: int) -> list[Config]:
    """Settings of a search, in order."""
    rng = np.random.default_rng(seed)
    configs = []
    for _ in range(trials):
        config: Config = {}
        for name, choice in space.items():
            if isinstance(choice, tuple) and len(choice) == 2:
                low, high = (float(end) for end in choice)
                if not 0.0 < low <= high < math.inf:
                    msg = f"space[{name!r}]={choice!r}: 0 < low <= high are needed, or a list of choices"
                    raise ValueError(msg)
                config[name] = float(np.exp(rng.uniform(math.log(low), math.log(high))))
            elif isinstance(choice, Sequence) and len(choice):
                config[name] = choice[int(rng.integers(len(choice)))]
            else:
                msg = f"space[{name!r}]={choice!r}: a pair (low, high) or a list of choices is needed"
                raise ValueError(msg)
        configs.append(config)
    return configs


def cross_validate(
    make: Callable[[Config, int], Method],
    config: Config,
    apply: Apply,
    data: tuple[Any, Any],
    *,
    folds: int = 5,
    epochs: float = 120,
    n_samples: int = 100,
    seed: int = 0,
) -> float:
    """Mean negative log predictive density over the held-out rows of k folds, trained side by side.

    ``make(config, fold)`` gives the method of a fold; its log likelihood must be one of
    :func:`gaussfold.deep.log_likelihood`. Folds have equal sizes; up to k - 1 rows left over are always trained on.
    """
    arrays, rows = check_data(data)
    count = whole("folds", folds, least=2)
    if count > rows:
        msg = f"folds={folds!r}: 2 to {rows}, the rows of the data, are allowed"
        raise ValueError(msg)
    order = np.random.default_rng([seed, 1]).permutation(rows)
    size = rows // count
    held = [order[fold * size : (fold + 1) * size] for fold in range(count)]
    kept = [np.setdiff1d(order, part) for part in held]

    def pick(part: Any) -> Any:
        return jax.tree.map(lambda a: a[part], arrays)

    methods = [make(config, fold) for fold in range(count)]
    posteriors = fit_together(methods, [pick(part) for part in kept], epochs=epochs)
    scores = []
    for posterior, part in zip(posteriors, held, strict=True):
        if posterior is None:
            return math.inf
        X, y = pick(part)
        scores.append(-posterior.predict(apply, X, n_samples, rng=seed).log_prob(y).mean())
    return float(np.mean(scores))


def _key(config: Config) -> str:
    return json.dumps(config, sort_keys=True)


def _append(file: Path, config: Config, value: float) -> None:
    whole_line = json.dumps({"config": config, "score": value if math.isfinite(value) else None}) + "\n"
    cut = file.exists() and file.stat().st_size and not file.read_bytes().endswith(b"\n")
    with file.open("a") as lines:
        lines.write("\n" + whole_line if cut else whole_line)


def _read(file: Path | None) -> dict[str, float]:
    """Finished trials; a last line that was cut off in writing is ignored."""
    if file is None or not file.exists():
        return {}
    found = {}
    for line in file.read_text().splitlines():
        try:
            entry = json.loads(line)
            found[_key(entry["config"])] = math.inf if entry["score"] is None else float(entry["score"])
        except (ValueError, KeyError, TypeError):
            continue
    return found
