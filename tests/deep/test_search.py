import json

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep.search import cross_validate, draw_configs, random_search
from tests.deep.problems import ALPHA, LINEAR, linear, start, straight

X, Y, _ = linear()
SPACE = {"rate": (0.01, 0.1), "alpha": (0.01, 10.0), "kind": ["a", "b"]}


def make(config, fold):
    return gf.deep.VIFA(
        LINEAR, start(), rank=1, prior_precision=config["alpha"], learning_rate=config["rate"], seed=fold, batch_size=20
    )


def test_trainings_side_by_side_are_those_one_by_one():
    configs = [{"rate": 0.02, "alpha": ALPHA}, {"rate": 0.05, "alpha": 1.0}]
    data = [(X[:40], Y[:40]), (X[20:], Y[20:])]
    methods = [make(config, fold) for fold, config in enumerate(configs)]
    together = gf.deep.fit_together(methods, data, steps=30)
    for fold, (config, part) in enumerate(zip(configs, data, strict=True)):
        alone = make(config, fold).fit(part, steps=30)
        np.testing.assert_allclose(together[fold].belief.mean, alone.belief.mean, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(together[fold].belief.psi, alone.belief.psi, rtol=1e-3)
        assert methods[fold].losses.shape == (30,)


def test_what_cannot_train_side_by_side():
    two = [make({"rate": 0.02, "alpha": 1.0}, 0) for _ in range(2)]
    with pytest.raises(ValueError, match="2 and 1"):
        gf.deep.fit_together(two, [(X, Y)])
    with pytest.raises(ValueError, match=r"numbers of rows \[60, 59\]"):
        gf.deep.fit_together(two, [(X, Y), (X[1:], Y[1:])])
    other = gf.deep.VIFA(LINEAR, start(), rank=2)
    with pytest.raises(ValueError, match="differ in more than numbers"):
        gf.deep.fit_together([two[0], other], [(X, Y), (X, Y)])


def test_searches_resume_from_their_file(tmp_path):
    calls = []

    def score(config):
        calls.append(config)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return np.nan if config["kind"] == "a" else (np.log(config["alpha"]) - 1.0) ** 2

    path = tmp_path / "trials.jsonl"
    with pytest.raises(KeyboardInterrupt):
        random_search(score, SPACE, 8, path=path, seed=3)
    with path.open("a") as file:
        file.write('{"config": {"ra')  # a line that was cut off
    found = random_search(score, SPACE, 8, path=path, seed=3)
    assert len(calls) == 4 + 5
    assert sorted(str(trial.config) for trial in found) == sorted(str(config) for config in draw_configs(SPACE, 8, 3))
    assert found[0].score == min(trial.score for trial in found)
    assert found[0].config["kind"] == "b"
    assert any(trial.score == np.inf for trial in found)
    again = random_search(score, SPACE, 8, path=path, seed=3)
    assert len(calls) == 9
    assert [trial.score for trial in again] == [trial.score for trial in found]
    rates = [config["rate"] for config in draw_configs(SPACE, 200, 0)]
    assert 0.01 <= min(rates) < 0.012 < 0.08 < max(rates) <= 0.1
    json.dumps(draw_configs(SPACE, 2, 0))


def test_cross_validation_prefers_the_better_prior():
    good = cross_validate(make, {"rate": 0.05, "alpha": ALPHA}, straight, (X, Y), folds=3, epochs=300, n_samples=50)
    bad = cross_validate(make, {"rate": 0.05, "alpha": 1e4}, straight, (X, Y), folds=3, epochs=300, n_samples=50)
    assert 0.9 < good < bad


def test_bad_searches():
    for space in ({"x": (0.0, 1.0)}, {"x": (2.0, 1.0)}, {"x": []}, {"x": 3}):
        with pytest.raises(ValueError, match=r"space\['x'\]"):
            random_search(lambda config: 0.0, space, 2)
    with pytest.raises(ValueError, match="trials=0"):
        random_search(lambda config: 0.0, SPACE, 0)
    with pytest.raises(ValueError, match="folds=1"):
        cross_validate(make, {}, straight, (X, Y), folds=1)
    with pytest.raises(ValueError, match="folds=61"):
        cross_validate(make, {}, straight, (X, Y), folds=61)
