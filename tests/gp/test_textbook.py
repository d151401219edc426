"""Against Rasmussen and Williams' expectation propagation, written here, and scikit-learn's Laplace approximation."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from gaussfold import likelihoods as lk
from gaussfold.gp import GaussianProcess, Matern32

RNG = np.random.default_rng(8)
X = RNG.uniform(-2.0, 2.0, (25, 2))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=25) > 0.0, 1.0, 0.0)
COVARIANCE = Matern32(2.3, 0.8)
TEST = RNG.uniform(-2.0, 2.0, (7, 2))


def sequential_ep(K, y, sweeps):
    """Gaussian Processes for Machine Learning, algorithms 3.5 and 3.6, (3.52)-(3.65); y is -1 or 1."""
    n = len(y)
    nu, tau = np.zeros(n), np.zeros(n)
    Sigma, mu = K.copy(), np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            tau_cavity = 1.0 / Sigma[i, i] - tau[i]
            nu_cavity = mu[i] / Sigma[i, i] - nu[i]
            m, v = nu_cavity / tau_cavity, 1.0 / tau_cavity
            z = y[i] * m / np.sqrt(1.0 + v)
            ratio = norm.pdf(z) / norm.cdf(z)
            m_hat = m + y[i] * v * ratio / np.sqrt(1.0 + v)
            v_hat = v - v**2 * ratio / (1.0 + v) * (z + ratio)
            new = 1.0 / v_hat - tau_cavity
            change, tau[i] = new - tau[i], new
            nu[i] = m_hat / v_hat - nu_cavity
            s = Sigma[:, i]
            Sigma = Sigma - change / (1.0 + change * s[i]) * np.outer(s, s)
            mu = Sigma @ nu
        root = np.sqrt(tau)
        B = np.eye(n) + root[:, None] * K * root
        L = np.linalg.cholesky(B)
        V = np.linalg.solve(L, root[:, None] * K)
        Sigma = K - V.T @ V
        mu = Sigma @ nu
    tau_cavity = 1.0 / np.diag(Sigma) - tau
    nu_cavity = mu / np.diag(Sigma) - nu
    m = nu_cavity / tau_cavity
    z = y * m / np.sqrt(1.0 + 1.0 / tau_cavity)
    # (3.65), terms as in (3.73) and (3.74)
    log_z = norm.logcdf(z).sum() + 0.5 * np.log1p(tau / tau_cavity).sum() - np.log(np.diag(L)).sum()
    log_z += 0.5 * nu @ (Sigma - np.diag(1.0 / (tau_cavity + tau))) @ nu
    log_z += 0.5 * (m * tau_cavity) @ ((tau * m - 2.0 * nu) / (tau_cavity + tau))
    return nu, tau, mu, Sigma, log_z


def test_ep_is_the_textbook_s():
    K = COVARIANCE(X)
    y = 2.0 * Y - 1.0
    nu, tau, mu, Sigma, log_z = sequential_ep(K, y, 60)
    gp = GaussianProcess(COVARIANCE, lk.Bernoulli("probit"), "ep", damping=0.8).fit(X, Y, iterations=120)
    np.testing.assert_allclose(gp.sites_.precision[:, 0, 0], tau, rtol=1e-6)
    np.testing.assert_allclose(gp.sites_.shift[:, 0], nu, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(gp.marginals_.mean[:, 0], mu, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(gp.marginals_.cov[:, 0, 0], np.diag(Sigma), rtol=1e-6)
    assert gp.energy() == pytest.approx(-log_z, abs=1e-6)
    cross = COVARIANCE(TEST, X)
    S = np.linalg.inv(K + np.diag(1.0 / tau))
    mean = cross @ S @ (nu / tau)
    var = 2.3 - np.einsum("ij,jk,ik->i", cross, S, cross)
    np.testing.assert_allclose(gp.predict(TEST), norm.cdf(mean / np.sqrt(1.0 + var)), atol=1e-6)


def test_laplace_is_scikit_learn_s():
    kernel = ConstantKernel(2.3, "fixed") * Matern(0.8, "fixed", nu=1.5)
    theirs = GaussianProcessClassifier(kernel, optimizer=None, max_iter_predict=500).fit(X, Y)
    gp = GaussianProcess(COVARIANCE, lk.Bernoulli(), "newton", tol=1e-12).fit(X, Y)
    evidence = theirs.log_marginal_likelihood_value_
    assert gp.energy() == pytest.approx(-evidence, abs=1e-5)  # their Newton stops at 1e-10 of log Z
    mean, cov = gp.predict_latent(TEST)
    # they average the logistic function over the latent by a sum of five error functions: good to 2e-3
    np.testing.assert_allclose(gp.predict(TEST), theirs.predict_proba(TEST)[:, 1], atol=2e-3)
    estimator = theirs.base_estimator_
    np.testing.assert_allclose(mean[:, 0], estimator.kernel_(TEST, X) @ (Y - estimator.pi_), atol=1e-5)
    V = np.linalg.solve(estimator.L_, estimator.W_sr_[:, None] * estimator.kernel_(X, TEST))
    np.testing.assert_allclose(cov[:, 0, 0], 2.3 - (V**2).sum(axis=0), atol=1e-5)
