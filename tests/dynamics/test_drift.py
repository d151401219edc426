"""How a belief ages: forgetting towards the prior, a random walk, per row and on a clock."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.likelihoods import Bernoulli, Gaussian, Poisson
from tests.problems import data, name, prior, relative
from tests.reference.dense import Textbook, kalman_random_walk

D = 4
PRIOR = prior(D)
FAMILIES = [Gaussian(0.7), Bernoulli(), Poisson()]


def belief(seed: int = 5) -> gf.DenseGaussian:
    return gf.DenseGaussian(*prior(D, seed))


def experienced() -> gf.DenseGaussian:
    """A belief that has seen data."""
    out = belief()
    gf.fold(out, Gaussian(0.7), *data(Gaussian(0.7), 25, D, seed=1))
    return out


@pytest.mark.parametrize("ticks", [1.0, 3.0, 0.37, 0.0])
def test_forgetting_on_a_clock(ticks):
    """Λ ← γᵗΛ + (1 - γᵗ)Λ₀, and the same for Λμ; fractions of a tick too."""
    aged, want = experienced(), Textbook(experienced().mean, experienced().cov)
    Forgetting(0.97, belief()).tick(aged, ticks)
    want.relax(0.97**ticks, *PRIOR)
    assert relative(aged.mean, want.mean) < 1e-12
    assert relative(aged.cov, want.cov) < 1e-12


def test_ticks_compose():
    once, twice = experienced(), experienced()
    forgetting = Forgetting(0.97, belief())
    forgetting.tick(once, 3.5)
    forgetting.tick(twice, 1.25)
    forgetting.tick(twice, 2.25)
    assert relative(twice.cov, once.cov) < 1e-12
    assert relative(twice.mean, once.mean) < 1e-12


def test_everything_is_forgotten_in_the_end():
    aged = experienced()
    Forgetting(0.97, belief()).tick(aged, 2000.0)
    assert relative(aged.cov, PRIOR[1]) < 1e-12
    assert relative(aged.mean, PRIOR[0]) < 1e-12


@pytest.mark.parametrize("likelihood", FAMILIES, ids=name)
@pytest.mark.parametrize("factor", [0.9, 0.97, 1.0])
def test_forgetting_per_row(likelihood, factor):
    """One tick before each learned row: none for a missing label or a weight of zero."""
    X, y = data(likelihood, 20, D, seed=2)
    w = np.resize([1.0, 2.5, 0.3], 20)
    y[5], w[11] = np.nan, 0.0
    got = belief(7)
    trace = gf.fold(got, likelihood, X, y, sample_weight=w, dynamics=Forgetting(factor, belief()))
    want = Textbook(*prior(D, 7)).learn(likelihood.config(), X, y, weight=w, tick=lambda b: b.relax(factor, *PRIOR))
    assert relative(got.mean, want.mean) < 1e-10
    assert relative(got.cov, want.cov) < 1e-10
    np.testing.assert_allclose(trace.mean, want.means, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(trace.variance, want.variances, rtol=1e-10)
    np.testing.assert_allclose(trace.site_precision, want.precisions, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dynamics", [Forgetting(0.97, belief()), RandomWalk(0.13)], ids=["forgetting", "walk"])
@pytest.mark.parametrize("block_size", [None, 1, 3])
def test_inside_a_block_as_row_by_row(dynamics, block_size):
    X, y = data(Bernoulli(), 40, D, seed=3)
    whole, rows, ticked = belief(), belief(), belief()
    gf.fold(whole, Bernoulli(), X, y, dynamics=dynamics, block_size=block_size)
    for x, label in zip(X, y, strict=True):
        gf.fold(rows, Bernoulli(), x[None], [label], dynamics=dynamics)
        dynamics.tick(ticked)
        gf.fold(ticked, Bernoulli(), x[None], [label])
    for other in (rows, ticked):
        assert relative(other.mean, whole.mean) < 1e-10
        assert relative(other.cov, whole.cov) < 1e-10


@pytest.mark.parametrize("likelihood", FAMILIES, ids=name)
def test_covariance_never_exceeds_the_prior(likelihood):
    """No wind-up: not while learning one direction only, not while nothing is learned for a long time."""
    base = belief()
    got, forgetting = base.copy(), Forgetting(0.9, base)
    X, y = data(likelihood, 300, D, seed=4)
    X[:, 1:] = 0.0  # excites one direction
    for start in range(0, 300, 50):
        gf.fold(got, likelihood, X[start : start + 50], y[start : start + 50], dynamics=forgetting)
        forgetting.tick(got, 7.5)
        assert np.linalg.eigvalsh(PRIOR[1] - got.cov).min() > -1e-12


def test_forgetting_reaches_a_steady_state():
    """Unit information per row: Λ - Λ₀ settles at 1/(1 - γ) observations, wherever it started."""
    got = gf.DenseGaussian.isotropic(1, std=0.7)
    forgetting = Forgetting(0.97, got.copy())
    gf.fold(got, Gaussian(1.0), np.ones((2000, 1)), np.full(2000, 0.4), dynamics=forgetting)
    assert 1.0 / got.cov[0, 0] - 1.0 / 0.49 == pytest.approx(1.0 / 0.03, rel=1e-10)


def test_random_walk_is_the_kalman_filter():
    X, y = data(Gaussian(0.7), 50, D, seed=5)
    got = belief()
    gf.fold(got, Gaussian(0.7), X, y, dynamics=RandomWalk(0.13))
    mean, cov = kalman_random_walk(*PRIOR, X, y, 0.7, 0.13)
    assert relative(got.mean, mean) < 1e-11
    assert relative(got.cov, cov) < 1e-11


@pytest.mark.parametrize("ticks", [1.0, 4.0, 0.3])
def test_random_walk_on_a_clock(ticks):
    got = belief()
    RandomWalk(0.13).tick(got, ticks)
    assert relative(got.cov, PRIOR[1] + ticks * 0.13**2 * np.eye(D)) < 1e-13
    np.testing.assert_array_equal(got.mean, PRIOR[0])


def test_the_prior_to_return_to_is_not_changed():
    base = belief()
    before = base.state()
    got = base.copy()
    gf.fold(got, Bernoulli(), *data(Bernoulli(), 30, D, seed=6), dynamics=Forgetting(0.9, base))
    for key, value in base.state().items():
        np.testing.assert_array_equal(value, before[key])


@pytest.mark.parametrize("factor", [0.0, -0.1, 1.0001, np.nan])
def test_factor_out_of_range(factor):
    with pytest.raises(ValueError, match=r"forgetting=.* is not in \(0, 1\]; 1 forgets nothing"):
        Forgetting(factor, belief())


@pytest.mark.parametrize("std", [0.0, -0.1, np.inf, np.nan])
def test_walk_out_of_range(std):
    with pytest.raises(ValueError, match="drift_std=.* is not a finite number > 0"):
        RandomWalk(std)


@pytest.mark.parametrize("ticks", [-1.0, np.inf, np.nan])
@pytest.mark.parametrize("dynamics", [Forgetting(0.97, belief()), RandomWalk(0.13)], ids=["forgetting", "walk"])
def test_time_does_not_run_backwards(dynamics, ticks):
    got = belief()
    before = got.cov
    with pytest.raises(ValueError, match="ticks=.* is not a finite number >= 0"):
        dynamics.tick(got, ticks)
    np.testing.assert_array_equal(got.cov, before)
