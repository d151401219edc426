"""Labels other than clicks: numbers and counts."""

import csv
import dataclasses

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading
from tests.cli.helpers import last_json, same_model


def lines(kind, n=400, seed=4):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(2, 12))
    rows = []
    for _ in range(n):
        a, b = rng.integers(0, 12, 2)
        f = weights[0, a] + 0.5 * weights[1, b]
        y = f"{f + 0.3 * rng.normal():.6f}" if kind == "gaussian" else str(rng.poisson(np.exp(f)))
        rows.append(f"{y} |u u{a} |s s{b}:0.5\n")
    return "".join(rows).encode()


LIKELIHOODS = {
    "gaussian": (gf.likelihoods.Gaussian(0.3), ("--noise-std", 0.3), "real"),
    "poisson": (gf.likelihoods.Poisson(), (), "count"),
}


@pytest.mark.parametrize("kind", LIKELIHOODS)
def test_the_loss_and_the_predictions_are_those_of_fold(cli, tmp_path, kind):
    likelihood, options, labels = LIKELIHOODS[kind]
    data = tmp_path / "d.vw"
    data.write_bytes(lines(kind))
    common = ("-b", 9, "--quiet", "--json", "--prior-std", 0.7, "--scale", "none")
    code, out, _ = cli("train", data, *common, "--likelihood", kind, *options, "-f", tmp_path / "m")
    assert code == 0
    [chunk] = Stream(data, Reading(bits=9, labels=labels), copy=True)
    belief = gf.DiagonalGaussian.isotropic(513, std=0.7)
    result = gf.fold(belief, likelihood, chunk.X, chunk.label, rule="newton")
    found = last_json(out)
    assert found["average_loss"] == pytest.approx(-result.log_predictive.mean(), rel=1e-12)
    assert found["constant_loss"] is None
    np.testing.assert_array_equal(gf.load(tmp_path / "m").belief.mean, belief.mean)
    code, out, _ = cli("predict", "-i", tmp_path / "m", data, "--thompson", "--seed", 3)
    assert code == 0
    rows = list(csv.DictReader(out.splitlines()))
    assert list(rows[0]) == ["prediction", "prediction_std", "mean", "std", "sampled"]
    wanted = likelihood.predictive(belief.marginal(chunk.X))
    np.testing.assert_allclose([float(row["prediction"]) for row in rows], wanted.mean, rtol=1e-8)
    np.testing.assert_allclose([float(row["prediction_std"]) for row in rows], np.sqrt(wanted.variance), rtol=1e-8)
    if kind == "poisson":
        assert min(float(row["sampled"]) for row in rows) > 0


