"""Estimators with covariance="diagonal": the fold they stand for, sparse rows of any width, automatic priors."""

import math

import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf
from gaussfold.beliefs import Marginal
from gaussfold.beliefs.diagonal.stack import LANE_STDS
from gaussfold.dynamics import Forgetting
from gaussfold.likelihoods import Bernoulli, Gaussian, Poisson
from tests.beliefs.sparse_streams import draw

DIM = 12


def with_ones(X):
    return sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr")


def test_classifier_is_the_fold():
    X, y, rng = draw(150, DIM, seed=1)
    w = rng.choice([0.0, 1.0, 2.5], size=150)
    model = gf.StreamingClassifier(
        covariance="diagonal", prior_std=0.7, intercept_std=3.0, forgetting=0.97, scale=False
    )
    for part in np.split(np.arange(150), [1, 60]):
        model.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=w[part])
    prior = gf.DiagonalGaussian.independent(np.zeros(DIM + 1), np.append(np.full(DIM, 0.7), 3.0))
    belief = prior.copy()
    result = gf.fold(
        belief, Bernoulli(), with_ones(X), y, rule="newton", sample_weight=w, dynamics=Forgetting(0.97, prior)
    )
    np.testing.assert_array_equal(model.coef_[0], belief.mean[:-1])
    np.testing.assert_array_equal(model.coef_std_[0], np.sqrt(belief.var[:-1]))
    np.testing.assert_array_equal(model.intercept_, belief.mean[-1:])
    learned = w > 0
    loss = -(w * result.log_predictive)[learned].sum() / w.sum()
    assert model.progressive_log_loss_ == pytest.approx(loss, rel=1e-12)
    p = Bernoulli().predictive(belief.marginal(with_ones(X))).mean
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], p, rtol=1e-12)


@pytest.mark.parametrize("coupling", ["marginal", "joint", Marginal("one-step", "height")])
def test_save_and_resume_is_exact(coupling, tmp_path):
    X, y, _ = draw(80, DIM, seed=2)
    whole = gf.StreamingClassifier(covariance="diagonal", coupling=coupling, prior_std=0.7, scale=False)
    half = gf.StreamingClassifier(covariance="diagonal", coupling=coupling, prior_std=0.7, scale=False)
    whole.partial_fit(X, y, classes=[0, 1])
    half.partial_fit(X[:33], y[:33], classes=[0, 1])
    gf.save(half, tmp_path / "model")
    half = gf.load(tmp_path / "model").partial_fit(X[33:], y[33:])
    assert half.coupling == coupling
    np.testing.assert_array_equal(half.coef_, whole.coef_)
    np.testing.assert_array_equal(half.coef_std_, whole.coef_std_)
    assert half.progressive_log_loss_ == pytest.approx(whole.progressive_log_loss_, rel=1e-14)


def test_a_million_columns_are_never_dense(tmp_path):
    X = sparse.csr_array(([1.0, -2.0, 1.0], ([0, 0, 1], [3, 2**20 - 1, 77])), shape=(2, 2**20))
    model = gf.StreamingClassifier(covariance="diagonal", prior_std=0.7, scale=False).fit(X, ["no", "yes"], refine=0)
    p = model.predict_proba(X)
    assert p[0, 0] > 0.55
    assert p[1, 1] > 0.55
    draws = model.sample_latent(X, 20_000, rng=3)
    mean, std = model.predict_latent(X)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.05)
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.03)


