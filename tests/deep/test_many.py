"""Several trainings in one compiled loop."""

import jax.numpy as jnp
import numpy as np
import pytest

import gaussfold as gf
from gaussfold.deep import swag as swag_module
from gaussfold.deep import vifa
from tests.deep.problems import ALPHA, LINEAR, linear, start

X, Y, _ = linear()


def make(config, fold):
    return gf.deep.VIFA(
        LINEAR,
        start(),
        rank=1,
        seed=fold,
        batch_size=20,
        **(vifa.THESIS | {"prior_precision": config["alpha"], "learning_rate": config["rate"]}),
    )


def test_trainings_side_by_side_are_those_one_by_one():
    configs = [{"rate": 0.02, "alpha": ALPHA}, {"rate": 0.05, "alpha": 1.0}]
    data = [(X[:40], Y[:40]), (X[20:], Y[20:])]
    methods = [make(config, fold) for fold, config in enumerate(configs)]
    together = gf.deep.fit_many(methods, data, steps=30)
    for fold, (config, part) in enumerate(zip(configs, data, strict=True)):
        alone = make(config, fold).fit(part, steps=30)
        np.testing.assert_allclose(together[fold].belief.mean, alone.belief.mean, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(together[fold].belief.psi, alone.belief.psi, rtol=1e-3)
        assert methods[fold].losses.shape == (30,)


def test_what_cannot_train_side_by_side():
    two = [make({"rate": 0.02, "alpha": 1.0}, 0) for _ in range(2)]
    with pytest.raises(ValueError, match="2 and 1"):
        gf.deep.fit_many(two, [(X, Y)])
    with pytest.raises(ValueError, match=r"numbers of rows \[60, 59\]"):
        gf.deep.fit_many(two, [(X, Y), (X[1:], Y[1:])])
    other = gf.deep.VIFA(LINEAR, start(), rank=2)
    with pytest.raises(ValueError, match="differ in more than numbers"):
        gf.deep.fit_many([two[0], other], [(X, Y), (X, Y)])


def troubled(params, batch):
    """NaN for a batch with a row that is marked."""
    X, y, bad = batch
    return jnp.where(bad.any(), jnp.nan, LINEAR(params, (X, y)).sum())


def test_bad_steps_collect_nothing_and_a_failure_does_not_disturb_the_others():
    def swag():
        return gf.deep.SWAG(
            troubled,
            start(),
            2,
            ALPHA,
            batch_size=20,
            max_bad_steps=4,
            **(swag_module.THESIS | {"learning_rate": 0.05, "burn_in": 7, "every": 2}),
        )

    good, one, rest = np.zeros(60, bool), np.arange(60) == 7, np.ones(60, bool)
    methods = [swag() for _ in range(3)]
    found = gf.deep.fit_many(methods, [(X, Y, marked) for marked in (good, rest, one)], steps=61)
    assert found[1] is None
    assert (methods[1].steps, methods[1].skipped, methods[1].collected) == (4, 4, 0)
    for number, marked in ((0, good), (2, one)):
        alone = swag()
        np.testing.assert_allclose(
            found[number].belief.mean, alone.fit((X, Y, marked), steps=61).belief.mean, rtol=1e-5
        )
        np.testing.assert_allclose(found[number].belief.psi, alone.posterior.belief.psi, rtol=1e-3)
        assert methods[number].collected == alone.collected
    due = np.arange(61) >= 7
    due &= (np.arange(61) - 6) % 2 == 0
    assert methods[0].collected == due.sum()
    assert methods[2].collected == (due & np.isfinite(methods[2].losses)).sum() < due.sum()
