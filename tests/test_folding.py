"""The fold against the authors' programs, the paper's theorems, and its own promises."""

import numpy as np
import pytest
from scipy import sparse

import gaussfold as gf
from gaussfold import rules
from gaussfold.likelihoods import Bernoulli, Gaussian, Poisson, StudentT
from tests.problems import ATS, RULES, name
from tests.shared import ORACLES, needs_oracles

FIGURES = sorted(path.stem for path in (ORACLES / "rvga").glob("fig*.npz")) if ORACLES.is_dir() else ["absent"]
AUTHORS = {
    "ekf": ("taylor", "prior"),
    "qkf": ("quadratic", "prior"),
    "rvga_explicit": ("vi", "prior"),
    "rvga_implicit_exactroot": ("vi", "posterior"),
}


def _state(belief):
    return {key: array.copy() for key, array in belief.state().items()}


def _assert_unchanged(belief, before):
    for key, array in belief.state().items():
        np.testing.assert_array_equal(array, before[key])


# The authors' programs


@needs_oracles
@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("method", AUTHORS)
@pytest.mark.parametrize("block_size", [None, 1, 13])
def test_authors_runs(figure, method, block_size):
    oracle = np.load(ORACLES / "rvga" / f"{figure}.npz")
    rule, at = AUTHORS[method]
    belief = gf.DenseGaussian.isotropic(int(oracle["d"]), float(oracle["sigma0"]), oracle["mu0"])
    gf.fold(belief, Bernoulli(expectation="probit"), oracle["X"], oracle["y"], rule, at, block_size=block_size)
    mean, cov = oracle[f"{method}_mean"], oracle[f"{method}_cov"]
    assert np.abs(belief.mean - mean).max() <= 1e-9 * np.abs(mean).max()
    assert np.abs(belief.cov - cov).max() <= 1e-9 * np.abs(cov).max()


@needs_oracles
@pytest.mark.parametrize("separation", [6, 3])
def test_printed_mirror_prox(separation):
    oracle = np.load(ORACLES / "lrvga" / "logreg_mirrorprox_2d.npz")
    belief = gf.DenseGaussian.isotropic(2, 10.0)
    X, y = oracle[f"s{separation}_X"], oracle[f"s{separation}_y"]
    gf.fold(belief, Bernoulli(expectation="probit"), X, y, "vi", rules.Extragradient("printed"))
    np.testing.assert_allclose(belief.mean, oracle[f"s{separation}_mirrorprox_mu"].ravel(), rtol=1e-9)
    np.testing.assert_allclose(belief.cov, oracle[f"s{separation}_mirrorprox_cov"], rtol=1e-9)


# The paper's theorems


@pytest.mark.parametrize("rule", RULES, ids=name)
@pytest.mark.parametrize("at", ATS)
def test_theorem_2_gaussian_data_are_exact(rule, at):
    rng = np.random.default_rng(11)
    X, y, weight = rng.standard_normal((30, 5)), rng.standard_normal(30), rng.uniform(0.2, 2.5, 30)
    prior = gf.DenseGaussian(rng.standard_normal(5), np.diag([0.5, 2.0, 1.0, 0.3, 4.0]) + 0.1)
    belief = prior.copy()
    gf.fold(belief, Gaussian(0.6), X, y, rule, at, sample_weight=weight)
    precision = np.linalg.inv(prior.cov) + (X.T * weight) @ X / 0.36
    mean = np.linalg.solve(precision, np.linalg.solve(prior.cov, prior.mean) + X.T @ (weight * y) / 0.36)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(belief.cov, np.linalg.inv(precision), rtol=1e-10, atol=1e-13)


def test_printed_mirror_prox_is_not_exact_on_gaussian_data():
    belief = gf.DenseGaussian.isotropic(1, 1.0)
    gf.fold(belief, Gaussian(1.0), [[1.0]], [1.0], "vi", rules.Extragradient("printed"))
    np.testing.assert_allclose(belief.mean, [0.25])  # the posterior mean is 0.5


