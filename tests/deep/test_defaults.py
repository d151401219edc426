"""What follows from the tree and from the training's length where nothing is said."""

import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep import scales
from tests.deep.problems import ALPHA, LINEAR, NOISE, linear, start

X, Y, _ = linear()
TREE = {"w": np.zeros((6, 2), np.float32), "b": np.zeros(2, np.float32), "kernel": np.zeros((3, 3, 4, 5), np.float32)}


def test_scales_follow_from_the_inputs_of_a_layer():
    layout = gf.deep.layout_of(TREE)  # b, kernel, w
    inputs = np.repeat([1.0, 36.0, 6.0], [2, 180, 12])
    np.testing.assert_array_equal(scales.by_fan_in(layout), inputs)
    expected = 0.1 / np.sqrt(np.repeat([inputs.mean(), 36.0, 6.0], [2, 180, 12]))
    np.testing.assert_allclose(scales.first_std(layout), expected, rtol=1e-12)
    assert scales.usual_rate(layout) == 0.01
    wide = gf.deep.layout_of({"w": np.zeros((400, 3), np.float32)})
    np.testing.assert_allclose(scales.usual_rate(wide), 0.1 / 20.0)


def test_classifiers_with_many_parameters_are_colder():
    found = [scales.usual_temperature(*case) for case in ((True, 300, 500), (True, 300, 20), (True, 2, 500))]
    assert found == [0.3, 1.0, 0.03]
    assert scales.usual_temperature(False, 300, 500) == 1.0


def test_the_priors_scale_goes_where_the_bound_is_largest():
    layout = gf.deep.layout_of({"a": np.zeros(40, np.float32), "b": np.zeros(3, np.float32)})
    moments = jnp.asarray(np.repeat([0.25, 4.0], [40, 3]), jnp.float32)
    now = jnp.ones(2)
    for _ in range(200):
        now = scales.by_evidence(now, moments, layout)
    np.testing.assert_allclose(now, [90 / (10 + 50), 16 / (12 + 13)], rtol=1e-4)


def test_the_prior_is_learned_and_large_weights_ask_for_a_wide_one():
    wide = (X, (X @ np.array([20.0, -30.0, 10.0]) + NOISE * Y).astype(np.float32))
    small = (X, (X @ np.array([0.02, -0.03, 0.01])).astype(np.float32))
    far = {"w": np.array([20.0, -30.0, 10.0], np.float32)}
    options = {"rank": 1, "n_samples": 2, "batch_size": 60, "seed": 3}
    method = gf.deep.VIFA(LINEAR, far, **options)
    method.fit(wide, steps=600)
    precision = method.learned_precision["['w']"]
    np.testing.assert_allclose(precision, 16 / (13 + 1400), rtol=0.05)
    method = gf.deep.VIFA(LINEAR, start(), **options)
    method.fit(small, steps=300)
    assert 1.1 < method.learned_precision["['w']"] < 16 / 13
    given = gf.deep.VIFA(LINEAR, start(), 1, ALPHA)
    given.fit(small, steps=2)
    assert given.learned_precision == {"['w']": ALPHA}


def test_a_number_per_leaf():
    tree = {"a": np.zeros((2, 2), np.float32), "b": np.zeros(3, np.float32)}
    for kind in (gf.deep.VIFA, gf.deep.SWAG, gf.deep.SLANG):
        method = kind(lambda params, batch: batch, tree, 2, {"a": 1e6, "b": np.array([1.0, 2.0, 3.0])})
        np.testing.assert_array_equal(method.prior_precision, [1e6] * 4 + [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"prior_precision: mismatched tree: \['b'\]"):
        gf.deep.VIFA(lambda params, batch: batch, tree, 2, {"a": 1.0, "b": np.ones(2, np.float32)})
    with pytest.raises(ValueError, match=r"prior_precision='evidence'.*'fan-in'"):
        gf.deep.SWAG(lambda params, batch: batch, tree, 2, "evidence")


def test_shares_of_the_training():
    method = gf.deep.SWAG(LINEAR, start(), 2, ALPHA, batch_size=20)
    method.fit((X, Y), steps=200)
    assert method.collected == 25
    method.fit((X, Y), epochs=20)  # 60 steps: 45 of them burn in, and one in a hundred is every one
    assert method.collected == 15
    method.fit((X, Y), steps=70, resume=True)
    assert method.collected == 25
    for share in ({"burn_in": 1.5}, {"every": -0.1}, {"every": 0}):
        with pytest.raises(ValueError, match=next(iter(share))):
            gf.deep.SWAG(LINEAR, start(), 2, ALPHA, **share)


def test_rates_before_and_after_the_burn_in_may_be_schedules():
    """In NumPy, with one batch of all rows."""
    rates = {"number": 0.05, "schedule": lambda step: 0.04 / (1.0 + step)}
    for before in rates.values():
        for later in rates.values():
            method = gf.deep.SWAG(
                LINEAR, start(), 2, ALPHA, batch_size=60, optimizer="sgd", burn_in=6, every=1, burn_in_rate=before,
                learning_rate=later,
            )  # fmt: skip
            method.fit((X, Y), steps=10)
            theta = np.zeros(3)
            for step in range(10):
                rate = before if step < 6 else later
                slope = (-X.T @ (Y - X @ theta) / NOISE**2 + ALPHA * theta) / len(Y)
                theta = theta - (rate(step) if callable(rate) else rate) * slope
            np.testing.assert_allclose(method.variables["theta"], theta, rtol=1e-4)


@pytest.mark.parametrize(
    ("other", "match"),
    [
        ({"prior_precision": 3.0}, r"prior_precision=3\.0: the saved training had 2\.0"),
        ({"learning_rate": 0.002}, r"rates=.*0\.002.*had .*0\.01"),
        ({"temperature": 0.5}, r"temperature=0\.5: the saved training had None"),
        ({"prior_mean": np.ones(3)}, "prior_mean="),
    ],
)
def test_a_training_goes_on_with_its_own_settings_only(other, match, tmp_path):
    options = {"prior_precision": ALPHA, "rank": 1, "n_samples": 2, "batch_size": 60}
    method = gf.deep.VIFA(LINEAR, start(), **options)
    method.fit((X, Y), steps=2)
    method.save(tmp_path / "training")
    twin = gf.deep.VIFA(LINEAR, start(), **(options | other))
    with pytest.raises(ValueError, match=match):
        twin.restore(tmp_path / "training")
    assert twin.steps == 0
