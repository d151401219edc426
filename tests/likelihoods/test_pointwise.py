"""Log densities, their derivatives and conditional moments against 50 digits and SciPy."""

import mpmath as mp
import numpy as np
import pytest
from scipy import integrate

from gaussfold import likelihoods as lk
from gaussfold.likelihoods import links
from tests.likelihoods.families import COUNTS, FAMILIES, name
from tests.reference import likelihoods as reference

LATENTS = np.array([-800.0, -90.0, -37.3, -5.1, -3.9, -1.0, -0.3, 0.0, 0.4, 2.2, 8.6, 37.3, 90.0, 800.0])
CASES = [(likelihood, y) for likelihood, labels in FAMILIES for y in labels]


@pytest.mark.parametrize(("likelihood", "y"), CASES, ids=name)
def test_log_prob(likelihood, y):
    got = likelihood.log_prob(y, LATENTS)
    with mp.workdps(reference.DIGITS):
        want = [float(reference.exact_log_density(likelihood.config(), y, mp.mpf(f))) for f in LATENTS]
    # log y! cancels against y f: what is left has the rounding of the terms, not of the sum
    counts = isinstance(likelihood, lk.Poisson | lk.NegativeBinomial)
    for a, b, f in zip(got, want, LATENTS, strict=True):
        assert a == pytest.approx(b, rel=2e-13, abs=4e-16 * (1.0 + abs(y * f)) if counts else 1e-300), f


@pytest.mark.parametrize(("likelihood", "y"), CASES, ids=name)
def test_derivatives(likelihood, y):
    first, second = likelihood.derivatives(y, LATENTS)
    want = np.array([reference.exact_derivatives(likelihood.config(), y, f) for f in LATENTS])
    # y - e^f and the like cancel near their root
    np.testing.assert_allclose(first, want[:, 0], rtol=2e-13, atol=1e-15 * y if y > 1.0 else 1e-300)
    np.testing.assert_allclose(second, want[:, 1], rtol=2e-13, atol=1e-300)


@pytest.mark.parametrize(("likelihood", "labels"), FAMILIES, ids=name)
@pytest.mark.parametrize("f", [-5.1, -0.3, 0.4, 6.2])
def test_conditional_moments_are_scipys(likelihood, labels, f):
    want = reference.exact_conditional(likelihood.config(), f)
    np.testing.assert_allclose(likelihood.conditional(f), want, rtol=1e-12, atol=1e-16)


@pytest.mark.parametrize("f", [-2.1, 0.4, 1.7])
def test_probabilities_add_up(f):
    for likelihood in COUNTS:
        assert np.exp(likelihood.log_prob(np.arange(2000.0), f)).sum() == pytest.approx(1.0, rel=1e-12)
    for link in ("logit", "probit"):
        assert np.exp(lk.Bernoulli(link).log_prob([0.0, 1.0], f)).sum() == pytest.approx(1.0, rel=1e-14)
    for likelihood in (lk.Gaussian(0.7), lk.StudentT(3.5, 0.8)):
        density = lambda y, lik=likelihood: float(np.exp(lik.log_prob(y, f)))  # noqa: E731
        assert integrate.quad(density, -np.inf, np.inf)[0] == pytest.approx(1.0, rel=1e-9)


def test_conditional_mean_agrees_with_the_density():
    """Mean and variance of y by summing over the density itself: units and parametrisation at once."""
    y = np.arange(4000.0)
    for likelihood in COUNTS:
        p = np.exp(likelihood.log_prob(y, 1.3))
        mean = p @ y
        np.testing.assert_allclose(likelihood.conditional(1.3), (mean, p @ (y - mean) ** 2), rtol=1e-10)


def test_negative_binomial_becomes_poisson():
    many = lk.NegativeBinomial(dispersion=1e12)
    y, f = np.array([0.0, 3.0, 40.0])[:, None], np.array([-2.0, 0.4, 3.5])
    np.testing.assert_allclose(many.log_prob(y, f), lk.Poisson().log_prob(y, f), rtol=1e-9)
    np.testing.assert_allclose(many.derivatives(y, f), lk.Poisson().derivatives(y, f), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("df", [0.6, 1.0, 1.5, 2.0])
def test_student_variance_that_does_not_exist(df):
    mean, variance = lk.StudentT(df=df, scale=0.8).conditional([0.4, -2.0])
    np.testing.assert_array_equal(mean, [0.4, -2.0])
    assert np.isposinf(variance).all()


def test_infinite_rates_are_silent():
    likelihood = lk.Poisson()
    assert likelihood.log_prob(3.0, 800.0) == -np.inf
    assert np.isneginf(likelihood.derivatives(3.0, 800.0)).all()
    assert np.isposinf(likelihood.conditional(800.0)).all()


@pytest.mark.parametrize(("likelihood", "labels"), FAMILIES, ids=name)
def test_broadcasting_is_elementwise(likelihood, labels):
    y, f = np.array(labels)[:, None], np.array([-6.3, -0.2, 1.1, 4.0])
    values = likelihood.log_prob(y, f)
    first, second = likelihood.derivatives(y, f)
    mean, variance = likelihood.conditional(f)
    assert values.shape == first.shape == second.shape == (len(labels), 4)
    for i, label in enumerate(labels):
        for j, latent in enumerate(f):
            assert values[i, j] == likelihood.log_prob(label, latent)
            assert (first[i, j], second[i, j]) == likelihood.derivatives(label, latent)
            assert (mean[j], variance[j]) == likelihood.conditional(latent)


@pytest.mark.parametrize(("likelihood", "labels"), FAMILIES, ids=name)
def test_log_concave_is_what_it_says(likelihood, labels):
    _, second = likelihood.derivatives(np.array(labels)[:, None], np.linspace(-60.0, 60.0, 4001))
    assert likelihood.log_concave == bool((second <= 0.0).all())


def test_missing_label_gives_missing_values():
    for likelihood, _ in FAMILIES:
        assert np.isnan(likelihood.log_prob(np.nan, 0.4))
        assert np.isnan(likelihood.derivatives(np.nan, 0.4)[0])


def test_inverse_mills_does_not_cancel():
    """l'' of the probit is -(1 - 1/x² + 6/x⁴ - ...) far out: subtracting would leave noise at x = 1e6."""
    f = -np.array([3.99, 4.01, 50.0, 1e3, 1e6])
    _, second = links.PROBIT.score(f)
    with mp.workdps(60):
        x = [-mp.mpf(t) for t in f]
        mills = [mp.npdf(t) / (mp.erfc(t / mp.sqrt(2)) / 2) for t in x]
        want = [float(-r * (r - t)) for r, t in zip(mills, x, strict=True)]
    np.testing.assert_allclose(second, want, rtol=3e-14)
