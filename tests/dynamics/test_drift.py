"""Forgetting and the random walk: formulas, limits, clocks, and the same numbers in any chunks."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold.dynamics import Forgetting, RandomWalk
from tests import problems
from tests.reference.dense import Textbook, kalman_random_walk

D = 4


def _prior(d=D):
    return gf.DenseGaussian(*problems.prior(d))


def _belief(d=D, seed=9):
    return gf.DenseGaussian(*problems.prior(d, seed))


def _dynamics():
    return [Forgetting(0.97, _prior()), RandomWalk(0.13)]


def _stream(likelihood, n=40, seed=2):
    X, y = problems.data(likelihood, n, D, seed)
    weight = np.random.default_rng(seed).choice([1.0, 2.5, 0.3], n)
    y[5::11] = np.nan
    weight[7::9] = 0.0
    return X, y, weight


def _assert_same(belief, other, tolerance):
    assert problems.relative(belief.mean, other.mean) < tolerance
    assert problems.relative(belief.cov, other.cov) < tolerance


# ------------------------------------------------------------------------------------- one tick


def test_forgetting_relaxes_natural_parameters():
    prior, belief = _prior(), _belief()
    base, precision = np.linalg.inv(prior.cov), np.linalg.inv(belief.cov)
    after = 0.97 * precision + 0.03 * base
    mean = np.linalg.solve(after, 0.97 * precision @ belief.mean + 0.03 * base @ prior.mean)
    state = prior.state()
    Forgetting(0.97, prior).tick(belief)
    np.testing.assert_allclose(belief.cov, np.linalg.inv(after), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-11, atol=1e-13)
    for key, value in prior.state().items():
        np.testing.assert_array_equal(value, state[key])


def test_a_walk_adds_variance():
    belief = _belief()
    mean, cov = belief.mean, belief.cov
    RandomWalk(0.13).tick(belief, 2.5)
    np.testing.assert_array_equal(belief.mean, mean)
    np.testing.assert_allclose(belief.cov, cov + 2.5 * 0.13**2 * np.eye(D), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("dynamics", _dynamics(), ids=["forgetting", "walk"])
@pytest.mark.parametrize(("first", "second"), [(1.0, 1.0), (0.3, 2.45), (7.0, 0.0), (1e-3, 60.0)])
def test_ticks_compose(dynamics, first, second):
    once, twice = _belief(), _belief()
    dynamics.tick(once, first + second)
    dynamics.tick(twice, first)
    dynamics.tick(twice, second)
    _assert_same(twice, once, 1e-12)
    assert problems.relative(once.cov, _belief().cov) > 1e-3  # time did something


@pytest.mark.parametrize("dynamics", _dynamics(), ids=["forgetting", "walk"])
def test_no_time_changes_nothing(dynamics):
    belief = _belief()
    state = belief.state()
    dynamics.tick(belief, 0.0)
    for key, value in belief.state().items():
        np.testing.assert_array_equal(value, state[key])


def test_everything_is_forgotten_in_the_end():
    belief = _belief()
    Forgetting(0.97, _prior()).tick(belief, 3000.0)
    _assert_same(belief, _prior(), 1e-12)


# ----------------------------------------------------------------------------------- in a fold


@pytest.mark.parametrize("likelihood", problems.FAMILIES, ids=problems.name)
def test_forgetting_inside_a_fold_is_the_textbook(likelihood):
    X, y, weight = _stream(likelihood, n=20)
    belief = _belief()
    result = gf.fold(belief, likelihood, X, y, sample_weight=weight, dynamics=Forgetting(0.97, _prior()))
    mean, cov = problems.prior(D, 9)
    twin = Textbook(mean, cov).learn(
        likelihood.config(), X, y, weight=weight, tick=lambda t: t.relax(0.97, *problems.prior(D))
    )
    _assert_same(belief, twin, 1e-10)
    assert problems.relative(result.mean, np.array(twin.means)) < 1e-10
    assert problems.relative(result.variance, np.array(twin.variances)) < 1e-10
    assert problems.relative(result.site_precision, np.array(twin.precisions)) < 1e-10
    assert problems.relative(result.site_shift, np.array(twin.shifts)) < 1e-10


@pytest.mark.parametrize("likelihood", problems.FAMILIES, ids=problems.name)
def test_walk_inside_a_fold_is_the_textbook(likelihood):
    X, y, weight = _stream(likelihood, n=20)
    belief = _belief()
    gf.fold(belief, likelihood, X, y, sample_weight=weight, dynamics=RandomWalk(0.13))

    def tick(twin):
        twin.cov = twin.cov + 0.13**2 * np.eye(D)

    twin = Textbook(*problems.prior(D, 9)).learn(likelihood.config(), X, y, weight=weight, tick=tick)
    _assert_same(belief, twin, 1e-10)


def test_walk_on_gaussian_data_is_the_kalman_filter():
    X, y = problems.data(gf.likelihoods.Gaussian(0.7), 300, D, 3)
    belief = _belief()
    gf.fold(belief, gf.likelihoods.Gaussian(0.7), X, y, dynamics=RandomWalk(0.13))
    mean, cov = kalman_random_walk(*problems.prior(D, 9), X, y, 0.7, 0.13)
    assert problems.relative(belief.mean, mean) < 1e-11
    assert problems.relative(belief.cov, cov) < 1e-11


@pytest.mark.parametrize("dynamics", _dynamics(), ids=["forgetting", "walk"])
@pytest.mark.parametrize("likelihood", problems.FAMILIES, ids=problems.name)
def test_in_one_chunk_as_row_by_row_as_by_clock(likelihood, dynamics):
    X, y, weight = _stream(likelihood)
    whole, rows, clock = _belief(), _belief(), _belief()
    expected = gf.fold(whole, likelihood, X, y, sample_weight=weight, dynamics=dynamics)
    scores = []
    for i in range(len(y)):
        row = slice(i, i + 1)
        scores.append(
            gf.fold(rows, likelihood, X[row], y[row], sample_weight=weight[row], dynamics=dynamics).log_predictive
        )
        if weight[i] > 0.0 and not np.isnan(y[i]):
            dynamics.tick(clock)
        gf.fold(clock, likelihood, X[row], y[row], sample_weight=weight[row])
    _assert_same(rows, whole, 1e-9)
    _assert_same(clock, whole, 1e-9)
    np.testing.assert_allclose(np.concatenate(scores), expected.log_predictive, rtol=1e-9)


@pytest.mark.parametrize("dynamics", _dynamics(), ids=["forgetting", "walk"])
def test_rows_that_are_not_learned_do_not_tick(dynamics):
    X, y, _ = _stream(problems.FAMILIES[1])
    weight = np.where(np.isnan(y), 2.5, 0.0)  # nothing to learn from any row, for either reason
    belief = _belief()
    result = gf.fold(belief, problems.FAMILIES[1], X, y, sample_weight=weight, dynamics=dynamics)
    _assert_same(belief, _belief(), 1e-12)
    mean, variance = _belief().marginal(X)
    np.testing.assert_allclose(result.mean, mean, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(result.variance, variance, rtol=1e-11)
    np.testing.assert_array_equal(np.isnan(result.log_predictive), np.isnan(y))


def test_forgetting_nothing_is_the_static_fold():
    X, y, weight = _stream(problems.FAMILIES[1])
    still, moving = _belief(), _belief()
    gf.fold(still, problems.FAMILIES[1], X, y, sample_weight=weight)
    gf.fold(moving, problems.FAMILIES[1], X, y, sample_weight=weight, dynamics=Forgetting(1.0, _prior()))
    np.testing.assert_array_equal(moving.mean, still.mean)
    np.testing.assert_array_equal(moving.cov, still.cov)


# Student-t sites of vi and newton may have negative precision; the rules named here never do.
BOUNDED = [(f, "quadratic" if isinstance(f, gf.likelihoods.StudentT) else "vi") for f in problems.FAMILIES]


@pytest.mark.parametrize(("likelihood", "rule"), BOUNDED, ids=problems.name)
def test_forgetting_never_exceeds_the_prior(likelihood, rule):
    """Rows that see one direction only: plain forgetting would wind the others up without bound."""
    X, y = problems.data(likelihood, 2000, D, 6)
    X[300:] = X[300:, :1] * np.array([1.0, -0.4, 0.2, 0.0])
    prior, belief = _prior(), _prior()
    dynamics = Forgetting(0.97, prior)
    bound = prior.cov
    for start in range(0, 2000, 100):
        part = slice(start, start + 100)
        gf.fold(belief, likelihood, X[part], y[part], rule, dynamics=dynamics)
        assert np.linalg.eigvalsh(bound - belief.cov).min() >= -1e-12
        assert np.linalg.eigvalsh(belief.cov).min() > 0.0
    comes_back = np.linalg.eigvalsh(bound - belief.cov)[: D - 1]  # all but the one direction that is still seen
    np.testing.assert_allclose(comes_back, 0.0, atol=1e-12)


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("factor", [0.0, -0.1, 1.0001, np.nan, np.inf])
def test_forgetting_factor_is_checked(factor):
    with pytest.raises(ValueError, match=r"forgetting=.*: a number in \(0, 1\] is needed"):
        Forgetting(factor, _prior())


@pytest.mark.parametrize("std", [0.0, -0.1, np.nan, np.inf])
def test_step_is_checked(std):
    with pytest.raises(ValueError, match=r"drift_std=.*: a finite number > 0 is needed"):
        RandomWalk(std)


@pytest.mark.parametrize("dynamics", _dynamics(), ids=["forgetting", "walk"])
@pytest.mark.parametrize("ticks", [-1.0, np.nan, np.inf])
def test_ticks_are_checked(dynamics, ticks):
    belief = _belief()
    state = belief.state()
    with pytest.raises(ValueError, match=r"ticks=.*: a finite number >= 0 is needed"):
        dynamics.tick(belief, ticks)
    for key, value in belief.state().items():
        np.testing.assert_array_equal(value, state[key])


def test_a_walk_in_units_of_its_own():
    units = np.array([0.5, 2.0, 1.3, 0.1])
    belief, rows = _belief(), _stream(gf.likelihoods.Gaussian(0.7))
    cov = belief.cov
    RandomWalk(0.13, units).tick(belief, 2.5)
    np.testing.assert_allclose(belief.cov, cov + 2.5 * 0.13**2 * np.diag(units**2), rtol=1e-12, atol=1e-14)
    # the same as steps of one size for features in other units
    X, y, weight = rows
    other = gf.DenseGaussian(_belief().mean / units, _belief().cov / np.outer(units, units))
    belief = _belief()
    likelihood = gf.likelihoods.Gaussian(0.7)
    result = gf.fold(belief, likelihood, X, y, sample_weight=weight, dynamics=RandomWalk(0.13, units))
    wanted = gf.fold(other, likelihood, X * units, y, sample_weight=weight, dynamics=RandomWalk(0.13))
    np.testing.assert_allclose(result.variance, wanted.variance, rtol=1e-10)
    np.testing.assert_allclose(belief.mean, other.mean * units, rtol=1e-10)
    lowrank = gf.LowRankGaussian(np.zeros(D), np.eye(D), np.ones(D))
    before = lowrank.to_dense().cov
    RandomWalk(0.13, units).tick(lowrank, 2.5)
    np.testing.assert_allclose(lowrank.to_dense().cov, before + 2.5 * 0.13**2 * np.diag(units**2), rtol=1e-12)
    with pytest.raises(ValueError, match=r"scale: entry 1 is 0\.0; finite numbers > 0"):
        RandomWalk(0.1, np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"scale: shape \(2,\); \(4,\) is needed"):
        gf.fold(_belief(), likelihood, X, y, dynamics=RandomWalk(0.1, np.ones(2)))
