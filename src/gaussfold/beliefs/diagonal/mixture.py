"""Several diagonal Gaussians that differ in their prior, side by side, mixed by how well they have predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from gaussfold.beliefs.diagonal.belief import DiagonalGaussian, check_dim
from gaussfold.beliefs.diagonal.cell_store import mix_moments
from gaussfold.beliefs.diagonal.cellular import Cellular
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.beliefs.diagonal.rows import sparse_rows
from gaussfold.types import Array, ArrayLike, Moments

PRIOR_GRID = tuple(2.0**power for power in range(-4, 4))
"""Standard deviations of ``prior_std="auto"``: 1/16 to 8, eight of them."""


class DiagonalMixture(Cellular):
    """Σ wₖ N(meanₖ, diag(varₖ)): K learners with K priors see the same rows; the weights wₖ are their likelihoods.

    Predictions are averaged with the weights. The total log loss is at most log K above that of the learner with
    the best prior in hindsight (for sample weights up to 1), so the prior need not be known. The copies of a feature
    lie side by side in memory.

    Parameters
    ----------
    components
        Diagonal Gaussians of one dimension, dtype and coupling.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> belief = DiagonalMixture.isotropic(3, stds=(0.1, 1.0, 10.0))
    >>> X = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    >>> result = gf.fold(belief, gf.likelihoods.Bernoulli("logit"), X, [1, 0, 1, 1, 0, 1], rule="newton")
    >>> print(belief.weights.round(2))
    [0.17 0.27 0.56]
    """

    def __init__(self, components: Sequence[DiagonalGaussian]) -> None:
        if not components:
            msg = "components: none given; at least one belief is needed"
            raise ValueError(msg)
        first = components[0]
        for other in components:
            if (other.dim, other.dtype, other.coupling) != (first.dim, first.dtype, first.coupling):
                msg = "components: dim, dtype and coupling must be the same for all"
                raise ValueError(msg)
        parts = [component._current() for component in components]
        size = max(part.shape[0] for part in parts)
        cells = np.concatenate([np.broadcast_to(part, (size, 2, 1)) for part in parts], axis=2).astype(first.dtype)
        self._start(cells, first.dim, first.coupling)

    @classmethod
    def isotropic(
        cls,
        dim: int,
        stds: Sequence[float] = PRIOR_GRID,
        mean: ArrayLike = 0.0,
        coupling: str | Coupling = "marginal",
        dtype: Any = np.float64,
    ) -> Self:
        """One component N(mean, std² I) per std."""
        size = check_dim(dim)
        return cls([DiagonalGaussian.isotropic(size, std, mean, coupling, dtype) for std in stds])

    @property
    def weights(self) -> Array:
        """Posterior probabilities of the components."""
        return np.exp(self._log_weights)

    @property
    def components(self) -> list[DiagonalGaussian]:
        """The Gaussians, as copies."""
        cells = np.broadcast_to(self._current(), (self._dim, *self._cells.shape[1:]))
        return [
            DiagonalGaussian(cells[:, 0, k], cells[:, 1, k], self._coupling, self.dtype) for k in range(cells.shape[2])
        ]

    @property
    def mean(self) -> Array:
        """Mean of the mixture."""
        return np.broadcast_to(self._current()[:, 0] @ self.weights, (self._dim,)).copy()

    def variance(self) -> Array:
        """Variance of each parameter under the mixture: within the components and between them."""
        cells = self._current()
        return np.broadcast_to(mix_moments(self.weights, cells[:, 0], cells[:, 1]).variance, (self._dim,)).copy()

    def marginals(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row and component, shape (n, K)."""
        return Moments(*self._look(X))

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row under the mixture (which is not a Gaussian)."""
        return mix_moments(self.weights, *self._look(X))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, each from a component drawn by weight."""
        cells = np.broadcast_to(self._current(), (self._dim, *self._cells.shape[1:]))
        chosen = rng.choice(cells.shape[2], size=n, p=self.weights)
        return np.stack([cells[:, 0, k] + np.sqrt(cells[:, 1, k]) * rng.standard_normal(self._dim) for k in chosen])

    def sample_latent(self, X: ArrayLike, n: int, rng: np.random.Generator) -> Array:
        """Draw x'θ at all rows jointly, n times: only the parameters that the rows see are drawn."""
        rows = sparse_rows(X, self._dim)
        columns, place = np.unique(rows.indices, return_inverse=True)
        cells = np.broadcast_to(self._current(columns), (columns.size, *self._cells.shape[1:]))
        row = np.repeat(np.arange(rows.indptr.size - 1), np.diff(rows.indptr))
        draws = []
        for k in rng.choice(cells.shape[2], size=n, p=self.weights):
            theta = cells[:, 0, k] + np.sqrt(cells[:, 1, k]) * rng.standard_normal(columns.size)
            draws.append(np.bincount(row, rows.data * theta[place], rows.indptr.size - 1))
        return np.stack(draws)

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector)."""
        parts = np.stack([component.log_prob(theta) for component in self.components])
        return np.asarray(np.logaddexp.reduce(self._log_weights.reshape(-1, *[1] * (parts.ndim - 1)) + parts, axis=0))
