"""Gamma, beta and ordinal: one latent, no record in the engine."""

import json

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold.types import Moments

CASES = [
    (lk.Gamma(shape=2.5), [0.2, 1.3, 40.0]),
    (lk.Gamma(), [0.2, 3.0]),
    (lk.Beta(scale=4.0), [0.1, 0.55, 0.97]),
    (lk.Beta(scale=0.7, link="probit"), [0.1, 0.97]),
    (lk.Ordinal([-1.0, 0.2, 1.4], scale=0.8), [0.0, 1.0, 3.0]),
    (lk.Ordinal([-1.0, 0.2], scale=0.6, link="probit"), [0.0, 1.0, 2.0]),
]
F = np.array([-3.1, -0.4, 0.0, 0.7, 2.6])


def name(value):
    return f"{value}-{getattr(value, 'link', '')}" if isinstance(value, lk.ScalarLikelihood) else None


def test_densities_are_scipys():
    y = 1.3
    want = stats.gamma.logpdf(y, 2.5, scale=np.exp(F) / 2.5)
    np.testing.assert_allclose(lk.Gamma(2.5).log_prob(y, F), want, rtol=1e-12)
    for link, g in (("logit", expit), ("probit", stats.norm.cdf)):
        want = stats.beta.logpdf(0.3, 4.0 * g(F), 4.0 * g(-F))
        np.testing.assert_allclose(lk.Beta(4.0, link).log_prob(0.3, F), want, rtol=1e-11)
        c = np.array([-np.inf, -1.0, 0.2, np.inf])
        for k in range(3):
            want = np.log(g((c[k + 1] - F) / 0.6) - g((c[k] - F) / 0.6))
            got = lk.Ordinal([-1.0, 0.2], 0.6, link).log_prob(float(k), F)
            np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_ordinal_tails_keep_their_digits(link):
    """Far out the difference of two distribution functions underflows; its logarithm does not."""
    wide = lk.Ordinal([-1.0, 0.2], 0.6, link)
    far = np.array([-40.0, 40.0])
    for k in (0.0, 1.0, 2.0):
        value = wide.log_prob(k, far)
        first, second = wide.derivatives(k, far)
        assert np.isfinite(value).all()
        step = 1e-4
        want = (wide.log_prob(k, far + step) - wide.log_prob(k, far - step)) / (2 * step)
        np.testing.assert_allclose(first, want, rtol=1e-6, atol=1e-9)
        assert (second <= 0.0).all()


@pytest.mark.parametrize(("likelihood", "labels"), CASES, ids=name)
def test_derivatives(likelihood, labels):
    for y in labels:
        step = 1e-5
        first, second = likelihood.derivatives(y, F)
        up, down = (likelihood.log_prob(y, F + s * step) for s in (1, -1))
        np.testing.assert_allclose(first, (up - down) / (2 * step), rtol=1e-6, atol=1e-7)
        up, down = (likelihood.derivatives(y, F + s * step)[0] for s in (1, -1))
        np.testing.assert_allclose(second, (up - down) / (2 * step), rtol=1e-6, atol=1e-7)
        if likelihood.log_concave:
            assert (second <= 0.0).all()


@pytest.mark.parametrize(
    "likelihood",
    [case[0] for case in CASES]
    + [lk.Gaussian(0.7), lk.Bernoulli(), lk.Bernoulli("probit"), lk.Poisson(), lk.StudentT(3.5, 0.8)]
    + [lk.NegativeBinomial(2.5)],
    ids=name,
)
def test_conditional_derivatives(likelihood):
    """The closed forms against central differences, which are what a likelihood of one's own gets."""
    first, second = likelihood.conditional_derivatives(F)
    by_hand = lk.ScalarLikelihood.conditional_derivatives(likelihood, F)
    for got, want, tolerance in ((first, by_hand[0], 1e-6), (second, by_hand[1], 3e-6)):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


SMOOTH = [case for case in CASES if not (isinstance(case[0], lk.Beta) and case[0].scale < 1.0)]  # infinite at the ends


