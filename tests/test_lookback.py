"""A second look: closer to the batch optimum, whatever the chunks, and never twice the same datum."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.lookback import PAGE, Lookback
from gaussfold.types import Moments


def _problem(n=700, d=40, seed=5):
    rng = np.random.default_rng(seed)
    X = np.c_[np.ones(n), (rng.random((n, d)) < 0.15).astype(float)]
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(1.0 - X[:, 1:] @ rng.normal(0.0, 1.0, d)))).astype(float)
    return X, y, gf.DenseGaussian.independent(np.zeros(d + 1), np.r_[300.0, np.full(d, 0.9)])


def _elbo(belief, prior, likelihood, X, y):
    return likelihood.expected_log_prob(y, Moments(*belief.marginal(X))).sum() - belief.kl(prior)


def test_gaussian_data_need_no_second_look():
    X, _, prior = _problem()
    y = X @ np.linspace(-1.0, 1.0, X.shape[1]) + 0.3 * np.sin(np.arange(len(X)))
    once, twice = prior.copy(), prior.copy()
    gf.fold(once, gf.likelihoods.Gaussian(0.7), X, y)
    Lookback(64).fold(twice, gf.likelihoods.Gaussian(0.7), X, y)
    np.testing.assert_allclose(twice.mean, once.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(twice.cov, once.cov, rtol=1e-8, atol=1e-12)


def test_it_recovers_most_of_what_one_look_loses():
    X, y, prior = _problem()
    likelihood = gf.likelihoods.Bernoulli()
    best = prior.copy()
    sites = gf.fold(best, likelihood, X, y)
    gf.sweep(best, likelihood, X, y, sites, n_sweeps=100)
    optimum = _elbo(best, prior, likelihood, X, y)
    once, twice = prior.copy(), prior.copy()
    gf.fold(once, likelihood, X, y)
    Lookback(256).fold(twice, likelihood, X, y)
    lost = optimum - _elbo(once, prior, likelihood, X, y)
    assert 0.0 < optimum - _elbo(twice, prior, likelihood, X, y) < 0.5 * lost


@pytest.mark.parametrize("cuts", [[1, 2, 3, 40, 300], list(range(1, 200, 7)), [PAGE, 2 * PAGE]])
def test_chunks_do_not_matter(cuts):
    X, y, prior = _problem(n=400)
    y[17] = np.nan
    weight = np.where(np.arange(400) % 50 == 3, 0.0, 1.7)
    likelihood = gf.likelihoods.Bernoulli("probit")
    whole, parts = prior.copy(), prior.copy()
    expected = Lookback(100).fold(whole, likelihood, X, y, sample_weight=weight)
    memory = Lookback(100)
    pieces = [
        memory.fold(parts, likelihood, X[a:b], y[a:b], sample_weight=weight[a:b])
        for a, b in zip([0, *cuts], [*cuts, 400], strict=True)
    ]
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-10)
    np.testing.assert_allclose(parts.cov, whole.cov, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(np.concatenate([p.log_predictive for p in pieces]), expected.log_predictive, rtol=1e-9)


def test_an_error_changes_nothing():
    X, y, prior = _problem(n=200)
    memory = Lookback(40)
    memory.fold(prior, gf.likelihoods.Bernoulli(), X, y)
    before, kept = prior.state(), memory.state()
    bad = X.copy()
    bad[150] *= 1e200
    with pytest.raises(ValueError, match="row"):
        memory.fold(prior, gf.likelihoods.Bernoulli(), bad, y)
    for name, array in prior.state().items():
        np.testing.assert_array_equal(array, before[name])
    for name, array in memory.state().items():
        np.testing.assert_array_equal(array, kept[name])


def test_estimator_saves_and_resumes_bit_for_bit(tmp_path):
    X, y, _ = _problem(n=300)
    options = {"prior_std": 0.9, "intercept_std": 300.0, "second_look": 80}
    straight = gf.StreamingClassifier(**options).partial_fit(X[:170, 1:], y[:170])
    gf.save(straight, tmp_path / "model")
    resumed = gf.load(tmp_path / "model")
    for model in (straight, resumed):
        model.partial_fit(X[170:, 1:], y[170:])
    np.testing.assert_array_equal(resumed.coef_, straight.coef_)
    np.testing.assert_array_equal(resumed.posterior_.cov, straight.posterior_.cov)
    once = gf.StreamingClassifier(**(options | {"second_look": 0})).partial_fit(X[:, 1:], y)
    assert np.abs(once.coef_ - straight.coef_).max() > 1e-4  # it did look again


@pytest.mark.parametrize("options", [{"forgetting": 0.97}, {"drift_std": 0.1}, {"second_look": -1}])
def test_what_does_not_go_together(options):
    X, y, _ = _problem(n=50)
    with pytest.raises(ValueError, match="second_look"):
        gf.StreamingClassifier(**({"second_look": 32} | options)).fit(X, y)
    with pytest.raises(ValueError, match="second_look"):
        gf.StreamingClassifier(second_look=32, prior_std=1.0, scale=False).fit(X, y, refine=3)
