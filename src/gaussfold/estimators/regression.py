"""What the estimators of a number share: a prediction is a mean, and on request a standard deviation."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin

from gaussfold.estimators.streaming import StreamingEstimator
from gaussfold.types import Array, ArrayLike, Moments


class RegressionEstimator(RegressorMixin, StreamingEstimator):
    """One belief over the weights, and labels that are numbers or counts."""

    def _label_moments(self, latent: Moments) -> Moments:
        """Mean and variance of the label, given those of x'θ."""
        raise NotImplementedError

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Return the expected label (number, count or rate) of each row, and on request how far one may be from it.

        Parameters
        ----------
        X : array, CSR matrix or dataframe of shape (n_rows, n_features)
            Finite numbers.
        return_std : bool, default=False
            Also return the standard deviation of the label: of what is not known of the weights and of the label
            given them, together (`predict_latent` leaves the second out).

        Returns
        -------
        mean : array of shape (n_rows,)
        std : array of shape (n_rows,), if ``return_std``
        """
        (latent,) = self._latent(X)
        mean, variance = self._label_moments(latent)
        return (mean, np.sqrt(variance)) if return_std else mean
