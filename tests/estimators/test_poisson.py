"""StreamingPoissonRegressor: values against a slow recursion, exposure, overdispersion."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone

from gaussfold import StreamingPoissonRegressor
from tests.estimators import reference
from tests.estimators.streams import MODELS, labels, rows, weights

X = rows(40)
Y = labels("poisson", X)
DESIGN = np.column_stack([X, np.ones(40)])
PRIOR = reference.Gauss(np.array([0.2] * 5), np.diag(np.square([0.7] * 4 + [1.1])))


def model(**parameters):
    return clone(MODELS["poisson"]).set_params(intercept_std=1.1, **parameters)


@pytest.mark.parametrize(
    ("parameters", "factor", "drift"),
    [({}, 1.0, 0.0), ({"forgetting": 0.97}, 0.97, 0.0), ({"drift_std": 0.05}, 1.0, 0.05)],
)
def test_the_posterior_is_the_implicit_scheme_s(parameters, factor, drift):
    weight = weights(40)
    fitted = model(**parameters).fit(X, Y, sample_weight=weight, refine=0)
    want, _ = reference.stream(PRIOR, DESIGN, Y.astype(float), weight, reference.poisson, factor, drift)
    np.testing.assert_allclose(fitted.posterior_.mean, want.mean, rtol=1e-8)
    np.testing.assert_allclose(fitted.posterior_.cov, want.cov, rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(fitted.coef_std_, np.sqrt(np.diag(want.cov)[:4]), rtol=1e-8)
    m, v = DESIGN @ want.mean, np.einsum("ij,jk,ik->i", DESIGN, want.cov, DESIGN)
    mean, std = fitted.predict(X, return_std=True)
    rate = np.exp(m + v / 2)
    np.testing.assert_allclose(mean, rate, rtol=1e-7)
    np.testing.assert_allclose(std**2, rate + rate**2 * np.expm1(v), rtol=1e-7)
    np.testing.assert_allclose(fitted.predict_rate_std(X), rate * np.sqrt(np.expm1(v)), rtol=1e-7)


def test_refined_it_is_the_variational_optimum():
    """At the optimum the gradient of the ELBO vanishes, with E exp(f) = exp(m + v/2) in closed form."""
    fitted = model().fit(X, Y, refine=100)

    def gradient(mean, cov):
        rate = np.exp(DESIGN @ mean + np.einsum("ij,jk,ik->i", DESIGN, cov, DESIGN) / 2)
        precision = np.linalg.inv(PRIOR.cov)
        return DESIGN.T @ (Y - rate) - precision @ (mean - PRIOR.mean), precision + (DESIGN.T * rate) @ DESIGN

    first, precision = gradient(fitted.posterior_.mean, fitted.posterior_.cov)
    np.testing.assert_allclose(first, 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.inv(precision), fitted.posterior_.cov, rtol=1e-6, atol=1e-9)


def test_rates_with_exposure_are_counts_with_an_offset():
    """With an exposure w a count has rate w exp(f): the batch modes must agree."""
    rng = np.random.default_rng(9)
    exposure = rng.uniform(0.3, 6.0, size=400)
    x = rng.normal(size=(400, 2))
    counts = rng.poisson(exposure * np.exp(x @ [0.6, -0.4] + 0.3))
    fitted = StreamingPoissonRegressor(target="rate", rule="newton", prior_std=1.3, scale=False)
    fitted.fit(x, counts / exposure, sample_weight=exposure, refine=30)

    def negative(theta):
        f = np.column_stack([x, np.ones(400)]) @ theta
        return -np.sum(counts * f - exposure * np.exp(f)) + theta @ theta / (2 * 1.3**2)

    mode = optimize.minimize(negative, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(np.append(fitted.coef_, fitted.intercept_), mode, atol=1e-5)


def test_overdispersion_widens_the_posterior():
    rng = np.random.default_rng(10)
    x = rng.normal(size=(300, 2))
    rate = np.exp(x @ [0.5, -0.3] + 1.0)
    y = rng.poisson(rate * rng.gamma(1.5, 1 / 1.5, size=300))
    poisson = StreamingPoissonRegressor(prior_std=1.0, scale=False).fit(x, y, refine=0)
    negative = StreamingPoissonRegressor(dispersion=1.5, prior_std=1.0, scale=False).fit(x, y, refine=0)
    assert (negative.coef_std_ > 1.5 * poisson.coef_std_).all()
    assert negative.progressive_log_loss_ < poisson.progressive_log_loss_ - 0.1
    mean, std = negative.predict(x, return_std=True)
    m, s = negative.predict_latent(x)
    first, second = np.exp(m + s**2 / 2), np.exp(2 * m + 2 * s**2)
    np.testing.assert_allclose(mean, first, rtol=1e-9)
    np.testing.assert_allclose(std**2, first + second / 1.5 + second - first**2, rtol=1e-8)
