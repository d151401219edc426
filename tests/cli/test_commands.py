import csv
import json

import numpy as np
import pytest
from scipy.special import expit

import gaussfold as gf
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading
from tests.cli.helpers import clicks, last_json


@pytest.fixture
def trained(cli, tmp_path):
    data = tmp_path / "d.vw"
    data.write_bytes(clicks(2000))
    options = ("--prior-std", 0.7, "--scale", "none", "--keep-names", "--quiet")
    assert cli("train", data, "-b", 12, "-f", tmp_path / "m", *options)[0] == 0
    return data, tmp_path / "m"


def test_predictions_are_the_beliefs_marginals(cli, trained, tmp_path):
    data, path = trained
    code, out, _ = cli("predict", "-i", path, data)
    assert code == 0
    table = np.array(list(csv.reader(out.splitlines()))[1:], float)
    [chunk] = Stream(data, Reading(bits=12), copy=True)
    belief = gf.load(path).belief
    mean, variance = belief.marginal(chunk.X)
    likelihood = gf.likelihoods.Bernoulli("logit")
    np.testing.assert_allclose(table[:, 0], likelihood.predictive(belief.marginal(chunk.X)).mean, rtol=1e-8)
    np.testing.assert_allclose(table[:, 1], mean, rtol=1e-8)
    np.testing.assert_allclose(table[:, 2], np.sqrt(variance), rtol=1e-8)


def test_predictions_in_other_formats_and_with_tags(cli, trained, tmp_path):
    _, path = trained
    pq = pytest.importorskip("pyarrow.parquet")
    rows = b"'first |u u1\nsecond|u u2 |s s1\n"
    _, out, _ = cli("predict", "-i", path, "--output-format", "jsonl", stdin=rows)
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["tag"] for line in lines] == ["first", "second"]
    assert cli("predict", "-i", path, "-p", tmp_path / "p.parquet", stdin=rows)[0] == 0
    table = pq.read_table(tmp_path / "p.parquet").to_pydict()
    assert table["tag"] == ["first", "second"]
    np.testing.assert_allclose(table["probability"], [line["probability"] for line in lines], rtol=1e-8)


def test_a_mixtures_prediction_is_the_mixture_of_predictions(cli, tmp_path):
    data = tmp_path / "d.vw"
    data.write_bytes(clicks(100))
    cli("train", data, "-b", 8, "-f", tmp_path / "m", "--quiet", "--forgetting", 0.99, "--scale", "none")
    _, out, _ = cli("predict", "-i", tmp_path / "m", data)
    found = np.array(list(csv.reader(out.splitlines()))[1:], float)[:, 0]
    [chunk] = Stream(data, Reading(bits=8), copy=True)
    belief = gf.load(tmp_path / "m").belief
    likelihood = gf.likelihoods.Bernoulli("logit")
    parts = [likelihood.predictive(component.marginal(chunk.X)).mean for component in belief.components]
    np.testing.assert_allclose(found, belief.weights @ np.array(parts), rtol=1e-8)


def test_testing_scores_what_predict_predicts(cli, trained, tmp_path):
    _, path = trained
    fresh = clicks(500, start=2000)
    _, out, _ = cli("train", "-t", "-i", path, "--quiet", "--json", stdin=fresh)
    loss = last_json(out)["average_loss"]
    _, out, _ = cli("predict", "-i", path, stdin=fresh)
    p = np.array(list(csv.reader(out.splitlines()))[1:], float)[:, 0]
    positive = np.array([line.startswith(b"1") for line in fresh.splitlines()])
    assert loss == pytest.approx(-np.log(np.where(positive, p, 1 - p)).mean(), rel=1e-7)
    assert loss < 0.66


def test_thompson_draws_one_set_of_weights_for_all_rows(cli, trained):
    _, path = trained
    rows = b"|u u1\n" * 3 + b"|u u1 |s s1\n" + clicks(30_000) + b"|u u1\n"
    draws = []
    for seed in range(30):
        _, out, _ = cli("predict", "-i", path, "--thompson", "--seed", seed, stdin=rows if seed == 0 else b"|u u1\n")
        sampled = np.array(list(csv.reader(out.splitlines()))[1:], float)[:, 3]
        assert sampled[0] == sampled[-1]  # of another chunk, if there are two
        draws.append(sampled[0])
    mean, std = np.array(list(csv.reader(out.splitlines()))[1:], float)[0, 1:3]
    normals = (np.log(draws) - np.log1p(-np.array(draws)) - mean) / std
    assert abs(normals.mean()) < 4 / np.sqrt(30)
    assert 0.6 < normals.std() < 1.5
    assert expit(mean) == pytest.approx(np.median(draws), abs=0.2)


def test_inspect_names_the_features(cli, trained):
    _, path = trained
    code, out, _ = cli("inspect", path, "--json", "--top", 5)
    found = json.loads(out)
    assert code == 0
    model = gf.load(path)
    heaviest = found["heaviest"][0]
    used = model.used()
    assert abs(heaviest["mean"]) == np.abs(model.belief.mean[:-1]).max()
    assert heaviest["feature"][:2] in ("u^", "s^", "t^")
    [chunk] = Stream(trained[0], Reading(bits=12, constant=False), copy=True)
    np.testing.assert_array_equal(used, np.unique(chunk.indices))
    assert found["model"]["slots_used"] == used.size
    std = np.sqrt(model.belief.variance()[:-1][used])
    assert found["most certain"][0]["std"] == pytest.approx(std.min())
    assert found["most uncertain"][0]["std"] == pytest.approx(std.max())
    code, out, _ = cli("inspect", path)
    assert heaviest["feature"] in out


def test_compare_is_training_each_alone(cli, trained):
    data, _ = trained
    settings = [
        "prior-std=0.3",
        "prior-std=0.3,link=probit",
        "prior-std=auto,bits=9",
        "prior-std=1,coupling=joint",
    ]
    code, out, _ = cli("compare", data, "-b", 8, "--json", *(part for setting in settings for part in ("-s", setting)))
    assert code == 0
    found = {row["setting"]: row["average_loss"] for row in last_json(out)["settings"]}
    _, out, _ = cli("train", data, "-b", 8, "--prior-std", 0.3, "--link", "probit", "--quiet", "--json")
    assert found["prior-std=0.3,link=probit"] == last_json(out)["average_loss"]
    _, out, _ = cli("train", data, "-b", 9, "--quiet", "--json", "--prior-std", "auto")
    assert found["prior-std=auto,bits=9"] == last_json(out)["average_loss"]
    code, out, _ = cli("compare", data, "-b", 8)
    assert "prior-std=auto" in out
    assert cli("compare", data, "-s", "speed=fast")[0] == 2


def test_the_demo_beats_the_constant_and_is_calibrated(cli):
    code, out, _ = cli("demo", "-n", 40_000, "--json", "--quiet")
    found = last_json(out)
    assert code == 0
    assert found["truth_loss"] < found["average_loss"] < found["constant_loss"] - 0.02
    assert found["calibration_error"] < 0.01
    assert found["regret"] == pytest.approx(40_000 * (found["average_loss"] - found["truth_loss"]))


def test_version(cli):
    code, out, _ = cli("--version")
    assert (code, out.strip()) == (0, f"gaussfold {gf.__version__}")
