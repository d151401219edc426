"""What follows from the tree and the data where no option is given."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import gaussfold as gf
from gaussfold.deep import evidence, scales, summary, temperature
from gaussfold.deep.summary import NotSettledWarning
from tests.deep.problems import ALPHA, LINEAR, hidden, hidden_start, linear, start

X, Y, EXACT = linear()
DATA = (X, Y)
WIDE = gf.deep.log_likelihood(hidden, "gaussian")


def noisy_start():
    return gf.deep.with_noise(hidden_start(3))


def test_scales_are_those_of_the_first_weights_whichever_axis_holds_the_inputs():
    rng = np.random.default_rng(0)
    wide = 0.3 * rng.standard_normal((40, 7))
    tree = {"b": np.zeros(7), "t": wide.T, "w": wide, "z": np.zeros((25, 2))}
    tree = {name: leaf.astype(np.float32) for name, leaf in tree.items()}
    layout = gf.deep.layout_of(tree)
    found = dict(zip(layout.names, scales.of_leaves(layout, layout.flatten(tree)), strict=True))
    root = np.sqrt(np.mean(wide**2))
    np.testing.assert_allclose([found["['w']"], found["['t']"], found["['z']"]], [root, root, 0.2], rtol=1e-5)
    np.testing.assert_allclose(found["['b']"], (root * root * 0.2) ** (1 / 3), rtol=1e-5)


def test_evidence_is_where_the_bound_is_largest():
    """The derivative of the bound in log α, with the Gamma prior's, is zero there."""
    layout = gf.deep.layout_of({"a": np.ones((2, 3), np.float32), "network": {"log_std": np.zeros((), np.float32)}})
    rng = np.random.default_rng(1)
    variables = {"mean": rng.standard_normal(7), "factors": rng.standard_normal((2, 7)), "log_psi": rng.normal(size=7)}
    scale = np.array([0.5, 1.0])
    told = evidence.told(layout, scale)
    found = evidence.renewed(layout, jax.tree.map(jnp.asarray, variables), 0.25, told, jnp.asarray([9.0, 1.0]))
    cov = variables["factors"].T @ variables["factors"] + np.diag(np.exp(variables["log_psi"]))
    second = ((variables["mean"] - 0.25) ** 2 + np.diag(cov))[:6].sum()
    alpha, nu = float(found[0]), evidence.WORTH
    slope = 0.5 * 6 - 0.5 * alpha * second + 0.5 * nu - 0.5 * alpha * nu * scale[0] ** 2
    assert abs(slope) < 1e-4
    assert float(found[1]) == 1.0  # a noise level's prior is not learned


def test_the_prior_is_learned_with_the_posterior_and_resumed(tmp_path):
    make = lambda: gf.deep.VIFA(LINEAR, start(), rank=1, batch_size=20, seed=2)  # noqa: E731
    whole = make()
    posterior = whole.fit(DATA, steps=400)
    inner = whole.variables
    moved = evidence.renewed(
        whole.layout, inner["variables"], whole.prior_mean, evidence.told(whole.layout, whole.scales), inner["prior"]
    )
    np.testing.assert_allclose(inner["prior"], moved, rtol=0.05)  # of eight steps before
    first = make()
    first.fit(DATA, steps=123)
    first.save(tmp_path / "half")
    again = make().restore(tmp_path / "half").fit(DATA, steps=400, resume=True)
    np.testing.assert_array_equal(again.belief.mean, posterior.belief.mean)
    np.testing.assert_array_equal(again.belief.psi, posterior.belief.psi)


@pytest.mark.parametrize("rank", [0, 1, 10, 50])
def test_factors_do_no_harm(rank):
    params = hidden_start(3, 12)
    method = gf.deep.VIFA(gf.deep.log_likelihood(hidden, gf.likelihoods.Gaussian(0.7)), params, rank, seed=1)
    found = method.fit(DATA, steps=600).predict(hidden, X)
    assert method.skipped == 0
    assert -found.log_prob(Y).mean() < 1.3  # the best there is has 1.06 in expectation


