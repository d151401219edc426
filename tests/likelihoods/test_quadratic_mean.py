"""Closed forms of the regression network against cubature that is exact for its polynomials (degree 4 at most)."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.expectations.cubature import GaussHermite, Unscented
from gaussfold.likelihoods.regression import regress
from gaussfold.linalg.small import whiteners
from tests.likelihoods.chained import NOISE, rows

NETWORKS = [
    (lk.RegressionNetwork(NOISE[:2, :2], signals=1, weight_offset=0.3), GaussHermite(4)),
    (lk.RegressionNetwork(NOISE, signals=2), Unscented(5)),
]


def some(network):
    Y, mean, cov = rows(network, 5, seed=11, spread=1.5)
    Y[1, 0] = Y[3, 1] = np.nan
    return Y, mean, cov


@pytest.mark.parametrize(("network", "nodes"), NETWORKS, ids=["three", "eight"])
@pytest.mark.parametrize("what", ["expected_log_prob", "expected_derivatives", "expected_gauss_newton"])
def test_expectations(network, nodes, what):
    Y, mean, cov = some(network)
    ours = getattr(network, what)(Y, mean, cov)
    theirs = getattr(network, what)(Y, mean, cov, nodes)
    for a, b in zip(np.atleast_1d(ours) if what == "expected_log_prob" else ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("network", "nodes"), NETWORKS, ids=["three", "eight"])
def test_predictive(network, nodes):
    _, mean, cov = some(network)
    for a, b in zip(network.predictive(mean, cov), network.predictive(mean, cov, nodes), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("second_order", [False, True])
@pytest.mark.parametrize(("network", "nodes"), NETWORKS, ids=["three", "eight"])
def test_affine_fit(network, nodes, second_order):
    _, mean, cov = some(network)
    ours, theirs = (regress(network, mean, cov, rule, second_order=second_order) for rule in (None, nodes))
    for a, b in zip([*ours.moments, ours.cov_by_cov], [*theirs.moments, theirs.cov_by_cov], strict=True):
        if a is None:  # None stands for zero
            assert b is None or np.abs(b).max() < 1e-13
        else:
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_whiteners(dim):
    rng = np.random.default_rng(dim)
    root = rng.standard_normal((4, 3, dim, dim))
    cov = root @ np.swapaxes(root, -1, -2) + 0.01 * np.eye(dim)
    turn = whiteners(cov, "cov")
    np.testing.assert_allclose(turn, np.linalg.inv(np.linalg.cholesky(cov)), rtol=1e-8, atol=1e-9)
    with pytest.raises(ValueError, match=r"cov.* is not positive semi-definite"):
        whiteners(cov - 9.0 * np.eye(dim) * cov.max(), "cov")
