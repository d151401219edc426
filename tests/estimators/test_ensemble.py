"""``ensemble``: diagonal copies that start apart, equally likely; error bars that correlated features cannot fool."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

import gaussfold as gf

D = 5
C, R, P = gf.StreamingClassifier, gf.StreamingRegressor, gf.StreamingPoissonRegressor
MODELS = {
    "linear": R(covariance="diagonal", fit_intercept=False, noise_std=0.8),
    "learned": R(covariance="diagonal", fit_intercept=False, noise_std="learn"),
    "logistic": C(covariance="diagonal", fit_intercept=False),
    "poisson": P(covariance="diagonal", fit_intercept=False, prior_std=0.4),
}


def _draw(name, correlation, seed, n=500):
    rng = np.random.default_rng([seed, 9])
    X = np.sqrt(1.0 - correlation) * rng.standard_normal((n, D)) + np.sqrt(correlation) * rng.standard_normal((n, 1))
    theta = rng.standard_normal(D) * (0.4 if name == "poisson" else 1.0)
    f = X @ theta
    if name == "logistic":
        return X, (rng.random(n) < 1 / (1 + np.exp(-f))).astype(float), theta
    return X, rng.poisson(np.exp(f)).astype(float) if name == "poisson" else f + 0.8 * rng.standard_normal(n), theta


def _copy(name, **options):
    return clone(MODELS[name]).set_params(**options)


def test_before_data_it_is_the_prior_and_half_of_it_more():
    X, y, _ = _draw("linear", 0.0, 0, 4)
    model = _copy("linear", ensemble=6, prior_std=np.array([0.3, 1.0, 2.0, 0.7, 5.0]), prior_mean=0.4)
    model.partial_fit(X, np.full(4, np.nan))
    np.testing.assert_allclose(model.coef_, np.full(D, 0.4), rtol=1e-12)
    np.testing.assert_allclose(model.coef_std_, np.sqrt(1.5) * np.array([0.3, 1.0, 2.0, 0.7, 5.0]), rtol=1e-12)
    latent = model.predict_latent(X)[1] ** 2
    assert (np.abs(latent / (X**2 @ model.coef_std_**2) - 1.0) < 1.0).all()  # six draws of signs: about the prior's
    starts = np.stack([member.mean for member in model.posterior_.members])
    assert len(np.unique(np.sign(starts - 0.4), axis=0)) > 1
    other = _copy("linear", ensemble=6, random_state=3).partial_fit(X, y)
    np.testing.assert_array_equal(other.coef_, _copy("linear", ensemble=6, random_state=4).partial_fit(X, y).coef_)


@pytest.mark.parametrize("name", MODELS)
def test_copies_learn_by_themselves_and_stay_equally_likely(name):
    X, y, _ = _draw(name, 0.8, 1, 60)
    weight = np.random.default_rng(0).choice([1.0, 2.5, 0.0], 60)
    classes = {"classes": [0.0, 1.0]} if name == "logistic" else {}
    model = _copy(name, ensemble=4).partial_fit(X[:1], y[:1] * np.nan, **classes)
    members = [member.copy() for member in model.posterior_.members]
    model.partial_fit(X, y, sample_weight=weight)
    likelihood = {"logistic": gf.likelihoods.Bernoulli(), "poisson": gf.likelihoods.Poisson()}.get(
        name, gf.likelihoods.Gaussian(0.8 if name == "linear" else 1.0)
    )
    for member, learned in zip(members, model.posterior_.members, strict=True):
        gf.fold(member, likelihood, X, y, rule="newton", sample_weight=weight)
        np.testing.assert_array_equal(member.mean, learned.mean)
    np.testing.assert_array_equal(model.posterior_.weights, np.full(4, 0.25))
    means = np.stack([member.mean for member in members])
    np.testing.assert_allclose(model.coef_.ravel(), means.mean(axis=0), rtol=1e-12)
    if name != "learned":
        variance = np.mean([member.var for member in members], axis=0) + means.var(axis=0)
        np.testing.assert_allclose(model.coef_std_.ravel() ** 2, variance, rtol=1e-10)


@pytest.mark.parametrize("name", ["linear", "logistic", "poisson"])
def test_intervals_of_weights_and_labels(name):
    """Twelve data sets of correlation 0.9: of weights a single belief is far too sure, eight copies less so."""
    inside, labels = {1: [], 8: []}, []
    for seed in range(12):
        X, y, theta = _draw(name, 0.9, seed, 600)
        for count in inside:
            model = _copy(name, ensemble=count).fit(X[:500], y[:500])
            away = np.abs(theta - model.coef_.ravel())
            inside[count].append(away < 1.645 * model.coef_std_.ravel())
        if name == "linear":
            mean, std = _copy(name).fit(X[:500], y[:500]).predict(X[500:], return_std=True)
            labels.append(np.abs(y[500:] - mean) < 1.645 * std)
        elif name == "poisson":
            mean = _copy(name).fit(X[:500], y[:500]).predict(X[500:])
            labels.append((y[500:] >= stats.poisson.ppf(0.05, mean)) & (y[500:] <= stats.poisson.ppf(0.95, mean)))
    assert np.mean(inside[8]) > 0.75  # as documented; not quite 0.9, and far more than
    assert np.mean(inside[1]) < np.mean(inside[8]) - 0.15
    if labels:
        assert 0.85 <= np.mean(labels) <= 0.96


def test_promises(tmp_path):
    X, y, _ = _draw("learned", 0.5, 2, 80)
    y[3::10] = np.nan
    for options in ({}, {"forgetting": 0.97}, {"drift_std": 0.1}):
        whole, parts = (
            _copy("learned", ensemble=4, **options).partial_fit(X, y),
            _copy("learned", ensemble=4, **options),
        )
        for cut in (slice(0, 1), slice(1, 30), slice(30, 80)):
            parts.partial_fit(X[cut], y[cut])
            gf.save(parts, tmp_path / "model")
            loaded = gf.load(tmp_path / "model")
            for key, array in parts.state().items():
                np.testing.assert_array_equal(array, loaded.state()[key], err_msg=key)
            parts = loaded
        np.testing.assert_allclose(parts.coef_std_, whole.coef_std_, rtol=1e-10)
        before = whole.state()
        whole.partial_fit(X, np.full(80, np.nan)).partial_fit(X, y, sample_weight=np.zeros(80))
        for key, array in whole.state().items():
            np.testing.assert_array_equal(array, before[key], err_msg=key)
        if options:
            whole.forget(2.0)
            assert (whole.coef_std_ > parts.coef_std_).all()
    draws = parts.sample_posterior(20_000, 1)
    np.testing.assert_allclose(draws.std(axis=0), parts.coef_std_, rtol=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ensemble": 0}, "ensemble=0: a whole number >= 1 is needed; 1 is a single belief"),
        ({"ensemble": 4, "covariance": "full"}, "ensemble=4 needs covariance='diagonal'"),
        ({"ensemble": 4, "drift_std": "auto"}, "ensemble=4 and drift_std='auto' are both mixtures"),
    ],
)
def test_refusals(options, message):
    X, y, _ = _draw("logistic", 0.0, 0, 20)
    with pytest.raises(ValueError, match=message):
        _copy("logistic", **options).fit(X, y)
