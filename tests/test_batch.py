"""Batch posteriors: exact linear, Laplace, variational, and the grid that judges them."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from scipy import optimize, sparse, special, stats
from threadpoolctl import threadpool_limits

from gaussfold import batch, metrics
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.likelihoods import Bernoulli, Gaussian, NegativeBinomial, Poisson, StudentT
from gaussfold.linalg.information import InformationRoot
from tests.shared import ORACLES, needs_oracles

FIGURES = sorted(path.stem for path in (ORACLES / "rvga").glob("fig*.npz"))
PLANE = [name for name in FIGURES if "_2d" in name]
LOG_CONCAVE = [Gaussian(0.6), Bernoulli(), Bernoulli("probit"), Poisson(), NegativeBinomial(1.7)]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Thousands of small factorisations: on a busy machine threads only wait for each other."""
    with threadpool_limits(1):
        yield


def oracle_problem(figure):
    oracle = np.load(ORACLES / "rvga" / f"{figure}.npz")
    prior = DenseGaussian.isotropic(int(oracle["d"]), float(oracle["sigma0"]), oracle["mu0"])
    return oracle, (prior, Bernoulli(), oracle["X"], oracle["y"])


def data(likelihood, n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    f = X @ rng.normal(size=d) * 0.6
    y = f + 0.5 * rng.standard_t(3, size=n)
    if isinstance(likelihood, Bernoulli):
        y = (rng.random(n) < special.expit(f)).astype(float)
    elif isinstance(likelihood, Poisson | NegativeBinomial):
        y = rng.poisson(np.exp(f)).astype(float)
    root = rng.normal(size=(d, d))
    prior = DenseGaussian(0.3 * rng.normal(size=d), 0.49 * np.eye(d) + 0.2 * root @ root.T)
    return prior, X, y, rng.uniform(0.2, 2.5, n)


def flat_prior_problem(n=1600, d=120, seed=1):
    """Binary features, an intercept with prior variance 1e5 beside unit priors."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < rng.uniform(0.02, 0.5, d)).astype(float)
    X[:, 0] = 1.0
    y = (rng.random(n) < special.expit(X @ rng.normal(size=d) * 0.5 - 1.0)).astype(float)
    std = np.ones(d)
    std[0] = np.sqrt(1e5)
    return DenseGaussian.independent(np.zeros(d), std), X, y


def relative(got, expected):
    return float(np.abs(got - expected).max() / np.abs(expected).max())


# --- exact linear --------------------------------------------------------------------------------


def exact_by_mpmath(prior_mean, prior_cov, X, y, noise_std, weight):
    with mpmath.workdps(60):
        X, y = mpmath.matrix(X.tolist()), mpmath.matrix(y.tolist())
        P0 = mpmath.matrix(prior_cov.tolist()) ** -1
        scale = mpmath.diag([mpmath.mpf(float(w)) / mpmath.mpf(noise_std) ** 2 for w in weight])
        cov = (P0 + X.T * scale * X) ** -1
        mean = cov * (P0 * mpmath.matrix(prior_mean.tolist()) + X.T * scale * y)
        d = len(mean)
        as_floats = np.array([[float(cov[i, j]) for j in range(d)] for i in range(d)])
        return np.array([float(v) for v in mean]), as_floats


def test_exact_linear_against_the_formula():
    prior, X, y, weight = data(Gaussian(0.6))
    mean, cov = exact_by_mpmath(prior.mean, prior.cov, X, y, 0.6, weight)
    posterior = batch.exact_linear(prior, X, y, 0.6, weight)
    assert relative(posterior.mean, mean) < 1e-13
    assert relative(posterior.cov, cov) < 1e-13


@pytest.mark.parametrize("prior_std", [1.0, 1e3, 1e5])
@pytest.mark.parametrize("noise_std", [1e-4, 0.7])
def test_exact_linear_stays_accurate_when_ill_conditioned(prior_std, noise_std):
    rng = np.random.default_rng(3)
    U, V = stats.ortho_group.rvs(30, random_state=1)[:, :4], stats.ortho_group.rvs(4, random_state=2)
    X = U * np.geomspace(1.0, 1e-8, 4) @ V  # condition number 1e8
    y = X @ rng.normal(size=4) + noise_std * rng.normal(size=30)
    prior = DenseGaussian.isotropic(4, prior_std, mean=[0.3, -0.2, 0.1, 0.5])
    mean, cov = exact_by_mpmath(prior.mean, prior.cov, X, y, noise_std, np.ones(30))
    posterior = batch.exact_linear(prior, X, y, noise_std)
    assert relative(posterior.mean, mean) < 1e-7  # condition number times rounding
    assert relative(posterior.cov, cov) < 1e-7
    if prior_std / noise_std > 1e8:  # where squaring the condition number loses everything
        squared = np.linalg.solve(
            X.T @ X / noise_std**2 + np.eye(4) / prior_std**2,
            X.T @ y / noise_std**2 + prior.mean / prior_std**2,
        )
        assert relative(squared, mean) > 1e-4


def test_exact_linear_weights_and_missing_labels():
    prior, X, y, _ = data(Gaussian(0.6))
    twice = batch.exact_linear(prior, np.vstack([X, X[:5]]), np.r_[y, y[:5]], 0.6)
    weight = np.where(np.arange(40) < 5, 2.0, 1.0)
    weighted = batch.exact_linear(prior, X, y, 0.6, weight)
    assert relative(weighted.cov, twice.cov) < 1e-13
    assert relative(weighted.mean, twice.mean) < 1e-12
    y[7] = np.nan
    weight[9] = 0.0
    keep = np.setdiff1d(np.arange(40), [7, 9])
    part = batch.exact_linear(prior, sparse.csr_array(X), y, 0.6, weight)
    rest = batch.exact_linear(prior, X[keep], y[keep], 0.6, weight[keep])
    assert relative(part.mean, rest.mean) < 1e-13
    nothing = batch.exact_linear(prior, X[:0], y[:0], 0.6)
    assert relative(nothing.cov, prior.cov) < 1e-14


def test_the_prior_is_not_changed():
    prior, X, y, weight = data(Bernoulli())
    before = prior.mean.tobytes() + prior.factor.tobytes()
    batch.exact_linear(prior, X, y, 0.6, weight)
    batch.laplace(prior, Bernoulli(), X, y, weight)
    batch.variational(prior, Bernoulli(), X, y, weight)
    assert prior.mean.tobytes() + prior.factor.tobytes() == before


def test_information_root_against_the_formula():
    rng = np.random.default_rng(4)
    A, b = rng.normal(size=(6, 4)), rng.normal(size=6)
    information = np.eye(4) + A.T @ A
    root = InformationRoot(A, b)
    np.testing.assert_allclose(root.z, np.linalg.solve(information, A.T @ b), rtol=1e-12)
    np.testing.assert_allclose(root.log_det(), np.linalg.slogdet(information)[1], rtol=1e-13)
    np.testing.assert_allclose(root.factor() @ root.factor().T, np.linalg.inv(information), rtol=1e-12)
    v = rng.normal(size=4)
    np.testing.assert_allclose(root.solve(v), np.linalg.solve(information, v), rtol=1e-12)
    rows = rng.normal(size=(5, 4))
    variances = np.einsum("ij,jk,ik->i", rows, np.linalg.inv(information), rows)
    np.testing.assert_allclose((root.whiten(rows) ** 2).sum(axis=1), variances, rtol=1e-12)


# --- Laplace -------------------------------------------------------------------------------------


@needs_oracles
@pytest.mark.parametrize("figure", FIGURES)
def test_laplace_is_the_papers_converged_one(figure):
    oracle, problem = oracle_problem(figure)
    found = batch.laplace(*problem)
    assert relative(found.mean, oracle["laplace_converged_mean"]) < 1e-10
    slope = special.expit(oracle["X"] @ found.mean) * special.expit(-oracle["X"] @ found.mean)
    precision = oracle["X"].T @ (slope[:, None] * oracle["X"]) + np.eye(found.dim) / oracle["sigma0"] ** 2
    assert np.abs(found.cov @ precision - np.eye(found.dim)).max() < 1e-9
    if "laplace_converged_cov" in oracle:
        assert relative(found.cov, oracle["laplace_converged_cov"]) < 1e-10


@pytest.mark.parametrize("likelihood", [*LOG_CONCAVE, StudentT(3.5, 0.4)], ids=str)
def test_laplace_sits_at_a_mode_with_its_curvature(likelihood):
    prior, X, y, weight = data(likelihood)
    found = batch.laplace(prior, likelihood, X, y, weight)

    def log_posterior(theta):
        return metrics.log_joint(theta, prior, likelihood, X, y, sample_weight=weight).item()

    step = 1e-3 * np.eye(3)
    for i in range(3):
        slope = (log_posterior(found.mean + step[i]) - log_posterior(found.mean - step[i])) / 2e-3
        assert abs(slope) < 1e-3  # the third derivative's share: 1e-6 times its size
    hessian = np.array([
        [
            log_posterior(found.mean + a + b) - log_posterior(found.mean + a - b)
            - log_posterior(found.mean - a + b) + log_posterior(found.mean - a - b)
            for b in step
        ]
        for a in step
    ]) / 4e-6  # fmt: skip
    np.testing.assert_allclose(found.cov, np.linalg.inv(-hessian), rtol=2e-3)
    first, _ = likelihood.derivatives(y, X @ found.mean)
    gradient = X.T @ (weight * first) - np.linalg.solve(prior.cov, found.mean - prior.mean)
    assert np.abs(gradient).max() < 1e-11


def test_laplace_of_gaussian_noise_is_exact():
    prior, X, y, weight = data(Gaussian(0.6))
    found, exact = (
        batch.laplace(prior, Gaussian(0.6), X, y, weight),
        batch.exact_linear(prior, X, y, 0.6, weight),
    )
    assert relative(found.mean, exact.mean) < 1e-12
    assert relative(found.cov, exact.cov) < 1e-12


def test_laplace_from_far_away():
    """Newton's full step would overshoot: e^f from a prior mean 30 too low, σ from one 200 too high."""
    rng = np.random.default_rng(5)
    X = np.column_stack([np.ones(50), rng.normal(size=50)])
    for likelihood, y, start in [
        (Poisson(), rng.poisson(7.0, 50), -30.0),
        (Bernoulli(), rng.integers(0, 2, 50), 200.0),
    ]:
        prior = DenseGaussian.independent([start, 0.0], [100.0, 0.7])
        found = batch.laplace(prior, likelihood, X, y)
        first, _ = likelihood.derivatives(y, X @ found.mean)
        gradient = X.T @ first - (found.mean - prior.mean) / [100.0**2, 0.49]
        assert np.abs(gradient).max() < 1e-10


def test_laplace_survives_outliers_under_student_t():
    rng = np.random.default_rng(6)
    X = np.column_stack([np.ones(40), rng.normal(size=40)])
    y = X @ [0.7, -1.1] + 0.2 * rng.normal(size=40)
    y[::8] += 50.0  # curvature is positive there
    likelihood = StudentT(3.0, 0.2)
    found = batch.laplace(DenseGaussian.isotropic(2, std=10.0), likelihood, X, y)
    assert (likelihood.derivatives(y, X @ found.mean)[1] > 0.0).any()
    np.testing.assert_allclose(found.mean, [0.7, -1.1], atol=0.15)
    assert (np.linalg.eigvalsh(found.cov) > 0.0).all()


def test_laplace_says_when_it_cannot_start():
    with pytest.raises(ValueError, match="overflows at the prior mean"):
        batch.laplace(DenseGaussian.isotropic(1, mean=1000.0), Poisson(), [[1.0]], [3.0])


# --- variational ---------------------------------------------------------------------------------


def elbo_by_gauss_hermite(prior, log_prob, X, y, weight):
    """ELBO of (mean, lower triangle), written with 100-point Gauss-Hermite sums."""
    nodes, weights = special.roots_hermitenorm(100)
    weights = weights / weights.sum()
    rows, cols = np.tril_indices(prior.dim)
    precision = np.linalg.inv(prior.cov)

    def elbo(flat):
        mean, lower = flat[: prior.dim], np.zeros((prior.dim, prior.dim))
        lower[rows, cols] = flat[prior.dim :]
        cov = lower @ lower.T
        f = (X @ mean)[:, None] + np.sqrt(np.einsum("ij,jk,ik->i", X, cov, X))[:, None] * nodes
        fit = weight @ (log_prob(y[:, None], f) @ weights)
        away = mean - prior.mean
        kl = 0.5 * (
            np.trace(precision @ cov) + away @ precision @ away - prior.dim
            + np.linalg.slogdet(prior.cov)[1] - 2.0 * np.log(np.abs(np.diag(lower))).sum()
        )  # fmt: skip
        return fit - kl

    return elbo


@pytest.mark.parametrize(
    ("likelihood", "log_prob"),
    [
        (Bernoulli(), lambda y, f: y * special.log_expit(f) + (1 - y) * special.log_expit(-f)),
        (Bernoulli("probit"), lambda y, f: y * special.log_ndtr(f) + (1 - y) * special.log_ndtr(-f)),
        (Poisson(), lambda y, f: stats.poisson.logpmf(y, np.exp(f))),
        (NegativeBinomial(1.7), lambda y, f: stats.nbinom.logpmf(y, 1.7, 1.7 / (1.7 + np.exp(f)))),
        (Gaussian(0.6), lambda y, f: stats.norm.logpdf(y, f, 0.6)),
    ],
    ids=["logit", "probit", "poisson", "negative-binomial", "gaussian"],
)
def test_variational_against_a_generic_optimiser(likelihood, log_prob):
    prior, X, y, weight = data(likelihood, n=15, d=2)
    found = batch.variational(prior, likelihood, X, y, weight)
    elbo = elbo_by_gauss_hermite(prior, log_prob, X, y, weight)
    lower = np.linalg.cholesky(found.cov)
    here = np.r_[found.mean, lower[np.tril_indices(2)]]
    assert metrics.elbo(found, prior, likelihood, X, y, sample_weight=weight) == pytest.approx(elbo(here), rel=1e-10)
    start = np.r_[prior.mean, np.linalg.cholesky(0.1 * prior.cov)[np.tril_indices(2)]]
    result = optimize.minimize(lambda flat: -elbo(flat), start, method="BFGS", options={"gtol": 1e-7})
    best = np.zeros((2, 2))
    best[np.tril_indices(2)] = result.x[2:]
    np.testing.assert_allclose(found.mean, result.x[:2], atol=2e-5)
    np.testing.assert_allclose(found.cov, best @ best.T, atol=2e-5)
    assert elbo(here) >= -result.fun - 1e-10


@pytest.mark.parametrize("likelihood", LOG_CONCAVE, ids=str)
def test_variational_is_stationary(likelihood):
    prior, X, y, weight = data(likelihood)
    found = batch.variational(prior, likelihood, X, y, weight)
    first, second = likelihood.expected_derivatives(y, found.marginal(X))
    precision, shift = prior.natural()
    gradient = X.T @ (weight * first) - precision @ found.mean + shift
    assert np.sqrt(gradient @ found.cov @ gradient) < 1e-9
    wanted = precision - X.T @ ((weight * second)[:, None] * X)
    np.testing.assert_allclose(found.cov @ wanted, np.eye(3), atol=1e-9)


@needs_oracles
@pytest.mark.parametrize("figure", FIGURES)
def test_variational_beats_every_gaussian_of_the_paper(figure):
    oracle, problem = oracle_problem(figure)
    found = metrics.kl_to_posterior_exact(batch.variational(*problem), *problem)
    for method in ("ekf", "qkf", "rvga_implicit", "rvga_explicit"):
        assert found < oracle[f"{method}_kl_exact"][-1]
    assert found < metrics.kl_to_posterior_exact(batch.laplace(*problem), *problem)
    if "log_evidence" in oracle:
        assert found + oracle["log_evidence"] > 0.0


def test_variational_with_a_nearly_flat_prior():
    prior, X, y = flat_prior_problem()
    found = batch.variational(prior, Bernoulli(), X, y)
    first, second = Bernoulli().expected_derivatives(y, found.marginal(X))
    gradient = X.T @ first - found.mean / prior.variance()
    assert np.sqrt(gradient @ found.cov @ gradient) < 1e-9
    precision = np.diag(1.0 / prior.variance()) - X.T @ (second[:, None] * X)
    np.testing.assert_allclose(found.cov @ precision, np.eye(120), atol=1e-8)
    assert 10.0 < found.variance()[0] * 1e3 < 1e4  # the data, not the prior, decide


@pytest.mark.parametrize("likelihood", [Bernoulli(), Bernoulli("probit"), Poisson(), NegativeBinomial(1.7)], ids=str)
def test_variational_where_the_data_leave_a_direction_open(likelihood):
    """All labels zero, a prior standard deviation of 300: the posterior is half a space."""
    rng = np.random.default_rng(7)
    X = np.column_stack([np.ones(30), rng.normal(size=30)])
    prior = DenseGaussian.independent([0.0, 0.0], [300.0, 0.7])
    found = batch.variational(prior, likelihood, X, np.zeros(30))
    first, second = likelihood.expected_derivatives(np.zeros(30), found.marginal(X))
    gradient = X.T @ first - found.mean / prior.variance()
    assert np.sqrt(gradient @ found.cov @ gradient) < 1e-9
    precision = np.diag(1.0 / prior.variance()) - X.T @ (second[:, None] * X)
    np.testing.assert_allclose(found.cov @ precision, np.eye(2), atol=1e-8)
    assert found.mean[0] < -10.0


def test_variational_integrates_accurately_whatever_the_expectation():
    prior, X, y, weight = data(Bernoulli())
    exact = batch.variational(prior, Bernoulli(), X, y, weight)
    same = batch.variational(prior, Bernoulli(expectation="probit"), X, y, weight)
    np.testing.assert_array_equal(exact.mean, same.mean)


def test_variational_of_gaussian_noise_is_exact_and_of_nothing_the_prior():
    prior, X, y, weight = data(Gaussian(0.6))
    exact = batch.exact_linear(prior, X, y, 0.6, weight)
    found = batch.variational(prior, Gaussian(0.6), X, y, weight)
    assert relative(found.mean, exact.mean) < 1e-11
    assert relative(found.cov, exact.cov) < 1e-11
    nothing = batch.variational(prior, Bernoulli(), X, np.full(40, np.nan))
    assert relative(nothing.cov, prior.cov) < 1e-14


def test_variational_takes_soft_labels_and_weights():
    prior, X, _, weight = data(Bernoulli())
    rows, labels = np.vstack([X, X]), np.r_[np.ones(40), np.zeros(40)]
    both = batch.variational(prior, Bernoulli(), rows, labels, np.r_[0.3 * weight, 0.7 * weight])
    soft = batch.variational(prior, Bernoulli(), X, np.full(40, 0.3), weight)
    assert relative(soft.mean, both.mean) < 1e-9
    assert relative(soft.cov, both.cov) < 1e-9


def test_variational_refuses_what_is_not_log_concave():
    with pytest.raises(ValueError, match=r"StudentT.* is not log-concave.*use laplace"):
        batch.variational(DenseGaussian.isotropic(1), StudentT(3.0, 1.0), [[1.0]], [1.0])


# --- grid ----------------------------------------------------------------------------------------


@needs_oracles
@pytest.mark.parametrize("figure", PLANE)
def test_grid_evidence_is_the_oracles(figure):
    oracle, problem = oracle_problem(figure)
    assert abs(batch.GridPosterior(*problem, n=257).log_evidence - oracle["log_evidence"]) < 1e-6


def test_grid_of_a_gaussian_posterior():
    prior, X, y, weight = data(Gaussian(0.6), d=2)
    exact = batch.exact_linear(prior, X, y, 0.6, weight)
    grid = batch.GridPosterior(prior, Gaussian(0.6), X, y, sample_weight=weight)
    np.testing.assert_allclose(grid.mean, exact.mean, rtol=1e-10)
    np.testing.assert_allclose(grid.cov, exact.cov, rtol=1e-9)
    # Bayes at any point: log Z = log p̃(θ) - log p(θ|y)
    theta = exact.mean + 0.1
    joint = metrics.log_joint(theta, prior, Gaussian(0.6), X, y, sample_weight=weight).item()
    np.testing.assert_allclose(grid.log_evidence, joint - exact.log_prob(theta[None]).item(), rtol=1e-12)
    on_grid = exact.log_prob(grid.points.reshape(-1, 2)).reshape(grid.log_density.shape)
    np.testing.assert_allclose(grid.log_density, on_grid, atol=1e-9)
    np.testing.assert_allclose(grid.log_prob(theta), exact.log_prob(theta[None])[0], atol=1e-10)
    assert grid.log_prob(np.zeros((3, 4, 2))).shape == (3, 4)


def test_grid_against_gauss_legendre():
    prior, X, y, weight = data(Bernoulli("probit"), n=12, d=2)
    grid = batch.GridPosterior(prior, Bernoulli("probit"), X, y, sample_weight=weight)
    nodes, weights = special.roots_legendre(200)
    theta = [grid.mean[i] + 9.0 * np.sqrt(grid.cov[i, i]) * nodes for i in (0, 1)]
    points = np.stack(np.meshgrid(*theta, indexing="ij"), axis=-1).reshape(-1, 2)
    sign = np.where(y > 0.5, 1.0, -1.0)
    log_p = special.log_ndtr(sign * (points @ X.T)) @ weight
    log_p += stats.multivariate_normal(prior.mean, prior.cov).logpdf(points)
    area = 81.0 * np.sqrt(grid.cov[0, 0] * grid.cov[1, 1])
    p = np.exp(log_p) * np.outer(weights, weights).ravel() * area
    np.testing.assert_allclose(grid.log_evidence, np.log(p.sum()), atol=1e-10)
    np.testing.assert_allclose(grid.mean, p @ points / p.sum(), rtol=1e-9)
    np.testing.assert_allclose(grid.cov, np.cov(points.T, aweights=p, ddof=0), rtol=1e-8)


def test_grid_finds_both_modes():
    """Two groups that contradict each other, heavy tails: the mode found first is not all there is."""
    X = np.array([[1.0, 0.0]] * 6 + [[0.0, 1.0]] * 3)
    y = np.array([-4.0, -4.1, -3.9, 4.0, 4.1, 3.9, 0.1, 0.0, -0.1])
    prior = DenseGaussian.isotropic(2, std=3.0, mean=[0.5, 0.0])
    grid = batch.GridPosterior(prior, StudentT(2.0, 0.2), X, y)
    modes = grid.log_prob(np.array([[-4.0, 0.0], [4.0, 0.0], [0.0, 0.0]]))
    assert modes[0] > modes[2] + 5.0
    assert modes[1] > modes[2] + 5.0
    assert grid.cov[0, 0] > 10.0
    # one coordinate at a time, because the likelihood factorises
    parts = []
    for i, rows in enumerate([slice(0, 6), slice(6, 9)]):
        f = np.linspace(-40.0, 40.0, 400_001)
        log_p = StudentT(2.0, 0.2).log_prob(y[rows, None], f).sum(axis=0) + stats.norm.logpdf(f, prior.mean[i], 3.0)
        parts.append(special.logsumexp(log_p) + np.log(f[1] - f[0]))
    np.testing.assert_allclose(grid.log_evidence, sum(parts), atol=1e-6)


def test_grid_reports_its_own_error():
    _, X, y, _ = data(Bernoulli(), n=30, d=2)
    problem = (DenseGaussian.isotropic(2, std=30.0), Bernoulli(), X, y)
    fine = batch.GridPosterior(*problem)
    assert fine.log_evidence_error < 1e-6
    coarse = batch.GridPosterior(*problem, n=9)
    assert coarse.points.shape == (9, 9, 2)
    error = abs(coarse.log_evidence - fine.log_evidence)
    assert 1e-6 < error < coarse.log_evidence_error


def test_grid_errors():
    with pytest.raises(ValueError, match="prior: 3 parameters; GridPosterior takes 2"):
        batch.GridPosterior(DenseGaussian.isotropic(3), Bernoulli(), np.zeros((1, 3)), [1])
    with pytest.raises(ValueError, match="n: 4; at least 5"):
        batch.GridPosterior(DenseGaussian.isotropic(2), Bernoulli(), np.zeros((1, 2)), [1], n=4)
    grid = batch.GridPosterior(DenseGaussian.isotropic(2), Bernoulli(), np.zeros((1, 2)), [1])
    assert grid.log_evidence == pytest.approx(np.log(0.5), abs=1e-12)
    with pytest.raises(ValueError, match=r"theta: shape \(3,\)"):
        grid.log_prob(np.zeros(3))


@pytest.mark.parametrize("method", [batch.laplace, batch.variational, batch.GridPosterior])
def test_bad_data_is_refused_by_name(method):
    prior = DenseGaussian.isotropic(2)
    with pytest.raises(ValueError, match="X: row 1 has NaN"):
        method(prior, Bernoulli(), [[0.0, 1.0], [np.nan, 0.0]], [0, 1])
    with pytest.raises(ValueError, match=r"y\[1\] = 3.0"):
        method(prior, Bernoulli(), [[0.0, 1.0], [1.0, 0.0]], [0, 3])
    with pytest.raises(ValueError, match=r"X: shape \(1, 3\); \(n, 2\)"):
        method(prior, Bernoulli(), np.zeros((1, 3)), [0])
    with pytest.raises(ValueError, match="sample_weight: row 0 is inf"):
        method(prior, Bernoulli(), [[0.0, 1.0]], [0], sample_weight=[np.inf])
