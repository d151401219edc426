"""Nonlinear L-RVGA keeps the promises of every stream: chunks, files, all or nothing, clear refusals."""

import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from tests.deep.test_lrvga import network, start

OPTIONS = {"linearise": "samples", "rank": 4, "n_samples": 3, "seed": 9}


def rows(n=23, outputs=3):
    rng = np.random.default_rng(4)
    return rng.normal(size=(n, 2)).astype("f"), rng.integers(0, outputs, n)


def model(block=1, **options):
    params, std = start(2, 4, 3)
    return gf.deep.LRVGA(network, "softmax", params, prior_std=std, block_size=block, **(OPTIONS | options))


def same(one, other):
    assert one.state().keys() == other.state().keys()
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, other.state()[name])


@pytest.mark.parametrize("block", [1, 5])
def test_chunks_missing_labels_weights_and_files(block, tmp_path):
    X, y = rows()
    y = y.astype(float)
    y[[3, 11]] = np.nan
    weight = np.random.default_rng(1).uniform(0.1, 2.5, 23)
    weight[[7, 22]] = 0.0
    whole = model(block).partial_fit(X, y, weight)
    parts = model(block)
    for piece in (slice(0, 1), slice(1, 8), slice(8, 9), slice(9, 17)):
        parts.partial_fit(X[piece], y[piece], weight[piece])
    parts.save(tmp_path / "model")
    loaded = gf.deep.LRVGA.load(tmp_path / "model", network)
    same(loaded, parts)
    np.testing.assert_array_equal(loaded.posterior.belief.mean, parts.posterior.belief.mean)
    for each in (parts, loaded):
        same(each.partial_fit(X[17:], y[17:], weight[17:]), whole)
    clean = np.isfinite(y) & (weight > 0)
    same(model(block).partial_fit(X[clean], y[clean], weight[clean]), whole)
    with pytest.raises(ValueError, match="does not hold it"):
        gf.load(tmp_path / "model").partial_fit(X, y)
    assert whole.progressive_log_loss > 0


def test_rows_that_wait_count_and_keep_waiting():
    X, y = rows()
    waiting = model(5).partial_fit(X[:8], y[:8])
    before = waiting.state()
    mean = waiting.posterior.belief.mean
    assert np.abs(mean - before["mean"]).max() > 1e-3
    for name, array in before.items():
        np.testing.assert_array_equal(array, waiting.state()[name])
    np.testing.assert_array_equal(waiting.posterior.belief.mean, mean)


def test_another_seed_gives_other_samples():
    X, y = rows()
    means = [model(seed=seed).fit(X, y).belief.mean for seed in (1, 1, 2)]
    np.testing.assert_array_equal(means[0], means[1])
    assert np.abs(means[0] - means[2]).max() > 1e-3


def test_one_row_at_a_time_or_stacked():
    X, y = rows(outputs=2)
    zero = np.zeros(2, "f")
    stacked = gf.deep.LRVGA(lambda w, x: x @ w, "bernoulli", zero, **(OPTIONS | {"rank": 2})).fit(X, y)
    single = gf.deep.LRVGA(lambda w, x: jnp.sum(w * x), "bernoulli", zero, **(OPTIONS | {"rank": 2})).fit(X, y)
    np.testing.assert_allclose(single.belief.mean, stacked.belief.mean, rtol=1e-5)


def fragile(w, x):
    return x @ w + jnp.where(x[:, 0] > 50.0, jnp.nan, 0.0)


@pytest.mark.parametrize("block", [1, 4])
def test_a_chunk_that_fails_changes_nothing(block):
    X, y = rows(outputs=2)
    one = gf.deep.LRVGA(fragile, "poisson", np.zeros(2, "f"), block_size=block, **(OPTIONS | {"rank": 2}))
    one.partial_fit(X[:6], y[:6])
    before = one.state()
    X[15] = 100.0
    with pytest.raises(ValueError, match="apply: NaN or infinity at row" + (" 9" if block == 1 else "s 6 to 9")):
        one.partial_fit(X[6:], y[6:])
    X[15] = np.nan
    with pytest.raises(ValueError, match="X: row 9 has NaN"):
        one.partial_fit(X[6:], y[6:])
    for name, array in before.items():
        np.testing.assert_array_equal(array, one.state()[name])
    one.partial_fit(X[6:15], y[6:15])


