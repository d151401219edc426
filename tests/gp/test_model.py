"""GaussianProcess from outside: learning, predictions, samples, streams of time points, batches, files."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import gaussfold as gf
from gaussfold import likelihoods as lk
from gaussfold.gp import GaussianProcess, Matern32, Matern52, White
from gaussfold.rules import EP, QuasiNewton

RNG = np.random.default_rng(12)
N = 50
X = RNG.uniform(0.0, 6.0, N)
F = 1.3 * np.sin(2.0 * X)
SMOOTH = F + 0.3 * RNG.normal(size=N)
BINARY = (RNG.random(N) < 1.0 / (1.0 + np.exp(-3.0 * F))).astype(float)
TEST = np.linspace(-1.0, 8.0, 13)


# Learning


@pytest.mark.parametrize("structure", ["dense", "markov"])
@pytest.mark.parametrize("rule", ["vi", "newton"])
def test_learning_regression_is_maximum_likelihood(rule, structure):
    kernel = ConstantKernel(1.0) * Matern(1.0, nu=1.5) + WhiteKernel(0.25)
    theirs = GaussianProcessRegressor(kernel, alpha=1e-12).fit(X[:, None], SMOOTH)
    gp = GaussianProcess(Matern32(1.0, 1.0), lk.Gaussian(0.5), rule, structure=structure).fit(X, SMOOTH)
    learned = gp.learn_hyperparameters()
    assert learned.converged
    assert learned.energy == pytest.approx(-theirs.log_marginal_likelihood_value_, abs=1e-5)
    assert gp.energy() == pytest.approx(learned.energy, abs=1e-9)
    parts = theirs.kernel_
    want = [parts.k1.k1.constant_value, parts.k1.k2.length_scale, parts.k2.noise_level**0.5]
    np.testing.assert_allclose(list(learned.parameters.values()), want, rtol=1e-2)
    assert list(learned.parameters) == ["covariance.variance", "covariance.lengthscale", "likelihood.std"]


@pytest.mark.parametrize("rule", ["vi", "newton", "pl"])
def test_learning_classification_lowers_the_energy(rule):
    gp = GaussianProcess(Matern32(0.5, 3.0), lk.Bernoulli(), rule, structure="markov", max_iter=30).fit(X, BINARY)
    before = gp.energy()
    learned = gp.learn_hyperparameters(max_iter=8, fixed=["covariance.variance"])
    assert learned.energy < before - 0.5
    assert gp.parameters()["covariance.variance"] == 0.5
    slope = gp.energy_gradient().parameters["covariance.lengthscale"]
    assert abs(slope) < 0.05
    assert gp.rule.name == rule


def test_inducing_inputs_are_learned():
    start = np.array([[0.5], [0.9], [1.3], [1.7], [2.0]])
    options = {"structure": "sparse", "inducing": start}
    held = GaussianProcess(Matern32(1.5, 1.0), lk.Gaussian(0.3), **options).fit(X, SMOOTH)
    moved = GaussianProcess(Matern32(1.5, 1.0), lk.Gaussian(0.3), **options).fit(X, SMOOTH)
    fixed = list(held.parameters())
    learned = moved.learn_hyperparameters(fixed=fixed, max_iter=30)
    assert learned.energy < held.energy() - 20.0
    assert np.ptp(moved.prior_.Z) > 3.0
    with pytest.raises(ValueError, match="leaves nothing to learn"):
        held.learn_hyperparameters(fixed=fixed, learn_inducing=False)


# Predicting


def test_predictions_have_names_and_shapes():
    gp = GaussianProcess(Matern32(1.5, 0.7), lk.Gaussian(0.3)).fit(X, SMOOTH)
    mean, cov = gp.predict_latent(TEST)
    assert mean.shape == (13, 1)
    assert cov.shape == (13, 1, 1)
    predicted, std = gp.predict(TEST, return_std=True)
    np.testing.assert_allclose(predicted, mean[:, 0])
    np.testing.assert_allclose(std**2, cov[:, 0, 0] + 0.09)
    density = gp.predict_density(TEST, np.zeros(13))
    want = -0.5 * (mean[:, 0] / std) ** 2 - np.log(std) - 0.5 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(density, want, rtol=1e-9)
    draws = gp.sample_posterior(TEST, 4000, random_state=0)
    assert draws.shape == (4000, 13, 1)
    np.testing.assert_allclose(draws.std(axis=0)[:, 0], np.sqrt(cov[:, 0, 0]), rtol=0.06)
    np.testing.assert_array_equal(draws[:3], gp.sample_posterior(TEST, 4000, random_state=0)[:3])


def test_result_reports_sites_that_are_not_positive():
    """Student-t noise bends upwards at an outlier; exact curvature says so and says where."""
    y = SMOOTH.copy()
    y[17] += 6.0
    gp = GaussianProcess(Matern32(1.5, 0.7), lk.StudentT(8.0, 0.8), "newton", damping=0.5).fit(X, y)
    assert gp.result_.converged
    assert gp.result_.non_positive == 1
    assert gp.result_.first_non_positive == 17
    assert gp.sites_.precision[gp.result_.first_non_positive] < 0.0
    assert (gp.marginals_.cov > 0.0).all()
    log_concave = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli()).fit(X, BINARY)
    assert log_concave.result_.non_positive == 0
    assert log_concave.result_.first_non_positive == -1


def test_fit_stops_when_the_energy_settles():
    gp = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), tol=1e-8).fit(X, BINARY)
    assert gp.result_.converged
    assert gp.result_.iterations == len(gp.result_.history) < 100
    assert gp.result_.energy == gp.result_.history[-1] == gp.energy()
    again = gp.energy()
    gp.resume(iterations=3)
    assert gp.energy() == pytest.approx(again, rel=1e-7)


def test_white_noise_in_the_prior_is_noise():
    """A White part is what a Gaussian likelihood's noise is, for predictions of f and for the evidence."""
    smooth = GaussianProcess(Matern32(1.5, 0.7), lk.Gaussian(0.5)).fit(X, SMOOTH)
    for structure in ("dense", "markov"):
        split = GaussianProcess(Matern32(1.5, 0.7) + White(0.09), lk.Gaussian(0.4), structure=structure)
        assert split.fit(X, SMOOTH).energy() == pytest.approx(smooth.energy(), abs=1e-8)
        np.testing.assert_allclose(split.predict(TEST), smooth.predict(TEST), atol=1e-8)


