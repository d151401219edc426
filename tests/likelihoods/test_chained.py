"""Likelihoods of several latents: densities, derivatives, moments, missing outputs, files."""

import json

import numpy as np
import pytest
from scipy import stats

from gaussfold import likelihoods as lk
from gaussfold.expectations.cubature import GaussHermite, Unscented
from gaussfold.likelihoods import normal
from gaussfold.likelihoods.regression import regress
from tests.likelihoods.chained import CHAINED, NOISE, name, rows


def softplus(f):
    return np.log1p(np.exp(f))


def slopes(fn, F, step=1e-5):
    """Central differences of fn(F) in the last axis of F, on a new last axis."""
    shifts = step * np.eye(F.shape[-1])
    return np.stack([(fn(F + s) - fn(F - s)) / (2 * step) for s in shifts], axis=-1)


def test_densities_are_scipys():
    F = np.array([[0.4, -0.7], [1.2, 0.9]])
    y = np.array([[0.3], [-1.4]])
    want = stats.norm.logpdf(y[:, 0], F[:, 0], softplus(F[:, 1]))
    np.testing.assert_allclose(lk.HeteroscedasticGaussian().log_prob(y, F), want, rtol=1e-13)
    want = stats.norm.logpdf(y[:, 0], F[:, 0] * softplus(F[:, 1]), 0.6)
    np.testing.assert_allclose(lk.ProductGaussian(0.6).log_prob(y, F), want, rtol=1e-13)
    F = np.random.default_rng(0).normal(size=(4, 8))
    Y = np.random.default_rng(1).normal(size=(4, 3))
    W = F[:, 2:].reshape(4, 3, 2) + 0.1
    want = [stats.multivariate_normal.logpdf(Y[i], W[i] @ F[i, :2], NOISE) for i in range(4)]
    np.testing.assert_allclose(lk.RegressionNetwork(NOISE, 2, 0.1).log_prob(Y, F), want, rtol=1e-12)
    f = np.array([0.3, -0.2, 1.1])
    p = np.exp(lk.Softmax(3).log_prob(np.arange(3.0)[:, None], f))
    np.testing.assert_allclose(p, np.exp(f) / np.exp(f).sum(), rtol=1e-14)


