"""Likelihoods of several latents at odd parameters, and rows for them."""

import numpy as np

from gaussfold import likelihoods as lk

NOISE = np.array([[0.3, -0.1, 0.05], [-0.1, 0.4, 0.1], [0.05, 0.1, 0.6]])
CHAINED = [
    lk.HeteroscedasticGaussian(),
    lk.ProductGaussian(std=0.6),
    lk.RegressionNetwork(NOISE[:2, :2], signals=1, weight_offset=0.3),
    lk.RegressionNetwork(NOISE, signals=2),
    lk.Softmax(3),
]


def name(value: object) -> str | None:
    if isinstance(value, lk.RegressionNetwork):
        return f"network{value.latents}"
    return type(value).__name__ if isinstance(value, lk.VectorLikelihood) else None


def rows(likelihood, n, seed, spread=0.4):
    """Labels, means and covariances; no output missing."""
    rng = np.random.default_rng(seed)
    D, P = likelihood.latents, likelihood.outputs
    Y = rng.normal(0.0, 1.3, (n, P))
    if isinstance(likelihood, lk.Softmax):
        Y = rng.integers(0, likelihood.classes, (n, 1)).astype(float)
    root = spread * rng.standard_normal((n, D, D)) / np.sqrt(D)
    cov = root @ np.swapaxes(root, 1, 2) + 0.05 * np.eye(D)
    return Y, 0.7 * rng.standard_normal((n, D)), cov
