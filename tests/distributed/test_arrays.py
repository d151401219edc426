"""Rows in memory, by rounds: the same bits whoever works, and nearly the posterior of one pass."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf
from gaussfold.distributed import Scheme

LOGIT = gf.likelihoods.Bernoulli("logit")


def clicks(n, d, seed=1, scale=1.0):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=4.0 / d, format="csr", random_state=rng, data_rvs=lambda k: np.ones(k))
    theta = rng.normal(size=d)
    X.data *= scale
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-(X @ theta) / scale))).astype(float)


def dense(n, d, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d)
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ rng.normal(size=d)))).astype(float)


MAKERS = {
    "marginal": lambda d: gf.DiagonalGaussian.isotropic(d, std=0.7),
    "joint": lambda d: gf.DiagonalGaussian.isotropic(d, std=0.7, coupling="joint"),
    "mixture": lambda d: gf.DiagonalMixture.isotropic(d, stds=(0.2, 0.7, 3.0)),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_the_same_bits_with_any_workers_and_nearly_one_pass(kind):
    X, y = clicks(6000, 40)
    weight = np.where(np.arange(6000) % 7 == 0, 2.5, 1.0)
    y[::11] = np.nan
    scheme = Scheme(head=300, most=12)
    one, many, order = (MAKERS[kind](40) for _ in range(3))
    gf.distributed.fold(one, LOGIT, X, y, rule="newton", sample_weight=weight, scheme=scheme)
    with ThreadPoolExecutor(3) as executor:
        gf.distributed.fold(
            many, LOGIT, X, y, rule="newton", sample_weight=weight, scheme=scheme, executor=executor
        )  # fmt: skip
    for name, array in one.state().items():
        np.testing.assert_array_equal(array, many.state()[name], strict=True)
    gf.fold(order, LOGIT, X, y, rule="newton", sample_weight=weight)
    away = np.abs(one.mean - order.mean) / np.sqrt(order.variance())
    assert away.max() < 1.0
    assert np.median(away) < 0.25
    np.testing.assert_allclose(one.variance(), order.variance(), rtol=0.1)


@pytest.mark.parametrize("in_order", [False, True])
def test_a_dense_belief_is_one_pass_nearly(in_order):
    X, y = dense(12000, 8)
    if in_order:
        X, y = X[np.argsort(X[:, 0])], y[np.argsort(X[:, 0])]
    one, order, shuffled = (gf.DenseGaussian.isotropic(8, std=2.0) for _ in range(3))
    gf.distributed.fold(one, LOGIT, X, y, scheme=Scheme(head=500))
    gf.fold(order, LOGIT, X, y)
    gf.fold(shuffled, LOGIT, X[::-1], y[::-1])
    assert one.kl(order) < max(0.05, 2.0 * shuffled.kl(order))


def test_another_unit_of_the_features_is_another_unit_of_the_weights():
    found = []
    for scale in (1.0, 100.0):
        X, y = clicks(6000, 40, scale=scale)
        belief = gf.DiagonalGaussian.isotropic(40, std=0.7 / scale)
        gf.distributed.fold(belief, LOGIT, X, y, rule="newton", scheme=Scheme(head=300, most=12))
        found.append(belief.mean * scale)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-3, atol=1e-4)


def test_it_happens_whole_or_not_at_all():
    X, y = clicks(2000, 40)
    belief = gf.DiagonalGaussian.isotropic(40)
    y[1500] = 7.0
    with pytest.raises(ValueError, match="1500"):
        gf.distributed.fold(belief, LOGIT, X, y, rule="newton", scheme=Scheme(head=100))
    np.testing.assert_array_equal(belief.mean, np.zeros(40))
    with pytest.raises(ValueError, match="FactorGaussian cannot be added up"):
        gf.distributed.fold(gf.FactorGaussian.isotropic(40, 2), LOGIT, X, np.zeros(2000))
    with pytest.raises(ValueError, match="rule"):
        gf.distributed.fold(belief, LOGIT, X, np.zeros(2000), rule="guess")
    gf.distributed.fold(belief, LOGIT, X[:0], y[:0], rule="newton")
    np.testing.assert_array_equal(belief.mean, np.zeros(40))
