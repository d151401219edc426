"""Every mean and standard deviation that is returned, against Monte Carlo, at odd parameters."""

import numpy as np
import pytest
from scipy import special, stats
from sklearn.base import clone

from tests.estimators.streams import MODELS, labels, rows

X = rows()
N = 200_000
NEW = np.array([[0.3, -1.0, 2.0, 0.1], [-1.5, 0.2, 0.5, 2.0]])


def check(draws, mean=None, std=None):
    """Compare sample moments with claimed ones, within five standard errors."""
    n = len(draws)
    centred = draws - draws.mean(axis=0)
    variance = np.mean(centred**2, axis=0)
    if mean is not None:
        np.testing.assert_array_less(np.abs(draws.mean(axis=0) - mean), 5 * np.sqrt(variance / n) + 1e-15)
    if std is not None:
        error = np.sqrt(np.mean((centred**2 - variance) ** 2, axis=0) / n) / (2 * np.sqrt(variance))
        np.testing.assert_array_less(np.abs(np.sqrt(variance) - std), 5 * error + 1e-15)
        assert np.all(5 * error < 0.2 * std)  # the comparison means something


@pytest.fixture(params=MODELS)
def fitted(request):
    # more rows for a learned noise level: a Student-t distribution needs its fourth moment here
    x = rows(200 if request.param == "learn-forgetting" else 60)
    return request.param, clone(MODELS[request.param]).fit(x, labels(request.param, x))


def test_weights(fitted):
    _, model = fitted
    draws = model.sample_posterior(N, rng=1)
    if draws.ndim == 2:
        draws = draws[:, None, :]
    check(draws[..., :4], np.atleast_2d(model.coef_), np.atleast_2d(model.coef_std_))
    check(draws[..., 4], np.ravel(model.intercept_), np.ravel(model.intercept_std_))


def test_latents(fitted):
    _, model = fitted
    check(model.sample_latent(NEW, N, rng=2), *model.predict_latent(NEW))


def test_samples_share_their_weights(fitted):
    _, model = fitted
    theta = model.sample_posterior(5, rng=3)
    latent = np.einsum("s...d,nd->sn...", theta, np.column_stack([NEW, np.ones(2)]))
    np.testing.assert_allclose(model.sample_latent(NEW, 5, rng=3), latent, rtol=1e-10)


@pytest.mark.parametrize("name", ["binary", "probit", "classes", "forgetting"])
def test_probabilities(name):
    model = clone(MODELS[name])
    if name == "classes":
        model.set_params(multi_class="ovr")
    model.fit(X, labels(name, X))
    draws = model.sample_proba(NEW, N, rng=4)
    assert draws.shape == (N, 2, len(model.classes_))
    np.testing.assert_allclose(draws.sum(axis=2), 1.0, rtol=1e-12)
    if name != "classes":
        check(draws, model.predict_proba(NEW), model.predict_proba_std(NEW))
        return
    # for classes one-vs-rest the promise is about one class against the rest, then normalised
    alone = special.expit(model.sample_latent(NEW, N, rng=4))
    check(alone, std=model.predict_proba_std(NEW))
    p = alone.mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(NEW), p / p.sum(axis=1, keepdims=True), rtol=0.01)
    np.testing.assert_allclose(draws, alone / alone.sum(axis=2, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "learn", "student", "poisson", "negative-binomial"])
def test_predictions(name):
    """New labels drawn from the model: weights from the posterior, then a label."""
    model = clone(MODELS[name]).fit(X, labels(name, X))
    rng = np.random.default_rng(11)
    f = model.sample_latent(NEW, N, rng=5)
    if name == "gaussian":
        y = f + 0.6 * rng.normal(size=f.shape)
    elif name == "student":
        model = clone(model).set_params(df=9.0).fit(X, labels(name, X))  # df = 4 has no fourth moment to compare by
        y = model.sample_latent(NEW, N, rng=5) + 0.4 * stats.t.rvs(9.0, size=f.shape, random_state=rng)
    elif name == "learn":
        # given its variance the noise is Gaussian, and the weights' scale goes with it: draw them together
        a, b = model.state()["noise"][:2]
        sigma = np.sqrt(b / rng.gamma(a, size=(N, 1)))
        mean, variance = model.posterior_.marginal(np.column_stack([NEW, np.ones(2)]))
        y = mean + sigma * (np.sqrt(variance) * rng.normal(size=f.shape) + rng.normal(size=f.shape))
    elif name == "poisson":
        y = rng.poisson(np.exp(f))
    else:
        y = rng.poisson(np.exp(f) * rng.gamma(2.5, 1 / 2.5, size=f.shape))
    check(y, *model.predict(NEW, return_std=True))


@pytest.mark.parametrize("name", ["poisson", "negative-binomial"])
def test_rates(name):
    model = clone(MODELS[name]).fit(X, labels(name, X))
    check(np.exp(model.sample_latent(NEW, N, rng=6)), model.predict(NEW), model.predict_rate_std(NEW))
