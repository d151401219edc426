"""Sweeps reach the fixed points they should."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold import batch
from gaussfold.likelihoods import Bernoulli, NegativeBinomial, Poisson, StudentT
from tests.problems import name


def _problem(likelihood, n=120, d=6, seed=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) / np.sqrt(d)
    f = 2.0 * X @ rng.standard_normal(d)
    y = (rng.random(n) < 1 / (1 + np.exp(-f))).astype(float) if isinstance(likelihood, Bernoulli) else rng.poisson(
        np.exp(f)
    ).astype(float)  # fmt: skip
    return X, y, rng.choice([1.0, 0.4, 2.5], n), gf.DenseGaussian.independent(np.full(d, 0.1), np.linspace(0.5, 3.0, d))


@pytest.mark.parametrize("likelihood", [Bernoulli(), Bernoulli("probit"), Poisson(), NegativeBinomial(2.5)], ids=name)
@pytest.mark.parametrize("block_size", [None, 4])
def test_vi_sweeps_reach_the_batch_variational_optimum(likelihood, block_size):
    X, y, weight, prior = _problem(likelihood)
    best = batch.variational(prior, likelihood, X, y, sample_weight=weight)
    belief = prior.copy()
    sites = gf.fold(belief, likelihood, X, y, sample_weight=weight, block_size=block_size)
    gf.sweep(belief, likelihood, X, y, sites, sample_weight=weight, n_sweeps=60, block_size=block_size)
    assert belief.kl(best) < 1e-12


@pytest.mark.parametrize("likelihood", [Bernoulli(), Poisson()], ids=name)
def test_newton_sweeps_reach_laplace(likelihood):
    X, y, weight, prior = _problem(likelihood)
    laplace = batch.laplace(prior, likelihood, X, y, sample_weight=weight)
    belief = prior.copy()
    sites = gf.fold(belief, likelihood, X, y, "newton", sample_weight=weight)
    gf.sweep(belief, likelihood, X, y, sites, "newton", sample_weight=weight, n_sweeps=60)
    np.testing.assert_allclose(belief.mean, laplace.mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(belief.cov, laplace.cov, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rule", ["ep", gf.rules.EP(0.5)], ids=name)
def test_ep_sweeps_stop_moving_and_match_tilted_moments(rule):
    X, y, _, prior = _problem(Bernoulli("probit"))
    belief = prior.copy()
    sites = gf.fold(belief, Bernoulli("probit"), X, y, rule)
    sites = gf.sweep(belief, Bernoulli("probit"), X, y, sites, rule, n_sweeps=80)
    settled = belief.cov
    again = gf.sweep(belief, Bernoulli("probit"), X, y, sites, rule, n_sweeps=1)
    np.testing.assert_allclose(belief.cov, settled, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(again.site_precision, sites.site_precision, rtol=1e-7, atol=1e-10)


def test_leave_one_out_marginals():
    """What a sweep reports is the marginal with the row's own site taken out: for Gaussian data, exact deletion."""
    X, _, _, prior = _problem(Poisson(), n=20)
    y = X @ np.arange(6.0) + 0.1
    likelihood = gf.likelihoods.Gaussian(0.7)
    belief = prior.copy()
    sites = gf.fold(belief, likelihood, X, y)
    again = gf.sweep(belief, likelihood, X, y, sites, n_sweeps=1)
    without = prior.copy()
    gf.fold(without, likelihood, np.delete(X, 7, axis=0), np.delete(y, 7))
    score = likelihood.log_predictive(y[7:8], without.marginal(X[7:8]))
    np.testing.assert_allclose(again.log_predictive[7], score[0], rtol=1e-9)


def test_student_t_with_an_outlier_first():
    x = np.linspace(-1.0, 1.0, 81)[:, None]
    y = 2.0 * x[:, 0]
    y[::10] += 15.0
    belief = gf.DenseGaussian.isotropic(1, 2.0)
    sites = gf.fold(belief, StudentT(3.0, 0.1), x, y)
    gf.sweep(belief, StudentT(3.0, 0.1), x, y, sites, n_sweeps=20)
    assert np.isfinite(belief.mean).all()
    assert belief.variance()[0] > 0.0


def test_errors():
    X, y, _, prior = _problem(Bernoulli())
    sites = gf.fold(prior, Bernoulli(), X, y)
    with pytest.raises(ValueError, match="n_sweeps=-1"):
        gf.sweep(prior, Bernoulli(), X, y, sites, n_sweeps=-1)
    with pytest.raises(ValueError, match="sites: 120 of them for 10 rows"):
        gf.sweep(prior, Bernoulli(), X[:10], y[:10], sites)