@pytest.mark.parametrize("kind", LIKELIHOODS)
@pytest.mark.parametrize("prior", ["auto", "0.7"])
def test_training_in_two_parts_is_training_at_once(cli, tmp_path, kind, prior):
    raw = lines(kind)
    cut = raw.index(b"\n", len(raw) // 3) + 1
    options = ("-b", 8, "--prior-std", prior, "--likelihood", kind, "--quiet", "--format", "vw")
    cli("train", *options, "-f", tmp_path / "whole", stdin=raw)
    cli("train", *options, "-f", tmp_path / "half", stdin=raw[:cut])
    code, _, err = cli("train", "-i", tmp_path / "half", "-f", tmp_path / "two", "--quiet", stdin=raw[cut:])
    assert code == 0, err
    same_model(tmp_path / "whole", tmp_path / "two")


@pytest.mark.parametrize(
    ("kind", "label", "words"),
    [
        ("logit", "0.5", "expected a label of -1, 0 or 1, found '0.5'"),
        ("probit", "2", "expected a label of -1, 0 or 1, found '2'"),
        ("gaussian", "inf", "expected a finite number as label, found 'inf'"),
        ("poisson", "2.5", "expected a whole number >= 0 as label, found '2.5'"),
        ("poisson", "-1", "expected a whole number >= 0 as label, found '-1'"),
    ],
)
@pytest.mark.parametrize("form", ["vw", "svmlight", "csv", "parquet"])
def test_labels_that_the_likelihood_cannot_explain_are_bad_records(cli, tmp_path, kind, label, words, form):
    row = {"vw": "{} |u x\n", "svmlight": "{} 1:1\n", "csv": "{},1.5\n"}.get(form)
    path = tmp_path / f"d.{form}"
    if form == "parquet":
        pl = pytest.importorskip("polars")
        pl.DataFrame({"y": [1.0, 0.0, float(label), 1.0], "x": [1.5] * 4}).write_parquet(path)
    else:
        rows = "".join(row.format(y) for y in ("1", "0", label, "1"))
        path.write_text(f"y,x\n{rows}" if form == "csv" else rows)
    options = ("-b", 8, "--quiet", "--likelihood", kind, "-f", tmp_path / "m")
    code, _, err = cli("train", path, *options)
    assert code == 3
    shown = words if form != "parquet" else words.replace("'2'", "'2.0'").replace("'-1'", "'-1.0'")
    assert shown in err
    assert ("row 3:" if form == "parquet" else f"{path}:{4 if form == 'csv' else 3}: ") in err
    assert gf.load(tmp_path / "m").learned == 2
    code, out, err = cli("train", path, *options, "--skip-bad", 1, "--json")
    assert code == 0
    assert "skipped" in err
    assert last_json(out)["learned"] == 3
    assert last_json(out)["bad"] == 1
    assert gf.load(tmp_path / "m").learned == 3


def test_an_initial_prediction_is_refused_by_name_unless_it_is_zero(cli):
    code, _, err = cli("train", "--quiet", "--format", "vw", stdin=b"1 1 0 |u x\n1 1 0.5 |u x\n")
    assert code == 3
    assert "<stdin>:2: expected no initial prediction but 0" in err


def test_models_from_before_there_were_other_likelihoods_still_load(cli, tmp_path):
    more = ("--likelihood", "probit", "--prior-std", 0.7, "--scale", "none", "--quiet")
    cli("train", "-b", 8, *more, "-f", tmp_path / "m", stdin=b"1 |u x\n-1 |u y\n")
    model = gf.load(tmp_path / "m")
    header = model.store_header()
    header["setting"] = {name: value for name, value in header["setting"].items() if name in OLD_SETTING}
    header["setting"]["link"] = "probit"
    header["reading"]["binary"] = header["reading"].pop("labels") == "binary"
    again = type(model).from_store(header, model.state())
    assert again.setting == dataclasses.replace(model.setting, lanes="mixed")
    assert again.reading == model.reading


OLD_SETTING = ("prior_std", "rule", "coupling", "forgetting", "dtype")


def test_a_row_that_cannot_be_learned_is_a_bad_record_and_the_rest_counts_once(cli, tmp_path):
    """Two numbers of 1e200 squared overflow; the rows before it are learned, counted and never learned again."""
    rows = ["1.5 |u a\n", "-0.5 |u b\n", "1e30 1e30 |u a:1e30\n", "0.25 |u a\n"]
    options = ("-b", 8, "--quiet", "--likelihood", "gaussian", "--noise-std", 1e-140, "-f", tmp_path / "m")
    data = tmp_path / "d.vw"
    data.write_text("".join(rows))
    code, _, err = cli("train", data, *options)
    assert code == 3, err
    assert f"{data}:3: the row drives the weights out of range" in err
    assert (gf.load(tmp_path / "m").learned, gf.load(tmp_path / "m").run["rows"]) == (2, 2)
    code, out, err = cli("train", data, *options, "--skip-bad", 1, "--json")
    assert code == 0
    assert f"skipped {data}:3" in err
    assert (last_json(out)["learned"], last_json(out)["bad"]) == (3, 1)


def test_a_rule_that_is_not_defined_is_refused_before_anything_is_read(cli, tmp_path):
    (tmp_path / "c.vw").write_text("not a label | a\n")
    code, _, err = cli("train", tmp_path / "c.vw", "--rule", "quadratic", "--likelihood", "poisson")
    assert code == 2
    assert "rule='quadratic' needs a quadratic bound" in err
