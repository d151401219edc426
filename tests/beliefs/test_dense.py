"""The dense belief against plain NumPy, at odd values."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal

import gaussfold as gf
from gaussfold.beliefs.dense import passes as blocks
from gaussfold.likelihoods import Bernoulli, Gaussian

MEAN = np.array([0.3, -1.2, 0.7])
COV = np.array([[1.3, 0.4, -0.2], [0.4, 0.7, 0.1], [-0.2, 0.1, 2.1]])


@pytest.fixture
def belief():
    return gf.DenseGaussian(MEAN, COV)


@pytest.fixture
def turned():
    """The same Gaussian with a factor that is not triangular."""
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    return gf.DenseGaussian.from_factor(MEAN, np.linalg.cholesky(COV) @ rotation)


@pytest.fixture(params=["belief", "turned"])
def either(request):
    return request.getfixturevalue(request.param)


def test_moments(either):
    assert either.dim == 3
    np.testing.assert_array_equal(either.mean, MEAN)
    np.testing.assert_allclose(either.cov, COV, rtol=1e-14)
    np.testing.assert_allclose(either.variance(), np.diag(COV), rtol=1e-14)
    np.testing.assert_allclose(either.factor @ either.factor.T, COV, rtol=1e-14)
    either.mean[:] = 99.0  # copies: nobody can reach inside
    np.testing.assert_array_equal(either.mean, MEAN)


def test_marginal(either):
    X = np.array([[1.0, -1.0, 0.5], [0.0, 2.0, 0.0]])
    for rows in (X, sparse.csr_matrix(X)):
        mean, variance = either.marginal(rows)
        np.testing.assert_allclose(mean, X @ MEAN, rtol=1e-14)
        np.testing.assert_allclose(variance, np.diag(X @ COV @ X.T), rtol=1e-14)


def test_log_prob_and_entropy(either):
    theta = np.random.default_rng(1).standard_normal((5, 3))
    reference = multivariate_normal(MEAN, COV)
    np.testing.assert_allclose(either.log_prob(theta), reference.logpdf(theta), rtol=1e-13)
    np.testing.assert_allclose(either.log_prob(theta[0]), reference.logpdf(theta[0]), rtol=1e-13)
    np.testing.assert_allclose(either.entropy(), reference.entropy(), rtol=1e-13)


def test_kl(either):
    other = gf.DenseGaussian([0.0, 0.5, -0.3], np.diag([0.8, 1.7, 0.6]) + 0.1)
    inverse = np.linalg.inv(other.cov)
    away = other.mean - MEAN
    expected = 0.5 * (
        np.trace(inverse @ COV) + away @ inverse @ away - 3 + np.log(np.linalg.det(other.cov) / np.linalg.det(COV))
    )
    np.testing.assert_allclose(either.kl(other), expected, rtol=1e-12)
    assert abs(either.kl(either)) < 1e-14


def test_sample_has_the_moments(either):
    draws = either.sample(200_000, np.random.default_rng(2))
    error = np.sqrt(np.diag(COV) / 200_000)
    assert (np.abs(draws.mean(axis=0) - MEAN) < 5 * error).all()
    spread = np.sqrt((COV**2 + np.outer(np.diag(COV), np.diag(COV))) / 200_000)
    assert (np.abs(np.cov(draws.T) - COV) < 5 * spread).all()


def test_natural_parameters(either):
    precision, shift = either.natural()
    np.testing.assert_allclose(precision, np.linalg.inv(COV), rtol=1e-12)
    np.testing.assert_allclose(shift, np.linalg.solve(COV, MEAN), rtol=1e-12)
    back = gf.DenseGaussian.from_natural(precision, shift)
    np.testing.assert_allclose(back.cov, COV, rtol=1e-12)
    np.testing.assert_allclose(back.mean, MEAN, rtol=1e-12)


def test_combine_is_one_pass_over_all_shards(belief):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((90, 3)), rng.standard_normal(90)
    shards = [belief.copy() for _ in range(3)]
    for i, shard in enumerate(shards):
        gf.fold(shard, Gaussian(0.8), X[i::3], y[i::3])
    whole = belief.copy()
    gf.fold(whole, Gaussian(0.8), X, y)
    joined = gf.DenseGaussian.combine(belief, shards)
    np.testing.assert_allclose(joined.mean, whole.mean, rtol=1e-10)
    np.testing.assert_allclose(joined.cov, whole.cov, rtol=1e-10)


def test_absorb_is_multiplication_by_a_site(either):
    x = np.array([0.5, -0.2, 1.1])
    precision, shift = np.linalg.inv(COV) + 1.7 * np.outer(x, x), np.linalg.solve(COV, MEAN) + 0.4 * x
    either.absorb(x, 1.7, 0.4)
    np.testing.assert_allclose(either.cov, np.linalg.inv(precision), rtol=1e-12)
    np.testing.assert_allclose(either.mean, np.linalg.solve(precision, shift), rtol=1e-12)
    either.absorb(x, -1.7, -0.4)  # and out again
    np.testing.assert_allclose(either.cov, COV, rtol=1e-12)
    with pytest.raises(ValueError, match="precision=-99"):
        either.absorb(x, -99.0, 0.0)


def test_state_is_the_belief_bit_for_bit(turned):
    again = gf.DenseGaussian.from_state(turned.state())
    np.testing.assert_array_equal(again.factor, turned.factor)
    np.testing.assert_array_equal(again.mean, turned.mean)


def test_constructors():
    np.testing.assert_allclose(gf.DenseGaussian.isotropic(2, 0.7, 0.1).cov, 0.49 * np.eye(2))
    np.testing.assert_allclose(gf.DenseGaussian.isotropic(2, 0.7, [0.1, 0.2]).mean, [0.1, 0.2])
    np.testing.assert_allclose(gf.DenseGaussian.independent([0, 1], [0.5, 2.0]).cov, np.diag([0.25, 4.0]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gf.DenseGaussian([0.0, 0.0], np.eye(3)), r"cov: shape \(3, 3\)"),
        (lambda: gf.DenseGaussian([0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]]), r"cov is not positive definite .*-1"),
        (lambda: gf.DenseGaussian([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]]), "cov is not symmetric"),
        (lambda: gf.DenseGaussian([0.0, np.nan], np.eye(2)), "NaN or infinity"),
        (lambda: gf.DenseGaussian.isotropic(2, std=0.0), "std: entry 0 is 0.0"),
        (lambda: gf.DenseGaussian.isotropic(0), "dim=0"),
        (lambda: gf.DenseGaussian.independent([0.0, 0.0], [1.0, -1.0]), "std: entry 1 is -1.0"),
        (lambda: gf.DenseGaussian.isotropic(2).marginal(np.ones((1, 3))), r"X: shape \(1, 3\)"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# Passes: three ways to the same numbers


def _logistic(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ rng.standard_normal(d)))).astype(float)


def test_the_covariance_way_is_taken_and_agrees(monkeypatch):
    X, y = _logistic(700, 80)
    taken = []
    original = blocks._absorb_segment
    monkeypatch.setattr(blocks, "_absorb_segment", lambda *a: taken.append(original(*a)) or taken[-1])
    fast, safe = gf.DenseGaussian.isotropic(80, 0.7), gf.DenseGaussian.isotropic(80, 0.7)
    one, two = gf.fold(fast, Bernoulli(), X, y), gf.fold(safe, Bernoulli(), X, y, block_size=1)
    assert len(taken) == 2
    assert all(after is not None for after in taken)
    np.testing.assert_allclose(fast.mean, safe.mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fast.cov, safe.cov, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(one.log_predictive, two.log_predictive, rtol=1e-9)


def test_the_covariance_way_is_refused_where_rounding_would_show(monkeypatch):
    X, y = _logistic(700, 80)
    X *= 10.0 ** np.linspace(0, -6, 80)
    answers = []
    original = blocks._absorb_segment
    monkeypatch.setattr(blocks, "_absorb_segment", lambda *a: answers.append(original(*a)) or answers[-1])
    belief, rows = gf.DenseGaussian.isotropic(80, 1e3), gf.DenseGaussian.isotropic(80, 1e3)
    gf.fold(belief, Gaussian(0.5), X, y)
    gf.fold(rows, Gaussian(0.5), X, y, block_size=1)
    assert answers == [None]
    assert belief.kl(rows) < 1e-12


def test_repeated_rows_in_a_block():
    """Identical rows make the block's Gram matrix singular: the QR branch."""
    X, y = _logistic(30, 70)
    X = np.repeat(X, 5, axis=0)
    y = np.repeat(y, 5)
    block, rows = gf.DenseGaussian.isotropic(70, 2.0), gf.DenseGaussian.isotropic(70, 2.0)
    gf.fold(block, Bernoulli(), X, y)
    gf.fold(rows, Bernoulli(), X, y, block_size=1)
    np.testing.assert_allclose(block.mean, rows.mean, rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(block.cov, rows.cov, rtol=1e-11, atol=1e-13)
