"""What a practitioner expects of kernels and predictions."""

import warnings

import numpy as np
import pytest

from gaussfold import likelihoods as lk
from gaussfold.gp import Constant, GaussianProcess, Matern32, NotConvergedWarning, Periodic, White


def test_softmax_predicts_every_class():
    x = np.linspace(0.0, 9.0, 45)
    y = np.floor(x / 3.0).clip(0, 2)
    gp = GaussianProcess(Matern32(4.0, 1.0), lk.Softmax(3)).fit(x, y)
    probability, std = gp.predict(x, return_std=True)
    assert probability.shape == std.shape == (45, 3)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-9)
    assert (probability.argmax(axis=1) == y).mean() > 0.9
    np.testing.assert_allclose(std, np.sqrt(probability * (1.0 - probability)), rtol=1e-6)
    for k in range(3):
        np.testing.assert_allclose(np.exp(gp.predict_density(x, np.full(45, float(k)))), probability[:, k], rtol=1e-6)


@pytest.mark.parametrize("lengthscale", [0.1, 0.3, 1.0, 4.0])
def test_periodic_takes_enough_harmonics(lengthscale):
    x = np.linspace(0.0, 3.0, 40)
    y = np.sin(2.0 * np.pi * x)
    kernel = Periodic(1.3, lengthscale, 0.9)
    dense, markov = (
        GaussianProcess(kernel, lk.Gaussian(0.2), structure=structure).fit(x, y).predict_latent(x + 0.05)
        for structure in ("dense", "markov")
    )
    np.testing.assert_allclose(markov[1], dense[1], rtol=1e-3)
    np.testing.assert_allclose(markov[0], dense[0], atol=5e-4)


def test_periodic_says_when_no_number_is_enough():
    with pytest.raises(ValueError, match=r"leave out .* of the variance with 60 harmonics; .*structure='dense'"):
        GaussianProcess(Periodic(lengthscale=0.01), lk.Gaussian(0.2), structure="markov")


def test_numbers_times_kernels_and_sums_of_lists():
    X = np.linspace(0.0, 2.0, 5)[:, None]
    for kernel in (Matern32(1.5, 0.7), Matern32() + White(0.3), Matern32(1.5) * Periodic(0.7), Constant(0.3)):
        np.testing.assert_allclose((2 * kernel)(X), 2.0 * kernel(X))
        np.testing.assert_allclose((kernel * 0.5)(X), 0.5 * kernel(X))
    np.testing.assert_allclose(sum([Matern32(), White(0.3)])(X), Matern32()(X) + White(0.3)(X))
    with pytest.raises(ValueError, match="a factor of a covariance"):
        -1.0 * Matern32()


def test_softmax_over_differences_is_the_integral_over_all_latents():
    rng = np.random.default_rng(0)
    Y = np.array([[0.0], [1.0], [2.0], [np.nan]])
    mean, root = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 3))
    cov = 0.3 * root @ np.swapaxes(root, 1, 2)
    model, fine = lk.Softmax(3), "gauss-hermite"  # 20³ nodes in all three dimensions
    np.testing.assert_allclose(
        model.expected_log_prob(Y, mean, cov), model.expected_log_prob(Y, mean, cov, fine), atol=1e-6
    )
    for name in ("expected_derivatives", "summed_slopes", "tilted", "tilted_slopes"):
        ours, theirs = (getattr(model, name)(Y, mean, cov, **more) for more in ({}, {"cubature": fine}))
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a[:3], b[:3], atol=1e-5, err_msg=name)
            assert not a[3].any()
    np.testing.assert_allclose(model.predictive(mean, cov)[0], model.predictive(mean, cov, fine)[0], atol=1e-6)


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_learning_leaves_a_variance_that_is_far_off(likelihood):
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(0.0, 20.0, 60))
    f = 1.5 * np.sin(x)
    y = rng.poisson(np.exp(f)) if likelihood == "poisson" else rng.random(60) < 1.0 / (1.0 + np.exp(-f))
    energies = []
    for variance in (1e-6, 1.0, 1e5):
        gp = GaussianProcess(Matern32(variance, 1.0), likelihood, structure="markov")
        with warnings.catch_warnings():  # where the latents are free to leave for minus infinity, a fit does not settle
            warnings.simplefilter("ignore", NotConvergedWarning)
            gp.fit(x, y.astype(float))
        energies.append(gp.learn_hyperparameters().energy)
    np.testing.assert_allclose(energies, min(energies), atol=0.01)