@pytest.mark.parametrize("likelihood", [Bernoulli(), Poisson()], ids=name)
def test_theorem_3_taylor_at_prior_is_the_online_natural_gradient(likelihood):
    """rvga (54), written with the averaged Fisher matrix J_t = P_t⁻¹/(t+1) and the learning rate 1/(t+1)."""
    rng = np.random.default_rng(2)
    X, y = 0.6 * rng.standard_normal((25, 3)), (rng.random(25) < 0.5).astype(float)
    mean, fisher = np.array([0.2, -0.1, 0.4]), np.linalg.inv(np.diag([0.5, 1.5, 0.8]))
    belief = gf.DenseGaussian(mean, np.linalg.inv(fisher))
    gf.fold(belief, likelihood, X, y, "taylor", "prior")
    for t, (x, label) in enumerate(zip(X, y, strict=True), start=1):
        f = x @ mean
        response = 1.0 / (1.0 + np.exp(-f)) if isinstance(likelihood, Bernoulli) else np.exp(f)
        expected_hessian = response * (1.0 - response) if isinstance(likelihood, Bernoulli) else response
        fisher = t / (t + 1) * fisher + np.outer(x, x) * expected_hessian / (t + 1)
        mean = mean - np.linalg.solve(fisher, (response - label) * x) / (t + 1)
    np.testing.assert_allclose(belief.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(belief.cov, np.linalg.inv(fisher * (len(y) + 1)), rtol=1e-10)


def test_theorem_1_each_step_is_the_nearest_gaussian():
    """One implicit step against a brute-force minimisation of the KL over mean and Cholesky factor."""
    from scipy.optimize import minimize

    x, y, prior = np.array([1.2, -0.7]), 1.0, gf.DenseGaussian([0.3, 0.5], [[1.4, 0.3], [0.3, 0.9]])
    likelihood = Bernoulli()
    belief = prior.copy()
    gf.fold(belief, likelihood, x[None], [y])

    def kl(z):
        lower = np.array([[np.exp(z[2]), 0.0], [z[3], np.exp(z[4])]])
        q = gf.DenseGaussian.from_factor(z[:2], lower)
        return q.kl(prior) - likelihood.expected_log_prob([y], q.marginal(x[None]))[0]

    best = minimize(kl, [0.3, 0.5, 0.1, 0.2, -0.1], method="BFGS", options={"gtol": 1e-9})
    lower = np.array([[np.exp(best.x[2]), 0.0], [best.x[3], np.exp(best.x[4])]])
    np.testing.assert_allclose(belief.mean, best.x[:2], rtol=1e-5)
    np.testing.assert_allclose(belief.cov, lower @ lower.T, rtol=1e-5)


# Promises


def test_weight_two_is_the_row_twice_for_gaussian_rows():
    X, y = np.array([[0.7, -1.1], [0.2, 0.9]]), np.array([0.4, -1.3])
    once, twice = gf.DenseGaussian.isotropic(2, 0.7), gf.DenseGaussian.isotropic(2, 0.7)
    gf.fold(once, Gaussian(0.9), X, y, sample_weight=[2.0, 1.0])
    gf.fold(twice, Gaussian(0.9), X[[0, 0, 1]], y[[0, 0, 1]])
    np.testing.assert_allclose(once.mean, twice.mean, rtol=1e-13)
    np.testing.assert_allclose(once.cov, twice.cov, rtol=1e-13)


@pytest.mark.parametrize("dim", [3, 90])
def test_nothing_is_learned_from_missing_labels_and_zero_weights(dim):
    rng = np.random.default_rng(4)
    belief = gf.DenseGaussian.isotropic(dim, 0.7)
    gf.fold(belief, Bernoulli(), rng.standard_normal((9, dim)), np.ones(9))
    before, X = _state(belief), rng.standard_normal((200, dim))
    result = gf.fold(belief, Bernoulli(), X, np.full(200, np.nan))
    _assert_unchanged(belief, before)
    assert np.isnan(result.log_predictive).all()
    np.testing.assert_allclose(result.mean, belief.marginal(X).mean, rtol=1e-10)
    np.testing.assert_allclose(result.variance, belief.marginal(X).variance, rtol=1e-10)
    result = gf.fold(belief, Bernoulli(), X, np.ones(200), sample_weight=np.zeros(200))
    _assert_unchanged(belief, before)
    assert np.isfinite(result.log_predictive).all()


def test_skipped_rows_leave_no_trace_among_learned_ones():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((40, 70)), (rng.random(40) < 0.5).astype(float)
    y[[3, 20]] = np.nan
    weight = np.ones(40)
    weight[[7, 21]] = 0.0
    kept = ~np.isnan(y) & (weight > 0.0)
    some, all_ = gf.DenseGaussian.isotropic(70, 0.7), gf.DenseGaussian.isotropic(70, 0.7)
    gf.fold(some, Bernoulli(), X[kept], y[kept])
    gf.fold(all_, Bernoulli(), X, y, sample_weight=weight)
    np.testing.assert_allclose(all_.mean, some.mean, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(all_.cov, some.cov, rtol=1e-11, atol=1e-14)


def test_a_row_that_sees_nothing_teaches_nothing():
    belief = gf.DenseGaussian.isotropic(2, 0.7)
    before = _state(belief)
    result = gf.fold(belief, Poisson(), np.zeros((1, 2)), np.array([3.0]))
    _assert_unchanged(belief, before)
    np.testing.assert_allclose(result.log_predictive, Poisson().log_prob(3.0, 0.0), rtol=1e-14)


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_soft_labels_lie_between_hard_ones(link):
    x, means = np.array([[1.0, 0.5]]), []
    for y in (0.0, 0.25, 0.75, 1.0):
        belief = gf.DenseGaussian.isotropic(2, 1.7)
        gf.fold(belief, Bernoulli(link), x, np.array([y]))
        means.append((x @ belief.mean)[0])
    assert np.all(np.diff(means) > 0.1)
    np.testing.assert_allclose(means[1], -means[2], rtol=1e-10)


def test_result_is_the_prediction_before_learning():
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((20, 3)), rng.poisson(1.5, 20).astype(float)
    belief, steps = gf.DenseGaussian.isotropic(3, 0.7), gf.DenseGaussian.isotropic(3, 0.7)
    result = gf.fold(belief, Poisson(), X, y)
    for i in range(20):
        moments = steps.marginal(X[i : i + 1])
        np.testing.assert_allclose(result.mean[i], moments.mean[0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(result.variance[i], moments.variance[0], rtol=1e-12)
        np.testing.assert_allclose(
            result.log_predictive[i], Poisson().log_predictive(y[i : i + 1], moments), rtol=1e-11
        )
        gf.fold(steps, Poisson(), X[i : i + 1], y[i : i + 1])


def test_sites_rebuild_the_posterior():
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((50, 4)), (rng.random(50) < 0.3).astype(float)
    prior = gf.DenseGaussian.isotropic(4, 1.3, 0.2)
    belief = prior.copy()
    result = gf.fold(belief, Bernoulli(), X, y)
    precision, shift = prior.natural()
    rebuilt = gf.DenseGaussian.from_natural(
        precision + (X.T * result.site_precision) @ X, shift + X.T @ result.site_shift
    )
    np.testing.assert_allclose(belief.mean, rebuilt.mean, rtol=1e-9)
    np.testing.assert_allclose(belief.cov, rebuilt.cov, rtol=1e-9, atol=1e-14)


def test_sparse_rows_are_dense_rows():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((60, 80)) * (rng.random((60, 80)) < 0.1)
    y = rng.poisson(1.0, 60).astype(float)
    dense, csr = gf.DenseGaussian.isotropic(80, 0.5), gf.DenseGaussian.isotropic(80, 0.5)
    gf.fold(dense, Poisson(), X, y)
    gf.fold(csr, Poisson(), sparse.csr_matrix(X), y)
    np.testing.assert_allclose(csr.mean, dense.mean, rtol=1e-12, atol=1e-15)


def test_student_t_shrugs_at_an_outlier():
    X, y = np.ones((12, 1)), np.r_[np.full(11, 0.5) + 0.01 * np.arange(11), 1e4]
    robust, naive = gf.DenseGaussian.isotropic(1, 2.0), gf.DenseGaussian.isotropic(1, 2.0)
    gf.fold(robust, StudentT(4.0, 0.1), X, y)
    gf.fold(naive, Gaussian(0.1), X, y)
    assert abs(robust.mean[0] - 0.55) < 0.05
    assert naive.mean[0] > 100.0


# Bad input: named, and before anything has changed

GOOD_X, GOOD_Y = np.arange(8.0).reshape(4, 2) / 5.0, np.array([0.0, 1.0, 1.0, 0.0])


def _spoil(array, row, value):
    array = array.copy()
    array[row] = value
    return array


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (_spoil(GOOD_X, 2, np.nan), GOOD_Y, {}, r"X: row 2 .*finite"),
        (_spoil(GOOD_X, 1, np.inf), GOOD_Y, {}, r"X: row 1 .*finite"),
        (sparse.csr_matrix(_spoil(GOOD_X, 3, np.inf)), GOOD_Y, {}, r"X: row 3 .*finite"),
        (GOOD_X, _spoil(GOOD_Y, 3, np.inf), {}, r"y\[3\] = inf"),
        (GOOD_X, _spoil(GOOD_Y, 2, 1.5), {}, r"y\[2\] = 1.5"),
        (GOOD_X, GOOD_Y[:3], {}, r"y: shape \(3,\)"),
        (GOOD_X[:, :1], GOOD_Y, {}, r"X: shape \(4, 1\); \(n, 2\)"),
        (GOOD_X, GOOD_Y, {"sample_weight": [1.0, -0.5, 1.0, 1.0]}, r"sample_weight: row 1 is -0.5"),
        (GOOD_X, GOOD_Y, {"sample_weight": [1.0, 1.0, np.nan, 1.0]}, r"sample_weight: row 2"),
        (GOOD_X, GOOD_Y, {"rule": "vb"}, r"rule='vb': allowed are 'newton'"),
        (GOOD_X, GOOD_Y, {"at": "later"}, r"at='later': allowed are 'prior'"),
        (GOOD_X, GOOD_Y, {"block_size": 0}, r"block_size=0"),
        (_spoil(GOOD_X, 3, 1e200), GOOD_Y, {}, r"row 3 drives the posterior out of range"),
    ],
)
@pytest.mark.parametrize("rows", ["all", "one"])
def test_bad_input_changes_nothing(X, y, options, message, rows):
    belief = gf.DenseGaussian.isotropic(2, 0.7)
    before = _state(belief)
    if rows == "one":  # the row by itself takes another way in
        bad = [int(c) for c in message if c.isdigit()][:1]
        if not message.startswith(("X: row", "y\\[", "row")) or sparse.issparse(X):
            return
        message = message.replace(f"row {bad[0]}", "row 0").replace(f"[{bad[0]}", "[0")
        X, y = X[bad], y[bad]
    with pytest.raises(ValueError, match=message):
        gf.fold(belief, Bernoulli(), X, y, **options)
    _assert_unchanged(belief, before)


@pytest.mark.parametrize("label", [-1.0, 0.5, np.inf])
def test_counts_are_whole_and_not_negative(label):
    belief = gf.DenseGaussian.isotropic(2, 0.7)
    before = _state(belief)
    for n in (1, 4):
        with pytest.raises(ValueError, match=r"y\[0\]"):
            gf.fold(belief, Poisson(), GOOD_X[:n], np.full(n, label))
    _assert_unchanged(belief, before)


def test_arguments_in_each_others_place_are_named():
    belief, X, y = gf.DenseGaussian.isotropic(2), np.ones((3, 2)), np.zeros(3)
    likelihood = gf.likelihoods.Bernoulli()
    with pytest.raises(ValueError, match=r"a Bernoulli and a DenseGaussian, which stand in each other's place"):
        gf.fold(likelihood, belief, X, y)
    for wrong in ("binary", X, gf.likelihoods.Bernoulli, None):
        with pytest.raises(ValueError, match=r"^likelihood(=|: .*; an object is needed, such as)"):
            gf.fold(belief, wrong, X, y)
    np.testing.assert_array_equal(belief.mean, 0.0)
