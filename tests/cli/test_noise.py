"""Learned noise of labels that are numbers: exact where it can be, the same however the stream is cut."""

from __future__ import annotations

import json

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.beliefs.diagonal.stack import DiagonalStack
from gaussfold.cli.model import StreamModel
from gaussfold.cli.setting import Setting
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading


def _numbers(n=700, seed=5, scale=40.0, offset=-900.0, noise=0.25):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=12)
    lines = []
    for k in range(n):
        words, values = rng.choice(12, 3, replace=False), rng.gamma(2.0, 0.5, 3)
        y = offset + scale * (weights[words] @ values + noise * rng.normal())
        label = "" if k % 13 == 0 else f"{y:.7g} {1 + (k % 5 == 0) * 0.5} "  # some without a label, some heavier
        lines.append(label + "|f " + " ".join(f"w{a}:{b:.4f}" for a, b in zip(words, values, strict=True)) + "\n")
    return lines


@pytest.fixture
def numbers(tmp_path):
    path = tmp_path / "numbers.vw"
    path.write_text("".join(_numbers()))
    return path


def _train(cli, path, *options):
    code, out, err = cli("train", path, "--likelihood", "gaussian", "--quiet", "--json", *options)
    assert code == 0, err
    return json.loads(out.splitlines()[-1])


@pytest.mark.parametrize("prior", ["auto", "3.5"])
def test_scale_and_offset_of_labels_do_not_matter(cli, tmp_path, prior):
    found = []
    for scale, offset in ((1.0, 0.0), (1000.0, 1e6), (1e-3, 7.0)):
        path = tmp_path / "n.vw"
        path.write_text("".join(_numbers(2500, scale=scale, offset=offset)))
        summary = _train(cli, path, "--prior-std", prior)
        assert summary["noise_std"] == pytest.approx(0.25 * scale, rel=0.25)
        found.append(summary["average_loss"] - np.log(scale))
    assert np.ptp(found) < 0.1


def test_the_mean_is_exact_whatever_the_noise_was_thought_to_be(cli, tmp_path):
    """One feature a row: the weights are a ridge regression, which in units of the noise has no noise in it."""
    rng = np.random.default_rng(3)
    places, y = rng.integers(0, 4, 300), rng.normal(50.0, 9.0, 300)
    path = tmp_path / "one.vw"
    path.write_text("".join(f"{label!r} |f {place}\n" for label, place in zip(y.tolist(), places, strict=True)))
    model = tmp_path / "m"
    _train(cli, path, "--prior-std", "0.7", "--noconstant", "--scale", "none", "-f", model)
    loaded = gf.load(model)
    used = loaded.used()
    means = np.sort(loaded.belief.moments(used).mean * loaded.noise.std)
    exact = np.sort([y[places == k].sum() / ((places == k).sum() + 0.7**-2) for k in range(4)])
    np.testing.assert_allclose(means, exact, rtol=1e-9)


def test_squared_error_is_that_of_the_predictions(cli, numbers, tmp_path):
    out = tmp_path / "p.csv"
    summary = _train(cli, numbers, "-p", out)
    predicted = np.genfromtxt(out, delimiter=",", names=True)["prediction"]
    chunks = list(Stream(numbers, Reading(labels="real"), copy=True))
    y, w = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("label", "weight"))
    there = ~np.isnan(y)
    error = (w * (y - predicted) ** 2)[there].sum() / w[there].sum()
    assert summary["squared_error"] == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize("options", [(), ("--prior-std", "2.5"), ("--forgetting", "0.97"), ("--noconstant",)])
@pytest.mark.parametrize("cut", [1, 2, 9, 17, 300])
def test_resuming_is_exact(cli, numbers, tmp_path, options, cut):
    lines = numbers.read_text().splitlines(keepends=True)
    first, second = tmp_path / "a.vw", tmp_path / "b.vw"
    first.write_text("".join(lines[:cut]))
    second.write_text("".join(lines[cut:]))
    whole, part, rest = (tmp_path / name for name in ("whole", "part", "rest"))
    _train(cli, numbers, *options, "-f", whole)
    _train(cli, first, *options, "-f", part)
    assert cli("train", second, "-i", part, "-f", rest, "--quiet")[0] == 0
    one, two = gf.load(whole).state(), gf.load(rest).state()
    assert one.keys() == two.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, two[name], err_msg=name)


@pytest.mark.parametrize("size", [64, 500, 3000])
def test_chunks_make_no_difference(numbers, size):
    reading = Reading(labels="real", bits=10)
    setting = Setting(prior_std="auto", likelihood="gaussian", noise_std="learn")
    models = [StreamModel(setting, reading) for _ in range(2)]
    told = []
    for model, chunk_bytes in zip(models, (1 << 20, size), strict=True):
        traces = []
        for chunk in Stream(numbers, reading, chunk_bytes=chunk_bytes):
            trace = model.learn(chunk)
            model.add(chunk, trace, 0, len(chunk))
            traces.append(np.array(trace[:4]))
        told.append(np.concatenate(traces, axis=1))
    np.testing.assert_array_equal(*told)
    for name, array in models[0].state().items():
        np.testing.assert_array_equal(array, models[1].state()[name], err_msg=name)


def test_a_number_for_the_noise_is_as_before(cli, numbers):
    assert _train(cli, numbers, "--noise-std", "12.5")["noise_std"] == 12.5
    assert cli("train", numbers, "--likelihood", "gaussian", "--noise-std", "-1")[0] == 2
    assert cli("train", numbers, "--likelihood", "gaussian", "--noise-std", "much")[0] == 2
    assert cli("train", numbers, "--noise-std", "learn")[0] == 2  # clicks have none


def test_other_units_leave_predictions_as_they_are():
    rng = np.random.default_rng(8)
    X, y = np.column_stack([rng.normal(size=(60, 3)), np.ones(60)]), rng.normal(2.0, 1.0, 60)
    belief = DiagonalStack.isotropic(4)
    gf.fold(belief, gf.likelihoods.Gaussian(1.0), X, y, rule="newton")
    before = belief.marginals(X)
    belief.change_units(0.3, shift=1.7, constant=3)
    after = belief.marginals(X)
    np.testing.assert_allclose(after.mean, before.mean / 0.3 + 1.7, rtol=1e-6)


def test_workers_do_not_learn_noise(cli, numbers, tmp_path):
    model = tmp_path / "m"
    code, _, err = cli(
        "train", numbers, "--likelihood", "gaussian", "--noise-std", "learn", "--workers", 1, "-f", model, "--quiet"
    )
    assert (code, "in the order of rows" in err) == (2, True)
    assert not model.exists()
