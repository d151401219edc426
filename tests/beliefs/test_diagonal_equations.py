"""The compiled loops against the paper's equations, written independently in tests/reference/diagonal.py."""

import math

import numpy as np
import pytest
from scipy import integrate, optimize, sparse
from scipy.special import log_ndtr

import gaussfold as gf
from gaussfold.beliefs.diagonal.coupling import Joint, Marginal
from gaussfold.likelihoods import Bernoulli, Gaussian, Poisson
from tests.beliefs.sparse_streams import dicts, draw
from tests.reference import diagonal as paper

APPROXIMATE = Bernoulli("logit", "probit")
PROBIT = Bernoulli("probit")
DIM = 9
MEAN = np.linspace(-0.4, 0.9, DIM)
VAR = np.geomspace(0.3, 2.7, DIM)


def sign(label):
    return 1 if label > 0.5 else -1


def close(belief, means, variances, tolerance=1e-12):
    np.testing.assert_allclose(belief.mean, means, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(belief.var, variances, rtol=tolerance)


def weighted(rng, n):
    return rng.choice([0.3, 1.0, 2.5], size=n)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
@pytest.mark.parametrize("mean_form", ["solved", "one-step"])
@pytest.mark.parametrize("variance_form", ["curvature", "height"])
def test_algorithm_1_for_logit(mean_form, variance_form, scale):
    if variance_form == "height" and scale > 1:
        pytest.skip("(18) can leave the range where single numbers agree: exp of a large square")
    X, y, rng = draw(150, DIM, seed=1, scale=scale)
    w = weighted(rng, len(y)) if variance_form == "curvature" else np.ones(len(y))
    belief = gf.DiagonalGaussian(MEAN, VAR, Marginal(mean_form, variance_form))
    result = gf.fold(belief, APPROXIMATE, X, y, rule="newton", sample_weight=w)
    means, variances = MEAN.tolist(), VAR.tolist()
    loss = []
    for row, label, weight in zip(dicts(X), y, w, strict=True):
        loss.append(paper.logit_log_loss(means, variances, row, sign(label)))
        paper.marginal_logit(means, variances, row, sign(label), weight, mean_form, variance_form)
    # at 1e4 the sum x'm itself is only known to 1e-12, and a variance hangs on it exponentially
    tolerance = 1e-12 if scale < 1e4 else 1e-9
    close(belief, means, variances, tolerance)
    np.testing.assert_allclose(-result.log_predictive, loss, rtol=tolerance, atol=0.1 * tolerance)


@pytest.mark.parametrize("std", [30.0, 1e3])
def test_wide_priors_meeting_surprises_are_solved_too(std):
    """Halley's steps do not settle here: the bracketed search must."""
    X, y, _ = draw(60, DIM, seed=2)
    belief = gf.DiagonalGaussian.isotropic(DIM, std=std, mean=-20.0)
    gf.fold(belief, APPROXIMATE, X, y, rule="newton")
    means, variances = [-20.0] * DIM, [std**2] * DIM
    for row, label in zip(dicts(X), y, strict=True):
        paper.marginal_logit(means, variances, row, sign(label))
    close(belief, means, variances, 1e-10)


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_dim_gauss_in_one_step(scale):
    """(42)-(46), with other weights than 1, and whatever was learned before."""
    X, y, rng = draw(150, DIM, seed=21, scale=scale)
    w = weighted(rng, len(y))
    belief = gf.DiagonalGaussian(MEAN, VAR, Joint("one-step"))
    gf.fold(belief, Bernoulli("logit"), X, y, rule="newton", sample_weight=w)
    means, variances = MEAN.tolist(), VAR.tolist()
    for row, label, weight in zip(dicts(X), y, w, strict=True):
        paper.dim_gauss_one_step(means, variances, row, sign(label), weight)
    close(belief, means, variances, 1e-11 if scale < 1e4 else 1e-9)
    with pytest.raises(ValueError, match=r"Joint\(mean='one-step'\) goes with rule='newton'"):
        gf.fold(belief, Bernoulli("logit"), X, y, rule="vi")


def test_rows_longer_than_the_scratch():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 1301)) * (rng.random((12, 1301)) < 0.9)
    y = rng.integers(0, 2, size=12).astype(float)
    belief = gf.DiagonalGaussian.isotropic(1301, std=0.7)
    gf.fold(belief, APPROXIMATE, X, y, rule="newton")
    means, variances = [0.0] * 1301, [0.49] * 1301
    for row, label in zip(dicts(X), y, strict=True):
        paper.marginal_logit(means, variances, row, sign(label))
    close(belief, means, variances)