def test_automatic_prior_stacks_lanes_and_is_never_far_behind_the_best():
    X, y, _ = draw(500, DIM, seed=4)
    options = {"covariance": "diagonal", "expectation": "probit", "scale": False}
    models = [gf.StreamingClassifier(prior_std=std, **options).fit(X, y, refine=0) for std in LANE_STDS]
    auto = gf.StreamingClassifier(prior_std="auto", **options).fit(X, y, refine=0)
    losses = 500 * np.array([model.progressive_log_loss_ for model in models])
    assert 500 * auto.progressive_log_loss_ <= losses.min() + math.log(10) + 0.1 * math.log(501) + 0.2
    belief, likelihood = auto.posterior_, gf.likelihoods.Bernoulli("logit", expectation="probit")
    parts = likelihood.predictive(belief.marginals(sparse.hstack([X, np.ones((500, 1))]).tocsr()))
    expected = parts.mean @ belief.weights
    np.testing.assert_allclose(auto.predict_proba(X)[:, 1], expected, rtol=1e-9)
    np.testing.assert_allclose(np.exp(auto.predict_log_proba(X)[:, 1]), expected, rtol=1e-9)
    for k, model in enumerate(models):
        np.testing.assert_allclose(parts.mean[:, k], model.predict_proba(X)[:, 1], rtol=1e-9)
    latent = auto.predict_latent(X)
    np.testing.assert_allclose(
        latent[0], belief.marginal(sparse.hstack([X, np.ones((500, 1))]).tocsr()).mean, rtol=1e-9
    )


def test_automatic_prior_survives_a_file(tmp_path):
    X, y, _ = draw(80, DIM, seed=5)
    options = {"covariance": "diagonal", "prior_std": "auto", "forgetting": 0.97, "intercept_std": 5.0}
    whole = gf.StreamingClassifier(**options).partial_fit(X, y, classes=[0, 1])
    half = gf.StreamingClassifier(**options).partial_fit(X[:33], y[:33], classes=[0, 1])
    gf.save(half, tmp_path / "model")
    half = gf.load(tmp_path / "model").partial_fit(X[33:], y[33:])
    np.testing.assert_array_equal(half.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("coupling", ["marginal", "joint"])
def test_regressors_are_folds(coupling):
    X, _, rng = draw(200, DIM, seed=6)
    truth = rng.normal(size=DIM)
    y = X @ truth + 0.6 * rng.normal(size=200)
    options = {"covariance": "diagonal", "coupling": coupling, "prior_std": np.full(DIM, 0.7), "fit_intercept": False}
    model = gf.StreamingRegressor(**options, noise_std=0.6).fit(X, y, refine=0)
    belief = gf.DiagonalGaussian.isotropic(DIM, 0.7, coupling=coupling)
    gf.fold(belief, Gaussian(0.6), X, y, rule="newton")
    np.testing.assert_allclose(model.coef_, belief.mean, rtol=1e-13)
    _mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(std, np.sqrt(belief.marginal(X).variance + 0.36), rtol=1e-12)
    counts = rng.poisson(np.exp(np.clip(X @ truth, -3, 1))).astype(float)
    model = gf.StreamingPoissonRegressor(**options).fit(X, counts, refine=0)
    belief = gf.DiagonalGaussian.isotropic(DIM, 0.7, coupling=coupling)
    gf.fold(belief, Poisson(), X, counts, rule="newton")
    np.testing.assert_allclose(model.coef_, belief.mean, rtol=1e-13)
    expected = np.exp(belief.marginal(X).mean + 0.5 * belief.marginal(X).variance)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)


def test_more_than_two_classes():
    X, _, rng = draw(300, DIM, seed=7)
    y = np.array(["a", "b", "c"])[np.argmax(X @ rng.normal(size=(DIM, 3)), axis=1)]
    model = gf.StreamingClassifier(covariance="diagonal", prior_std=2.0, scale=False).fit(X, y, refine=0)
    assert model.score(X, y) > 0.75
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "fit", "message"),
    [
        (
            {"covariance": "diagonal", "prior_std": "any"},
            {},
            "prior_std='any': a number, or one per feature, is needed",
        ),
        ({"covariance": "diagonal"}, {"refine": 2}, "refine=2 needs covariance='full'"),
        ({"covariance": "diagonal", "second_look": 9, "drift_std": 0.1}, {}, "second_look=9 needs forgetting=1.0"),
        ({"covariance": "diagonal", "coupling": "both"}, {}, "coupling='both': allowed are 'marginal', 'joint'"),
    ],
)
def test_what_is_not_defined_is_refused(options, fit, message):
    X, y, _ = draw(10, DIM, seed=8)
    with pytest.raises(ValueError, match=message):
        gf.StreamingClassifier(**options).fit(X, y, **fit)