def test_a_second_gradient_that_overflows_is_told_and_changes_nothing(monkeypatch):
    X, y = rows(outputs=2)
    one = gf.deep.LRVGA(fragile, "poisson", np.zeros(2, "f"), **(OPTIONS | {"rank": 2}))
    one.partial_fit(X[:6], y[:6])
    before = one.state()
    endless = lambda *_: jnp.full(2, jnp.inf)  # noqa: E731
    monkeypatch.setattr("gaussfold.deep.extragradient.look_at_gradient", endless)
    with pytest.raises(ValueError, match="apply: NaN or infinity at row 0"):
        one.partial_fit(X[6:7], y[6:7])
    for name, array in before.items():
        np.testing.assert_array_equal(array, one.state()[name])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"rank": 28}, "rank=28.*1 to 27"),
        ({"rank": 0}, "rank=0"),
        ({"n_samples": 0}, "n_samples=0"),
        ({"n_samples": 2.5}, r"n_samples=2\.5"),
        ({"block_size": 0}, "block_size=0"),
        ({"inner_loops": 0}, "inner_loops=0"),
        ({"prior_std": 0.0}, "std"),
        ({"prior_std": [1.0, 2.0]}, "prior_std"),
        ({"scheme": "implicit"}, "scheme='implicit'.*'extragradient'"),
        ({"projection": "svd"}, "projection='svd'"),
        ({"gain": "best"}, "gain='best'"),
        ({"seed": -1}, "seed=-1"),
        ({"likelihood": "gamma"}, "likelihood='gamma'"),
        ({"likelihood": "gaussian"}, "a known noise level"),
        ({"apply": "network"}, "apply='network'"),
        ({"params": {"w": np.arange(3)}}, r"leaf \['w'\]"),
        ({"params": {"w": np.full(3, np.nan, "f")}, "rank": 2}, "params: NaN"),
        ({"params": {}}, "holds no numbers"),
    ],
)
def test_bad_construction(arguments, match):
    good = {"apply": network, "likelihood": "softmax", "params": start(2, 4, 3)[0], **OPTIONS}
    with pytest.raises(ValueError, match=match):
        gf.deep.LRVGA(**(good | arguments))


@pytest.mark.parametrize(
    ("X", "y", "options", "match"),
    [
        (np.ones((4, 2)), [0, 1, 2, 3], {}, r"y\[3\] = 3.0: classes are 0 to 2"),
        (np.ones((4, 2)), [0, 1], {}, r"y: shape \(2,\); \(4,\) classes"),
        (np.ones((4, 3)), [0, 1, 2, 0], {}, "apply: rows of X do not go through it"),
        (np.ones((4, 2), "U1"), [0, 1, 2, 0], {}, "X: <U1"),
        (np.ones((4, 2)), ["a", "b", "c", "a"], {}, "y: not numeric"),
        (np.ones((4, 2)), [0, 1, 2, 0], {"sample_weight": [1, 1, -1, 1]}, "sample_weight: row 2 is -1"),
        (np.ones((4, 2)), [0, 1, 2, 0], {"sample_weight": [1, 1]}, r"sample_weight: shape \(2,\)"),
    ],
)
def test_bad_rows(X, y, options, match):
    one = model()
    before = one.state()
    with pytest.raises(ValueError, match=match):
        one.partial_fit(X, y, **options)
    for name, array in before.items():
        np.testing.assert_array_equal(array, one.state()[name])


def test_bad_labels_of_other_families():
    one = gf.deep.LRVGA(lambda w, x: x @ w, "poisson", np.zeros(2, "f"))
    with pytest.raises(ValueError, match=r"y\[1\] = -2.0"):
        one.partial_fit(np.ones((2, 2)), [1, -2])


def test_nothing_to_learn():
    one = model()
    before = one.state()
    one.partial_fit(np.zeros((0, 2)), np.zeros(0)).partial_fit(np.ones((2, 2)), [np.nan, np.nan])
    for name, array in before.items():
        np.testing.assert_array_equal(array, one.state()[name])
    assert np.isnan(one.progressive_log_loss)
