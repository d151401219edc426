"""Positive semi-definite posteriors at every iteration, whatever the draw: the models of §8.4 at extreme settings."""

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.gp import Cosine, GaussianProcess, Matern32, Matern52
from gaussfold.linalg.small import smallest_eigenvalues
from gaussfold.rules import EP, check_pair, resolve_curvature, resolve_local

SIGMA = np.array([[0.02, -0.015, -0.005], [-0.015, 0.04, 0.01], [-0.005, 0.01, 0.06]])
DRAWS, PARTS, ITERATIONS = 200, 4, 8


def defined(rule, curvature):
    try:
        check_pair(resolve_local(rule), resolve_curvature(curvature))
    except ValueError:
        return False
    return True


METHODS = [
    (rule, curvature)
    for rule in ("vi", "newton", "pl2", EP(0.5), "pl", "taylor")
    for curvature in ("gauss-newton", "quasi-newton", "heuristic")
    if defined(rule, curvature)
]


def between(rng, low, high):
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def draw(seed):
    """Prior variances and length scales over six orders of magnitude, noise over as many, labels over two."""
    rng = np.random.default_rng(seed)
    kind = ("heteroscedastic", "product", "network")[seed % 3]
    n = 8 if kind == "network" else 14
    x = rng.uniform(0.0, 4.0, n)
    x[3] = x[2]  # and one time stamp twice

    def prior(covariance):
        return covariance(between(rng, 1e-3, 1e3), between(rng, 1e-3, 1e3))

    if kind == "heteroscedastic":
        covariances, likelihood, P = [prior(Matern32), prior(Matern32)], lk.HeteroscedasticGaussian(), 1
    elif kind == "product":
        covariances = [prior(Matern32) * Cosine(between(rng, 1e-2, 1e2)), prior(Matern52)]
        likelihood, P = lk.ProductGaussian(std=between(rng, 1e-2, 1e1)), 1
    else:
        covariances = [prior(Matern52) for _ in range(8)]
        likelihood, P = lk.RegressionNetwork(SIGMA * between(rng, 1e-4, 1e2)), 3
    y = rng.normal(scale=between(rng, 0.1, 10.0), size=(n, P))
    y[0] = np.nan
    return covariances, likelihood, x, y


