"""What can be asked of a belief over weights: means and standard deviations, latents, samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gaussfold import checks
from gaussfold.estimators import mixtures, settings, validation
from gaussfold.types import Array, ArrayLike, Moments


class Readout(BaseEstimator):  # type: ignore[misc]
    """The half of a streaming estimator that only looks. `StreamingEstimator` is the half that learns."""

    _beliefs: list[Any]
    _loss: tuple[float, float]
    _noise: Any = None
    _rng: np.random.Generator
    fit_intercept: bool
    n_features_in_: int

    @property
    def coef_(self) -> Array:
        """Posterior mean of the features' weights."""
        self._require_fitted()
        return np.asarray(self._per_output(self._weights()[0][:, : self.n_features_in_]))

    @property
    def coef_std_(self) -> Array:
        """Posterior standard deviation of the features' weights."""
        self._require_fitted()
        return np.asarray(self._per_output(self._weights()[1][:, : self.n_features_in_]))

    @property
    def intercept_(self) -> Any:
        """Posterior mean of the intercept; 0 without one."""
        self._require_fitted()
        return self._per_output(self._weights()[0][:, -1] * self.fit_intercept)

    @property
    def intercept_std_(self) -> Any:
        """Posterior standard deviation of the intercept; 0 without one."""
        self._require_fitted()
        return self._per_output(self._weights()[1][:, -1] * self.fit_intercept)

    @property
    def posterior_(self) -> Any:
        """The belief over the weights, the intercept's last; one per class for more than two classes."""
        self._require_fitted()
        return self._beliefs[0] if len(self._beliefs) == 1 else list(self._beliefs)

    @property
    def progressive_log_loss_(self) -> float:
        """Mean of -log p(y) over the rows learned so far, each predicted before it was learned.

        Weighted by sample_weight; NaN before the first row.
        """
        self._require_fitted()
        total, weight = self._loss
        return total / weight if weight > 0 else float("nan")

    def predict_latent(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and standard deviation of x'θ at every row: what is known of the latent, noise apart.

        Returns
        -------
        mean, std : arrays of shape (n_rows,), or (n_rows, n_classes) for more than two classes
        """
        latent = self._latent(X)
        mean = np.stack([moments.mean for moments in latent], axis=1)
        std = np.sqrt(np.stack([moments.variance for moments in latent], axis=1))
        return (mean[:, 0], std[:, 0]) if len(latent) == 1 else (mean, std)

    def sample_posterior(self, n_samples: int = 1, rng: Any = None) -> Array:
        """Draw weights from the posterior, laid out like ``posterior_.mean``: the intercept last.

        Returns
        -------
        array of shape (n_samples, n_weights), or (n_samples, n_classes, n_weights) for more than two classes
        """
        self._require_fitted()
        draws = self._draws(checks.whole("n_samples", n_samples), self._generator(rng))
        return draws[0] if len(draws) == 1 else np.stack(draws, axis=1)

    def sample_latent(self, X: ArrayLike, n_samples: int = 1, rng: Any = None) -> Array:
        """Draw the function x'θ at all rows jointly: one set of weights per sample.

        Returns
        -------
        array of shape (n_samples, n_rows), or (n_samples, n_rows, n_classes) for more than two classes
        """
        design = self._design(X)
        count, source = checks.whole("n_samples", n_samples), self._generator(rng)
        if self._noise is None and all(hasattr(belief, "sample_latent") for belief in self._beliefs):
            paths = [belief.sample_latent(design, count, source) for belief in self._beliefs]  # only what the rows see
        else:
            paths = [np.asarray(design @ draw.T).T for draw in self._draws(count, source)]
        return paths[0] if len(paths) == 1 else np.stack(paths, axis=2)

    def diagnose(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike = None,
        n_samples: int = 2000,
        rng: Any = None,
    ) -> Any:
        """Ask whether the Gaussian posterior is any good, given all the data it was learned from.

        Draws from the belief are weighted by the exact posterior density; the tail of these weights (PSIS
        k-hat) tells how far apart the two are. ``print(model.diagnose(X, y))`` says it in words. If the
        verdict is poor, ``fit(X, y, refine=10)`` may help.

        Parameters
        ----------
        X, y, sample_weight
            All the data that the model has learned from.
        n_samples : int, default=2000
            Number of draws.
        rng : Generator or int, optional
            Where they come from; the model's own generator by default.

        Returns
        -------
        gaussfold.metrics.Diagnosis, or a list of them, one per class, for more than two classes
        """
        from gaussfold.estimators.diagnosis import diagnose

        self._require_fitted()
        return diagnose(self, X, y, sample_weight, n_samples, rng)

    def _per_output(self, values: Array) -> Any:
        """Present numbers that there are one of (or one row of) per belief."""
        return values[0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_beliefs")

    def _require_fitted(self) -> None:
        if not hasattr(self, "_beliefs"):  # scikit-learn's check costs more than a prediction
            check_is_fitted(self)

    def _design(self, X: ArrayLike) -> Any:
        self._require_fitted()
        return validation.with_intercept(validation.rows(self, X, reset=False), self.fit_intercept)

    def _latent(self, X: ArrayLike) -> list[Moments]:
        """Mean and variance of x'θ for every row, per belief."""
        design = self._design(X)
        return [mixtures.marginal(belief, design) for belief in self._beliefs]

    def _draws(self, n_samples: int, rng: np.random.Generator) -> list[Array]:
        return [belief.sample(n_samples, rng) for belief in self._beliefs]

    def _generator(self, rng: Any) -> np.random.Generator:
        return self._rng if rng is None else settings.generator(rng, "rng")

    def _weights(self) -> tuple[Array, Array]:
        """Mean and standard deviation of all weights, one row per belief."""
        mean = np.stack([belief.mean for belief in self._beliefs])
        return mean, np.sqrt(np.stack([belief.variance() for belief in self._beliefs]))
