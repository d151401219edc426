"""Several diagonal Gaussians that differ in their prior, side by side, mixed by how well they have predicted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, final

import numpy as np
from numpy.typing import DTypeLike

from gaussfold.beliefs.diagonal.base import DiagonalBelief, check_dim, sum_draws
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.beliefs.diagonal.state import State, mix_moments
from gaussfold.rows import sparse_rows
from gaussfold.types import Array, ArrayLike

PRIOR_GRID = tuple(2.0**power for power in range(-4, 4))
"""Standard deviations of ``prior_std="auto"``: 1/16 to 8, eight of them."""


@final
class DiagonalMixture(DiagonalBelief):
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
        one = np.array([0]) if all(component.uniform for component in components) else None  # then a cell is enough
        parts = [component.cells(one) for component in components]
        self._state = State.start(np.concatenate(parts, axis=2).astype(first.dtype), first.dim, first.coupling)

    @classmethod
    def isotropic(
        cls,
        dim: int,
        stds: Sequence[float] = PRIOR_GRID,
        mean: ArrayLike = 0.0,
        coupling: str | Coupling = "marginal",
        dtype: DTypeLike = np.float64,
    ) -> Self:
        """One component N(mean, std² I) per std."""
        size = check_dim(dim)
        return cls([DiagonalGaussian.isotropic(size, std, mean, coupling, dtype) for std in stds])

    @property
    def weights(self) -> Array:
        """Posterior probabilities of the components."""
        return np.exp(self._state.log_weights)

    @property
    def components(self) -> list[DiagonalGaussian]:
        """The Gaussians, as copies."""
        cells = self.cells()
        return [
            DiagonalGaussian(cells[:, 0, k], cells[:, 1, k], self.coupling, self.dtype) for k in range(cells.shape[2])
        ]

    @property
    def mean(self) -> Array:
        """Mean of the mixture."""
        return np.broadcast_to(self._state.current()[:, 0] @ self.weights, (self.dim,)).copy()

    def variance(self) -> Array:
        """Variance of each parameter under the mixture: within the components and between them."""
        cells = self._state.current()
        mixed = mix_moments(self._state.log_weights, cells[:, 0], cells[:, 1])
        return np.broadcast_to(mixed.variance, (self.dim,)).copy()

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, each from a component drawn by weight."""
        cells = self.cells()
        chosen = rng.choice(cells.shape[2], size=n, p=self.weights)
        return np.stack([_draw(cells, k, rng) for k in chosen])

    def sample_latent(self, X: ArrayLike, n: int, rng: np.random.Generator) -> Array:
        """Draw x'θ at all rows jointly, n times: only the parameters that the rows see are drawn."""
        rows = sparse_rows(X, self.dim)
        columns, place = np.unique(rows.indices, return_inverse=True)
        cells = self.cells(columns)
        chosen = rng.choice(cells.shape[2], size=n, p=self.weights)
        return sum_draws(rows, place, [_draw(cells, k, rng) for k in chosen])

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector)."""
        parts = np.stack([component.log_prob(theta) for component in self.components])
        return np.asarray(
            np.logaddexp.reduce(self._state.log_weights.reshape(-1, *[1] * (parts.ndim - 1)) + parts, axis=0)
        )

    def absorb(self, x: Array, precision: float, shift: float) -> None:  # noqa: ARG002 - see the protocol
        """Refuse: components are weighed by what they predicted, which one site for all of them does not tell."""
        msg = "belief: a DiagonalMixture takes the built-in likelihoods only; use DiagonalGaussian, coupling='joint'"
        raise ValueError(msg)


def _draw(cells: Array, k: int, rng: np.random.Generator) -> Array:
    """Parameters of some features, drawn from component k."""
    return np.asarray(cells[:, 0, k] + np.sqrt(cells[:, 1, k]) * rng.standard_normal(len(cells)))