def test_an_epoch_is_as_many_steps_for_every_method():
    for make in (gf.deep.VIFA, gf.deep.SWAG, gf.deep.SLANG):
        method = make(LINEAR, start(), 2, batch_size=20)
        method.fit(DATA, epochs=40)
        assert method.steps == 40 * 3


def test_batches_are_smaller_where_rows_are_few():
    sizes = [gf.deep.VIFA(LINEAR, start()).course(rows, 1, None).size for rows in (9, 60, 1280, 10**5)]
    assert sizes == [9, 16, 40, 100]


def test_shares_of_a_training_are_of_its_whole_length(tmp_path):
    make = lambda: gf.deep.SWAG(LINEAR, start(), 3, ALPHA, batch_size=20, burn_in=0.5, every=0.05)  # noqa: E731
    method = make()
    whole = method.fit(DATA, steps=100)
    assert (method.burn_in_steps, method.every_steps, method.collected) == (50, 5, 10)
    first = make()
    first.fit(DATA, steps=100, stop=73)
    assert first.steps == 73
    first.save(tmp_path / "part")
    second = make().restore(tmp_path / "part")
    with pytest.raises(ValueError, match=r"steps=140: the training was begun for 100.*stop="):
        second.fit(DATA, steps=140, resume=True)
    again = second.fit(DATA, steps=100, resume=True)
    np.testing.assert_array_equal(again.belief.mean, whole.belief.mean)
    np.testing.assert_array_equal(again.belief.psi, whole.belief.psi)
    for wrong in ({"burn_in": 1.0}, {"every": 0.0}, {"burn_in": -0.1}, {"every": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            gf.deep.SWAG(LINEAR, start(), 3, **wrong)


def test_rates_before_and_after_the_burn_in_may_each_be_a_schedule():
    """A schedule that is constant is that constant, in either place, whatever stands in the other."""
    options = {"rank": 2, "prior_precision": ALPHA, "optimizer": "sgd", "batch_size": 60, "burn_in": 6, "every": 1}
    plain = gf.deep.SWAG(LINEAR, start(), learning_rate=0.05, burn_in_rate=0.2, **options).fit(DATA, steps=20)
    five, fifth = optax.constant_schedule(0.05), optax.constant_schedule(0.2)
    for after, before in ((0.05, fifth), (five, 0.2), (five, fifth)):
        found = gf.deep.SWAG(LINEAR, start(), learning_rate=after, burn_in_rate=before, **options).fit(DATA, steps=20)
        np.testing.assert_array_equal(found.belief.mean, plain.belief.mean)
    still = gf.deep.SWAG(LINEAR, start(), learning_rate=0.05, **options).fit(DATA, steps=20)
    assert np.abs(still.belief.mean - plain.belief.mean).max() > 1e-3


def test_a_colder_posterior_has_to_be_better_by_more_than_chance():
    rng = np.random.default_rng(0)
    base = rng.standard_normal(400)
    assert temperature.best({1.0: base, 0.1: base + 0.01 + rng.standard_normal(400)}) == 1.0
    assert temperature.best({1.0: base, 0.1: base + 0.3 + rng.standard_normal(400)}) == 0.1
    keep, out = temperature.held_out(3, 60)
    assert len(out) == 6
    assert sorted([*keep, *out]) == list(range(60))


def test_a_temperature_scales_the_likelihood_and_is_kept(tmp_path):
    """Normal noise at temperature T is normal noise of T times the variance."""
    cold = gf.deep.VIFA(LINEAR, start(), 1, ALPHA, batch_size=20, temperature=0.25).fit(DATA, steps=300)
    twin = gf.deep.log_likelihood(LINEAR.apply, gf.likelihoods.Gaussian(0.5 * LINEAR.likelihood.std))
    same = gf.deep.VIFA(twin, start(), 1, ALPHA, batch_size=20).fit(DATA, steps=300)
    np.testing.assert_allclose(cold.belief.mean, same.belief.mean, rtol=1e-3)
    np.testing.assert_allclose(cold.belief.psi, same.belief.psi, rtol=1e-2)
    method = gf.deep.VIFA(WIDE, noisy_start(), batch_size=20)
    method.fit(DATA, steps=40)
    chosen = method.summary().temperature
    assert chosen in temperature.CANDIDATES
    method.save(tmp_path / "training")
    other = gf.deep.VIFA(WIDE, noisy_start(), batch_size=20).restore(tmp_path / "training")
    assert other.summary().temperature == chosen
    for wrong in (0.0, "cold"):
        with pytest.raises(ValueError, match="temperature"):
            gf.deep.VIFA(LINEAR, start(), temperature=wrong)


def test_a_summary_says_what_has_not_settled_and_a_warning_too():
    method = gf.deep.VIFA(LINEAR, start(), 0, {"w": 3.0}, batch_size=60, init_std=0.01, learning_rate=0.01)
    with pytest.warns(NotSettledWarning, match=r"after 60 steps the objective still falls, by .* % in the last tenth"):
        method.fit(DATA, steps=60)
    found = method.summary()
    assert not found.settled
    assert found.fall > 0.01
    assert found.prior_precision == {"['w']": 3.0}
    assert "not settled" in str(found)
    assert "60 steps" in str(found)
    assert repr(method) == "VIFA(3 parameters, 60 steps)"
    method.fit(DATA, steps=12)
    assert "fewer than 50 good steps do not tell how it falls: not settled" in str(method.summary())
    flat = summary.last_tenth(100.0 + np.random.default_rng(0).standard_normal(500))
    assert flat[2]
    assert summary.last_tenth(np.full(80, np.nan))[2] is False


def test_a_trained_network_stays_where_it_is():
    trained = {"w": EXACT.mean.astype(np.float32)}
    method = gf.deep.VIFA.from_trained(LINEAR, trained, 1, prior_precision=ALPHA, batch_size=20)
    found = method.fit(DATA).belief
    assert method.steps == 30 * 3
    np.testing.assert_allclose(found.mean, EXACT.mean, atol=0.05)
    swag = gf.deep.SWAG.from_trained(LINEAR, trained, 3, prior_precision=ALPHA, batch_size=20)
    np.testing.assert_allclose(swag.fit(DATA).belief.mean, EXACT.mean, atol=0.05)
    assert swag.burn_in_steps == 0


def test_a_number_per_leaf_is_a_prior():
    params = {"a": np.ones((2, 2), np.float32), "b": np.zeros(3, np.float32)}
    method = gf.deep.VIFA(lambda p, batch: 0.0, params, prior_precision={"a": 1e6, "b": np.array([1.0, 2.0, 3.0], "f")})
    np.testing.assert_allclose(method.prior_precision, [1e6] * 4 + [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="prior_precision: mismatched tree"):
        gf.deep.VIFA(lambda p, batch: 0.0, params, prior_precision={"a": 1.0})
    with pytest.raises(ValueError, match=r"prior_precision='wide': .*'evidence'"):
        gf.deep.VIFA(lambda p, batch: 0.0, params, prior_precision="wide")
    with pytest.raises(ValueError, match="prior_precision='evidence'"):
        gf.deep.SWAG(lambda p, batch: 0.0, params, prior_precision="evidence")


@pytest.mark.parametrize(
    ("given", "other", "match"),
    [
        ({}, {"prior_precision": 3.0}, r"prior_precision=3\.0: the saved training had 2\.0"),
        ({}, {"prior_mean": 0.5}, "prior_mean"),
        ({}, {"learning_rate": 0.2}, "learning_rate"),
        ({}, {"temperature": 0.5}, "temperature"),
        ({"prior_precision": np.array([1.0, 2.0, 3.0])}, {"prior_precision": np.array([1.0, 2.0, 4.0])}, "crc32"),
    ],
)
def test_a_training_is_not_restored_with_other_settings(given, other, match, tmp_path):
    make = lambda **options: gf.deep.VIFA(LINEAR, start(), 1, **({"prior_precision": 2.0} | options))  # noqa: E731
    method = make(**given)
    method.fit(DATA, steps=3)
    method.save(tmp_path / "training")
    second = make(**(given | other))
    with pytest.raises(ValueError, match=match):
        second.restore(tmp_path / "training")
    assert second.steps == 0
