"""DenseGaussian shares no memory with anybody, and what it hands over is all there is to it."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.likelihoods import Bernoulli, Gaussian
from tests.problems import data, prior, relative

D = 4
MEAN, COV = prior(D, seed=9)


def belief() -> gf.DenseGaussian:
    return gf.DenseGaussian(MEAN, COV)


def test_what_is_handed_out_is_a_copy():
    one = belief()
    for array in (one.mean, one.cov, one.factor, *one.state().values(), one.variance()):
        array[:] = 7.0
    np.testing.assert_array_equal(one.mean, MEAN)
    assert relative(one.cov, COV) < 1e-14


def test_what_is_handed_in_is_copied():
    mean, cov, factor = MEAN.copy(), COV.copy(), np.linalg.cholesky(COV)
    beliefs = gf.DenseGaussian(mean, cov), gf.DenseGaussian.from_factor(mean, factor)
    mean[:], cov[:], factor[:] = 7.0, 7.0, 7.0
    for one in beliefs:
        np.testing.assert_array_equal(one.mean, MEAN)
        assert relative(one.cov, COV) < 1e-14


def test_copy_and_become():
    one = belief()
    copy = one.copy()
    gf.fold(copy, Gaussian(0.7), [[1.0, 0.0, 0.3, -0.2]], [2.0])
    np.testing.assert_array_equal(one.mean, MEAN)
    want = copy.mean, copy.cov
    one.become(copy)
    np.testing.assert_array_equal(one.mean, want[0])
    np.testing.assert_array_equal(one.cov, want[1])


def test_two_beliefs_of_one_state_go_on_alike_bit_for_bit():
    """Also when the factor is no longer triangular: rows one at a time and many at once."""
    one = belief()
    X, y = data(Bernoulli(), 30, D, seed=2)
    gf.fold(one, Bernoulli(), X, y)
    twin = gf.DenseGaussian.from_state(one.state())
    for rows in (slice(0, 1), slice(0, 30)):
        for learner in (one, twin):
            gf.fold(learner, Bernoulli(), X[rows], y[rows])
        for key, value in one.state().items():
            np.testing.assert_array_equal(twin.state()[key], value)


def test_combining_changes_none_of_its_parts():
    base, shard = belief(), belief()
    gf.fold(shard, Gaussian(0.7), *data(Gaussian(0.7), 10, D, seed=3))
    before = base.state(), shard.state()
    combined = gf.DenseGaussian.combine(base, [shard])
    assert relative(combined.cov, shard.cov) < 1e-10
    assert relative(gf.DenseGaussian.combine(base, []).cov, COV) < 1e-10
    for one, state in zip((base, shard), before, strict=True):
        for key, value in one.state().items():
            np.testing.assert_array_equal(value, state[key])


def test_the_generator_decides_the_draws():
    draws = [belief().sample(3, np.random.default_rng(8)) for _ in range(2)]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gf.DenseGaussian([0.0, 1.0], np.diag([1.0, np.inf])), "NaN or infinity"),
        (lambda: gf.DenseGaussian.isotropic(2.5), "dim=2.5: a whole number >= 1"),
        (lambda: gf.DenseGaussian.isotropic(2, std=-0.7), "std: entry 0 is -0.7"),
        (lambda: gf.DenseGaussian.independent([0.0, 0.0], [0.7, np.nan]), "std: entry 1 is nan"),
        (lambda: gf.DenseGaussian.from_factor([0.0, 0.0], np.eye(3)), r"factor: shape \(3, 3\); \(2, 2\) is needed"),
        (lambda: gf.DenseGaussian([0.0, 0.0], np.eye(2)).marginal(np.ones(2)), r"X: shape \(2,\); \(n, 2\)"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
