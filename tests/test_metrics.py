"""KL to the posterior, scores of predictions, and the PSIS diagnosis."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, sparse, stats
from sklearn import calibration as sk_calibration
from sklearn import metrics as sk_metrics

from gaussfold import batch, metrics
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.likelihoods import Bernoulli, Gaussian, Poisson, StudentT
from tests.reference import psis as reference
from tests.shared import ORACLES, needs_oracles

FIGURES = sorted(path.stem for path in (ORACLES / "rvga").glob("fig*.npz"))
METHODS = ["ekf", "qkf", "rvga_implicit", "rvga_explicit", "rvga_implicit_exactroot"]


def problem(n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (rng.random(n) < 0.4).astype(float)
    weight = rng.uniform(0.2, 2.5, n)
    root = rng.normal(size=(d, d))
    prior = DenseGaussian(rng.normal(size=d), 0.7 * np.eye(d) + 0.1 * root @ root.T)
    belief = DenseGaussian(rng.normal(size=d), 0.3 * np.eye(d) + 0.05 * root.T @ root)
    return X, y, weight, prior, belief


# --- KL ------------------------------------------------------------------------------------------


@needs_oracles
@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("expectation", ["quadrature", "probit"])
def test_the_papers_kl(figure, expectation):
    oracle = np.load(ORACLES / "rvga" / f"{figure}.npz")
    d, seed = int(oracle["d"]), int(oracle["seed"])
    normals = np.load(ORACLES / "rvga" / "kl_normal_samples.npz")[f"Z_seed{seed}_d{d}"]
    prior = DenseGaussian.isotropic(d, float(oracle["sigma0"]), oracle["mu0"])
    data = prior, Bernoulli("logit", expectation), oracle["X"], oracle["y"]
    for method in METHODS:
        belief = DenseGaussian(oracle[f"{method}_mean"], oracle[f"{method}_cov"])
        sampled = metrics.kl_to_posterior(belief, *data, normals=normals)
        np.testing.assert_allclose(sampled, oracle[f"{method}_kl_mc"][-1], rtol=1e-9)
        exact = metrics.kl_to_posterior_exact(belief, *data)
        np.testing.assert_allclose(exact, oracle[f"{method}_kl_exact"][-1], rtol=1e-9)


@needs_oracles
@pytest.mark.parametrize("figure", [name for name in FIGURES if "_2d" in name])
def test_the_papers_kl_before_and_during_the_stream(figure):
    oracle = np.load(ORACLES / "rvga" / f"{figure}.npz")
    prior = DenseGaussian.isotropic(2, float(oracle["sigma0"]), oracle["mu0"])
    for method in ("ekf", "rvga_implicit"):
        for i, step in list(enumerate(oracle["kl_exact_steps"]))[:: max(1, len(oracle["kl_exact_steps"]) // 8)]:
            belief = DenseGaussian(oracle[f"{method}_mean_history"][step], oracle[f"{method}_cov_history"][step])
            exact = metrics.kl_to_posterior_exact(belief, prior, Bernoulli(), oracle["X"], oracle["y"])
            np.testing.assert_allclose(exact, oracle[f"{method}_kl_exact"][i], rtol=1e-9)


def test_kl_is_the_kl_of_gaussians_when_the_posterior_is_one():
    X, _, weight, prior, belief = problem()
    y = np.random.default_rng(3).normal(size=30)
    likelihood = Gaussian(0.8)
    posterior = batch.exact_linear(prior, X, y, 0.8, weight)
    # log Z of tempered rows: Σ w log N(y|f) integrated over the prior, at one point by Bayes' rule
    theta = np.array([0.3, -0.2, 0.9])
    log_evidence = (
        metrics.log_joint(theta, prior, likelihood, X, y, sample_weight=weight) - posterior.log_prob(theta[None])
    ).item()
    options = {"sample_weight": weight, "log_evidence": log_evidence}
    expected = belief.kl(posterior)
    assert expected > 1.0
    exact = metrics.kl_to_posterior_exact(belief, prior, likelihood, X, y, **options)
    np.testing.assert_allclose(exact, expected, rtol=1e-11)
    assert abs(metrics.kl_to_posterior_exact(posterior, prior, likelihood, X, y, **options)) < 1e-10


def test_sampled_and_exact_kl_agree_within_the_noise():
    X, y, weight, prior, belief = problem()
    data = (belief, prior, Bernoulli("probit"), X, y)
    exact = metrics.kl_to_posterior_exact(*data, sample_weight=weight)
    runs = [metrics.kl_to_posterior(*data, sample_weight=weight, n_samples=400, rng=i) for i in range(40)]
    assert abs(np.mean(runs) - exact) < 4.0 * np.std(runs) / math.sqrt(40)
    assert np.std(runs) < 1.0
    assert runs[3] == metrics.kl_to_posterior(*data, sample_weight=weight, n_samples=400, rng=3)
    assert metrics.kl_to_posterior(*data, n_samples=50, rng=0, log_evidence=2.5) == pytest.approx(
        metrics.kl_to_posterior(*data, n_samples=50, rng=0) + 2.5, rel=1e-14
    )


def test_sampling_uses_the_cholesky_factor_whatever_factor_the_belief_keeps():
    X, y, _, prior, belief = problem()
    turned = DenseGaussian.from_factor(belief.mean, belief.factor @ stats.ortho_group.rvs(3, random_state=1))
    normals = np.random.default_rng(2).normal(size=(7, 3))
    a, b = (metrics.kl_to_posterior(q, prior, Bernoulli(), X, y, normals=normals) for q in (belief, turned))
    np.testing.assert_allclose(a, b, rtol=1e-12)
    by_hand = belief.mean + normals @ np.linalg.cholesky(belief.cov).T
    log_p = metrics.log_joint(by_hand, prior, Bernoulli(), X, y).mean()
    entropy = stats.multivariate_normal(belief.mean, belief.cov).entropy()
    np.testing.assert_allclose(a, -log_p - entropy, rtol=1e-12)


def test_log_joint_against_a_loop(monkeypatch):
    X, y, weight, prior, _ = problem()
    theta = np.random.default_rng(5).normal(size=(4, 3))
    expected = []
    for point in theta:
        total = stats.multivariate_normal(prior.mean, prior.cov).logpdf(point)
        for x, label, w in zip(X, y, weight, strict=True):
            total += w * math.log(stats.norm.cdf((2 * label - 1) * (x @ point)))
        expected.append(total)
    got = metrics.log_joint(theta, prior, Bernoulli("probit"), X, y, sample_weight=weight)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    monkeypatch.setattr("gaussfold.metrics.divergence._CHUNK", 20)  # several rows at a time, the last block short
    chunked = metrics.log_joint(theta, prior, Bernoulli("probit"), X, y, sample_weight=weight)
    np.testing.assert_allclose(chunked, expected, rtol=1e-12)


def test_rows_that_do_not_count():
    X, y, weight, prior, belief = problem()
    weight[4] = 0.0
    y[7] = np.nan
    keep = np.setdiff1d(np.arange(30), [4, 7])
    some = metrics.elbo(belief, prior, Bernoulli(), X, y, sample_weight=weight)
    rest = metrics.elbo(belief, prior, Bernoulli(), X[keep], y[keep], sample_weight=weight[keep])
    np.testing.assert_allclose(some, rest, rtol=1e-14)
    nothing = metrics.elbo(belief, prior, Bernoulli(), X, np.full(30, np.nan))
    np.testing.assert_allclose(nothing, -belief.kl(prior), rtol=1e-14)


def test_sparse_rows_are_the_same_rows():
    X, y, weight, prior, belief = problem()
    X[X < 0.3] = 0.0
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.coo_array):
        for fn in (metrics.elbo, lambda *a, **k: metrics.kl_to_posterior(*a, rng=0, **k)):
            a, b = (fn(belief, prior, Bernoulli(), rows, y, sample_weight=weight) for rows in (X, kind(X)))
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_elbo_is_below_the_evidence():
    X, y, weight, *_ = problem(d=2)
    prior = DenseGaussian.isotropic(2, std=1.7, mean=[0.5, -0.3])
    for likelihood in (Bernoulli(), Bernoulli("probit"), Poisson(), StudentT(3.5, 0.8)):
        evidence = batch.GridPosterior(prior, likelihood, X, y, sample_weight=weight).log_evidence
        laplace = batch.laplace(prior, likelihood, X, y, weight)
        gap = evidence - metrics.elbo(laplace, prior, likelihood, X, y, sample_weight=weight)
        assert 1e-4 < gap < 0.3


def test_bad_data_is_refused_by_name():
    X, y, weight, prior, belief = problem()

    def call(X=X, y=y, w=weight):
        return metrics.elbo(belief, prior, Bernoulli(), X, y, sample_weight=w)

    bad = X.copy()
    bad[11, 2] = np.inf
    for rows in (bad, sparse.csr_array(bad)):
        with pytest.raises(ValueError, match="X: row 11 has infinity in column 2"):
            call(X=rows)
    with pytest.raises(ValueError, match=r"X: shape \(30, 2\); \(n, 3\) is needed"):
        call(X=X[:, :2])
    with pytest.raises(ValueError, match=r"y: shape \(29,\); \(30,\)"):
        call(y=y[:-1])
    with pytest.raises(ValueError, match=r"y\[2\] = -1.0"):
        call(y=np.where(np.arange(30) == 2, -1.0, y))
    with pytest.raises(ValueError, match="sample_weight: row 5 is -1"):
        call(w=np.where(np.arange(30) == 5, -1.0, weight))
    with pytest.raises(ValueError, match="sample_weight: row 6 is nan"):
        call(w=np.where(np.arange(30) == 6, np.nan, weight))
    with pytest.raises(ValueError, match=r"normals: shape \(5, 2\)"):
        metrics.kl_to_posterior(belief, prior, Bernoulli(), X, y, normals=np.zeros((5, 2)))
    with pytest.raises(ValueError, match=r"theta: shape \(1, 2\)"):
        metrics.log_joint(np.zeros(2), prior, Bernoulli(), X, y)


# --- scores --------------------------------------------------------------------------------------


def test_nlpd_against_numerical_integration():
    X, _, weight, _, belief = problem(n=5)
    y = np.array([0.0, 2.0, 1.0, np.nan, 4.0])
    losses = []
    for x, label in zip(X, y, strict=True):
        m, s = x @ belief.mean, math.sqrt(x @ belief.cov @ x)
        density = lambda f, m=m, s=s, label=label: (  # noqa: E731
            stats.poisson.pmf(label, math.exp(f)) * stats.norm.pdf(f, m, s)
        )
        losses.append(0.0 if np.isnan(label) else -math.log(integrate.quad(density, m - 9 * s, m + 9 * s)[0]))
    weight[3] = 0.0
    expected = np.average(losses, weights=weight)
    np.testing.assert_allclose(metrics.nlpd(belief, Poisson(), X, y, sample_weight=weight), expected, rtol=1e-7)
    with pytest.raises(ValueError, match="no row has both"):
        metrics.nlpd(belief, Poisson(), X, np.full(5, np.nan))


def test_log_loss_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    y, p, w = rng.integers(0, 2, 50), rng.random(50), rng.uniform(0.1, 2.5, 50)
    np.testing.assert_allclose(metrics.log_loss(y, p, sample_weight=w), sk_metrics.log_loss(y, p, sample_weight=w))
    many = rng.dirichlet([0.5, 1.0, 2.0], 50)
    labels = rng.integers(0, 3, 50)
    expected = sk_metrics.log_loss(labels, many, sample_weight=w)
    np.testing.assert_allclose(metrics.log_loss(labels, many, sample_weight=w), expected)


def test_log_loss_soft_missing_and_certain():
    soft = metrics.log_loss([0.25, np.nan], [0.4, 0.9])
    assert soft == pytest.approx(-0.25 * math.log(0.4) - 0.75 * math.log(0.6), rel=1e-14)
    assert metrics.log_loss([1, 0], [1.0, 0.0]) == 0.0
    assert metrics.log_loss([1, 0], [0.0, 0.0]) == math.inf
    assert metrics.log_loss([1], [[1.0, 0.0]]) == math.inf
    assert metrics.log_loss([1, 1], [0.0, 0.5], sample_weight=[0.0, 1.0]) == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_curve_agrees_with_scikit_learn(strategy):
    rng = np.random.default_rng(1)
    p = rng.beta(0.7, 1.3, 400)
    y = (rng.random(400) < p**1.5).astype(float)
    curve = metrics.calibration_curve(y, p, n_bins=7, strategy=strategy)
    observed, predicted = sk_calibration.calibration_curve(y, p, n_bins=7, strategy=strategy)
    if strategy == "uniform":
        np.testing.assert_allclose(curve.observed, observed)
        np.testing.assert_allclose(curve.predicted, predicted)
    else:  # scikit-learn interpolates quantiles, so a bin may differ by one prediction
        assert set(curve.weight) <= {57.0, 58.0}
        np.testing.assert_allclose(curve.predicted, predicted, atol=0.01)
    error = metrics.calibration_error(y, p, n_bins=7, strategy=strategy)
    by_hand = sum(n * abs(o - q) for q, o, n in zip(*curve, strict=True)) / 400
    assert error == pytest.approx(by_hand, rel=1e-13)
    assert error > 0.02
    honest = (np.random.default_rng(2).random(400) < p).astype(float)
    assert metrics.calibration_error(honest, p, n_bins=7) < error


def test_calibration_with_weights_ties_and_edges():
    y, p = np.array([0, 1, 1, 0, 1.0]), np.array([0.0, 0.5, 0.5, 0.5, 1.0])
    w = np.array([1.0, 2.5, 1.0, 0.0, 0.7])
    curve = metrics.calibration_curve(y, p, n_bins=2, sample_weight=w)
    np.testing.assert_allclose(curve.weight, [1.0, 4.2])
    np.testing.assert_allclose(curve.predicted, [0.0, (3.5 * 0.5 + 0.7) / 4.2])
    np.testing.assert_allclose(curve.observed, [0.0, 1.0])
    ties = metrics.calibration_curve(y, p, n_bins=5, strategy="quantile")
    np.testing.assert_allclose(ties.predicted, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(ties.weight, [1.0, 3.0, 1.0])
    all_same = metrics.calibration_curve([0, 1, 1], [0.6, 0.6, 0.6], n_bins=4, strategy="quantile")
    np.testing.assert_allclose(all_same.predicted, [0.6])


def test_bad_predictions_are_refused_by_name():
    with pytest.raises(ValueError, match=r"probability: row 1 is 1\.5"):
        metrics.log_loss([0, 1], [0.5, 1.5])
    with pytest.raises(ValueError, match="probability: row 0 is nan"):
        metrics.calibration_curve([0, 1], [np.nan, 0.5])
    with pytest.raises(ValueError, match=r"row 1 sums to 0\.9"):
        metrics.log_loss([0, 1], [[0.5, 0.5], [0.5, 0.4]])
    with pytest.raises(ValueError, match=r"y: row 2 is 3\.0; whole numbers 0 to 1"):
        metrics.log_loss([np.nan, 1, 3], np.full((3, 2), 0.5))
    with pytest.raises(ValueError, match=r"y: row 1 is 2\.0; numbers in \[0, 1\]"):
        metrics.log_loss([np.nan, 2], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"y: shape \(1,\); \(2,\)"):
        metrics.log_loss([1], [0.5, 0.5])
    with pytest.raises(ValueError, match=r"sample_weight: row 0 is -1"):
        metrics.log_loss([1], [0.5], sample_weight=[-1.0])
    with pytest.raises(ValueError, match="no row has both"):
        metrics.log_loss([np.nan], [0.5])
    with pytest.raises(ValueError, match=r"shape \(1, 2\); one probability per row"):
        metrics.calibration_curve([1], [[0.5, 0.5]])
    with pytest.raises(ValueError, match="n_bins=0"):
        metrics.calibration_curve([1], [0.5], n_bins=0)
    with pytest.raises(ValueError, match="strategy='best'"):
        metrics.calibration_curve([1], [0.5], strategy="best")


# --- PSIS ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [-0.4, 0.0, 0.3, 0.7, 1.2])
def test_known_pareto_tails(k):
    draws = stats.genpareto.rvs(k, scale=2.5, size=20_000, random_state=1)
    fit = metrics.pareto_fit(draws, regularise=False)
    assert fit.k == pytest.approx(k, abs=0.03)
    assert fit.scale == pytest.approx(2.5, rel=0.03)
    # five standard errors of the maximum likelihood estimate, (1 + k)/√n, on the tail of 3√n weights
    if k > 0:
        tail = 3 * math.sqrt(20_000)
        log_weights = -k * np.log(np.random.default_rng(2).random(20_000))  # P(w > t) = t^(-1/k)
        assert abs(metrics.psis_khat(log_weights) - k) < 5 * (1 + k) / math.sqrt(tail)


def test_the_reference_agrees():
    rng = np.random.default_rng(4)
    for n in (25, 100, 999, 3000):
        for scale in (0.1, 1.0, 4.0):
            log_weights = scale * rng.standard_t(5, size=n) - 40.0
            smoothed, khat = metrics.psis_log_weights(log_weights)
            expected, expected_k = reference.psis(list(log_weights))
            assert khat == pytest.approx(expected_k, rel=1e-9)
            np.testing.assert_allclose(smoothed, expected, rtol=1e-9)


@pytest.mark.parametrize("ratio", [0.25, 0.5, 0.8])
def test_a_narrow_gaussian_has_the_tail_of_theory(ratio):
    """Weights of N(0, 1) over N(0, ratio) have P(w > t) ~ t^(-1/(1 - ratio)): k = 1 - ratio."""
    z = np.random.default_rng(6).normal(size=200_000) * math.sqrt(ratio)
    log_weights = -0.5 * z**2 + 0.5 * z**2 / ratio
    assert metrics.psis_khat(log_weights) == pytest.approx(1.0 - ratio, abs=0.12)


def test_good_and_bad_proposals():
    rng = np.random.default_rng(7)
    z = rng.normal(size=4000)
    same = stats.norm.logpdf(z) - stats.norm.logpdf(z)
    assert metrics.psis_khat(same) == -math.inf
    wide = stats.norm.logpdf(1.5 * z) - stats.norm.logpdf(1.5 * z, scale=1.5)
    assert metrics.psis_khat(wide) < 0.1
    narrow = stats.norm.logpdf(0.3 * z) - stats.norm.logpdf(0.3 * z, scale=0.3)
    assert metrics.psis_khat(narrow) > 0.7


def test_degenerate_weights():
    flat = np.full(100, -350.0)
    assert metrics.psis_khat(flat) == -math.inf
    assert metrics.psis_khat(flat + 1e-13 * np.arange(100)) == -math.inf
    one = flat.copy()
    one[3] = 0.0
    assert metrics.psis_khat(one) == math.inf  # one draw has it all
    np.testing.assert_array_equal(metrics.psis_log_weights(one)[0], one)
    spread = np.linspace(0.0, -1e6, 100)  # every weight underflows beside the next
    assert metrics.psis_khat(spread) == math.inf
    zeros = np.where(np.arange(100) < 50, -np.inf, np.random.default_rng(0).normal(size=100))
    assert metrics.psis_khat(zeros) < 0.7
    shift = np.random.default_rng(1).normal(size=300)
    assert metrics.psis_khat(shift + 700.0) == pytest.approx(metrics.psis_khat(shift), rel=1e-9)


def test_bad_weights_are_refused_by_name():
    with pytest.raises(ValueError, match=r"log_weights: shape \(20,\); .* at least 21"):
        metrics.psis_khat(np.zeros(20))
    with pytest.raises(ValueError, match="log_weights: row 3 is nan"):
        metrics.psis_khat(np.where(np.arange(50) == 3, np.nan, 0.0))
    with pytest.raises(ValueError, match="log_weights: row 4 is inf"):
        metrics.psis_khat(np.where(np.arange(50) == 4, np.inf, 0.0))
    with pytest.raises(ValueError, match="all are -inf"):
        metrics.psis_khat(np.full(50, -np.inf))
    for bad in ([1.0] * 4, [0.0, 1, 2, 3, 4], [1, 2, 3, 4, np.inf]):
        with pytest.raises(ValueError, match="exceedances"):
            metrics.pareto_fit(bad)


# --- diagnosis -----------------------------------------------------------------------------------


def test_diagnose_finds_a_good_and_a_bad_belief():
    rng = np.random.default_rng(8)
    X = np.column_stack([np.ones(60), rng.normal(size=60)])
    y = (rng.random(60) < 1.0 / (1.0 + np.exp(-X @ [0.5, -1.2]))).astype(float)
    weight = rng.uniform(0.5, 2.0, 60)
    prior = DenseGaussian.isotropic(2, std=1.7)
    data = (prior, Bernoulli(), X, y)
    truth = batch.GridPosterior(*data, sample_weight=weight)
    good = batch.variational(*data, weight)
    found = metrics.diagnose(good, *data, n_samples=40_000, rng=0, sample_weight=weight)
    assert found.khat < 0.5
    assert found.reliable
    assert found.threshold == 0.7
    assert 37_000 < found.effective_sample_size < 40_000
    assert "good" in found.verdict
    assert str(found) == found.verdict
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=0.005)
    options = {"sample_weight": weight, "log_evidence": truth.log_evidence}
    assert found.kl == pytest.approx(metrics.kl_to_posterior_exact(good, *data, **options), abs=0.005)
    laplace = batch.laplace(*data, weight)
    corrected = metrics.diagnose(laplace, *data, n_samples=40_000, rng=0, sample_weight=weight).mean
    assert np.abs(laplace.mean - truth.mean).max() > 0.02
    np.testing.assert_allclose(corrected, truth.mean, atol=0.008)

    narrow = DenseGaussian(good.mean, 0.05 * good.cov)
    found = metrics.diagnose(narrow, *data, n_samples=4000, rng=0, sample_weight=weight)
    assert found.khat > 0.7
    assert not found.reliable
    assert "poor" in str(found)
    assert "\n" not in str(found)
    again = metrics.diagnose(narrow, *data, n_samples=4000, rng=0, sample_weight=weight)
    assert again.khat == found.khat


def test_diagnose_thresholds_and_errors():
    X, y, _, prior, belief = problem()
    found = metrics.diagnose(belief, prior, Bernoulli(), X, y, n_samples=100, rng=1)
    assert found.threshold == 0.5
    assert found.n_samples == 100
    assert "usable" in str(metrics.Diagnosis(0.55, 0.7, 10.0, 1000, 0.0, 0.1, np.zeros(1)))
    assert "unclear" in str(metrics.Diagnosis(1.5, 0.7, 900.0, 1000, 0.0, 0.1, np.zeros(1)))
    assert "poor" in str(metrics.Diagnosis(0.7, 0.7, 499.0, 1000, 0.0, 0.1, np.zeros(1)))
    assert "good" in str(metrics.Diagnosis(0.49, 0.7, 900.0, 1000, 0.0, 0.1, np.zeros(1)))
    with pytest.raises(ValueError, match="n_samples: 20; at least 21"):
        metrics.diagnose(belief, prior, Bernoulli(), X, y, n_samples=20)


def wandering(shift=0.0, shrink=1.0, scale=1.0):
    """A batch optimum with its mean moved by so many standard deviations and its covariance shrunk."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(300, 3)) * scale, np.ones(300)])
    y = (rng.random(300) < 1.0 / (1.0 + np.exp(-X @ [0.9 / scale, -1.2 / scale, 0.3 / scale, 0.4]))).astype(float)
    prior = DenseGaussian.isotropic(4, std=1.7)
    best = batch.variational(prior, Bernoulli(), X, y)
    moved = best.mean + shift * np.sqrt(best.variance()) * np.array([1.0, -1.0, 1.0, 1.0])
    return DenseGaussian(moved, shrink * best.cov), prior, Bernoulli(), X, y


