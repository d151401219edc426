"""A training as pure functions: the same numbers as ``fit``, under jit and scan, through a file of arrays."""

import jax
import numpy as np
import pytest

import gaussfold as gf
from tests.deep.problems import LINEAR, hidden, hidden_start, linear, start

X, Y, _ = linear(40)


@pytest.mark.parametrize("method", [gf.deep.VIFA, gf.deep.SWAG, gf.deep.SLANG, gf.deep.MAP])
def test_a_loop_outside_is_fit(method):
    batches = [(X[i : i + 10], Y[i : i + 10]) for i in range(0, 40, 10)] * 9
    wanted = method(LINEAR, start()).fit(iter(batches), n_rows=40, steps=36)
    init, step, posterior = method(LINEAR, start()).stepper(40, steps=36)
    state, step = init(), jax.jit(step)
    losses = []
    for batch in batches:
        state, loss = step(state, batch)
        losses.append(float(loss))
    found = posterior(jax.tree.map(np.asarray, state))  # as a checkpoint would give it back
    np.testing.assert_allclose(found.belief.mean, wanted.belief.mean, rtol=1e-5)
    np.testing.assert_allclose(found.belief.variance(), wanted.belief.variance(), rtol=1e-4)
    assert np.isfinite(losses).all()


def test_batches_of_their_own_are_dealt_out():
    model = gf.deep.VIFA(LINEAR, start(), n_samples=2, share_batch=False)
    init, step, _ = model.stepper(40)
    state, loss = step(init(), (X[:20], Y[:20]))
    assert np.isfinite(loss)
    with pytest.raises(ValueError, match="batch: 15 rows; a step looks at 2 batches of equal size"):
        step(state, (X[:15], Y[:15]))


def test_one_pass_by_hand_is_partial_fit():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(64, 2)).astype(np.float32)
    y = rng.integers(0, 3, 64)
    make = lambda: gf.deep.LRVGA(hidden, "softmax", hidden_start(outputs=3), rank=4)  # noqa: E731
    model = make()
    init, step, posterior = make().stepper()
    batches = X.reshape(4, 16, 2), y.reshape(4, 16)
    state, losses = jax.lax.scan(step, init(), batches)
    wanted = model.partial_fit(X, y)
    np.testing.assert_allclose(posterior(state).belief.mean, wanted.posterior.belief.mean, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(losses.mean(), model.progressive_log_loss, rtol=1e-4)
    bad = X[:16].copy()
    bad[3] = np.nan
    after, loss = step(state, (bad, y[:16]))
    assert np.isnan(loss)
    np.testing.assert_array_equal(after.mean, state.mean)


def test_what_cannot_be_stepped_says_so():
    with pytest.raises(ValueError, match="steps=None: burn_in is a share"):
        gf.deep.SWAG(LINEAR, start()).stepper(40)
    with pytest.raises(ValueError, match="linearise='samples': 'mean' is needed"):
        gf.deep.LRVGA(hidden, "softmax", hidden_start(outputs=3), linearise="samples").stepper()
    init, _, posterior = gf.deep.SWAG(LINEAR, start(), burn_in=0, every=1).stepper(40)
    with pytest.raises(ValueError, match="state: 0 samples were collected"):
        posterior(init())
