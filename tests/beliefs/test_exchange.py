"""A prior exchanged for another: the same as having started from the other, and the evidence of every width."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import gaussfold as gf
from gaussfold.beliefs.dense.exchange import Independent, Noise, SiteSum
from gaussfold.estimators.noise import NoiseBelief

N, D = 40, 4
RNG = np.random.default_rng(3)
X = np.c_[RNG.standard_normal((N, D)), np.ones(N)]
Y = X @ np.array([0.4, -1.2, 0.3, 0.9, 7.0]) + 0.3 * RNG.standard_normal(N)
BEFORE = Independent(np.array([0.2, -0.1, 0.4, 0.0, 1.3]), np.array([0.7, 0.7, 0.9, 0.7, 3.0]))
AFTER = Independent(np.array([0.0, 0.3, 0.1, -0.2, 6.0]), np.array([1.0, 2.0, 1.0, 0.5, 5.0]))
LAST = (D,)
CHANGE = np.diag([0.5, 2.0, 1.3, 0.9, 1.0])
CHANGE[-1, :-1] = [0.3, -0.4, 1.1, 0.2]


def wide(width):
    return Independent(AFTER.mean, AFTER.std * np.array([width] * D + [1.0]))


def learned(prior, likelihood, rows=X):
    belief = prior.belief()
    gf.fold(belief, likelihood, rows, Y)
    return belief


@pytest.mark.parametrize("change", [None, (CHANGE, np.linalg.inv(CHANGE))])
def test_exchange_is_another_start(change):
    likelihood = gf.likelihoods.Gaussian(0.5)
    sites = SiteSum.of(learned(BEFORE, likelihood), BEFORE, AFTER, apart=LAST, change=change)
    want = learned(wide(1.7), likelihood, X if change is None else X @ change[1])
    got, scale = sites.belief(1.7)
    assert scale is None
    assert got.kl(want) < 1e-10
    np.testing.assert_allclose(got.mean, want.mean, rtol=1e-10)
    assert got.kl(sites.prior(1.7, 5.0).belief()) > 1.0


def test_without_a_last_parameter():
    likelihood = gf.likelihoods.Gaussian(0.5)
    got, _ = SiteSum.of(learned(BEFORE, likelihood), BEFORE, AFTER).belief(0.6)
    assert got.kl(learned(Independent(AFTER.mean, AFTER.std * 0.6), likelihood)) < 1e-10


def test_several_have_priors_of_their_own():
    likelihood = gf.likelihoods.Gaussian(0.5)
    sites = SiteSum.of(learned(BEFORE, likelihood), BEFORE, AFTER, apart=(1, D))
    prior = Independent(AFTER.mean, AFTER.std * np.array([1.7, 1.0, 1.7, 1.7, 1.0]))
    want = learned(prior, likelihood)
    assert sites.belief(1.7)[0].kl(want) < 1e-10

    def exact(width):
        std = AFTER.std * np.array([width, 1.0, width, width, 1.0])
        return multivariate_normal(X @ AFTER.mean, (X * std**2) @ X.T + 0.25 * np.eye(N)).logpdf(Y)

    np.testing.assert_allclose(np.diff(sites.log_evidence(np.array([0.5, 2.0])))[0], exact(2.0) - exact(0.5), rtol=1e-9)


def test_a_width_in_common():
    sites = [
        SiteSum.of(learned(BEFORE, gf.likelihoods.Gaussian(noise)), BEFORE, AFTER, apart=LAST) for noise in (0.5, 3.0)
    ]
    pooled, widths = SiteSum.pooled(sites), np.array([0.3, 1.1, 2.0])
    np.testing.assert_allclose(
        pooled.log_evidence(widths), sum(each.log_evidence(widths) for each in sites), rtol=1e-12
    )
    low, high = sorted(each.best_width(1.0, 1.5) for each in sites)
    assert low < pooled.best_width(1.0, 1.5) < high


def test_evidence():
    sites = SiteSum.of(learned(BEFORE, gf.likelihoods.Gaussian(0.5)), BEFORE, AFTER, apart=LAST)

    def exact(width):
        return multivariate_normal(X @ AFTER.mean, (X * wide(width).std ** 2) @ X.T + 0.25 * np.eye(N)).logpdf(Y)

    np.testing.assert_allclose(np.diff(sites.log_evidence(np.array([0.5, 2.0])))[0], exact(2.0) - exact(0.5), rtol=1e-9)
    best = sites.best_width(1.0, 1e3)
    assert exact(best) > max(exact(best * 1.01), exact(best / 1.01))


def test_noise_is_exchanged_too():
    def start(prior, guess):
        belief = prior.belief()
        trace = gf.fold(belief, gf.likelihoods.Gaussian(1.0), X, Y)
        return belief, NoiseBelief.from_guess(guess, 0.3).learn(Y - trace.mean, trace.variance, np.ones(N))[0]

    belief, noise = start(BEFORE, 1.0)
    want, other = start(wide(1.7), 2.0)
    known = Noise(noise.shape, noise.scale, noise.prior_scale)
    sites = SiteSum.of(belief, BEFORE, AFTER, apart=LAST, noise=known, prior_scale=other.prior_scale)
    got, scale = sites.belief(1.7)
    assert got.kl(want) < 1e-10
    np.testing.assert_allclose(scale, other.scale, rtol=1e-10)


def test_nothing_learned_is_the_prior():
    sites = SiteSum.of(BEFORE.belief(), BEFORE, AFTER, apart=LAST)
    assert abs(sites.belief(0.9)[0].kl(wide(0.9).belief())) < 1e-10
    np.testing.assert_allclose(sites.best_width(1.0, 1.5), 1.0, rtol=1e-6)