@pytest.mark.parametrize(("likelihood", "labels"), SMOOTH, ids=name)
def test_moments_agree_with_the_density(likelihood, labels):
    if isinstance(likelihood, lk.Ordinal):
        y, w = np.arange(len(likelihood.cutpoints) + 1.0), 1.0
    else:
        top = 1.0 if isinstance(likelihood, lk.Beta) else 60.0
        y = (np.arange(200_000) + 0.5) * top / 200_000
        w = top / 200_000
    for f in (-0.4, 0.7):
        p = w * np.exp(likelihood.log_prob(y, f))
        assert p.sum() == pytest.approx(1.0, rel=1e-3)
        p /= p.sum()
        mean = p @ y
        want = (mean, p @ (y - mean) ** 2)
        np.testing.assert_allclose(likelihood.conditional(f), want, rtol=2e-3)


def test_gamma_expectations_are_closed_forms():
    likelihood, y = lk.Gamma(2.5), np.array([0.3, 2.0])
    moments = Moments(np.array([0.4, -1.0]), np.array([0.7, 0.2]))
    own = super(lk.Gamma, likelihood)
    np.testing.assert_allclose(likelihood.expected_log_prob(y, moments), own.expected_log_prob(y, moments), rtol=1e-11)
    for got, want in zip(
        likelihood.expected_derivatives(y, moments), own.expected_derivatives(y, moments), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-11)
    for got, want in zip(likelihood.predictive(moments), own.predictive(moments), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize(("likelihood", "labels"), CASES, ids=name)
def test_config_survives_json(likelihood, labels):
    again = lk.from_config(json.loads(json.dumps(likelihood.config())))
    assert again == likelihood
    assert hash(again) == hash(likelihood)


@pytest.mark.parametrize(
    ("likelihood", "rule", "at"),
    [
        (lk.Gamma(2.5), "vi", "posterior"),
        (lk.Gamma(2.5), "taylor", "prior"),
        (lk.Beta(4.0), "ep", "prior"),
        (lk.Ordinal([-1.0, 0.2, 1.4], 0.8), "newton", "posterior"),
        (lk.Ordinal([-1.0, 0.2, 1.4], 0.8), "pl", "prior"),
    ],
    ids=name,
)
def test_streams(likelihood, rule, at):
    """The streaming fold takes them through its Python path: the posterior mean finds the parameter."""
    rng = np.random.default_rng(3)
    belief = gf.DenseGaussian.isotropic(2, std=1.0)
    X = rng.standard_normal((30, 2))
    f = X @ np.array([0.8, -0.5])
    if isinstance(likelihood, lk.Gamma):
        y = rng.gamma(2.5, np.exp(f) / 2.5)
    elif isinstance(likelihood, lk.Beta):
        y = rng.beta(4.0 * expit(f), 4.0 * expit(-f))
    else:
        y = np.searchsorted(likelihood.cutpoints, f + 0.8 * rng.logistic(size=30)).astype(float)
    gf.fold(belief, likelihood, X, y, rule=rule, at=at)
    away = (belief.mean - [0.8, -0.5]) / np.sqrt(belief.variance())
    assert (np.abs(away) < 3.0).all()
    assert (belief.variance() < 0.35).all()


def test_labels_are_checked():
    with pytest.raises(ValueError, match=r"y\[1\] = 0.0: Gamma labels must be numbers > 0"):
        lk.Gamma().check_labels([1.0, 0.0])
    with pytest.raises(ValueError, match=r"y\[0\] = 1.0: Beta labels must be strictly between 0 and 1.*Bernoulli"):
        lk.Beta().check_labels([1.0])
    with pytest.raises(ValueError, match=r"y\[0\] = 3.0: Ordinal labels must be class numbers"):
        lk.Ordinal([0.0, 1.0]).check_labels([3.0])


@pytest.mark.parametrize("cutpoints", [[], [1.0, 1.0], [2.0, 1.0], [0.0, np.nan], "ab", None])
def test_refused_cutpoints(cutpoints):
    with pytest.raises(ValueError, match=r"cutpoints=.*increasing order"):
        lk.Ordinal(cutpoints)


def test_refused_parameters():
    with pytest.raises(ValueError, match=r"link='cloglog': Beta takes one of 'logit', 'probit'"):
        lk.Beta(1.0, "cloglog")
    with pytest.raises(ValueError, match=r"shape=-1: Gamma needs a finite number > 0"):
        lk.Gamma(-1)