def test_every_defined_pair_is_drawn():
    assert len(METHODS) == 16


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_posteriors_stay_positive_and_fits_finish(part):
    """Each draw meets half of the methods, in turns; a warning (overflow, say) would be an error too."""
    for seed in range(part, DRAWS, PARTS):
        covariances, likelihood, x, y = draw(seed)
        for rule, curvature in METHODS[seed // 3 % 2 :: 2]:
            gp = GaussianProcess(covariances, likelihood, rule, curvature, "markov", damping=0.3)
            gp.fit(x, y, iterations=0)
            prior = np.array([c.diagonal(gp.X_) for c in gp.covariances]).max()
            for k in range(ITERATIONS):
                where = (seed, rule, curvature, k)
                count, _ = gp.step()
                assert count == 0, where
                assert np.isfinite(gp.energy()), where
                assert np.isfinite(gp.marginals_.mean).all(), where
                precision, cov = gp.sites_.precision, gp.marginals_.cov
                assert (smallest_eigenvalues(precision) >= -1e-10 * np.abs(precision).max(axis=(1, 2))).all(), where
                assert (smallest_eigenvalues(cov) >= -1e-13 * prior).all(), where


@pytest.mark.slow
def test_dense_posteriors_stay_positive():
    """The same on the dense prior, for every tenth draw of two latents: all methods."""
    for seed in [s for s in range(DRAWS) if s % 3 < 2][::10]:
        covariances, likelihood, x, y = draw(seed)
        for rule, curvature in METHODS:
            gp = GaussianProcess(covariances, likelihood, rule, curvature, damping=0.3).fit(x, y, iterations=0)
            for k in range(ITERATIONS):
                count, _ = gp.step()
                assert count == 0, (seed, rule, curvature, k)
                assert np.isfinite(gp.energy()), (seed, rule, curvature, k)
                cov = gp.marginals_.cov
                assert (smallest_eigenvalues(cov) >= -1e-10 * np.abs(cov).max(axis=(1, 2))).all(), (seed, rule, k)


def test_square_roots_agree_with_covariances():
    """Where both can, they give the same: means, covariances, log Z, cavities, filtered states."""
    rng = np.random.default_rng(7)
    x = np.sort(rng.uniform(0.0, 5.0, 20))
    x[4] = x[3]
    y = rng.normal(size=20)
    y[6] = np.nan
    covariances = [Matern32(1.3, 0.7), Matern52(0.4, 2.2) * Cosine(2.0)]
    gp = GaussianProcess(covariances, lk.HeteroscedasticGaussian(), curvature="gauss-newton", structure="markov")
    gp.fit(x, y, iterations=5)
    chain, now = gp.prior_.chain, gp.marginals_
    found = chain.on_roots(*gp.sites_)
    np.testing.assert_allclose(found.mean, now.mean, atol=1e-12)
    np.testing.assert_allclose(found.cov, now.cov, atol=1e-12)
    assert found.log_z == pytest.approx(now.log_z, rel=1e-12)
    state = chain.state(*gp.sites_, 11)
    np.testing.assert_allclose(found.filtered_mean[11], state[0], atol=1e-12)
    np.testing.assert_allclose(found.filtered_root[11] @ found.filtered_root[11].T, state[1], atol=1e-12)
    mean, cov = now.others()
    twin = GaussianProcess(covariances, gp.likelihood, curvature="gauss-newton").fit(x, y, iterations=0).prior_
    dense = twin._on_roots(gp.sites_)
    np.testing.assert_allclose(dense.mean, now.mean, atol=1e-11)
    np.testing.assert_allclose(dense.cov, now.cov, atol=1e-11)
    assert dense.log_z == pytest.approx(now.log_z, rel=1e-11)
    np.testing.assert_allclose(dense.others()[1], cov, atol=1e-10)
    for row in (0, 6, 13):  # leave one out, by hand
        precision, shift = (a.copy() for a in gp.sites_)
        precision[row], shift[row] = 0.0, 0.0
        left = gp.prior_.update(type(gp.sites_)(precision, shift))
        np.testing.assert_allclose(mean[row], left.mean[row], atol=1e-12)
        np.testing.assert_allclose(cov[row], left.cov[row], atol=1e-12)


@pytest.mark.parametrize(("size", "atol"), [(1e12, 1e-5), (1e20, 1e-5), (1e40, 1e-3)])
def test_square_roots_carry_sites_of_any_sharpness(size, atol):
    """Sites of rank one and precision 1e40, two of them at one time: the posterior is where they say.

    As matrices they are of rank one up to 1e-16 of their size, which is 1e24 where nothing should be: hence 1e-3.
    """
    gp = GaussianProcess(
        [Matern32(2.0, 0.7), Matern52(0.4, 2.2)],
        lk.HeteroscedasticGaussian(),
        curvature="gauss-newton",
        structure="markov",
    )
    gp.fit(np.array([0.0, 0.5, 0.5, 1.3]), np.zeros(4), iterations=0)
    direction = np.array([[1.0, 0.4], [1.0, 0.4], [0.3, -1.0], [0.7, 0.7]])
    target = np.array([0.8, 0.8, -0.2, 0.1])
    precision = size * direction[:, :, None] * direction[:, None, :]
    now = gp.prior_.update(type(gp.sites_)(precision, size * direction * target[:, None]))
    np.testing.assert_allclose((direction * now.mean).sum(axis=1), target, atol=atol)
    both = np.linalg.solve(direction[1:3], target[1:3])
    np.testing.assert_allclose(now.mean[1:3], [both, both], atol=atol)
    assert (smallest_eigenvalues(now.cov) >= -1e-15).all()
    assert np.isfinite(now.log_z)
