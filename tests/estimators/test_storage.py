"""Saved and loaded, a model goes on bit for bit."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gaussfold as gf
from tests.estimators.streams import MODELS, labels, rows, same_state, weights
from tests.estimators.test_inputs import FRAMES

X = rows()
WEIGHT = weights(60)


@pytest.mark.parametrize("name", MODELS)
def test_save_and_resume_is_exact(name, tmp_path):
    y = labels(name, X)
    model = clone(MODELS[name]).fit(X[:35], y[:35], sample_weight=WEIGHT[:35], refine=0)
    model.sample_posterior(3)  # the generator is under way
    before = model.state()
    gf.save(model, tmp_path / "model")
    assert all(np.array_equal(before[key], value) for key, value in model.state().items())  # saving changes nothing
    loaded = gf.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    assert same_state(loaded, model)
    for one in (model, loaded):
        one.partial_fit(X[35:], y[35:], sample_weight=WEIGHT[35:])
    assert same_state(loaded, model)
    assert loaded.n_observations_ == np.count_nonzero(WEIGHT)
    assert loaded.progressive_log_loss_ == model.progressive_log_loss_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.sample_latent(X, 4), model.sample_latent(X, 4))
    if model.forgetting < 1:
        assert same_state(loaded.forget(2.5), model.forget(2.5))


@pytest.mark.parametrize("y", [["no", "yes"], [False, True], [3, 7], [-1.0, 0.5 + 0.5], ["a", "b", "ü"]])
def test_classes_of_every_kind(y, tmp_path):
    model = gf.StreamingClassifier(prior_std=1.0, scale=False).fit(X[: len(y)], y, refine=0)
    gf.save(model, tmp_path / "model")
    loaded = gf.load(tmp_path / "model")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_names_and_array_parameters(tmp_path):
    model = gf.StreamingRegressor(
        prior_std=np.array([0.7, 0.1, 3.0, 1 / 3]),
        prior_mean=[0.1, -0.2, 0.3, 1e-17],
        rule=gf.rules.EP(alpha=0.5),
        at=gf.rules.Extragradient(form="printed"),
        block_size=np.int64(7),
        forgetting=np.float64(0.97),
        random_state=np.random.default_rng(4),
        noise_std=1.0,
        scale=False,
    )
    model.fit(FRAMES["polars"](X), labels("gaussian", X), refine=0)
    gf.save(model, tmp_path / "model")
    loaded = gf.load(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    assert (loaded.rule, loaded.at) == (model.rule, model.at)
    np.testing.assert_array_equal(loaded.prior_std, model.prior_std)
    np.testing.assert_array_equal(loaded.prior_mean, model.prior_mean)
    for one in (model, loaded):
        one.partial_fit(FRAMES["pyarrow"](X), labels("gaussian", X))
    assert same_state(loaded, model)
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(FRAMES["pandas"](X).rename(columns={"age": "years"}))


def test_a_model_that_has_learned_nothing_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        gf.save(gf.StreamingClassifier(prior_std=1.0, scale=False), tmp_path / "model")
