"""The row loops of the dense belief against inverses and outer products."""

import numpy as np
import pytest

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold import rules
from gaussfold.engine.dense import absorb as dense
from gaussfold.engine.dense import drifting
from gaussfold.types import Program
from tests.problems import data, prior, relative
from tests.reference import sites
from tests.reference.dense import Textbook

LIKELIHOOD = lk.Bernoulli()
PROGRAM = Program(LIKELIHOOD.record, rules.VI().record, 1)
NONE = np.empty((0, 0))


def columns(n: int) -> list[np.ndarray]:
    return [np.zeros(n) for _ in range(5)]


def rows_with_gaps(keep=14):
    """Weighted rows, one label missing, one weight zero."""
    X, y = data(LIKELIHOOD, 14, 3, seed=31)
    w = np.resize([1.0, 2.5, 0.3], 14)
    y[4], w[7], y[9] = np.nan, 0.0, 0.3
    return X[:keep], y[:keep], w[:keep]


def test_absorb_rows():
    X, y, w = rows_with_gaps()
    mean, cov = prior(3)
    want = Textbook(mean, cov).learn(LIKELIHOOD.config(), X, y, weight=w)
    factor, delta = np.linalg.cholesky(cov), np.zeros(3)
    met_mean, met_variance, score, precision, shift = columns(14)
    failed = dense.absorb_rows(
        factor, delta, X, X @ mean, y, w, precision, shift, PROGRAM, met_mean, met_variance, score, NONE
    )
    assert failed == -1
    assert relative(mean + delta, want.mean) < 1e-12
    assert relative(factor @ factor.T, want.cov) < 1e-12
    np.testing.assert_allclose(met_mean, want.means, rtol=1e-11)
    np.testing.assert_allclose(met_variance, want.variances, rtol=1e-11)
    np.testing.assert_allclose(precision, want.precisions, rtol=1e-10)
    np.testing.assert_allclose(shift, want.shifts, rtol=1e-9, atol=1e-12)
    known = ~np.isnan(y)
    assert np.isnan(score[~known]).all()
    moments = gf.types.Moments(met_mean[known], met_variance[known])
    np.testing.assert_allclose(score[known], LIKELIHOOD.log_predictive(y[known], moments), rtol=1e-13)


def test_second_visit_takes_the_old_site_out_first():
    """Sweeping once over one row whose site is stale: leave it out, look from there, put the new one in."""
    mean, cov = prior(3)
    x = np.array([0.4, -1.1, 0.7])
    belief = Textbook(mean, cov)
    belief.absorb(x, 0.37, -0.21)  # any old site
    factor, delta = np.linalg.cholesky(belief.cov), np.zeros(3)
    met_mean, met_variance, score, precision, shift = columns(1)
    precision[0], shift[0] = 0.37, -0.21
    offset = np.array([x @ belief.mean])
    dense.absorb_rows(
        factor, delta, x[None], offset, np.array([1.0]), np.array([2.5]), precision, shift, PROGRAM,
        met_mean, met_variance, score, NONE,
    )  # fmt: skip
    want = Textbook(mean, cov).learn(LIKELIHOOD.config(), x[None], [1.0], weight=[2.5])
    assert relative(belief.mean + delta, want.mean) < 1e-12
    assert relative(factor @ factor.T, want.cov) < 1e-12
    np.testing.assert_allclose((precision[0], shift[0]), (want.precisions[0], want.shifts[0]), rtol=1e-11)


def test_falls_are_what_the_covariance_loses():
    X, y, w = rows_with_gaps(5)
    mean, cov = prior(3)
    factor, delta, falls = np.linalg.cholesky(cov), np.zeros(3), np.zeros((5, 3))
    met_mean, met_variance, score, precision, shift = columns(5)
    dense.absorb_rows(factor, delta, X, X @ mean, y, w, precision, shift, PROGRAM, met_mean, met_variance, score, falls)
    assert relative(cov - falls.T @ falls, factor @ factor.T) < 1e-12


def test_first_bad_row_is_named_and_nothing_of_it_absorbed():
    """A feature of 1e200: its variance overflows."""
    X, y, w = rows_with_gaps(6)
    X[3] = 1e200
    factor, delta = np.eye(3), np.zeros(3)
    out = columns(6)
    failed = dense.absorb_rows(factor, delta, X, X @ delta, y, w, out[3], out[4], PROGRAM, *out[:3], NONE)
    assert failed == 3
    assert np.isfinite(factor).all()
    assert out[3][3] == out[4][3] == 0.0