def test_diagnose_measures_what_a_second_pass_would_change():
    good = metrics.diagnose(*wandering(), rng=1)
    assert good.reliable
    assert good.shift < 0.12
    assert 0.93 < good.narrowest <= good.widest < 1.07
    assert str(good).startswith("good")
    for scale in (1.0, 1e6):  # the importance weights of one standard deviation look harmless, whatever the units
        found = metrics.diagnose(*wandering(shift=1.0, scale=scale), rng=1)
        assert found.shift == pytest.approx(1.0, abs=0.12)
        assert not found.reliable
        assert str(found).startswith("poor, a second pass moves weight")
    assert metrics.diagnose(*wandering(shift=0.2), rng=1).reliable
    sure = metrics.diagnose(*wandering(shrink=0.25), rng=1)
    assert sure.narrowest == pytest.approx(0.5, abs=0.05)
    assert str(sure).startswith("poor, too sure")
    unsure = metrics.diagnose(*wandering(shrink=4.0), rng=1)
    assert unsure.widest == pytest.approx(2.0, abs=0.15)
    assert str(unsure).startswith("poor, too unsure")


def test_diagnose_tells_a_wrong_model_from_a_wrong_belief():
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=(400, 2)), np.ones(400)])
    f = X @ [0.7, -0.4, 0.5]
    prior = DenseGaussian.isotropic(3, std=2.0)

    def misfit(likelihood, y):
        found = metrics.diagnose(batch.laplace(prior, likelihood, X, y), prior, likelihood, X, y, rng=1)
        assert found.reliable
        return found.misfit

    noise = rng.normal(size=400)
    assert misfit(Gaussian(0.5), f + 0.5 * noise).words == ""
    assert "outliers" in misfit(Gaussian(0.5), f + 0.5 * np.where(rng.random(400) < 0.03, 8.0, 1.0) * noise).words
    assert "less spread" in misfit(Gaussian(2.5), f + 0.5 * noise).words
    assert "more spread" in misfit(Gaussian(0.1), f + 0.5 * noise).words
    assert "bend" in misfit(Gaussian(0.5), f**2 + 2.0 * f + 0.1 * noise).words
    assert misfit(Poisson(), rng.poisson(np.exp(f)).astype(float)).words == ""
    assert (
        "NegativeBinomial" in misfit(Poisson(), rng.negative_binomial(1.0, 1.0 / (1.0 + np.exp(f))).astype(float)).words
    )
    assert misfit(Bernoulli(), (rng.random(400) < 1.0 / (1.0 + np.exp(-f))).astype(float)).words == ""
    assert np.isnan(misfit(Gaussian(1.0), f + 3.0 * noise).dispersion)  # in units of its own
    few = metrics.diagnose(prior, prior, Gaussian(1.0), X[:5], f[:5], rng=1)
    assert np.isnan(few.misfit.dispersion)
