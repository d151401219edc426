"""Linear regression has an exact posterior: Tables 5.1 and B.6 of the thesis."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import sqrtm

import gaussfold as gf
from gaussfold.deep.vifa import THESIS
from tests.deep.problems import relative
from tests.shared import ORACLES, needs_oracles


def straight(params, X):
    return X @ params


def with_bias(params, X):
    return X @ params[:-1] + params[-1]


def cosine(steps, high, low):
    return lambda step: low + 0.5 * (high - low) * (1.0 + jnp.cos(jnp.pi * jnp.minimum(step / steps, 1.0)))


def wasserstein(mean, cov, exact_mean, exact_cov):
    root = sqrtm(exact_cov)
    cross = np.trace(sqrtm(root @ cov @ root).real)
    square = ((mean - exact_mean) ** 2).sum() + np.trace(cov) + np.trace(exact_cov) - 2.0 * cross
    return np.sqrt(max(square, 0.0)) / len(mean)


@needs_oracles
def test_two_dimensions():
    """Table 5.1: K = 1, M = 100, L = 10; at or below the larger of the thesis's and the authors' program's figures."""
    with np.load(ORACLES / "swafa" / "vifa_synthetic2d.npz") as file:
        oracle = dict(file)
    limits = np.maximum([0.0031, 0.0983, 0.0194], oracle["metrics"].mean(axis=0))
    function = gf.deep.log_likelihood(straight, gf.likelihoods.Gaussian(np.sqrt(10.0)))
    steps, trials = 4000, range(3)
    rates = {
        "mean": cosine(steps, 0.5, 5e-3),
        "factors": cosine(steps, 0.02, 5e-4),
        "log_psi": cosine(steps, 0.05, 2e-3),
    }
    options = {"rank": 1, "prior_precision": 0.01, "n_samples": 10, "batch_size": 100, "init_std": 1.0, "average": 3.0}
    methods = [
        gf.deep.VIFA(
            function,
            np.zeros(2, np.float32),
            samples="antithetic",
            seed=trial,
            **(THESIS | options | {"learning_rate": rates}),
        )
        for trial in trials
    ]
    data = [(oracle[f"t{trial}_X"], oracle[f"t{trial}_y"]) for trial in trials]
    found = []
    for trial, posterior in zip(trials, gf.deep.fit_many(methods, data, steps=steps), strict=True):
        mean, cov = oracle[f"t{trial}_true_mean"], oracle[f"t{trial}_true_cov"]
        ours = posterior.belief.to_dense()
        found.append((relative(ours.mean, mean), relative(ours.cov, cov), wasserstein(ours.mean, ours.cov, mean, cov)))
    assert (np.mean(found, axis=0) <= limits).all(), np.mean(found, axis=0)


@needs_oracles
@pytest.mark.parametrize(
    ("name", "thesis", "rate"),
    [
        ("energy", (0.0051, 0.0421, 0.0564), (0.5, 5e-3)),
        ("bostonHousing", (0.0262, 0.3185, 0.0468), (0.1, 5e-4)),
        ("yacht", (0.0435, 0.0391, 0.1210), (0.1, 5e-4)),
    ],
)
def test_uci(name, thesis, rate):
    """Table B.6: K = 3, M = 100, L = 10 and as many updates; the bias counts, as there."""
    with np.load(ORACLES / "swafa" / f"vifa_uci_{name}.npz") as file:
        oracle = {key: np.asarray(value, dtype=np.float64) for key, value in file.items()}
    limits = np.maximum(thesis, oracle["trace"][-1, 1:])
    function = gf.deep.log_likelihood(with_bias, gf.likelihoods.Gaussian(float(oracle["beta"]) ** -0.5))
    exact, cov = np.append(oracle["true_mean"], oracle["true_bias"]), oracle["true_cov"]
    d, steps = len(cov), int(oracle["epochs"]) * (len(oracle["y"]) // 100) // 10
    method = gf.deep.VIFA(
        function,
        np.zeros(d + 1, np.float32),
        rank=3,
        samples="antithetic",
        batch_size=100,
        **(
            THESIS
            | {"prior_precision": float(oracle["alpha"]), "learning_rate": cosine(steps, *rate)}
            | {"init_std": 1.0, "average": 3.0}
        ),
    )
    ours = method.fit((oracle["X"], oracle["y"]), steps=steps).belief.to_dense()
    found = (
        relative(ours.mean, exact),
        relative(ours.cov[:d, :d], cov),
        wasserstein(ours.mean[:d], ours.cov[:d, :d], exact[:d], cov),
    )
    assert (np.array(found) <= limits).all(), (found, limits)
