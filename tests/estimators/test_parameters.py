"""Every parameter is checked when learning begins, in one place, and named."""

import numpy as np
import pytest
from sklearn.base import clone

from gaussfold import StreamingClassifier, StreamingPoissonRegressor, StreamingRegressor
from tests.estimators.streams import MODELS, labels, rows, same_state

X = rows(12)
ESTIMATORS = {
    StreamingClassifier: labels("binary", X),
    StreamingRegressor: labels("gaussian", X),
    StreamingPoissonRegressor: labels("poisson", X),
}
SHARED = [
    ({"covariance": "diagonal"}, "covariance='diagonal' is not available yet"),
    ({"covariance": "dense"}, "covariance must be one of 'full', 'lowrank', 'diagonal', got 'dense'"),
    ({"rank": 0}, "rank must be a whole number >= 1, got 0"),
    ({"rule": "magic"}, "rule.*magic"),
    ({"at": "future"}, "at.*future"),
    ({"coupling": "loose"}, "coupling must be one of"),
    ({"prior_std": 0.0}, "prior_std must be > 0, got 0.0"),
    ({"prior_std": -0.7}, "prior_std must be > 0, got -0.7"),
    ({"prior_std": [1.0, 1.0, -2.0, 0.0]}, "prior_std must be > 0, got -2.0 at index 2"),
    ({"prior_std": [1.0, 1.0]}, r"prior_std has shape \(2,\).*\(4,\)"),
    ({"prior_std": np.inf}, "prior_std must be finite, got inf"),
    ({"prior_std": "wide"}, "prior_std must be a number or one per feature, got 'wide'"),
    ({"prior_mean": [0.0, np.nan, 0.0, 0.0]}, "prior_mean must be finite, got nan at index 1"),
    ({"prior_mean": np.zeros((4, 1))}, r"prior_mean has shape \(4, 1\)"),
    ({"intercept_std": 0.0}, "intercept_std must be > 0, got 0.0"),
    ({"forgetting": 0.0}, r"forgetting must be in \(0, 1\], got 0.0"),
    ({"forgetting": 1.01}, r"forgetting must be in \(0, 1\]"),
    ({"forgetting": np.nan}, "forgetting must be a finite number"),
    ({"drift_std": -0.1}, "drift_std must be >= 0"),
    ({"drift_std": 0.1, "forgetting": 0.9}, "forgetting=0.9 and drift_std=0.1 are alternatives"),
    ({"tick": "hourly"}, "tick must be one of 'observation', 'clock', got 'hourly'"),
    ({"fit_intercept": "yes"}, "fit_intercept must be True or False"),
    ({"block_size": 0}, "block_size must be a whole number >= 1"),
    ({"block_size": 2.5}, "block_size must be a whole number >= 1, got 2.5"),
    ({"random_state": "lucky"}, "random_state must be a whole number >= 0, got 'lucky'"),
    ({"random_state": -1}, "random_state must be a whole number >= 0"),
]
OWN = [
    (StreamingClassifier, {"link": "cauchit"}, "link='cauchit'"),
    (StreamingClassifier, {"expectation": "guess"}, "expectation='guess'"),
    (StreamingPoissonRegressor, {"rule": "quadratic"}, "rule='quadratic' needs a quadratic bound"),
    (StreamingRegressor, {"df": 3.0, "rule": "vi", "at": "prior"}, "not log-concave.*use at='posterior'"),
    (StreamingRegressor, {"noise_std": 0.0}, "noise_std must be > 0"),
    (StreamingRegressor, {"noise_std": "guess"}, "noise_std must be one of 'learn'"),
    (StreamingRegressor, {"df": -1.0}, "df must be > 0"),
    (StreamingRegressor, {"df": 4.0, "noise_std": "learn"}, "df=4.0 needs a known scale"),
    (StreamingRegressor, {"noise_guess": 0.0}, "noise_guess must be > 0"),
    (StreamingRegressor, {"noise_guess_worth": 0.0}, "noise_guess_worth must be > 0"),
    (StreamingPoissonRegressor, {"dispersion": 0.0}, "dispersion must be > 0"),
    (StreamingPoissonRegressor, {"target": "sum"}, "target must be one of 'count', 'rate'"),
    (StreamingPoissonRegressor, {"target": "rate", "dispersion": 2.0}, "target='rate' needs dispersion=None"),
]


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [*((kind, *case) for kind in ESTIMATORS for case in SHARED), *OWN],
)
def test_bad_parameters_are_named(kind, parameters, message):
    for learn in ("fit", "partial_fit"):
        model = kind(**parameters)
        with pytest.raises(ValueError, match=message):
            getattr(model, learn)(X, ESTIMATORS[kind])
        assert set(vars(model)) == set(model.get_params())  # nothing was left behind


