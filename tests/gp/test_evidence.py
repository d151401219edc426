"""The log marginal likelihood alone: filters that settle beside the textbook, and closed forms beside differences."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.gp import ConstantMean, GaussianProcess, Matern32, Matern52
from gaussfold.gp.exact import evidence, evidence_slope

rng = np.random.default_rng(4)
GRIDS = {
    "regular": 0.1 * np.arange(600.0),
    "two steps": np.concatenate([0.1 * np.arange(300.0), 40.0 + 0.3 * np.arange(300.0)]),
    "irregular": np.sort(rng.uniform(0.0, 50.0, 600)),
    "repeated": np.repeat(0.2 * np.arange(300.0), 2),
    "shuffled": rng.permutation(0.1 * np.arange(600.0)),
}


@pytest.mark.parametrize("kernel", [Matern32(1.3, 0.7), Matern52(1.3, 0.7)])
@pytest.mark.parametrize("grid", GRIDS)
def test_the_filter_alone_is_the_textbook(grid, kernel):
    x = GRIDS[grid]
    y = np.sin(x) + 0.3 * rng.normal(size=600)
    y[[5, 77, 450]] = np.nan
    y[200:230] = np.nan
    gp = GaussianProcess(kernel, lk.Gaussian(0.4), structure="markov", mean=ConstantMean(0.3))
    seen = ~np.isnan(y)
    K = kernel(x[seen, None]) + 0.16 * np.eye(seen.sum())
    residual = y[seen] - 0.3
    want = -0.5 * residual @ np.linalg.solve(K, residual) - 0.5 * np.linalg.slogdet(2.0 * np.pi * K)[1]
    np.testing.assert_allclose(gp.log_marginal_likelihood(x, y), want, rtol=1e-9)
    assert not gp.is_fitted
    np.testing.assert_allclose(-gp.fit(x, y).energy(), want, rtol=1e-9)


def test_other_likelihoods_fit_a_twin():
    x = GRIDS["regular"][:40]
    y = (np.sin(x) > 0.2).astype(float)
    gp = GaussianProcess(Matern32(2.0, 1.0), "bernoulli")
    np.testing.assert_allclose(gp.log_marginal_likelihood(x, y), -gp.fit(x, y).energy(), rtol=1e-9)


def test_slopes_of_the_closed_form():
    x = np.sort(rng.uniform(0.0, 5.0, 30))[:, None]
    y = np.sin(x[:, 0])
    kernel = Matern32(1.3, 0.7)
    found = evidence_slope(kernel, 0.3, x, y)
    assert found.value == pytest.approx(GaussianProcess(kernel, lk.Gaussian(0.3)).fit(x, y).energy(), rel=1e-9)
    for i, (name, value) in enumerate(kernel.parameters().items()):
        up, down = (evidence(kernel.replace({name: value * np.exp(h)}), 0.3, x, y)[0] for h in (1e-5, -1e-5))
        assert found.covariance[i] == pytest.approx((up - down) / 2e-5, rel=1e-5)
    up, down = (evidence(kernel, 0.3 * np.exp(h), x, y)[0] for h in (1e-5, -1e-5))
    assert found.std == pytest.approx((up - down) / 2e-5, rel=1e-5)