# Streams of time points


def stream(likelihood, y, lag, iterations, chunk=7):
    gp = GaussianProcess(Matern32(1.5, 0.7), likelihood, structure="markov")
    order = np.argsort(X)
    for i in range(0, N, chunk):
        rows = order[i : i + chunk]
        gp.partial_fit(X[rows], y[rows], lag=lag, iterations=iterations)
    return gp


def test_partial_fit_is_exact_for_gaussian_noise():
    whole = GaussianProcess(Matern32(1.5, 0.7), lk.Gaussian(0.3), structure="markov").fit(X, SMOOTH)
    for lag, chunk in ((0, 1), (3, 7), (1000, 50)):
        gp = stream(lk.Gaussian(0.3), SMOOTH, lag, 1, chunk)
        np.testing.assert_allclose(gp.predict([6.5, 9.0]), whole.predict([6.5, 9.0]), atol=1e-10)
        np.testing.assert_allclose(gp.predict(TEST), whole.predict(TEST), atol=1e-10)
        assert gp.energy() == pytest.approx(whole.energy(), abs=1e-9)


def test_partial_fit_catches_up_with_the_batch():
    whole = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), structure="markov", tol=1e-12).fit(X, BINARY)
    gaps = []
    for lag, iterations in ((0, 1), (10, 3), (50, 30)):
        gp = stream(lk.Bernoulli(), BINARY, lag, iterations)
        gaps.append(np.abs(gp.predict_latent(TEST)[0] - whole.predict_latent(TEST)[0]).max())
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[1] < 0.05
    assert gaps[2] < 1e-5


def test_partial_fit_goes_on_after_fit_and_before_resume():
    order = np.argsort(X)
    first, rest = order[:30], order[30:]
    gp = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), structure="markov", tol=1e-10).fit(X[first], BINARY[first])
    gp.partial_fit(X[rest], BINARY[rest], lag=5)
    gp.resume()
    whole = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), structure="markov", tol=1e-10).fit(X, BINARY)
    np.testing.assert_allclose(gp.predict(TEST), whole.predict(TEST), atol=1e-5)
    assert len(gp.X_) == N


