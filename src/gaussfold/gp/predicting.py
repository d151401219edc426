"""The half of the model that predicts: latents, labels, their densities, quantiles and draws, at new inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

import numpy as np

from gaussfold.checks import between, generator, whole
from gaussfold.gp import checks, outcomes
from gaussfold.gp.extras import offset_of
from gaussfold.gp.fitting import Fitting
from gaussfold.likelihoods import as_vector
from gaussfold.types import Array, ArrayLike


class Predicting(Fitting):
    """Predictions of a fitted process; see `GaussianProcess`."""

    def predict_latent(self, X: ArrayLike, *, offset: ArrayLike | None = None) -> tuple[Array, Array]:
        """Mean (n, D) and covariance (n, D, D) of the latents at new inputs, with the offsets of these."""
        mean, cov = self._predict_latent(X)
        known = offset_of(offset, len(mean), self.latents)
        return (mean if known is None else mean + known), cov

    def _predict_latent(self, X: ArrayLike) -> tuple[Array, Array]:
        if self._online is not None and self._is_stale:  # the window is often enough, and cheaper
            inputs = self._inputs(X, columns=1, may_be_empty=True)
            if self._online.reaches(inputs):
                return self._online.predict(inputs)
        self._fitted()
        rows = self._inputs(X, columns=self.X_.shape[1], may_be_empty=True)
        if self.batch_size is not None:
            return self._sparse.predict_tied(self.tied_, rows)
        return self.prior_.predict(self.sites_, rows)

    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[False] = False, *, offset: ArrayLike | None = None
    ) -> Array: ...
    @overload
    def predict(
        self, X: ArrayLike, return_std: Literal[True], *, offset: ArrayLike | None = None
    ) -> tuple[Array, Array]: ...
    def predict(
        self, X: ArrayLike, return_std: bool = False, *, offset: ArrayLike | None = None
    ) -> Array | tuple[Array, Array]:
        """Mean of y at new inputs (and its standard deviation, noise included), latents integrated out.

        Shape (n,) for one output, else (n, P).
        """
        mean, cov = as_vector(self.likelihood).predictive(*self.predict_latent(X, offset=offset), self.cubature)
        std = np.sqrt(np.diagonal(cov, axis1=1, axis2=2))
        if mean.shape[1] == 1:
            mean, std = mean[:, 0], std[:, 0]
        return (mean, std) if return_std else mean

    def predict_density(self, X: ArrayLike, Y: ArrayLike, *, offset: ArrayLike | None = None) -> Array:
        """Log predictive density of every row; ``-mean()`` of it is the NLPD. A row that is all NaN gives 0."""
        mean, cov = self.predict_latent(X, offset=offset)
        values = checks.labels(Y, len(mean), self.likelihood)
        return as_vector(self.likelihood).log_predictive(values, mean, cov, self.cubature)

    def sample_posterior(
        self, X: ArrayLike, n_samples: int = 1, random_state: int | np.random.Generator | None = None
    ) -> Array:
        """Joint draws of the latents at new inputs, shape (n_samples, n, D)."""
        self._fitted()
        rng = self.rng if random_state is None else generator(random_state)
        rows = self._inputs(X, columns=self.X_.shape[1])
        count = whole("n_samples", n_samples)
        if self.batch_size is not None:
            return self._sparse.sample_tied(self.tied_, rows, count, rng)
        return self.prior_.sample(self.sites_, rows, count, rng)

    def latents_at(self, rows: Array) -> tuple[Array, Array]:
        """As `predict_latent` says, at inputs that are numbers already."""
        if self.batch_size is not None:
            return self._sparse.predict_tied(self.tied_, rows)
        return self.prior_.predict(self.sites_, rows)

    def inputs_as_numbers(self, X: ArrayLike) -> Array:
        """New inputs as the model counts them: dates in its unit of time."""
        return self._inputs(X, columns=self.X_.shape[1])

    def quantiles_of(self, mean: Array, cov: Array, levels: Sequence[float]) -> Array:
        """Of y given marginals of the latents, (n, levels)."""
        return outcomes.quantiles(self.likelihood, mean, cov, [between("q", q, 0, 1) for q in levels])

    def quantile(self, X: ArrayLike, q: float | Sequence[float], *, offset: ArrayLike | None = None) -> Array:
        """Quantiles of y (noise included) at new inputs: (n,) for one level q, else (n, levels).

        Several outputs have an axis of their own, the second.
        """
        levels = [q] if isinstance(q, int | float) else list(q)
        if not levels:
            msg = f"q={q!r} has no levels; give at least one, such as q=0.5"
            raise ValueError(msg)
        found = self.quantiles_of(*self.predict_latent(X, offset=offset), levels)
        return found[..., 0] if isinstance(q, int | float) else found

    def interval(self, X: ArrayLike, level: float = 0.9, *, offset: ArrayLike | None = None) -> tuple[Array, Array]:
        """Central interval that holds y with probability ``level``: lower and upper ends."""
        half = 0.5 * between("level", level, 0, 1)
        found = self.quantile(X, [0.5 - half, 0.5 + half], offset=offset)
        return found[..., 0], found[..., 1]

    def sample_outcomes(
        self,
        X: ArrayLike,
        n_samples: int = 1,
        random_state: int | np.random.Generator | None = None,
        *,
        offset: ArrayLike | None = None,
    ) -> Array:
        """Draws of y at new inputs, latents drawn jointly: shape (n_samples, n), several outputs (n_samples, n, P)."""
        rng = self.rng if random_state is None else generator(random_state)
        latents = self.sample_posterior(X, n_samples, rng)
        known = offset_of(offset, latents.shape[1], self.latents)
        return outcomes.drawn(self.likelihood, latents if known is None else latents + known, rng)
