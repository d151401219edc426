"""Predictions of numbers within the labels seen so far: the definition, promises, files, and who may ask for it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.cli.label_range import LabelRange
from gaussfold.cli.model import StreamModel
from gaussfold.cli.setting import Setting
from gaussfold.data.chunks import Chunk
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading

GAUSSIAN = ("--likelihood", "gaussian", "--quiet")


def _rows(n=400, seed=11):
    """Labels of two sizes, so that predictions leave what was seen; some without a label, some that do not count."""
    rng = np.random.default_rng(seed)
    x, heads = rng.standard_t(2.5, (n, 3)), []
    y = np.clip(x @ [2.0, -1.0, 0.5], -3.0, 2.0) + 0.1 * rng.normal(size=n)
    for k in range(n):
        weight = 0.0 if k % 17 == 3 else 2.5 if k % 5 == 0 else 1.0
        heads.append("" if k % 13 == 0 else f"{y[k] * (40.0 if weight == 0.0 else 1.0):.6g} {weight} ")
    return [f"{head}|f a:{a:.4f} b:{b:.4f} c:{c:.4f}\n" for head, (a, b, c) in zip(heads, x, strict=True)]


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.vw"
    path.write_text("".join(_rows()))
    return path


def _table(path):
    return np.genfromtxt(path, delimiter=",", names=True)


def _labels(path):
    chunks = list(Stream(path, Reading(labels="real"), copy=True))
    return tuple(np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("label", "weight"))


def _kept_row_by_row(predicted, labels, weights):
    """The twin: one row after the other."""
    low, high, kept = np.inf, -np.inf, []
    for m, y, w in zip(predicted.tolist(), labels.tolist(), weights.tolist(), strict=True):
        kept.append(m if low > high else low if m < low else min(m, high))
        if w > 0.0 and not np.isnan(y):
            low, high = min(low, y), max(high, y)
    return np.array(kept)


@pytest.mark.parametrize("options", [(), ("--prior-std", 0.7), ("--noise-std", 1.5, "--forgetting", 0.97)])
def test_each_prediction_is_within_the_labels_before_it_and_nothing_else_is_touched(cli, numbers, tmp_path, options):
    kept, free = tmp_path / "kept.csv", tmp_path / "free.csv"
    out = [
        json.loads(cli("train", numbers, *GAUSSIAN, "--json", *options, *more)[1])
        for more in (("-p", kept), ("-p", free, "--label-range", "none"))
    ]
    one, two = _table(kept), _table(free)
    y, w = _labels(numbers)
    expected = _kept_row_by_row(two["prediction"], y, w)
    assert (expected != two["prediction"]).sum() > 10
    np.testing.assert_array_equal(one["prediction"], expected)
    np.testing.assert_array_equal(one["mean"], expected)
    for name in ("prediction_std", "std"):
        np.testing.assert_array_equal(one[name], two[name])
    assert out[0]["average_loss"] == out[1]["average_loss"]
    assert out[0]["noise_std"] == out[1]["noise_std"]
    told = ~np.isnan(y)
    assert out[0]["squared_error"] == pytest.approx((w * (y - expected) ** 2)[told].sum() / w[told].sum(), rel=1e-6)
    assert out[0]["squared_error"] < out[1]["squared_error"]


def test_no_label_within_the_range_is_farther_from_what_is_kept(numbers):
    y, w = _labels(numbers)
    predicted = 5.0 * np.random.default_rng(2).normal(size=y.size)
    kept = _kept_row_by_row(predicted, y, w)
    lows, highs = (end.accumulate(np.where(w > 0, y, np.nan)) for end in (np.fmin, np.fmax))
    inside = np.append(False, (y[1:] >= lows[:-1]) & (y[1:] <= highs[:-1]))
    assert (np.abs(y - kept) <= np.abs(y - predicted))[inside].all()


@pytest.mark.parametrize("size", [64, 500, 3000])
def test_chunks_make_no_difference(numbers, size):
    reading = Reading(labels="real", bits=10)
    setting = Setting(prior_std="auto", likelihood="gaussian", noise_std="learn", label_range="seen")
    told = []
    for chunk_bytes in (1 << 20, size):
        model = StreamModel(setting, reading)
        told.append(
            np.concatenate([model.learn(chunk).mean for chunk in Stream(numbers, reading, chunk_bytes=chunk_bytes)])
        )
        told.append(model.state()["range"])
    np.testing.assert_array_equal(told[0], told[2])
    np.testing.assert_array_equal(told[1], told[3])


@pytest.mark.parametrize("cut", [1, 4, 150])
def test_resuming_is_exact_and_tests_learn_no_range(cli, numbers, tmp_path, cut):
    lines = numbers.read_text().splitlines(keepends=True)
    first, second, model, whole = (tmp_path / name for name in ("a.vw", "b.vw", "m", "whole"))
    first.write_text("".join(lines[:cut]))
    second.write_text("".join(lines[cut:]))
    once, rest = tmp_path / "once.csv", tmp_path / "rest.csv"
    assert cli("train", numbers, *GAUSSIAN, "-f", whole, "-p", once)[0] == 0
    assert cli("train", first, *GAUSSIAN, "-f", model)[0] == 0
    before = gf.load(model).state()
    tested, predicted = tmp_path / "tested.csv", tmp_path / "predicted.csv"
    assert cli("train", second, "-t", "-i", model, "-p", tested, "--quiet")[0] == 0
    assert cli("predict", "-i", model, second, "-p", predicted)[0] == 0
    assert tested.read_text() == predicted.read_text()
    if "range" in before:
        assert _table(tested)["prediction"].min() >= before["range"][0]
        assert _table(tested)["prediction"].max() <= before["range"][1]
    assert cli("train", second, "-i", model, "-f", model, "-p", rest, "--quiet")[0] == 0
    np.testing.assert_array_equal(_table(rest)["prediction"], _table(once)["prediction"][cut:])
    for name, array in gf.load(whole).state().items():
        np.testing.assert_array_equal(array, gf.load(model).state()[name], err_msg=name)


def test_a_row_that_cannot_be_learned_leaves_the_range(tmp_path, cli):
    path, model = tmp_path / "n.vw", tmp_path / "m"
    path.write_text("1 |f a\n2 |f b\n1e200 |f a:1e150\n1.5 |f a\n")
    assert (
        cli("train", path, *GAUSSIAN, "--noise-std", "1e-140", "--scale", "none", "-f", model, "--skip-bad", 1)[0] == 0
    )
    np.testing.assert_array_equal(gf.load(model).state()["range"], [1.0, 2.0])


def test_rounds_of_any_number_of_workers_keep_the_same_range(cli, numbers, tmp_path):
    found = []
    for workers in (1, 2):
        model = tmp_path / f"m{workers}"
        assert cli("train", numbers, *GAUSSIAN, "--noise-std", 0.7, "--workers", workers, "-f", model)[0] == 0
        found.append(gf.load(model).state()["range"])
    y, w = _labels(numbers)
    for ends in found:
        np.testing.assert_array_equal(ends, [np.nanmin(y[w > 0]), np.nanmax(y[w > 0])])


def test_who_may_ask_for_it(cli, numbers):
    assert "it goes with gaussian" in cli("train", numbers, "--label-range", "seen")[2]
    assert "allowed are 'seen', 'none'" in cli("train", numbers, *GAUSSIAN, "--label-range", "all")[2]


def test_a_file_with_a_range_upside_down_is_refused():
    with pytest.raises(ValueError, match=r"part 'range': from 2.0 to 1.0; the smaller end is needed first"):
        LabelRange.from_arrays({"range": np.array([2.0, 1.0])})


def test_before_the_first_label_nothing_is_kept():
    ends = LabelRange()
    chunk = Chunk(
        np.zeros(3, np.int32), np.empty(0, np.int32), np.empty(0), np.array([np.nan, 4.0]), np.array([1.0, 0.0]), 5,
        "test", np.arange(1, 3),
    )  # fmt: skip
    np.testing.assert_array_equal(ends.learned(np.array([7.0, -8.0]), chunk), [7.0, -8.0])
    assert not ends.arrays()
    np.testing.assert_array_equal(ends.kept(np.array([7.0])), [7.0])