@pytest.mark.parametrize("refine", [-1, 1.5, None])
def test_bad_refine(refine):
    with pytest.raises(ValueError, match="refine must be a whole number >= 0"):
        StreamingRegressor().fit(X, ESTIMATORS[StreamingRegressor], refine=refine)


@pytest.mark.parametrize("drift", [{"forgetting": 0.97}, {"drift_std": 0.1}])
def test_refine_needs_a_standing_target(drift):
    with pytest.raises(ValueError, match=r"refine=3 needs forgetting=1\.0 and drift_std=0\.0"):
        StreamingRegressor(**drift).fit(X, ESTIMATORS[StreamingRegressor], refine=3)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_parameters_cannot_change_under_way(kind):
    y = ESTIMATORS[kind]
    model = kind(prior_std=np.array([1.0, 2.0, 0.5, 0.7])).partial_fit(X, y)
    before = model.state()
    model.set_params(prior_std=np.array([1.0, 2.0, 0.5, 0.8]))
    with pytest.raises(ValueError, match=r"prior_std=.*when learning began"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.state()["belief0.mean"], before["belief0.mean"])
    model.set_params(prior_std=np.array([1.0, 2.0, 0.5, 0.7]), random_state=4).partial_fit(X, y)
    model.set_params(prior_std=0.8).fit(X, y)
    assert same_state(model, kind(prior_std=0.8).fit(X, y))


def test_a_caller_s_array_may_change_later():
    prior_std = np.array([1.0, 2.0, 0.5, 0.7])
    model = StreamingRegressor(prior_std=prior_std).partial_fit(X, ESTIMATORS[StreamingRegressor])
    prior_std[0] = 9.0  # the model's parameter is this very array
    with pytest.raises(ValueError, match="prior_std"):
        model.partial_fit(X, ESTIMATORS[StreamingRegressor])


@pytest.mark.parametrize("name", MODELS)
def test_priors(name):
    """Before a single row is learned the belief is the prior, intercept last."""
    model = clone(MODELS[name]).set_params(prior_std=[0.7, 1.1, 2.0, 0.4], prior_mean=[0.1, 0.2, 0.3, 0.4])
    extra = {"classes": np.unique(labels(name, X))} if hasattr(model, "predict_proba") else {}
    model.partial_fit(X[:1], [np.nan], **extra)
    for belief in model.posterior_ if isinstance(model.posterior_, list) else [model.posterior_]:
        np.testing.assert_allclose(np.sqrt(belief.variance()), [0.7, 1.1, 2.0, 0.4, 3.1], rtol=1e-14)
        np.testing.assert_array_equal(belief.mean, [0.1, 0.2, 0.3, 0.4, 0.0])
    assert model.n_observations_ == 0
    assert np.isnan(model.progressive_log_loss_)


@pytest.mark.parametrize(
    ("parameters", "std", "mean"),
    [
        ({"prior_std": 0.7}, 0.7, 0.0),
        ({"prior_std": 0.7, "prior_mean": 0.3}, 0.7, 0.3),
        ({"prior_std": [0.7] * 4}, 1.0, 0.0),
        ({"prior_std": 0.7, "intercept_std": 300.0}, 300.0, 0.0),
    ],
)
def test_the_intercept_s_prior(parameters, std, mean):
    model = StreamingRegressor(**parameters).partial_fit(X[:1], [np.nan])
    np.testing.assert_allclose([model.intercept_std_, model.intercept_], [std, mean], rtol=1e-14)


def test_without_an_intercept():
    model = StreamingRegressor(fit_intercept=False).fit(X, ESTIMATORS[StreamingRegressor])
    assert model.posterior_.dim == 4
    assert (model.intercept_, model.intercept_std_) == (0.0, 0.0)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, rtol=1e-12)


@pytest.mark.parametrize(
    "seed",
    [3, np.int64(3), np.random.RandomState(3), np.random.default_rng(3)],
    ids=lambda s: type(s).__name__,
)
def test_seeds_of_every_kind(seed):
    y = ESTIMATORS[StreamingRegressor]
    model = StreamingRegressor(random_state=seed).fit(X, y)
    first = model.sample_posterior(4)
    assert not np.array_equal(first, model.sample_posterior(4))  # the generator moves on
    if isinstance(seed, int | np.integer):
        np.testing.assert_array_equal(StreamingRegressor(random_state=3).fit(X, y).sample_posterior(4), first)
    np.testing.assert_array_equal(model.sample_posterior(4, rng=8), model.sample_posterior(4, rng=8))
