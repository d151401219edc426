"""A prior of its own for every namespace or column."""

import csv

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading
from tests.cli.helpers import clicks, last_json, same_model

OPTIONS = ("-b", 12, "--quiet", "--json", "--prior-std", "0.7,u=0.2", "--prior-std", "s=3")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "d.vw"
    path.write_bytes(clicks(1500))
    return path


def stds(chunk, width, given, rest):
    values = np.full(width, rest)
    for slot, _, space in chunk.names:
        values[slot] = given.get(space, rest)
    return values


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_the_model_is_that_of_fold_with_one_std_per_feature(cli, data, tmp_path, forgetting):
    more = ("-q", "us", "--prior-std", "s*u=0.4", "--forgetting", forgetting, "--scale", "none")
    code, out, err = cli("train", data, *OPTIONS, *more, "-f", tmp_path / "m")
    assert code == 0, err
    [chunk] = Stream(data, Reading(bits=12, interact=("us",)), copy=True, keep_names=True)
    std = stds(chunk, 4097, {"u": 0.2, "s": 3.0, "s*u": 0.4}, 0.7)
    assert set(std) == {0.2, 3.0, 0.4, 0.7}
    prior = gf.DiagonalGaussian.independent(np.zeros(4097), std)
    belief = prior.copy()
    dynamics = gf.dynamics.Forgetting(forgetting, prior) if forgetting < 1 else None
    likelihood = gf.likelihoods.Bernoulli("logit")
    result = gf.fold(belief, likelihood, chunk.X, chunk.label, rule="newton", dynamics=dynamics)
    assert last_json(out)["average_loss"] == pytest.approx(-result.log_predictive.mean(), rel=1e-12)
    np.testing.assert_array_equal(gf.load(tmp_path / "m").belief.mean, belief.mean)
    np.testing.assert_array_equal(gf.load(tmp_path / "m").belief.var, belief.var)


@pytest.mark.parametrize("forgetting", [1.0, 0.97])
def test_parts_checkpoints_and_passes_do_not_set_a_prior_again(cli, data, tmp_path, forgetting):
    raw = data.read_bytes()
    cut = raw.index(b"\n", len(raw) // 50) + 1
    options = (*OPTIONS, "--forgetting", forgetting)
    cli("train", data, *options, "-f", tmp_path / "whole")
    (tmp_path / "a.vw").write_bytes(raw[:cut])
    (tmp_path / "b.vw").write_bytes(raw[cut:])
    cli("train", tmp_path / "a.vw", *options, "-f", tmp_path / "half")
    cli("train", tmp_path / "b.vw", *options, "-i", tmp_path / "half", "-f", tmp_path / "two", "--checkpoint", 7)
    same_model(tmp_path / "whole", tmp_path / "two")
    cli("train", data, *options, "--passes", 2, "-f", tmp_path / "passes")
    cli("train", data, data, *options, "-f", tmp_path / "twice")
    np.testing.assert_array_equal(gf.load(tmp_path / "passes").belief.var, gf.load(tmp_path / "twice").belief.var)


def test_features_never_seen_have_the_prior_of_their_namespace(cli, data, tmp_path):
    cli("train", data, *OPTIONS, "-f", tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    _, out, _ = cli("predict", "-i", tmp_path / "m", stdin=b"|u never\n|s never\n|other never\n")
    std = np.array([float(row["std"]) for row in csv.DictReader(out.splitlines())])
    constant = gf.load(tmp_path / "m").belief.var[-1]
    np.testing.assert_allclose(std**2, np.array([0.2, 3.0, 0.7]) ** 2 + constant, rtol=1e-7)
    assert (tmp_path / "m").read_bytes() == before


def test_columns_of_csv_and_parquet(cli, tmp_path):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {"y": rng.integers(0, 2, 300), "age": rng.normal(size=300).round(3), "city": rng.choice(["Oslo", "Rome"], 300)}
    )
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    for name in ("csv", "parquet"):
        options = ("--prior-std", "age=0.1,city=2,age*city=0.5,0.7", "-q", "age,city", "-b", 10, "--quiet")
        assert cli("train", tmp_path / f"t.{name}", *options, "-f", tmp_path / name)[0] == 0
    same_model(tmp_path / "csv", tmp_path / "parquet")
    _, out, _ = cli("inspect", tmp_path / "csv", "--json")
    assert {row["feature"] for row in last_json(out)["heaviest"]} == {
        "age", "city=Oslo", "city=Rome", "city=Oslo*age", "city=Rome*age",
    }  # fmt: skip