def test_the_vectorised_loop_and_the_general_one_agree_for_soft_labels():
    X, y, rng = draw(200, DIM, seed=4)
    y = np.where(rng.random(200) < 0.5, rng.random(200), y)
    fast = gf.DiagonalGaussian(MEAN, VAR)
    gf.fold(fast, APPROXIMATE, X, y, rule="newton")
    # two components with the same prior run through the mixture's loop; taylor = newton for logit, in general code
    slow = gf.DiagonalGaussian(MEAN, VAR)
    gf.fold(slow, APPROXIMATE, X, y, rule="taylor")
    pair = gf.DiagonalMixture([gf.DiagonalGaussian(MEAN, VAR)] * 3)
    gf.fold(pair, APPROXIMATE, X, y, rule="newton")
    close(slow, fast.mean, fast.var)
    np.testing.assert_allclose(pair.mean, fast.mean, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(pair.variance(), fast.var, rtol=1e-13)


@pytest.mark.parametrize("mean_form", ["solved", "one-step"])
def test_algorithm_1_for_probit(mean_form):
    X, y, rng = draw(150, DIM, seed=5)
    w = weighted(rng, len(y))
    belief = gf.DiagonalGaussian(MEAN, VAR, Marginal(mean_form))
    gf.fold(belief, PROBIT, X, y, rule="newton", sample_weight=w)
    means, variances = MEAN.tolist(), VAR.tolist()
    for row, label, weight in zip(dicts(X), y, w, strict=True):
        paper.marginal_probit(means, variances, row, sign(label), weight, mean_form)
    close(belief, means, variances)


def test_probit_marginal_is_mode_and_curvature_of_the_true_marginal_posterior():
    """The other weights are integrated numerically, not by (25)."""
    x, y = np.array([1.3, -0.7, 0.4]), 1.0
    mean, var = np.array([0.2, 0.5, -0.3]), np.array([0.8, 1.7, 0.6])
    belief = gf.DiagonalGaussian(mean, var)
    gf.fold(belief, PROBIT, x[None, :], [y], rule="newton")
    for i in range(3):
        rest = np.delete(np.arange(3), i)
        m, s = x[rest] @ mean[rest], math.sqrt(x[rest] ** 2 @ var[rest])

        def minus_log(w, i=i, m=m, s=s):
            def integrand(z):
                return math.exp(-0.5 * z * z + float(log_ndtr(x[i] * w + m + s * z))) / math.sqrt(2 * math.pi)

            inside = integrate.quad(integrand, -10, 10, epsabs=0, epsrel=1e-13)[0]
            return 0.5 * (w - mean[i]) ** 2 / var[i] - math.log(inside)

        def slope(w, h=1e-3, f=minus_log):
            return (8 * (f(w + h) - f(w - h)) - (f(w + 2 * h) - f(w - 2 * h))) / (12 * h)

        mode = optimize.brentq(slope, mean[i] - 3, mean[i] + 3, xtol=1e-14)
        curvature = (slope(mode + 1e-3) - slope(mode - 1e-3)) / 2e-3
        assert belief.mean[i] == pytest.approx(mode, abs=1e-9)
        assert belief.var[i] == pytest.approx(1 / curvature, rel=1e-6)


def test_dim_gauss():
    X, y, rng = draw(150, DIM, seed=6)
    w = weighted(rng, len(y))
    belief = gf.DiagonalGaussian(MEAN, VAR, "joint")
    gf.fold(belief, APPROXIMATE, X, y, rule="newton", sample_weight=w)
    means, variances = MEAN.tolist(), VAR.tolist()
    for row, label, weight in zip(dicts(X), y, w, strict=True):
        paper.dim_gauss(means, variances, row, sign(label), weight)
    close(belief, means, variances, 1e-11)


@pytest.mark.parametrize(
    ("likelihood", "label", "log_likelihood"),
    [
        (Bernoulli("logit"), 1.0, paper.log_sigma),
        (PROBIT, 0.0, lambda f: float(log_ndtr(-f))),
        (Poisson(), 3.0, lambda f: 3 * f - math.exp(f)),
    ],
    ids=["logit", "probit", "poisson"],
)
def test_adf_matches_the_moments(likelihood, label, log_likelihood):
    row = {1: 1.3, 4: -0.7, 7: 0.4}
    X = sparse.csr_array(([1.3, -0.7, 0.4], ([0, 0, 0], [1, 4, 7])), shape=(1, DIM))
    belief = gf.DiagonalGaussian(MEAN, VAR, "joint")
    gf.fold(belief, likelihood, X, [label], rule="ep", at="prior")
    for i, (mean, variance) in paper.matched_moments(log_likelihood, MEAN, VAR, row).items():
        assert belief.mean[i] == pytest.approx(mean, rel=1e-10)
        assert belief.var[i] == pytest.approx(variance, rel=1e-10)


def test_marginal_vb_minimises_the_divergence():
    row = {1: 1.3, 4: -0.7, 7: 2.4}
    X = sparse.csr_array(([1.3, -0.7, 2.4], ([0, 0, 0], [1, 4, 7])), shape=(1, DIM))
    belief = gf.DiagonalGaussian(MEAN, VAR)
    gf.fold(belief, Bernoulli("logit"), X, [0.0], rule="vi")
    for i, (mean, variance) in paper.marginal_vb(MEAN, VAR, row, -1).items():
        assert belief.mean[i] == pytest.approx(mean, abs=1e-7)
        assert belief.var[i] == pytest.approx(variance, rel=1e-7)


def test_marginal_gaussian_is_exact_marginalisation():
    """One weight, the others integrated out: the marginal of the exact joint posterior, for every weight."""
    X, _, rng = draw(1, DIM, seed=7)
    y = rng.normal(size=1)
    for coupling in ("marginal", "joint"):
        belief = gf.DiagonalGaussian(MEAN, VAR, coupling)
        gf.fold(belief, Gaussian(0.6), X, y, rule="newton")
        exact = gf.DenseGaussian(MEAN, np.diag(VAR))
        gf.fold(exact, Gaussian(0.6), X, y)
        close(belief, exact.mean, exact.variance())


def test_marginal_poisson_is_near_the_true_marginal_posterior():
    """The gamma stand-in of the log-normal: mode within a tenth of a posterior standard deviation."""
    x, y = np.array([1.0, 0.8, -0.5]), 4.0
    mean, var = np.array([0.2, 0.5, -0.3]), np.array([0.5, 0.4, 0.6])
    belief = gf.DiagonalGaussian(mean, var)
    gf.fold(belief, Poisson(), x[None, :], [y], rule="newton")
    for i in range(3):
        rest = np.delete(np.arange(3), i)
        m, s = x[rest] @ mean[rest], math.sqrt(x[rest] ** 2 @ var[rest])
        z = np.linspace(-9, 9, 4001)

        def minus_log(w, i=i, m=m, s=s, z=z):
            f = x[i] * w + m + s * z
            return 0.5 * (w - mean[i]) ** 2 / var[i] - np.logaddexp.reduce(-0.5 * z * z + y * f - np.exp(f))

        found = optimize.minimize_scalar(minus_log, bounds=(mean[i] - 4, mean[i] + 4), method="bounded")
        h = 1e-3
        curvature = (minus_log(found.x + h) + minus_log(found.x - h) - 2 * found.fun) / h**2
        assert belief.mean[i] == pytest.approx(found.x, abs=0.1 / math.sqrt(curvature))
        assert belief.var[i] == pytest.approx(1 / curvature, rel=0.15)


@pytest.mark.parametrize("likelihood", [Bernoulli("logit"), Gaussian(0.7), Poisson()], ids=repr)
@pytest.mark.parametrize(("rule", "at"), [("vi", "posterior"), ("taylor", "prior"), ("ep", "prior"), ("pl", "prior")])
def test_joint_coupling_is_the_dense_update_with_its_diagonal_kept(likelihood, rule, at):
    X, y, rng = draw(25, DIM, seed=8)
    if not isinstance(likelihood, Bernoulli):
        y = rng.integers(0, 4, size=25).astype(float)
    w = weighted(rng, 25)
    belief = gf.DiagonalGaussian(MEAN, VAR, "joint")
    result = gf.fold(belief, likelihood, X, y, rule=rule, at=at, sample_weight=w)
    mean, var, scores, precisions = MEAN, VAR, [], []
    for r in range(25):
        dense = gf.DenseGaussian(mean, np.diag(var))
        one = gf.fold(dense, likelihood, X[[r]], y[[r]], rule=rule, at=at, sample_weight=w[[r]])
        mean, var = dense.mean, dense.variance()
        scores.append(one.log_predictive[0])
        precisions.append(one.site_precision[0])
    close(belief, mean, var, 1e-11)
    np.testing.assert_allclose(result.log_predictive, scores, rtol=1e-11)
    np.testing.assert_allclose(result.site_precision, precisions, rtol=1e-10)
