"""Data for the low-rank experiments; one seed for the data, others for starts and samples (lrvga reuses one)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, make_classification

import gaussfold as gf


class Regression(NamedTuple):
    """Rows, labels, the likelihood and the prior."""

    X: np.ndarray
    y: np.ndarray
    likelihood: Any
    prior_std: float

    @property
    def prior(self) -> gf.DenseGaussian:
        """The prior, dense."""
        return gf.DenseGaussian.isotropic(self.X.shape[1], self.prior_std)


def inputs(rng: np.random.Generator, n: int, d: int, c: float = 1.0) -> np.ndarray:
    """Lrvga (49), rotated and of mean square norm one in expectation."""
    scale = np.arange(1, d + 1) ** -c
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (rng.standard_normal((n, d)) * np.sqrt(scale / scale.sum())) @ turn.T


def linear(d: int, n: int, prior_std: float, seed: int = 0) -> Regression:
    """Lrvga (50): noise of variance one, weights from the prior of unit variance."""
    rng = np.random.default_rng(seed)
    X = inputs(rng, n, d) * np.sqrt(3.0)
    return Regression(X, X @ rng.standard_normal(d) + rng.standard_normal(n), gf.likelihoods.Gaussian(1.0), prior_std)


def logistic(d: int, n: int, prior_std: float, seed: int = 0) -> Regression:
    """Labels drawn from the model."""
    rng = np.random.default_rng(seed)
    X = inputs(rng, n, d) * np.sqrt(3.0)
    f = X @ rng.normal(0.0, 2.0, d)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-f))).astype(float)
    return Regression(X, y, gf.likelihoods.Bernoulli(), prior_std)


def covariance_data(name: str, quick: bool, seed: int = 0, full: bool = False) -> tuple[np.ndarray, int]:
    """Rows of mean norm one, and the number of factors to fit: the four panels of lrvga figure 1, its rows in full."""
    rng = np.random.default_rng(seed)
    if name.startswith("d = "):
        d = int(name.removeprefix("d = "))
        W, psi = rng.standard_normal((d, 10)), rng.random(d)
        n = 500 if quick else 10_000 if full else 4000
        X, p = rng.standard_normal((n, 10)) @ W.T + np.sqrt(psi) * rng.standard_normal((n, d)), 10
    elif name == "Madelon-like":
        X, _ = make_classification(
            500 if quick else 2000, 100 if quick else 500, n_informative=5, n_redundant=15, n_clusters_per_class=16,
            random_state=seed,
        )  # fmt: skip
        p = 10
    else:
        X, p = load_breast_cancer().data, 5
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        X = X[rng.permutation(len(X))]
    return X / np.linalg.norm(X, axis=1).mean(), p


def factor_model(rng: np.random.Generator, d: int, p: int, top: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thesis Algorithm 4: mean, factors and noise with a spectrum in [1, top]."""
    c, A = rng.standard_normal(d), rng.standard_normal((d, d))
    vectors = np.linalg.eigh(A @ A.T)[1][:, ::-1][:, :p]
    spectrum = rng.uniform(1.0, top, d)
    return c, vectors * np.sqrt(spectrum)[:, None], rng.uniform(0.0, spectrum.max(), d)