def test_cavity():
    """N(m, v) = N(a, b) times the site, so the cavity is N(a, b) again."""
    a, b, precision, shift = 0.4, 1.7, 0.9, -0.35
    v = 1.0 / (1.0 / b + precision)
    np.testing.assert_allclose(dense.cavity(v * (a / b + shift), v, precision, shift), (a, b), rtol=1e-14)
    assert dense.cavity(0.3, 0.2, 0.0, 0.0) == (0.3, 0.2)


def test_absorb_rows_forgetting():
    X, y, w = rows_with_gaps()
    mean, cov = prior(3)
    base_mean, base_cov = prior(3, seed=6)
    want = Textbook(mean, cov).learn(
        LIKELIHOOD.config(), X, y, weight=w, tick=lambda belief: belief.relax(0.97, base_mean, base_cov)
    )
    precision = np.linalg.inv(cov)
    shift = precision @ (mean - base_mean)
    out = columns(14)
    failed = drifting.absorb_rows_forgetting(
        precision, shift, base_mean, np.linalg.inv(base_cov), 0.97, X, y, w, PROGRAM, *out
    )
    assert failed == -1
    assert relative(np.linalg.inv(precision), want.cov) < 1e-12
    assert relative(base_mean + np.linalg.solve(precision, shift), want.mean) < 1e-12
    np.testing.assert_allclose(out[0], want.means, rtol=1e-11)
    np.testing.assert_allclose(out[3], want.precisions, rtol=1e-10)


def test_absorb_rows_walking():
    X, y, w = rows_with_gaps()
    mean, cov = prior(3)

    def tick(belief):
        belief.cov = belief.cov + 0.13**2 * np.eye(3)

    want = Textbook(mean.copy(), cov.copy()).learn(LIKELIHOOD.config(), X, y, weight=w, tick=tick)
    out = columns(14)
    assert drifting.absorb_rows_walking(mean, cov, np.full(mean.size, 0.13**2), X, y, w, PROGRAM, *out) == -1
    assert relative(mean, want.mean) < 1e-12
    assert relative(cov, want.cov) < 1e-12
    np.testing.assert_allclose(out[1], want.variances, rtol=1e-11)


def test_one_row_at_once():
    mean, cov = prior(3)
    x = np.array([[0.4, -1.1, 0.7]])
    factor, out = np.linalg.cholesky(cov), np.zeros((5, 1))
    want = Textbook(mean.copy(), cov).learn(LIKELIHOOD.config(), x, [1.0])
    assert dense.absorb_row(factor, mean, x, 1.0, PROGRAM, out)
    assert relative(mean, want.mean) < 1e-13
    assert relative(factor @ factor.T, want.cov) < 1e-13
    left = [column[0] for column in (want.means, want.variances, want.precisions, want.shifts)]
    np.testing.assert_allclose(out[[0, 1, 3, 4], 0], left, rtol=1e-12)


@pytest.mark.parametrize(("x", "y"), [(np.nan, 1.0), (np.inf, 1.0), (0.3, 1.7), (0.3, -1.0), (1e200, 1.0)])
def test_one_row_that_will_not_do_changes_nothing(x, y):
    mean, factor = np.array([0.1, 0.2]), np.diag([0.7, 0.9])
    before = mean.copy(), factor.copy()
    assert not dense.absorb_row(factor, mean, np.array([[x, 0.4]]), y, PROGRAM, np.zeros((5, 1)))
    np.testing.assert_array_equal(mean, before[0])
    np.testing.assert_array_equal(factor, before[1])


def test_negative_precision_widens():
    """A Student-t outlier may take precision away; Potter's form adds it back to the factor, exactly."""
    likelihood = lk.StudentT(df=2.2, scale=0.4)
    mean, cov = np.array([0.0]), np.array([[0.5]])
    factor, delta = np.linalg.cholesky(cov), np.zeros(1)
    out = columns(1)
    program = Program(likelihood.record, rules.VI().record, 1)
    X, y, w = np.array([[1.0]]), np.array([2.9]), np.array([1.0])
    assert dense.absorb_rows(factor, delta, X, X @ mean, y, w, out[3], out[4], program, *out[:3], NONE) == -1
    assert out[3][0] < 0.0
    m, v = delta[0], factor[0, 0] ** 2
    assert v > 0.5
    assert max(sites.distance_to_root(likelihood.config(), "vi", 1.0, 2.9, 1.0, 0.0, 0.5, m, v)) < 1e-10
