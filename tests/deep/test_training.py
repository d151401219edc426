"""The loop: determinism, resuming, steps that are not numbers, and arguments that cannot be."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import gaussfold as gf
from gaussfold.deep import batches
from gaussfold.deep.vifa import THESIS
from tests.deep.problems import ALPHA, LINEAR, hidden, hidden_start, linear, start

X, Y, EXACT = linear()
DATA = (X, Y)


def vifa(function=LINEAR, params=None, **options):
    settings = {"rank": 1, "prior_precision": ALPHA, "n_samples": 4, "batch_size": 20, "seed": 3}
    return gf.deep.VIFA(function, start() if params is None else params, **(THESIS | settings | options))


METHODS = {
    "VIFA": vifa,
    "VIFA averaged": lambda: vifa(average=3.0, samples="qmc", share_batch=True),
    "SLANG": lambda: gf.deep.SLANG(LINEAR, start(), rank=1, prior_precision=ALPHA, batch_size=20),
    "SWAG": lambda: gf.deep.SWAG(LINEAR, start(), rank=2, prior_precision=ALPHA, batch_size=20, burn_in=3, every=2),
    "SWAG windows": lambda: gf.deep.SWAG(
        LINEAR, start(), rank=2, prior_precision=ALPHA, batch_size=20, burn_in=3, every=4, windows=True
    ),
    "FactorIterates": lambda: gf.deep.FactorIterates(
        LINEAR,
        start(),
        rank=1,
        prior_precision=ALPHA,
        batch_size=20,
        burn_in=0,
        every=1,
        method="online-em",
        method_options={"warm_up": 10},
    ),
}


def same(one, two):
    for name, array in one.belief.state().items():
        np.testing.assert_array_equal(array, two.belief.state()[name], err_msg=name)


@pytest.mark.parametrize("name", METHODS)
def test_deterministic_and_resumed_as_if_unbroken(name, tmp_path):
    whole = METHODS[name]()
    posterior = whole.fit(DATA, steps=60)
    again = METHODS[name]()
    same(again.fit(DATA, steps=60), posterior)
    same(again.fit(DATA, steps=60), posterior)  # fit forgets
    first = METHODS[name]()
    first.fit(DATA, steps=37)
    first.save(tmp_path / "training")
    second = METHODS[name]().restore(tmp_path / "training")
    assert second.steps == 37
    same(second.fit(DATA, steps=60, resume=True), posterior)
    np.testing.assert_array_equal(second.losses, whole.losses)
    same(first.fit(DATA, steps=60, resume=True), posterior)  # saving changed nothing


def test_another_seed_is_another_posterior():
    one, two = vifa().fit(DATA, steps=20), vifa(seed=4).fit(DATA, steps=20)
    assert not np.array_equal(one.belief.mean, two.belief.mean)


def test_epochs_are_passes_over_the_data():
    method = vifa()
    method.fit(DATA, epochs=8)
    assert method.steps == 8 * 3  # three batches an epoch, whatever a step does with them
    shared = vifa(share_batch=True)
    shared.fit(DATA, epochs=8)
    assert shared.steps == 8 * 3
    assert shared.losses.shape == (24,)


def test_an_epoch_shows_every_row_once_and_cuts_do_not_matter():
    rows = batches.batch_rows(5, 0, 39, 12, 4)
    assert all(sorted(epoch.ravel()) == list(range(12)) for epoch in rows.reshape(-1, 3, 4))
    np.testing.assert_array_equal(rows[7:19], batches.batch_rows(5, 7, 12, 12, 4))
    assert len(np.unique(rows.reshape(-1, 12), axis=0)) > 10
    late = 3 * (1 << 16)  # beyond what is shuffled together
    np.testing.assert_array_equal(batches.batch_rows(5, late, 9, 12, 4)[4:], batches.batch_rows(5, late + 4, 5, 12, 4))


def troubled(params, batch):
    """NaN for a row whose label says so; as a sum, so that it spoils the batch."""
    X, y, bad = batch
    return jnp.where(bad.any(), jnp.nan, LINEAR(params, (X, y)).sum())


def test_bad_steps_are_skipped_and_counted():
    bad = np.zeros(60, bool)
    bad[7] = True
    method = vifa(troubled, n_samples=1)
    posterior = method.fit((X, Y, bad), steps=90)
    assert method.skipped == 30 == np.isnan(method.losses).sum()  # one batch in three
    assert np.isfinite(posterior.belief.mean).all()


def test_too_many_bad_steps_in_a_row_name_the_step_and_keep_the_state(tmp_path):
    good, bad = np.zeros(60, bool), np.ones(60, bool)
    method = vifa(troubled, n_samples=1, max_bad_steps=7)
    method.fit((X, Y, good), steps=20)
    before = method.posterior
    with pytest.raises(gf.deep.TrainingError, match=r"step 26: .* not finite at 7 steps in a row"):
        method.fit((X, Y, bad), steps=5000, resume=True)
    same(method.posterior, before)
    assert method.steps == 27
    method.save(tmp_path / "training")
    second = vifa(troubled, n_samples=1, max_bad_steps=7).restore(tmp_path / "training")
    same(second.posterior, before)
    second.fit((X, Y, good), steps=40, resume=True)
    assert second.skipped == 7


OTHERS = {
    "SLANG": lambda: gf.deep.SLANG(troubled, start(), rank=1, prior_precision=ALPHA, batch_size=20, max_bad_steps=4),
    "SWAG": lambda: gf.deep.SWAG(
        troubled, start(), rank=2, prior_precision=ALPHA, batch_size=20, burn_in=0, every=1, max_bad_steps=4
    ),
    "FactorIterates": lambda: gf.deep.FactorIterates(
        troubled, start(), rank=1, prior_precision=ALPHA, batch_size=20, burn_in=0, every=1, max_bad_steps=4
    ),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_method_skips_bad_steps_and_keeps_what_it_had(name, tmp_path):
    good, bad = np.zeros(60, bool), np.ones(60, bool)
    one = np.arange(60) == 7
    method = OTHERS[name]()
    method.fit((X, Y, one), steps=30)
    assert method.skipped == 10 == np.isnan(method.losses).sum()
    before = method.posterior
    with pytest.raises(gf.deep.TrainingError, match=r"step 33: .* not finite at 4 steps in a row"):
        method.fit((X, Y, bad), steps=900, resume=True)
    same(method.posterior, before)
    method.save(tmp_path / "training")
    second = OTHERS[name]().restore(tmp_path / "training")
    same(second.posterior, before)
    second.fit((X, Y, good), steps=40, resume=True)
    assert second.skipped == 14


def infinite_slope(params, batch):
    return LINEAR(params, batch) + jnp.sqrt(jnp.abs(params["w"][0]) * 0.0)


def test_an_infinite_gradient_is_a_bad_step():
    with pytest.raises(gf.deep.TrainingError, match="step 9"):
        vifa(infinite_slope).fit(DATA, steps=50)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"rank": 4}, r"rank=4: .* 0 to 3"),
        ({"rank": -1}, "rank=-1"),
        ({"rank": 1.0}, r"rank=1\.0"),
        ({"prior_precision": 0.0}, r"prior_precision=0\.0: finite numbers > 0"),
        ({"prior_precision": -2.0}, r"prior_precision=-2\.0"),
        ({"prior_precision": np.array([1.0, -1.0, 1.0])}, r"prior_precision=-1\.0"),
        ({"prior_precision": {"v": np.ones(3, np.float32)}}, "prior_precision: mismatched tree"),
        ({"prior_mean": np.nan}, "prior_mean"),
        ({"n_samples": 0}, "n_samples=0"),
        ({"n_samples": 3, "samples": "antithetic"}, "n_samples=3: .* even"),
        ({"samples": "sobol"}, "samples='sobol'.*'qmc'"),
        ({"optimizer": "adamw"}, "optimizer='adamw'.*'adam'"),
        ({"optimizer": 3}, "optimizer=3"),
        ({"optimizer": optax.adam(0.1), "learning_rate": 0.1}, "learning_rate"),
        ({"learning_rate": 0.0}, r"learning_rate=0\.0"),
        ({"learning_rate": {"mean": 0.1}}, "learning_rate: groups"),
        ({"max_grad_norm": -1.0}, "max_grad_norm"),
        ({"init_std": 0.0}, "init_std"),
        ({"init_factors": np.ones((3, 2))}, r"init_factors: shape \(3, 2\)"),
        ({"average": -1.0}, "average"),
        ({"max_bad_steps": 0}, "max_bad_steps=0"),
        ({"seed": -1}, "seed=-1"),
        ({"params": {"w": np.arange(3)}}, r"leaf \['w'\] is an array of int32"),
        ({"params": {"w": np.array([0.0, np.nan], np.float32)}}, r"leaf \['w'\] has NaN"),
        ({"function": "gaussian"}, "log_likelihood='gaussian': a function of"),
    ],
)
def test_bad_construction(arguments, match):
    with pytest.raises(ValueError, match=match):
        vifa(**arguments)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ((X[:0], Y[:0]), "empty batch"),
        ((X, Y[:5]), "numbers of rows"),
        ((X, 3.0), "numbers of rows"),
        ((), "numbers of rows"),
        ((X[:10], Y[:10]), "batch_size=20: .*1 to 10"),
    ],
)
def test_bad_data(data, match):
    method = vifa()
    with pytest.raises(ValueError, match=match):
        method.fit(data)
    with pytest.raises(ValueError, match="call fit"):
        _ = method.posterior
    with pytest.raises(ValueError, match="call fit"):
        method.save("nowhere")


def test_bad_lengths_and_batch_sizes():
    for arguments, match in (({"steps": 0}, "steps=0"), ({"epochs": -1}, "epochs"), ({"steps": 1, "epochs": 1}, "one")):
        with pytest.raises(ValueError, match=match):
            vifa().fit(DATA, **arguments)
    with pytest.raises(ValueError, match="batch_size=0: empty batch"):
        vifa(batch_size=0).fit(DATA)


def test_log_likelihoods_that_are_means_or_not_numbers_are_refused():
    with pytest.raises(ValueError, match="their mean; return one value per row"):
        vifa(lambda params, batch: LINEAR(params, batch).mean()).fit(DATA)
    with pytest.raises(ValueError, match=r"shape \(20, 1\)"):
        vifa(lambda params, batch: LINEAR(params, batch)[:, None]).fit(DATA)
    with pytest.raises(ValueError, match="one floating point number per row"):
        vifa(lambda params, batch: (LINEAR(params, batch),)).fit(DATA)


def test_restoring_something_else(tmp_path):
    method = vifa()
    method.fit(DATA, steps=3)
    method.save(tmp_path / "training")
    with pytest.raises(ValueError, match="rank=0: the saved training had 1"):
        vifa(rank=0).restore(tmp_path / "training")
    with pytest.raises(ValueError, match="mismatched tree"):
        vifa(params={"v": np.zeros(3, np.float32)}).restore(tmp_path / "training")
    with pytest.raises(ValueError, match="holds a VIFA, not a training of SWAG"):
        METHODS["SWAG"]().restore(tmp_path / "training")
    method.posterior.save(tmp_path / "posterior")
    with pytest.raises(ValueError, match="holds a Posterior"):
        vifa().restore(tmp_path / "posterior")


def test_any_optax_optimiser_and_schedules():
    plain = vifa(optimizer="sgd", learning_rate=1e-3).fit(DATA, steps=30)
    same(vifa(optimizer=optax.sgd(1e-3), learning_rate=None).fit(DATA, steps=30), plain)
    constant = vifa(optimizer="sgd", learning_rate=optax.constant_schedule(1e-3)).fit(DATA, steps=30)
    same(constant, plain)
    groups = dict.fromkeys(("mean", "factors", "log_psi"), 1e-3)
    same(vifa(optimizer="sgd", learning_rate=groups).fit(DATA, steps=30), plain)
    still = vifa(optimizer="sgd", learning_rate=groups | {"factors": 1e-12}).fit(DATA, steps=30)
    assert np.abs(still.belief.F - vifa(init_std=0.1).initial()["variables"]["factors"].T).max() < 1e-6


def test_gradients_are_clipped_group_by_group():
    """One step of plain descent moves no group by more than rate × limit."""
    method = vifa(optimizer="sgd", learning_rate=1.0, max_grad_norm=0.01)
    before = method.initial()["variables"]
    method.fit(DATA, steps=1)
    after = method.variables["variables"]
    for name in ("mean", "factors", "log_psi"):
        np.testing.assert_allclose(np.linalg.norm(after[name] - before[name]), 0.01, rtol=1e-3)


def test_a_bar_can_be_shown(capsys):
    vifa().fit(DATA, steps=10, progress=True)
    assert "VIFA" in capsys.readouterr().err
    vifa().fit(DATA, steps=10)
    assert capsys.readouterr().err == ""


def test_float64_parameters_train_in_float64_without_a_global_switch():
    with jax.enable_x64(True):
        posterior = vifa(params={"w": jnp.zeros(3, jnp.float64)}).fit((X.astype(float), Y.astype(float)), steps=5)
        assert posterior.belief.state()["mean"].dtype == np.float64
        assert posterior.mean["w"].dtype == jnp.float64
    assert not jax.config.jax_enable_x64
    assert vifa().fit(DATA, steps=5).belief.state()["mean"].dtype == np.float32


def test_networks_in_a_tree():
    function = gf.deep.log_likelihood(hidden, "gaussian")
    params = gf.deep.with_noise(hidden_start(3), std=0.5)
    posterior = vifa(function, params).fit(DATA, steps=10)
    look = posterior.predict(hidden, X, 20)
    assert look.noise.shape == (20,)
    assert np.isfinite(look.log_prob(Y)).all()
    np.testing.assert_allclose(
        look.std**2, look.epistemic_std**2 + np.exp(2 * look.noise.astype(float)).mean(), rtol=1e-5
    )
