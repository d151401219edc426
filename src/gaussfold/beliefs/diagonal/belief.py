"""A Gaussian without covariances: one mean and one variance per feature, for up to billions of sparse features."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self, final

import numpy as np
from numpy.typing import DTypeLike

from gaussfold.beliefs.diagonal import exchange
from gaussfold.beliefs.diagonal.base import DiagonalBelief, check_dim, sum_draws
from gaussfold.beliefs.diagonal.coupling import Coupling, resolve_coupling
from gaussfold.beliefs.diagonal.state import State
from gaussfold.checks import doubles, finite_vector, floating, number, scales
from gaussfold.engine.sparse.visit_any import MARGINAL
from gaussfold.rows import sparse_rows
from gaussfold.types import Array, ArrayLike, Moments

if TYPE_CHECKING:
    from gaussfold.beliefs.dense.belief import DenseGaussian


@final
class DiagonalGaussian(DiagonalBelief):
    """N(mean, diag(var)) over d features; a row costs time in proportion to its active features only.

    Parameters
    ----------
    mean
        Mean vector, shape (d,).
    var
        Variances, shape (d,), > 0.
    coupling
        How the features of a row share what it says: "marginal" (each with the others integrated out, sparse-online
        §3) or "joint" (one site for the row, the diagonal kept), or an object of
        :mod:`gaussfold.beliefs.diagonal.coupling`.
    dtype
        How numbers are stored, "float64" or "float32"; arithmetic is in float64.

    Examples
    --------
    >>> import gaussfold as gf
    >>> from scipy.sparse import csr_array
    >>> belief = gf.DiagonalGaussian.isotropic(2**20, std=0.7)
    >>> X = csr_array(([1.0, 1.0, 1.0], ([0, 0, 1], [5, 77, 5])), shape=(2, 2**20))
    >>> result = gf.fold(belief, gf.likelihoods.Bernoulli("logit"), X, [1, 0], rule="newton")
    >>> mean, variance = belief.marginal(X)
    >>> print(mean.round(3), variance.round(3))
    [ 0.187 -0.017] [0.845 0.4  ]
    """

    def __init__(
        self, mean: ArrayLike, var: ArrayLike, coupling: str | Coupling = "marginal", dtype: DTypeLike = np.float64
    ) -> None:
        centre, variance = np.asarray(mean, dtype=np.float64), np.asarray(var, dtype=np.float64)
        if centre.ndim != 1 or variance.shape != centre.shape or centre.size == 0:
            msg = f"mean, var: shapes {centre.shape} and {variance.shape}; both must be (d,), d >= 1"
            raise ValueError(msg)
        self._state = State.start(_cells(centre, variance, dtype), centre.size, resolve_coupling(coupling))

    @classmethod
    def isotropic(
        cls,
        dim: int,
        std: float = 1.0,
        mean: ArrayLike = 0.0,
        coupling: str | Coupling = "marginal",
        dtype: DTypeLike = np.float64,
    ) -> Self:
        """N(mean, std² I); ``mean`` a number or one per feature. Takes no memory before the first row."""
        size = check_dim(dim)
        if np.ndim(mean) == 0:
            self = cls.independent([mean], [std], coupling, dtype)
            self._state.dim = size
            return self
        return cls.independent(mean, np.full(size, std), coupling, dtype)

    @classmethod
    def independent(
        cls, mean: ArrayLike, std: ArrayLike, coupling: str | Coupling = "marginal", dtype: DTypeLike = np.float64
    ) -> Self:
        """N(mean, diag(std²)): one standard deviation per feature."""
        deviations = doubles("std", std, "one per feature")
        scales("std", deviations)
        return cls(mean, deviations**2, coupling, dtype)

    @property
    def mean(self) -> Array:
        """Mean vector (a copy)."""
        return self._state.each()[:, 0, 0].copy()

    @property
    def var(self) -> Array:
        """Variances (a copy)."""
        return self._state.each()[:, 1, 0].copy()

    def variance(self) -> Array:
        """Variance of each parameter."""
        return self.var

    def weights(self, columns: ArrayLike) -> Moments:
        """Mean and variance of some parameters, without touching the others."""
        return self.moments(columns)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, shape (n, dim). For wide beliefs see :meth:`sample_latent`."""
        return self.mean + np.sqrt(self.var) * rng.standard_normal((n, self.dim))

    def sample_latent(self, X: ArrayLike, n: int, rng: np.random.Generator) -> Array:
        """Draw x'θ at all rows jointly, n times, shape (n, rows): only the parameters that the rows see are drawn."""
        rows = sparse_rows(X, self.dim)
        columns, place = np.unique(rows.indices, return_inverse=True)
        mean, variance = self.weights(columns)
        return sum_draws(rows, place, list(mean + np.sqrt(variance) * rng.standard_normal((n, columns.size))))

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector)."""
        away, variance = np.asarray(theta, dtype=float) - self.mean, self.var
        spread = np.log(variance).sum() + self.dim * math.log(2.0 * math.pi)
        return np.asarray(-0.5 * ((away**2 / variance).sum(axis=-1) + spread))

    def entropy(self) -> float:
        """Differential entropy in nats."""
        return 0.5 * float(np.log(self.var).sum() + self.dim * (1.0 + math.log(2.0 * math.pi)))

    def kl(self, other: DiagonalGaussian) -> float:
        """KL(self ‖ other) in nats."""
        ours, theirs = self.var, other.var
        ratio = ours / theirs
        return 0.5 * float((ratio - 1.0 - np.log(ratio) + (self.mean - other.mean) ** 2 / theirs).sum())

    def to_dense(self) -> DenseGaussian:
        """The same Gaussian with its covariance written out."""
        from gaussfold.beliefs.dense.belief import DenseGaussian

        return DenseGaussian.independent(self.mean, np.sqrt(self.var))

    def natural(self) -> tuple[Array, Array]:
        """Precisions 1/v and m/v: the parameters that add when beliefs are multiplied."""
        precision = 1.0 / self.var
        return precision, precision * self.mean

    @classmethod
    def combine(cls, prior: DiagonalGaussian, shards: Iterable[DiagonalGaussian]) -> Self:
        """Prior × Π (shard / prior): what one pass over all shards' data would know, learned in parallel."""
        return cls._of(exchange.combine(prior.parts(), (shard.parts() for shard in shards)))

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Multiply by one site exp(shift·f - ½·precision·f²), f = x'θ, and keep the diagonal."""
        if self.coupling.form[0] == MARGINAL:
            msg = (
                "coupling='marginal' looks at one feature at a time and takes the built-in likelihoods only; "
                "use coupling='joint'"
            )
            raise ValueError(msg)
        x = finite_vector("x", x, self.dim)
        number("shift", shift)
        columns = np.flatnonzero(x)
        seen = x[columns]
        mean, variance = self.weights(columns)
        total = float(seen**2 @ variance)
        grown = 1.0 + precision * total
        if not 0.0 < grown < math.inf:
            msg = f"precision={precision!r}: the belief would no longer be a Gaussian (1 + λ v = {grown})"
            raise ValueError(msg)
        state = self._state
        state.widen(columns)
        gain = (shift - precision * float(seen @ mean)) / grown
        state.cells[columns, 0, 0] = mean + seen * variance * gain
        state.cells[columns, 1, 0] = variance * (1.0 + precision * (total - seen**2 * variance)) / grown
        if state.seen.size:
            state.seen[columns] = state.clock[0]


def _cells(mean: Array, variance: Array, dtype: DTypeLike) -> np.ndarray:
    """Interleave and check."""
    kind = floating(dtype)
    cells = np.empty((mean.size, 2, 1), dtype=kind)
    with np.errstate(over="ignore", under="ignore"):
        cells[:, 0, 0] = mean
        cells[:, 1, 0] = variance
    limits = np.finfo(kind)
    bad = ~(np.isfinite(cells[:, 0, 0]) & (cells[:, 1, 0] >= limits.tiny) & (cells[:, 1, 0] <= limits.max))
    if bad.any():
        first = int(np.argmax(bad))
        msg = (
            f"mean, var: entry {first} is {mean[first]}, {variance[first]}; "
            f"finite means and variances from {limits.tiny:.2g} to {limits.max:.2g} are allowed"
        )
        raise ValueError(msg)
    return cells
