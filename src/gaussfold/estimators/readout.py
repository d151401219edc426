"""What can be asked of a belief over weights: means and standard deviations, latents, samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gaussfold import checks
from gaussfold.beliefs.bank.belief import Bank
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.blocks import DiagonalBlocks
from gaussfold.beliefs.diagonal.class_stack import DiagonalClassStack
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.beliefs.diagonal.stack import DiagonalStack
from gaussfold.estimators import classes, mixtures, noise, validation
from gaussfold.estimators.coordinates import Coordinates
from gaussfold.estimators.noise_bank import NoiseBank
from gaussfold.estimators.parameters import RandomState, StreamingParameters
from gaussfold.estimators.priors import AnyBelief
from gaussfold.rows import AnyRows, Block, Rows, dense_rows
from gaussfold.types import Array, ArrayLike, Moments


class Readout(StreamingParameters, BaseEstimator):
    """The half of a streaming estimator that only looks. `StreamingEstimator` is the half that learns."""

    _beliefs: Sequence[AnyBelief] = ()
    """One over the weights, or one per class; none before the first call that learns."""
    _coordinates: Coordinates | None = None
    """Where features are standardised or the prior is learned: what the beliefs' weights are measured in."""
    _loss: tuple[float, float]
    """Sum of -log p(y) and of the weights, over the rows learned."""
    _noise: noise.NoiseBelief | NoiseBank | None = None
    """Where the noise level is learned: then beliefs are in units of it."""
    _rng: np.random.Generator
    _together: int = 1
    """How many classes have their weights in one belief, of which there is one then: those of a softmax."""
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
    def intercept_(self) -> Array | np.float64:
        """Posterior mean of the intercept; 0 without one."""
        self._require_fitted()
        return self._per_output(self._weights()[0][:, -1] * self.fit_intercept)

    @property
    def intercept_std_(self) -> Array | np.float64:
        """Posterior standard deviation of the intercept; 0 without one."""
        self._require_fitted()
        return self._per_output(self._weights()[1][:, -1] * self.fit_intercept)

    @property
    def posterior_(self) -> AnyBelief | list[AnyBelief]:
        """The belief over the weights, the intercept's last; for classes see the classifier."""
        self._require_fitted()
        beliefs = self._in_user_units()
        return beliefs[0] if len(beliefs) == 1 else list(beliefs)

    @property
    def prior_std_(self) -> Array | np.float64:
        """Standard deviation of the weights before any data, as learned with ``prior_std="auto"``; see there."""
        self._require_fitted()
        if self._coordinates is None:
            msg = (
                f"prior_std_ is learned with prior_std='auto' and covariance='full'; here prior_std={self.prior_std!r}"
            )
            raise AttributeError(msg)
        widths = self._coordinates.widths()
        return self._per_output(widths if self._together == 1 else widths[:1])

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

    def sample_posterior(self, n_samples: int = 1, rng: RandomState = None) -> Array:
        """Draw weights from the posterior, laid out like ``posterior_.mean``: the intercept last.

        Returns
        -------
        array of shape (n_samples, n_weights), or (n_samples, n_classes, n_weights) for more than two classes
        """
        self._require_fitted()
        draws = self._draws(checks.whole("n_samples", n_samples), self._generator(rng))
        if self._coordinates is not None:
            draws = [draw @ self._coordinates.to_user_units(intercept=bool(self.fit_intercept)).T for draw in draws]
        return draws[0] if len(draws) == 1 else np.stack(draws, axis=1)

    def sample_latent(self, X: ArrayLike, n_samples: int = 1, rng: RandomState = None) -> Array:
        """Draw the function x'θ at all rows jointly: one set of weights per sample.

        Returns
        -------
        array of shape (n_samples, n_rows), or (n_samples, n_rows, n_classes) for more than two classes
        """
        design = self._design(X)
        count, source = checks.whole("n_samples", n_samples), self._generator(rng)
        if self._together > 1 and isinstance(self._beliefs[0], DiagonalBlocks | DiagonalClassStack):
            return self._beliefs[0].sample_latent(design, count, source)
        diagonal = [
            belief for belief in self._beliefs if isinstance(belief, DiagonalGaussian | DiagonalMixture | DiagonalStack)
        ]
        if diagonal and self._noise is None:
            paths = [belief.sample_latent(design, count, source) for belief in diagonal]  # only what the rows see
        else:
            paths = [np.asarray(design @ draw.T).T for draw in self._draws(count, source)]
        return paths[0] if len(paths) == 1 else np.stack(paths, axis=2)

    def _per_output(self, values: Array) -> Array | np.float64:
        """Present numbers that there are one of (or one row of) per belief."""
        first: Array | np.float64 = values[0]
        return first

    def __sklearn_is_fitted__(self) -> bool:
        return len(self._beliefs) > 0

    def _require_fitted(self) -> None:
        if not self._beliefs:  # scikit-learn's check costs more than a prediction
            check_is_fitted(self)

    def _design(self, X: ArrayLike) -> Rows | Block:
        self._require_fitted()
        return self._seen(validation.rows(self, X, reset=False))

    def _seen(self, X: AnyRows) -> Rows | Block:
        """Rows as the beliefs see them: standardised, if they are, and with a column for the intercept."""
        if self._coordinates is None:
            return validation.with_intercept(X, self.fit_intercept)
        return self._coordinates.design(dense_rows(X), intercept=bool(self.fit_intercept))

    def _in_user_units(self) -> Sequence[AnyBelief]:
        """Beliefs over the weights of features as they come."""
        if self._coordinates is None:
            return self._beliefs
        return [self._coordinates.in_user_units(belief, intercept=bool(self.fit_intercept)) for belief in self._beliefs]

    def _latent(self, X: ArrayLike) -> list[Moments]:
        """Mean and variance of x'θ for every row, per belief."""
        design = self._design(X)
        if self._together > 1:
            return classes.marginals(self._beliefs[0], design, self._together)
        found = [mixtures.marginal(belief, design) for belief in self._beliefs]
        if isinstance(self._noise, NoiseBank):
            return [self._noise.scaled(moments) for moments in found if isinstance(moments, mixtures.MixedMoments)]
        return [noise.scaled(moments, self._noise) for moments in found]

    def _draws(self, n_samples: int, rng: np.random.Generator) -> list[Array]:
        if isinstance(self._noise, NoiseBank):
            return [self._noise.sample(self._bank(), n_samples, rng)]
        if self._together > 1:
            return classes.draws(self._beliefs[0], self._together, n_samples, rng)
        draws = [belief.sample(n_samples, rng) for belief in self._beliefs]
        return draws if self._noise is None else [self._noise.spread(draws[0], self._beliefs[0].mean, rng)]

    def _bank(self) -> Bank:
        """Of an estimator of one output whose drift finds itself."""
        (bank,) = self._beliefs
        if not isinstance(bank, Bank):
            msg = f"posterior_: a {type(bank).__name__}, where a Bank is needed"
            raise TypeError(msg)
        return bank

    def _generator(self, rng: RandomState) -> np.random.Generator:
        return self._rng if rng is None else checks.generator(rng, "rng")

    def _weights(self) -> tuple[Array, Array]:
        """Mean and standard deviation of all weights, one row per belief."""
        beliefs = self._in_user_units()
        if isinstance(self._noise, NoiseBank) and isinstance(beliefs[0], Bank):
            found = self._noise.weights(beliefs[0])
            return found.mean[None], np.sqrt(found.variance)[None]
        mean = np.stack([belief.mean for belief in beliefs])
        std = np.sqrt(np.stack([belief.variance() for belief in beliefs]))
        if self._together > 1:
            return mean.reshape(self._together, -1), std.reshape(self._together, -1)
        if isinstance(self._noise, noise.NoiseBelief):
            std = np.sqrt(noise.scaled(Moments(mean, std**2), self._noise).variance)
        return mean, std
