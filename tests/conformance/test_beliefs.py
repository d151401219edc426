"""Every belief keeps the protocol: the same Gaussian, asked the same questions, gives the dense one's answers."""

import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf
from gaussfold.protocols import Belief, Gaussian

D = 5


def _dense(rng):
    root = rng.standard_normal((D, D))
    return gf.DenseGaussian(rng.standard_normal(D), root @ root.T + 0.3 * np.eye(D))


MAKERS = {
    "dense": _dense,
    "diagonal": lambda rng: gf.DiagonalGaussian(rng.standard_normal(D), rng.uniform(0.2, 2.0, D)),
    "lowrank": lambda rng: gf.LowRankGaussian(
        rng.standard_normal(D), rng.standard_normal((D, 2)), rng.uniform(0.2, 2.0, D)
    ),
    "factor": lambda rng: gf.FactorGaussian(
        rng.standard_normal(D), rng.standard_normal((D, 2)), rng.uniform(0.2, 2.0, D)
    ),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_belief_is_its_dense_twin(kind, tmp_path):
    rng = np.random.default_rng(7)
    one, other = MAKERS[kind](rng), MAKERS[kind](rng)
    dense, dense_other = (gf.DenseGaussian(each.mean, each.to_dense().cov) for each in (one, other))
    X = rng.standard_normal((4, D))
    assert isinstance(one, Gaussian)
    assert isinstance(one, Belief) == (kind != "factor")
    assert one.dim == D
    np.testing.assert_allclose(one.variance(), np.diag(dense.cov), rtol=1e-9)
    for rows in (X, sparse.csr_matrix(X)):
        np.testing.assert_allclose(one.marginal(rows).mean, X @ one.mean, rtol=1e-9)
        np.testing.assert_allclose(one.marginal(rows).variance, dense.marginal(X).variance, rtol=1e-9)
    np.testing.assert_allclose(one.log_prob(X), dense.log_prob(X), rtol=1e-9)
    np.testing.assert_allclose(one.log_prob(X[0]), dense.log_prob(X[0]), rtol=1e-9)
    np.testing.assert_allclose(one.entropy(), dense.entropy(), rtol=1e-9)
    np.testing.assert_allclose(one.kl(other), dense.kl(dense_other), rtol=1e-8)
    draws = one.sample(50_000, np.random.default_rng(1))
    error = np.sqrt((dense.cov**2 + np.outer(one.variance(), one.variance())) / len(draws))
    assert (np.abs(np.cov(draws.T) - dense.cov) < 5.0 * error).all()
    np.testing.assert_array_equal(draws[:3], one.copy().sample(50_000, np.random.default_rng(1))[:3])
    gf.save(one, tmp_path / "belief")
    for twin in (gf.load(tmp_path / "belief"), type(one).from_state(one.state())):
        for name, array in one.state().items():
            np.testing.assert_array_equal(array, twin.state()[name], strict=True)