@pytest.mark.parametrize("likelihood", CHAINED, ids=name)
def test_derivatives(likelihood):
    Y, F, _ = rows(likelihood, 6, 3)
    first, second = likelihood.derivatives(Y, F)
    np.testing.assert_allclose(first, slopes(lambda f: likelihood.log_prob(Y, f), F), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(second, slopes(lambda f: likelihood.derivatives(Y, f)[0], F), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("likelihood", CHAINED, ids=name)
def test_conditional_derivatives(likelihood):
    _, F, _ = rows(likelihood, 5, 4)
    full = likelihood.conditional_curvatures(F)
    shape = (*F.shape[:1], likelihood.responses)
    for field, order in (("mean", 1), ("cov", 2)):
        value = lambda f: np.broadcast_to(getattr(likelihood.conditional(f), field), shape + shape[1:] * (order - 1))  # noqa: B023, E731
        first = getattr(full, f"{field}_slope")
        want = slopes(value, F)
        np.testing.assert_allclose(np.zeros_like(want) if first is None else first, want, rtol=1e-7, atol=1e-7)
        second = getattr(full, f"{field}_curvature")
        if first is None:
            assert second is None
            continue
        slope = lambda f: np.broadcast_to(getattr(likelihood.conditional_slopes(f), f"{field}_slope"), want.shape)  # noqa: B023, E731
        want_twice = slopes(slope, F)
        got = np.zeros_like(want_twice) if second is None else np.broadcast_to(second, want_twice.shape)
        np.testing.assert_allclose(got, want_twice, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("likelihood", CHAINED, ids=name)
def test_expectations_against_samples(likelihood):
    """Two hundred thousand draws: the parametrisation of N(mean, cov), to three standard errors."""
    Y, mean, cov = rows(likelihood, 2, 5)
    draws = np.random.default_rng(6).standard_normal((200_000, likelihood.latents))
    first, second = likelihood.predictive(mean, cov)
    for i in range(2):
        f = mean[i] + draws @ np.linalg.cholesky(cov[i]).T
        log_p = likelihood.log_prob(Y[i], f)
        error = log_p.std() / np.sqrt(draws.shape[0])
        assert likelihood.expected_log_prob(Y, mean, cov)[i] == pytest.approx(log_p.mean(), abs=4 * error)
        p = np.exp(log_p)
        error = p.std() / np.sqrt(draws.shape[0])
        assert np.exp(likelihood.log_predictive(Y, mean, cov)[i]) == pytest.approx(p.mean(), abs=4 * error)
        given = likelihood.conditional(f)
        told = given.mean.shape[1]  # a softmax predicts its last class too, which the others leave
        np.testing.assert_allclose(first[i][:told], given.mean.mean(axis=0), atol=0.01)
        want = np.cov(given.mean.T) + np.asarray(given.cov).mean(axis=0)
        np.testing.assert_allclose(second[i][:told, :told], want, atol=0.03 * np.abs(want).max())
        if first.shape[1] > told:
            assert first[i].sum() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("likelihood", CHAINED[:3] + CHAINED[4:], ids=name)
def test_expectations_are_derivatives_of_each_other(likelihood):
    """Bonnet and Price by differences of E log p and log E p^α in the mean."""
    Y, mean, cov = rows(likelihood, 4, 7)
    rule = GaussHermite(12)
    first, second = likelihood.expected_derivatives(Y, mean, cov, rule)
    value = lambda m: likelihood.expected_log_prob(Y, m, cov, rule)  # noqa: E731
    np.testing.assert_allclose(first, slopes(value, mean), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(
        second, slopes(lambda m: likelihood.expected_derivatives(Y, m, cov, rule)[0], mean), rtol=1e-6, atol=1e-6
    )
    for cubature in (rule, None):
        got = likelihood.tilted(Y, mean, cov, 0.6, cubature)
        np.testing.assert_allclose(got[0], likelihood.log_predictive(Y, mean, cov, cubature, alpha=0.6), rtol=1e-13)
        value = lambda m: likelihood.log_predictive(Y, m, cov, cubature, alpha=0.6)  # noqa: B023, E731
        np.testing.assert_allclose(got[1], slopes(value, mean), rtol=1e-6, atol=1e-6)
        slope = lambda m: likelihood.tilted(Y, m, cov, 0.6, cubature)[1]  # noqa: B023, E731
        np.testing.assert_allclose(got[2], slopes(slope, mean), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("likelihood", CHAINED[:3] + CHAINED[4:], ids=name)
def test_slopes_in_the_covariance(likelihood):
    Y, mean, cov = rows(likelihood, 3, 8)
    D = likelihood.latents
    for cubature in (GaussHermite(12), None):
        first, by_cov = likelihood.tilted_slopes(Y, mean, cov, 0.6, cubature)
        np.testing.assert_allclose(first, likelihood.tilted(Y, mean, cov, 0.6, cubature)[1], rtol=1e-10, atol=1e-12)
        for k in range(D):
            for l in range(k + 1):  # noqa: E741
                step = np.zeros((D, D))
                step[k, l] = step[l, k] = 1e-6
                up, down = (likelihood.log_predictive(Y, mean, cov + s * step, cubature, alpha=0.6) for s in (1, -1))
                want = (up - down) / 2e-6 / (1.0 if k == l else 2.0)
                np.testing.assert_allclose(by_cov[:, k, l], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("likelihood", CHAINED[:3], ids=name)
def test_half_of_the_integral_is_exact(likelihood):
    """Inner latents in closed form agree with nodes in all dimensions, where those converge."""
    Y, mean, cov = rows(likelihood, 4, 9, spread=0.2)
    for alpha in (1.0, 0.5):
        for got, want in zip(
            likelihood.tilted(Y, mean, cov, alpha),
            likelihood.tilted(Y, mean, cov, alpha, GaussHermite(40 if likelihood.latents == 3 else 120)),
            strict=True,
        ):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("likelihood", CHAINED[:4], ids=name)
def test_second_order_regression(likelihood):
    """μ and Ω of the statistical linear regression, differentiated in the mean by differences."""
    _, mean, cov = rows(likelihood, 3, 10)
    rule = GaussHermite(8) if likelihood.latents < 4 else Unscented(5)
    fit = regress(likelihood, mean, cov, rule, second_order=True)
    plain = regress(likelihood, mean, cov, rule).moments
    np.testing.assert_allclose(fit.moments.mean, plain.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(fit.moments.cov, plain.cov, rtol=1e-12, atol=1e-12)
    at = lambda m, **k: regress(likelihood, m, cov, rule, **k).moments  # noqa: E731
    np.testing.assert_allclose(fit.moments.mean_slope, slopes(lambda m: at(m).mean, mean), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(fit.moments.cov_slope, slopes(lambda m: at(m).cov, mean), rtol=1e-6, atol=1e-7)
    for what in ("mean", "cov"):
        want = slopes(lambda m: getattr(at(m, second_order=True), f"{what}_slope"), mean)  # noqa: B023
        np.testing.assert_allclose(getattr(fit.moments, f"{what}_curvature"), want, rtol=1e-6, atol=1e-6)


def test_regression_in_the_covariance():
    """Price's theorem holds for exact integrals, so with enough nodes."""
    likelihood = lk.ProductGaussian(0.6)
    _, mean, cov = rows(likelihood, 2, 11)
    rule = GaussHermite(24)
    got = regress(likelihood, mean, cov, rule, second_order=True).cov_by_cov
    for k, l in ((0, 0), (1, 0), (1, 1)):  # noqa: E741
        step = np.zeros((2, 2))
        step[k, l] = step[l, k] = 1e-5
        up, down = (regress(likelihood, mean, cov + s * step, rule).moments.cov for s in (1, -1))
        want = (up - down) / 2e-5 / (1.0 if k == l else 2.0)
        np.testing.assert_allclose(got[..., k, l], want, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("likelihood", CHAINED, ids=name)
def test_a_row_without_outputs_says_nothing(likelihood):
    Y, mean, cov = rows(likelihood, 3, 12)
    Y[1] = np.nan
    assert likelihood.log_prob(Y, mean)[1] == 0.0
    assert likelihood.log_predictive(Y, mean, cov)[1] == pytest.approx(0.0, abs=1e-14)
    for array in (*likelihood.derivatives(Y, mean), likelihood.gauss_newton(Y, mean)):
        assert not array[1].any()
        assert array[0].any()


def test_missing_outputs_one_by_one():
    """A network with a hole is the smaller network that never had that output."""
    whole, part = lk.RegressionNetwork(NOISE, 2), lk.RegressionNetwork(NOISE[np.ix_([0, 2], [0, 2])], 2)
    Y, F, cov = rows(whole, 4, 13)
    Y[:, 1] = np.nan
    kept = [0, 1, 2, 3, 6, 7]
    small = (Y[:, [0, 2]], F[:, kept])
    np.testing.assert_allclose(whole.log_prob(Y, F), part.log_prob(*small), rtol=1e-12)
    first, second = whole.derivatives(Y, F)
    assert not first[:, 4:6].any()
    for got, want in zip((first[:, kept], second[:, kept][:, :, kept]), part.derivatives(*small), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)
    small_cov = cov[:, kept][:, :, kept]
    want = part.log_predictive(*small, small_cov, alpha=0.4)
    np.testing.assert_allclose(whole.log_predictive(Y, F, cov, alpha=0.4), want, rtol=1e-10)


def test_blocks_do_not_matter(monkeypatch):
    likelihood = lk.HeteroscedasticGaussian()
    Y, mean, cov = rows(likelihood, 9, 14)
    want = (*likelihood.expected_derivatives(Y, mean, cov), *likelihood.tilted(Y, mean, cov, 0.5))
    fit = regress(likelihood, mean, cov, second_order=True)
    monkeypatch.setattr("gaussfold.likelihoods.chained.BLOCK", 4000)
    monkeypatch.setattr("gaussfold.likelihoods.conditionally_linear.BLOCK", 700)
    got = (*likelihood.expected_derivatives(Y, mean, cov), *likelihood.tilted(Y, mean, cov, 0.5))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)
    again = regress(likelihood, mean, cov, second_order=True)
    np.testing.assert_allclose(again.moments.cov_slope, fit.moments.cov_slope, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("likelihood", CHAINED, ids=name)
def test_config_survives_json(likelihood):
    again = lk.chained_from_config(json.loads(json.dumps(likelihood.config())))
    assert again == likelihood
    assert hash(again) == hash(likelihood)


def test_labels_are_checked():
    with pytest.raises(ValueError, match=r"Y\[1, 0\] = 3.0: Softmax labels must be class numbers"):
        lk.Softmax(3).check_labels([[2.0], [3.0]])
    with pytest.raises(ValueError, match=r"Y\[0, 1\] = inf"):
        lk.RegressionNetwork(NOISE, 2).check_labels([[2.0, np.inf, np.nan]])
    lk.Softmax(3).check_labels([[np.nan], [0.0]])


def test_refused_parameters():
    with pytest.raises(ValueError, match=r"classes=1: Softmax needs a whole number"):
        lk.Softmax(1)
    with pytest.raises(ValueError, match=r"std=0.0: ProductGaussian needs a finite number > 0"):
        lk.ProductGaussian(0.0)
    with pytest.raises(ValueError, match="noise_cov is not positive definite"):
        lk.RegressionNetwork([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match=r"signals=0"):
        lk.RegressionNetwork([[1.0]], signals=0)
    with pytest.raises(ValueError, match=r"noise_cov has shape \(1, 2\)"):
        lk.RegressionNetwork([[1.0, 2.0]])


def test_a_normaliser_that_is_not_positive():
    """Unscented-5 in eight dimensions has negative weights: an error that says so, never a clipped number."""
    likelihood = lk.RegressionNetwork(0.001 * NOISE, 2)
    Y, mean, cov = rows(likelihood, 60, 15, spread=2.0)
    with pytest.raises(ValueError, match=r"the cubature rule gives E p\(y \| f\)\^1 = -?\d.* in row \d+; unscented-5"):
        likelihood.tilted(Y, mean, cov, 1.0, Unscented(5))
    assert np.isfinite(likelihood.log_predictive(Y, mean, cov)).all()


def test_not_a_covariance():
    likelihood = lk.HeteroscedasticGaussian()
    Y, mean, cov = rows(likelihood, 3, 16)
    cov[2] = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(ValueError, match=r"cov\[2\] is not positive semi-definite \(smallest eigenvalue -1.0"):
        likelihood.expected_log_prob(Y, mean, cov)
    cov[2] = [[1.0, 1.0], [1.0, 1.0]]  # singular is fine: a latent that is a copy of another
    assert np.isfinite(likelihood.expected_log_prob(Y, mean, cov)).all()


def test_normal_without_slopes_says_what_is_missing():
    moments = normal.NormalMoments(np.zeros((1, 1)), np.ones((1, 1, 1)))
    for needs in (normal.gradient, normal.hessian, normal.gauss_newton):
        with pytest.raises(ValueError, match="slope of the mean is needed"):
            needs(np.zeros((1, 1)), moments)


@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_nodes_move_in_where_the_likelihood_is_sharp(alpha):
    """Noise of std 0.01 seen from an envelope of std 1: against two million points in f₂, f₁ in closed form."""
    likelihood = lk.ProductGaussian(std=0.01)
    found = likelihood._moments(np.array([[0.7]]), np.array([[0.5, 0.1]]), np.diag([1e-4, 1.0])[None], alpha)
    z = np.linspace(-8.0, 8.0, 2_000_001)
    phi = softplus(0.1 + z)
    total = 1e-4 * phi**2 + 1e-4 / alpha
    log_w = -0.5 * (0.7 - 0.5 * phi) ** 2 / total - 0.5 * np.log(2.0 * np.pi * total) - 0.5 * np.log(alpha)
    log_w += 0.5 * (1.0 - alpha) * np.log(2.0 * np.pi * 1e-4) + stats.norm.logpdf(z)
    w = np.exp(log_w) * (z[1] - z[0])
    mean = w @ z / w.sum()
    assert found.log_z[0] == pytest.approx(np.log(w.sum()), abs=1e-9)
    assert found.moved[0, 1] == pytest.approx(mean, rel=1e-9)
    assert found.cov[0, 1, 1] == pytest.approx(w @ (z - mean) ** 2 / w.sum(), rel=1e-8)
