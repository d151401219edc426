"""What is read off independent weights of K classes of d features, whoever tells their means and variances."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from gaussfold.rows import as_rows, dense_rows
from gaussfold.types import Array, ArrayLike, Moments


class ClassWeights(ABC):
    """N(mean, diag(variance)) over all weights, class after class: what `weights` says, as one vector."""

    @abstractmethod
    def weights(self, columns: ArrayLike | None = None) -> Moments:
        """Mean and variance (K, d) of all weights, or of those of some features."""

    @property
    def mean(self) -> Array:
        """Mean of all weights, class after class: shape (K d,)."""
        return self.weights().mean.ravel()

    def variance(self) -> Array:
        """Variance of all weights, class after class."""
        return self.weights().variance.ravel()

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for rows x over the weights of all classes."""
        mean, variance = (part.ravel() for part in self.weights())
        rows = dense_rows(as_rows(X, mean.size))
        return Moments(rows @ mean, rows**2 @ variance)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, class after class."""
        mean, variance = (part.ravel() for part in self.weights())
        return np.asarray(mean + np.sqrt(variance) * rng.standard_normal((n, mean.size)))

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector), class after class."""
        mean, variance = (part.ravel() for part in self.weights())
        away = np.asarray(theta, dtype=float) - mean
        return np.asarray(-0.5 * (away**2 / variance + np.log(2.0 * np.pi * variance)).sum(axis=-1))
