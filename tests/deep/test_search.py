"""Random search: what it draws, how it scores, and that an interrupted search goes on exactly."""

import json
import math

import numpy as np
import pytest

pytest.importorskip("jax")

from gaussfold.deep.search import Choice, LogUniform, random_search
from gaussfold.deep.training import TrainingError

SPACE = {"std": LogUniform(0.05, 20.0), "shift": Choice((0.0, 0.5)), "kind": "normal"}
Y = np.random.default_rng(4).normal(1.5, 0.8, size=53)


def log_density(settings, train, held_out):
    away = (held_out - train.mean() - settings["shift"]) / settings["std"]
    return -0.5 * away**2 - math.log(settings["std"]) - 0.5 * math.log(2 * math.pi)


def test_scores_are_those_of_the_folds_and_the_best_is_found():
    search = random_search(log_density, SPACE, Y, trials=25, folds=4, seed=9)
    assert len(search.trials) == 25
    best = search.best
    assert best.score == max(trial.score for trial in search.trials)
    assert 0.5 < best.settings["std"] < 1.4
    assert best.settings["shift"] == 0.0
    # every row is held out once: the mean over folds, weighted by their sizes, is the leave-fold-out mean
    pieces = np.array_split(np.random.default_rng([9, 0]).permutation(53), 4)
    for fold, piece in enumerate(pieces):
        train = np.delete(Y, piece)
        expected = log_density(best.settings, train, Y[piece]).mean()
        assert best.scores[fold] == pytest.approx(expected, rel=1e-12)


def test_draws_are_log_uniform_and_do_not_depend_on_how_many_there_are():
    short = random_search(log_density, SPACE, Y, trials=5, folds=2, seed=3)
    long = random_search(log_density, SPACE, Y, trials=400, folds=2, seed=3)
    assert [t.settings for t in long.trials[:5]] == [t.settings for t in short.trials]
    logs = np.log([trial.settings["std"] for trial in long.trials])
    low, high = math.log(0.05), math.log(20.0)
    assert logs.min() >= low
    assert logs.max() <= high
    assert logs.mean() == pytest.approx((low + high) / 2, abs=4 * (high - low) / math.sqrt(12 * 400))
    assert {trial.settings["shift"] for trial in long.trials} == {0.0, 0.5}
    assert {trial.settings["kind"] for trial in long.trials} == {"normal"}


def test_an_interrupted_search_goes_on(tmp_path):
    path, calls = tmp_path / "search.jsonl", []

    def interrupted(settings, train, held_out):
        calls.append(settings)
        if len(calls) == 3 * 4 + 2:
            raise KeyboardInterrupt
        return log_density(settings, train, held_out)

    with pytest.raises(KeyboardInterrupt):
        random_search(interrupted, SPACE, Y, trials=6, folds=4, results=path)
    with path.open("a") as file:
        file.write('{"trial": 3, "sett')  # a line that a crash has cut off
    calls.clear()
    resumed = random_search(lambda *a: (calls.append(1), log_density(*a))[1], SPACE, Y, trials=6, folds=4, results=path)
    assert len(calls) == 3 * 4
    unbroken = random_search(log_density, SPACE, Y, trials=6, folds=4)
    assert [t.scores for t in resumed.trials] == [t.scores for t in unbroken.trials]
    assert resumed.best.settings == unbroken.best.settings
    assert len(path.read_text().splitlines()) == 7
    assert resumed.seconds == sum(json.loads(line)["seconds"] for line in path.read_text().splitlines()[1:])


def test_failed_trainings_never_win_and_are_named(tmp_path):
    def fragile(settings, train, held_out):
        if settings["std"] < 1.0:
            msg = "step 7: not finite"
            raise TrainingError(msg)
        return np.nan if settings["std"] > 10.0 else log_density(settings, train, held_out)

    path = tmp_path / "search.jsonl"
    search = random_search(fragile, SPACE, Y, trials=30, folds=3, results=path)
    assert 1.0 <= search.best.settings["std"] <= 10.0
    failed = [trial for trial in search.trials if trial.settings["std"] < 1.0]
    assert failed
    assert all(trial.score == -math.inf and trial.error == "step 7: not finite" for trial in failed)
    again = random_search(fragile, SPACE, Y, trials=30, folds=3, results=path)
    assert again == search


def test_folds_together_are_folds_one_by_one():
    def all_folds(settings, trains, held_outs):
        return [log_density(settings, train, held) for train, held in zip(trains, held_outs, strict=True)]

    single = random_search(log_density, SPACE, Y, trials=6, folds=4, seed=2)
    together = random_search(all_folds, SPACE, Y, trials=6, folds=4, seed=2, together=True)
    assert [trial.scores for trial in together.trials] == [trial.scores for trial in single.trials]


def test_data_are_trees_of_rows():
    X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)
    seen = []

    def evaluate(_, train, held_out):
        assert np.array_equal(train["X"][:, 0], 2 * train["y"])
        assert not set(train["y"]) & set(held_out["y"])
        seen.extend(held_out["y"])
        return 0.0

    random_search(evaluate, {}, {"X": X, "y": y}, trials=1, folds=3)
    assert sorted(seen) == list(y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": 0}, "trials=0: a whole number >= 1"),
        ({"folds": 1}, "folds=1: a whole number >= 2"),
        ({"folds": 54}, "folds=54: the data have 53 rows"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        random_search(log_density, SPACE, Y, **options)


def test_bad_spaces_and_files(tmp_path):
    with pytest.raises(ValueError, match="0 < low < high"):
        LogUniform(1.0, 1.0)
    with pytest.raises(ValueError, match="values: empty"):
        Choice(())
    path = tmp_path / "search.jsonl"
    random_search(log_density, SPACE, Y, trials=1, folds=2, results=path)
    with pytest.raises(ValueError, match="with folds 2, not 3"):
        random_search(log_density, SPACE, Y, trials=1, folds=3, results=path)
    path.write_text("nonsense\n")
    with pytest.raises(ValueError, match="line 1 of"):
        random_search(log_density, SPACE, Y, trials=1, folds=2, results=path)


def test_several_trials_at_once_are_the_same_search(tmp_path):
    sizes = []

    def several(settings, trains, held_outs):
        sizes.append(len(settings))
        folds = list(zip(trains, held_outs, strict=True))
        return [[log_density(each, *fold) for fold in folds] for each in settings]

    options = {"trials": 7, "folds": 3, "seed": 5}
    single = random_search(log_density, SPACE, Y, **options)
    path = tmp_path / "search.jsonl"
    random_search(several, SPACE, Y, together=True, at_once=2, results=path, **(options | {"trials": 3}))
    found = random_search(several, SPACE, Y, together=True, at_once=3, results=path, **options)
    assert sizes == [2, 1, 3, 1]
    assert [(t.settings, t.scores) for t in found.trials] == [(t.settings, t.scores) for t in single.trials]
    with pytest.raises(ValueError, match=r"at_once=2: .* together=True"):
        random_search(log_density, SPACE, Y, at_once=2)