def test_partial_fit_refuses_the_past_and_keeps_what_it_had():
    gp = stream(lk.Bernoulli(), BINARY, 5, 2)
    before = gp.predict(TEST)
    with pytest.raises(ValueError, match=r"X\[1\] = 0.2 lies before .* where the window of lag=5 begins; raise lag"):
        gp.partial_fit([7.0, 0.2], [1.0, 0.0], lag=5)
    with pytest.raises(ValueError, match="labels must be"):
        gp.partial_fit([7.0], [3.0])
    np.testing.assert_array_equal(gp.predict(TEST), before)
    with pytest.raises(ValueError, match="partial_fit needs structure='markov'"):
        GaussianProcess(Matern32(), lk.Bernoulli()).partial_fit([1.0], [1.0])


# Batches


@pytest.mark.parametrize("rule", ["vi", "newton"])
def test_batches_of_all_rows_are_the_plain_algorithm(rule):
    Z = np.linspace(0.2, 5.8, 9)[:, None]
    plain = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), rule, structure="sparse", inducing=Z)
    plain.fit(X, BINARY, iterations=25)
    tied = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), rule, structure="sparse", inducing=Z, batch_size=N)
    tied.fit(X, BINARY, iterations=25)
    assert tied.energy() == pytest.approx(plain.energy(), abs=1e-5)
    np.testing.assert_allclose(tied.predict(TEST), plain.predict(TEST), atol=1e-5)


def test_small_batches_come_close():
    options = {"structure": "sparse", "inducing": np.linspace(0.2, 5.8, 9)[:, None], "random_state": 5}
    plain = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), **options).fit(X, BINARY)
    for rule in ("vi", EP(0.5)):
        tied = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), rule, batch_size=10, damping=0.05, **options)
        tied.fit(X, BINARY, iterations=300)
        assert np.abs(tied.predict(TEST) - plain.predict(TEST)).max() < 0.06
        assert tied.sample_posterior(TEST[:3], 2).shape == (2, 3, 1)


# Files


@pytest.mark.parametrize("kind", ["dense", "markov-two-latents", "sparse", "batches"])
def test_saved_loaded_and_resumed_bit_for_bit(kind, tmp_path):
    y = BINARY
    if kind == "markov-two-latents":
        covariances = [Matern32(1.3, 0.7), Matern52(0.4, 1.5)]
        gp = GaussianProcess(
            covariances, lk.HeteroscedasticGaussian(), "vi", QuasiNewton(damping=0.4), "markov",
            damping=0.3, cubature="gauss-hermite",
        )  # fmt: skip
        y = SMOOTH
    elif kind == "dense":
        gp = GaussianProcess(Matern32(1.5, 0.7) + White(0.1), lk.Bernoulli("probit"), EP(0.7), damping=0.8)
    else:
        size = {"batch_size": 10, "damping": 0.2} if kind == "batches" else {}
        gp = GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), structure="sparse", inducing=6, random_state=2, **size)
    gp.fit(X, y, iterations=4)
    gf.save(gp, tmp_path / "gp")
    twin = gf.load(tmp_path / "gp")
    np.testing.assert_array_equal(twin.predict(TEST), gp.predict(TEST))
    assert twin.result_ == gp.result_
    assert twin.parameters() == gp.parameters()
    if kind != "batches":
        np.testing.assert_array_equal(twin.resume(iterations=3).predict(TEST), gp.resume(iterations=3).predict(TEST))
    np.testing.assert_array_equal(twin.sample_posterior(TEST, 2), gp.sample_posterior(TEST, 2))


def test_progress_bar_when_asked(capsys):
    GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli(), verbose=True).fit(X, BINARY, iterations=2)
    assert "energy" in capsys.readouterr().err
    GaussianProcess(Matern32(1.5, 0.7), lk.Bernoulli()).fit(X, BINARY, iterations=2)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("variance", [1e2, 1e4])
def test_steps_that_swing_around_the_optimum_are_shortened(variance):
    """Full steps of (9) end in a cycle of two here; left to itself the fit settles where small steps do."""
    inputs, labels = make_moons(60, noise=0.3, random_state=0)

    def process(**options):
        return GaussianProcess(Matern52(variance, 1.0), "bernoulli", verbose=False, **options)

    full = process().fit(inputs, labels, iterations=100).result_.history
    assert abs(full[-1] - full[-2]) > 1.0
    assert abs(full[-1] - full[-3]) < 1e-6 * full[-1]
    adaptive = process().fit(inputs, labels).result_
    assert adaptive.converged
    assert adaptive.energy == pytest.approx(
        process(damping=0.1, max_iter=600).fit(inputs, labels).result_.energy, abs=1e-3
    )
