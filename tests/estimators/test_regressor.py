"""StreamingRegressor: exact posteriors, known, learned and heavy-tailed noise."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from gaussfold import StreamingRegressor
from gaussfold.estimators.noise import NoiseBelief
from tests.estimators import reference
from tests.estimators.streams import MODELS, labels, rows, weights

X = rows()
Y = labels("gaussian", X)
WEIGHT = weights(60)
DESIGN = np.column_stack([X, np.ones(60)])
PRIOR = reference.Gauss(np.array([0.2] * 5), np.diag(np.square([0.7] * 4 + [3.1])))


@pytest.mark.parametrize("rule", [None, "newton", "taylor", "vi", "ep", "pl"])
@pytest.mark.parametrize("at", ["prior", "posterior", "extragradient"])
def test_one_pass_is_the_exact_posterior(rule, at):
    """rvga Theorem 2, for every rule, at odd parameters and weights."""
    model = clone(MODELS["gaussian"]).set_params(rule=rule, at=at).fit(X, Y, sample_weight=WEIGHT, refine=0)
    want = reference.exact_linear(PRIOR, DESIGN, Y, WEIGHT, 0.6)
    np.testing.assert_allclose(model.posterior_.mean, want.mean, rtol=1e-10)
    np.testing.assert_allclose(model.posterior_.cov, want.cov, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(model.coef_, want.mean[:4], rtol=1e-10)
    np.testing.assert_allclose(model.intercept_, want.mean[4], rtol=1e-10)
    np.testing.assert_allclose(model.coef_std_, np.sqrt(np.diag(want.cov)[:4]), rtol=1e-10)
    np.testing.assert_allclose(model.intercept_std_, np.sqrt(want.cov[4, 4]), rtol=1e-10)
    mean, std = model.predict(X, return_std=True)
    latent_mean, latent_std = model.predict_latent(X)
    v = np.einsum("ij,jk,ik->i", DESIGN, want.cov, DESIGN)
    np.testing.assert_allclose(mean, DESIGN @ want.mean, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), mean, rtol=0)
    np.testing.assert_allclose(latent_mean, mean, rtol=0)
    np.testing.assert_allclose(latent_std, np.sqrt(v), rtol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(v + 0.6**2), rtol=1e-9)
    assert model.noise_std_ == 0.6


def test_the_progressive_loss_is_the_evidence():
    """With weights one the losses add up to minus the log marginal likelihood of all labels."""
    model = clone(MODELS["gaussian"]).fit(X, Y, refine=0)
    evidence = stats.multivariate_normal.logpdf(
        Y, DESIGN @ PRIOR.mean, DESIGN @ PRIOR.cov @ DESIGN.T + 0.36 * np.eye(60)
    )
    np.testing.assert_allclose(model.progressive_log_loss_ * 60, -evidence, rtol=1e-10)


@pytest.mark.parametrize(("factor", "drift"), [(0.97, 0.0), (1.0, 0.15)])
def test_dynamics(factor, drift):
    model = clone(MODELS["gaussian"]).set_params(forgetting=factor, drift_std=drift)
    model.fit(X, Y, sample_weight=WEIGHT, refine=0)

    def gaussian(y, f):
        return (y - f) / 0.36, np.full_like(f, -1 / 0.36)

    want, _ = reference.stream(PRIOR, DESIGN, Y, WEIGHT, gaussian, factor, drift)
    np.testing.assert_allclose(model.posterior_.mean, want.mean, rtol=1e-8)
    np.testing.assert_allclose(model.posterior_.cov, want.cov, rtol=1e-8, atol=1e-11)


def learner(**parameters):
    return clone(MODELS["learn"]).set_params(noise_guess=0.3, noise_guess_worth=1.7, **parameters)


def test_learned_noise_is_normal_inverse_gamma():
    """The recursion against the batch formulas, weights and all."""
    model = learner().fit(X, Y, sample_weight=WEIGHT, refine=0)
    want, a, b = reference.normal_inverse_gamma(PRIOR, 0.85, 0.85 * 0.09, DESIGN, Y, WEIGHT)
    np.testing.assert_allclose(model.posterior_.mean, want.mean, rtol=1e-10)
    np.testing.assert_allclose(model.posterior_.cov, want.cov, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(model.state()["noise"], [a, b, 0.85, 0.85 * 0.09], rtol=1e-10)
    variance = b / (a - 1)
    np.testing.assert_allclose(model.noise_std_, np.sqrt(variance), rtol=1e-10)
    np.testing.assert_allclose(model.coef_std_, np.sqrt(variance * np.diag(want.cov)[:4]), rtol=1e-10)
    mean, std = model.predict(X, return_std=True)
    v = np.einsum("ij,jk,ik->i", DESIGN, want.cov, DESIGN)
    np.testing.assert_allclose(mean, DESIGN @ want.mean, rtol=1e-9)
    # the predictive distribution is Student-t: its standard deviation by SciPy
    scale = np.sqrt(b / a * (1 + v))
    np.testing.assert_allclose(std, stats.t.std(2 * a, scale=scale), rtol=1e-9)
    np.testing.assert_allclose(model.predict_latent(X)[1], stats.t.std(2 * a, scale=np.sqrt(b / a * v)), rtol=1e-9)


def test_learned_noise_s_progressive_loss_is_the_evidence():
    model = learner().fit(X, Y, refine=0)
    a, b = 0.85, 0.85 * 0.09
    shape = b / a * (np.eye(60) + DESIGN @ PRIOR.cov @ DESIGN.T)
    evidence = stats.multivariate_t.logpdf(Y, DESIGN @ PRIOR.mean, shape, df=2 * a)
    np.testing.assert_allclose(model.progressive_log_loss_ * 60, -evidence, rtol=1e-10)


def test_learned_noise_with_forgetting_row_by_row():
    """Weights and noise relax towards their priors before each learned row, written out as a loop."""
    model = learner(forgetting=0.97).fit(X, Y, sample_weight=WEIGHT, refine=0)
    belief, a, b = PRIOR, 0.85, 0.85 * 0.09
    for x, y, w in zip(DESIGN, Y, WEIGHT, strict=True):
        if w == 0:
            continue
        belief = belief.relax(0.97, PRIOR)
        a, b = 0.97 * a + 0.03 * 0.85, 0.97 * b + 0.03 * 0.85 * 0.09
        m, v = belief.marginal(x)
        a, b = a + w / 2, b + (y - m) ** 2 / (v + 1 / w) / 2
        belief = reference.exact_linear(belief, x[None], np.array([y]), np.array([w]), 1.0)
    np.testing.assert_allclose(model.posterior_.mean, belief.mean, rtol=1e-9)
    np.testing.assert_allclose(model.state()["noise"][:2], [a, b], rtol=1e-9)


@pytest.mark.parametrize("noise", [0.01, 1.0, 30.0])
def test_the_noise_is_found(noise):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(2000, 4))
    y = x @ [1.0, -2.0, 0.5, 0.0] + 3.0 + noise * rng.normal(size=2000)
    model = StreamingRegressor(noise_std="learn", prior_std=1e3 / noise, scale=False).fit(x, y, refine=0)
    # five standard errors of the noise level, sqrt(1/2n) each
    np.testing.assert_allclose(model.noise_std_, noise, rtol=5 / np.sqrt(4000))
    z = (y - model.predict(x)) / model.predict(x, return_std=True)[1]
    np.testing.assert_allclose(np.mean(z**2), 1.0, atol=5 * np.sqrt(2 / 2000))


def test_before_two_rows_the_noise_has_no_variance():
    model = StreamingRegressor(noise_std="learn", fit_intercept=False, prior_std=1.0, scale=False).partial_fit(
        X[:1], [np.nan]
    )
    mean, std = model.predict(np.vstack([X[:1], np.zeros((1, 4))]), return_std=True)
    assert np.isfinite(mean).all()
    assert np.isinf(std).all()
    assert model.predict_latent(np.zeros((1, 4)))[1] == 0.0
    assert NoiseBelief.from_guess(2.0, 3.0).variance == 12.0  # worth 3: a = 1.5, b = 6


def test_heavy_tails_lose_their_pull():
    x = np.linspace(-1, 1, 81)[:, None]
    y = 2.0 * x[:, 0]
    y[5::10] += 15.0
    plain = StreamingRegressor(noise_std=0.1, prior_std=2.0, scale=False).fit(x, y, refine=20)
    robust = StreamingRegressor(noise_std=0.1, prior_std=2.0, df=3.0, scale=False).fit(x, y, refine=20)
    assert abs(plain.intercept_) > 1.0
    assert abs(robust.intercept_) < 0.1
    np.testing.assert_allclose(robust.coef_, 2.0, atol=0.1)
    std = robust.predict(x[:1], return_std=True)[1]
    v = robust.predict_latent(x[:1])[1] ** 2
    np.testing.assert_allclose(std, np.sqrt(v + stats.t.var(3.0, scale=0.1)), rtol=1e-9)
    wild = StreamingRegressor(noise_std=0.1, df=1.5, prior_std=1.0, scale=False).fit(x, y, refine=0)
    assert np.isinf(wild.predict(x[:1], return_std=True)[1]).all()
