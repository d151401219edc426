"""Data of the thesis, exact posteriors of linear regression, and distances between Gaussians."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import sqrtm

from experiments.registry import ORACLES

UCI = ORACLES.parent / "data" / "uci"
NAMES = {"energy": "Energy", "bostonHousing": "Boston", "concrete": "Concrete", "yacht": "Yacht"}


class Gaussian(NamedTuple):
    """Mean and covariance."""

    mean: np.ndarray
    cov: np.ndarray


def uci(name: str) -> dict[str, np.ndarray]:
    """X, y, the 20 published splits and the thesis's halves."""
    path = UCI / f"{name}.npz"
    if not path.is_file():
        msg = f"{path}: absent; the UCI data and their splits are not part of this repository, put them there"
        raise FileNotFoundError(msg)
    with np.load(path) as found:
        return dict(found)


def plane(seed: int, rows: int = 1000, alpha: float = 0.01, beta: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """X, y of 5.2.1: correlated inputs in two dimensions, weights from the prior, noise of variance 10."""
    rng = np.random.default_rng([521, seed])
    X = rng.multivariate_normal(np.zeros(2), [[1.0, 0.5], [0.5, 1.0]], size=rows)
    theta = rng.standard_normal(2) / np.sqrt(alpha)
    return X, X @ theta + rng.standard_normal(rows) / np.sqrt(beta)


def authors_plane(trial: int) -> tuple[np.ndarray, np.ndarray]:
    """X, y of a trial of the authors' program."""
    with np.load(ORACLES / "swafa" / "vifa_synthetic2d.npz") as found:
        return found[f"t{trial}_X"].astype(float), found[f"t{trial}_y"].astype(float)


def exact(X: np.ndarray, y: np.ndarray, alpha: float, beta: float) -> Gaussian:
    """Posterior of linear regression without a bias, (2.6)."""
    cov = np.linalg.inv(alpha * np.eye(X.shape[1]) + beta * X.T @ X)
    return Gaussian(beta * cov @ (X.T @ y), cov)


def distances(found: Gaussian, truth: Gaussian) -> np.ndarray:
    """Relative distance of the mean, of the covariance (Frobenius), and the 2-Wasserstein distance over D."""
    root = np.real(sqrtm(truth.cov))
    cross = np.real(sqrtm(root @ found.cov @ root))
    square = ((found.mean - truth.mean) ** 2).sum() + np.trace(found.cov + truth.cov - 2.0 * cross)
    return np.array(
        [
            np.linalg.norm(found.mean - truth.mean) / np.linalg.norm(truth.mean),
            np.linalg.norm(found.cov - truth.cov) / np.linalg.norm(truth.cov),
            np.sqrt(max(square, 0.0)) / len(truth.mean),
        ]
    )


def gaussian(belief: Any, part: slice = slice(None)) -> Gaussian:
    """Some coordinates of a factor belief, densely."""
    F = np.asarray(belief.F, dtype=float)[part]
    return Gaussian(
        np.asarray(belief.mean, dtype=float)[part], F @ F.T + np.diag(np.asarray(belief.psi, dtype=float)[part])
    )


def ellipse(found: Gaussian, mass: float = 0.9, points: int = 200) -> np.ndarray:
    """Boundary that encloses a share of a two-dimensional Gaussian, (points, 2)."""
    angle = np.linspace(0.0, 2.0 * np.pi, points)
    radius = np.sqrt(-2.0 * np.log(1.0 - mass))
    return found.mean + radius * np.column_stack([np.cos(angle), np.sin(angle)]) @ np.linalg.cholesky(found.cov).T


def mean_and_error(values: Any) -> tuple[float, float]:
    """Mean and its standard error; NaN (a training that failed) is left out."""
    array = np.asarray(values, dtype=float)
    array = array[~np.isnan(array)]
    return float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else 0.0
