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
    ({"covariance": "lowrank", "rank": 10}, "rank=10: more factors than the 5 weights"),
    ({"covariance": "dense"}, "covariance='dense': allowed are 'full', 'lowrank', 'diagonal'"),
    ({"rank": 0}, "rank=0: a whole number >= 1 is needed"),
    ({"rule": "magic"}, "rule.*magic"),
    ({"at": "future"}, "at.*future"),
    ({"coupling": "loose"}, "coupling='loose': allowed are"),
    ({"prior_std": 0.0}, "prior_std: 0.0; finite numbers > 0 are allowed"),
    ({"prior_std": -0.7}, "prior_std: -0.7; finite numbers > 0 are allowed"),
    ({"prior_std": [1.0, 1.0, -2.0, 0.0]}, "prior_std: entry 2 is -2.0; finite numbers > 0 are allowed"),
    ({"prior_std": [1.0, 1.0]}, r"prior_std has shape \(2,\).*\(4,\)"),
    ({"prior_std": np.inf}, "prior_std: inf; finite numbers are allowed"),
    ({"prior_std": "wide"}, "prior_std='wide': a number, or one per feature, is needed"),
    ({"prior_mean": [0.0, np.nan, 0.0, 0.0]}, "prior_mean: entry 1 is nan; finite numbers are allowed"),
    ({"prior_mean": np.zeros((4, 1))}, r"prior_mean has shape \(4, 1\)"),
    ({"intercept_std": 0.0}, "intercept_std=0.0: a finite number > 0 is needed"),
    ({"forgetting": 0.0}, r"forgetting=0.0: a number in \(0, 1\] is needed; 1 keeps everything"),
    ({"forgetting": 1.01}, r"forgetting=1.01: a number in \(0, 1\]"),
    ({"forgetting": np.nan}, r"forgetting=nan: a number in \(0, 1\]"),
    ({"drift_std": -0.1}, "drift_std=-0.1: a finite number >= 0 is needed; 0 lets the weights stand still"),
    ({"drift_std": 0.1, "forgetting": 0.9}, "forgetting=0.9 and drift_std=0.1 are alternatives"),
    ({"tick": "hourly"}, "tick='hourly': allowed are 'observation', 'clock'"),
    ({"fit_intercept": "yes"}, "fit_intercept='yes': True or False is needed"),
    ({"block_size": 0}, "block_size=0: a whole number >= 1 is needed"),
    ({"block_size": 2.5}, "block_size=2.5: a whole number >= 1 is needed"),
    ({"random_state": "lucky"}, "random_state='lucky': a whole number >= 0 is needed"),
    ({"random_state": -1}, "random_state=-1: a whole number >= 0 is needed"),
]
OWN = [
    (StreamingClassifier, {"link": "cauchit"}, "link='cauchit'"),
    (StreamingClassifier, {"expectation": "guess"}, "expectation='guess'"),
    (StreamingPoissonRegressor, {"rule": "quadratic"}, "rule='quadratic' needs a quadratic bound"),
    (
        StreamingRegressor,
        {"df": 3.0, "noise_std": 1.0, "rule": "vi", "at": "prior"},
        "not log-concave.*use at='posterior'",
    ),
    (StreamingRegressor, {"noise_std": 0.0}, "noise_std=0.0: a finite number > 0 is needed"),
    (StreamingRegressor, {"noise_std": "guess"}, "noise_std='guess': allowed are 'learn', or a number > 0"),
    (StreamingRegressor, {"df": -1.0, "noise_std": 1.0}, "df=-1.0: a finite number > 0 is needed"),
    (
        StreamingRegressor,
        {"df": 4.0, "covariance": "diagonal"},
        "df=4.0 with noise_std=.learn. needs covariance=.full.",
    ),
    (StreamingRegressor, {"noise_guess": 0.0}, "noise_guess=0.0: a finite number > 0 is needed"),
    (StreamingRegressor, {"noise_guess_worth": 0.0}, "noise_guess_worth=0.0: a finite number > 0 is needed"),
    (StreamingPoissonRegressor, {"dispersion": 0.0}, "dispersion=0.0: a finite number > 0 is needed"),
    (StreamingPoissonRegressor, {"target": "sum"}, "target='sum': allowed are 'count', 'rate'"),
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


@pytest.mark.parametrize("refine", [-1, 1.5])
def test_bad_refine(refine):
    with pytest.raises(ValueError, match=rf"refine={refine}: a whole number >= 0 is needed"):
        StreamingRegressor(prior_std=1.0, noise_std=1.0, scale=False).fit(
            X, ESTIMATORS[StreamingRegressor], refine=refine
        )


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
    model.set_params(prior_std=0.8).fit(X, y, refine=0)
    assert same_state(model, kind(prior_std=0.8).fit(X, y, refine=0))


def test_a_caller_s_array_may_change_later():
    prior_std = np.array([1.0, 2.0, 0.5, 0.7])
    model = StreamingRegressor(prior_std=prior_std, noise_std=1.0, scale=False).partial_fit(
        X, ESTIMATORS[StreamingRegressor]
    )
    prior_std[0] = 9.0  # the model's parameter is this very array
    with pytest.raises(ValueError, match="prior_std"):
        model.partial_fit(X, ESTIMATORS[StreamingRegressor])


@pytest.mark.parametrize("name", MODELS)
def test_priors(name):
    """Before a single row is learned the belief is the prior, intercept last."""
    model = clone(MODELS[name]).set_params(prior_std=[0.7, 1.1, 2.0, 0.4], prior_mean=[0.1, 0.2, 0.3, 0.4])
    extra = {"classes": np.unique(labels(name, X))} if hasattr(model, "predict_proba") else {}
    model.partial_fit(X[:1], [np.nan], **extra)
    std, mean = np.sqrt(model.posterior_.variance()).reshape(-1, 5), model.posterior_.mean.reshape(-1, 5)
    np.testing.assert_allclose(std, np.tile([0.7, 1.1, 2.0, 0.4, 3.1], (len(std), 1)), rtol=1e-14)
    np.testing.assert_array_equal(mean, np.tile([0.1, 0.2, 0.3, 0.4, 0.0], (len(std), 1)))
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
    model = StreamingRegressor(**parameters, scale=False, noise_std=1.0).partial_fit(X[:1], [np.nan])
    np.testing.assert_allclose([model.intercept_std_, model.intercept_], [std, mean], rtol=1e-14)


def test_without_an_intercept():
    model = StreamingRegressor(fit_intercept=False, prior_std=1.0, noise_std=1.0, scale=False).fit(
        X, ESTIMATORS[StreamingRegressor], refine=0
    )
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
    model = StreamingRegressor(random_state=seed, prior_std=1.0, noise_std=1.0, scale=False).fit(X, y, refine=0)
    first = model.sample_posterior(4)
    assert not np.array_equal(first, model.sample_posterior(4))  # the generator moves on
    if isinstance(seed, int | np.integer):
        np.testing.assert_array_equal(
            StreamingRegressor(random_state=3, prior_std=1.0, noise_std=1.0, scale=False)
            .fit(X, y, refine=0)
            .sample_posterior(4),
            first,
        )
    np.testing.assert_array_equal(model.sample_posterior(4, rng=8), model.sample_posterior(4, rng=8))
