"""A Gaussian whose covariance is low rank plus diagonal: what VIFA, SWAG and factor analysis learn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Self, final

import numpy as np
from numpy.typing import DTypeLike

from gaussfold import checks, schema
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.lowrank import options as lowrank_options
from gaussfold.beliefs.lowrank.belief import LowRankGaussian
from gaussfold.engine.lowrank.products import gram
from gaussfold.factors.woodbury import Precision
from gaussfold.rows import as_matrix, as_rows, is_sparse
from gaussfold.trace import check_moments
from gaussfold.types import Array, ArrayLike, Moments

PARTS = (
    schema.Part("mean", ("d",)),
    schema.Part("F", ("d", "p")),
    schema.Part("psi", ("d",), positive=True),
)
"""What a model file holds of it."""


@final
class FactorGaussian:
    """N(mean, FF' + Ψ) over d parameters, F of shape (d, p), Ψ diagonal; never a d×d array.

    The model of factor analysis (factor-analysis (2.13)): θ = mean + F h + noise, h ~ N(0, I), noise ~ N(0, Ψ).
    Conditioning on data leaves this form, so nothing can be folded into it: a Gaussian, but no belief.
    :class:`gaussfold.LowRankGaussian`, low rank in the precision, is one.

    Parameters
    ----------
    mean
        Mean vector, shape (d,).
    F
        Factors of the covariance, shape (d, p), 0 ≤ p ≤ d; p = 0 is a diagonal Gaussian.
    psi
        Diagonal of the covariance that the factors leave, shape (d,), all > 0.
    dtype
        numpy.float64 or numpy.float32, for storage.

    Examples
    --------
    >>> import numpy as np
    >>> belief = FactorGaussian([0.0, 1.0], [[1.0], [2.0]], [0.5, 1.0])
    >>> mean, variance = belief.marginal(np.array([[1.0, 0.0], [1.0, 1.0]]))
    >>> print(mean, variance)
    [0. 1.] [ 1.5 10.5]
    """

    def __init__(self, mean: ArrayLike, F: ArrayLike, psi: ArrayLike, *, dtype: DTypeLike = np.float64) -> None:
        self._mean, self._F, self._psi = lowrank_options.check_arrays(mean, F, psi, dtype, name="F", fewest=0)
        self._view: Precision | None = None

    # Called like LowRankGaussian.isotropic, whose other options this one has not.

    @classmethod
    def isotropic(
        cls,
        dim: int,
        rank: int,
        std: float = 1.0,
        mean: ArrayLike = 0.0,
        rng: np.random.Generator | None = None,
        *,
        share: float = 0.0,
        dtype: DTypeLike = np.float64,
    ) -> Self:
        """N(mean, std² I) with room for ``rank`` factors, which are zero.

        Parameters
        ----------
        rng
            Draws the directions of the factors when ``share`` > 0; a generator of its own with a fixed seed if not
            given.
        share
            Part of the covariance's trace that goes to orthogonal random factors, in [0, 1): a start from which
            gradients can move them. Then only the trace is exact.
        """
        factors = lowrank_options.check_rank(rank, checks.whole("dim", dim), fewest=0)
        checks.room("dim", dim, dim * (factors + 2), "use DiagonalGaussian")
        checks.scales("std", np.asarray(checks.positive("std", std)))
        checks.between("share", share, 0, 1, "[)")
        part = share if rank else 0.0
        F = np.zeros((dim, rank))
        if part > 0.0:
            draw = lowrank_options.generator(rng)
            F = np.linalg.qr(draw.standard_normal((dim, rank)))[0] * (std * math.sqrt(part * dim / rank))
        centre = np.broadcast_to(np.asarray(mean, dtype=float), (dim,))
        return cls(centre, F, np.full(dim, (1.0 - part) * std**2), dtype=dtype)

    @property
    def dim(self) -> int:
        """Number of parameters d."""
        return int(self._psi.size)

    @property
    def rank(self) -> int:
        """Number of factors p."""
        return int(self._F.shape[1])

    @property
    def mean(self) -> Array:
        """Mean vector (a copy)."""
        return np.array(self._mean, dtype=np.float64)

    @property
    def F(self) -> Array:
        """Factors of the covariance (a copy); determined up to a rotation."""
        return self._F.copy()

    @property
    def psi(self) -> Array:
        """Diagonal part of the covariance (a copy)."""
        return self._psi.copy()

    def covariance(self) -> Precision:
        """The covariance, ready to be applied or inverted by Woodbury's identity (5.20).

        The class is written for a precision WW' + Ψ; here the matrix of the same form is the covariance, so its
        ``times`` multiplies by the covariance and its ``variances`` are Mahalanobis distances.
        """
        if self._view is None:
            F = self._F if self.rank else np.zeros((self.dim, 1), dtype=self._F.dtype)
            self._view = Precision(F, self._psi, gram(F, self._psi))
        return self._view

    def variance(self) -> Array:
        """Marginal variance of each parameter."""
        return np.asarray(np.einsum("ij,ij->i", self._F, self._F, dtype=np.float64) + self._psi, dtype=np.float64)

    def trace(self) -> float:
        """Trace of the covariance."""
        return float(self.variance().sum())

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row x of X (dense or sparse)."""
        rows = as_matrix(as_rows(X, self.dim))
        with np.errstate(over="ignore", invalid="ignore"):  # looked for, and named
            seen = np.asarray(rows @ self._F, dtype=np.float64)
            squares = rows.multiply(rows) if is_sparse(rows) else rows * rows
            variance = np.einsum("ij,ij->i", seen, seen) + np.asarray(squares @ self._psi, dtype=np.float64)
            return check_moments(Moments(np.asarray(rows @ self._mean, dtype=np.float64), variance))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, shape (n, dim): mean + F h + √ψ z, (5.14)."""
        out = np.empty((n, self.dim))
        factors = rng.standard_normal((n, self.rank))
        step = max(1, (1 << 20) // self.dim)
        scale = np.sqrt(self._psi)
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            rng.standard_normal(out=out[part])
            out[part] *= scale
            out[part] += self._mean
            out[part] += factors[part] @ self._F.T
        return out

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector), (5.2)."""
        away = np.asarray(theta, dtype=float) - self._mean
        distances = self.covariance().variances(np.atleast_2d(away))
        value = -0.5 * (distances + self.covariance().log_det() + self.dim * math.log(2.0 * math.pi))
        return np.asarray(value[0] if away.ndim == 1 else value)

    def entropy(self) -> float:
        """Differential entropy in nats, (5.4)."""
        return 0.5 * (self.dim * (1.0 + math.log(2.0 * math.pi)) + self.covariance().log_det())

    def kl(self, other: FactorGaussian | LowRankGaussian | DenseGaussian) -> float:
        """KL(self ‖ other) in nats; linear in d unless the other is dense."""
        if isinstance(other, DenseGaussian):
            return self.to_dense().kl(other)
        shift = (self.mean - other.mean)[None]
        F, psi = np.asarray(self._F, dtype=np.float64), np.asarray(self._psi, dtype=np.float64)
        if isinstance(other, LowRankGaussian):
            theirs = other.precision()
            spread = float(np.einsum("ij,ji->", theirs.times(np.ascontiguousarray(F.T)), F))
            spread += float(psi @ theirs.psi) + float(psi @ np.einsum("ij,ij->i", theirs.W, theirs.W))
            if theirs.rows is not None:
                squares = theirs.rows.multiply(theirs.rows) if is_sparse(theirs.rows) else theirs.rows**2
                spread += float(np.asarray(squares @ psi).sum())
            distance = float(shift[0] @ theirs.times(shift)[0])
            log_det = -theirs.log_det()
        else:
            matrix = other.covariance()
            spread = float(matrix.variances(np.ascontiguousarray(F.T)).sum()) + float(psi @ matrix.diagonal())
            distance = float(matrix.variances(shift)[0])
            log_det = matrix.log_det()
        return 0.5 * (spread - self.dim + distance + log_det - self.covariance().log_det())

    def to_dense(self) -> DenseGaussian:
        """The same Gaussian with its covariance written out: d×d numbers."""
        F = np.asarray(self._F, dtype=np.float64)
        return DenseGaussian(self.mean, F @ F.T + np.diag(np.asarray(self._psi, dtype=np.float64)))

    @classmethod
    def combine(cls, prior: FactorGaussian, shards: Iterable[FactorGaussian]) -> FactorGaussian:
        """Prior × Π (shard / prior), exact; its rank is the sum of the shards' ranks.

        Shard i has precision Ψᵢ⁻¹ - BᵢBᵢ', so with a diagonal prior the product has precision Δ - BB', and covariance
        Δ⁻¹ + Δ⁻¹B(I - B'Δ⁻¹B)⁻¹B'Δ⁻¹: of this form again. The prior must be diagonal (F = 0).
        """
        if prior.F.any():
            msg = f"prior: it has {prior.rank} factors; only a diagonal prior (F = 0) keeps the product in this form"
            raise ValueError(msg)
        parts = list(shards)
        diagonal = 1.0 / np.asarray(prior.psi, dtype=np.float64)
        base, base_shift = diagonal.copy(), diagonal * prior.mean
        shift = base_shift.copy()
        columns = []
        for shard in parts:
            checks.same_dim("shards", shard.dim, prior.dim)
            shard_F, shard_psi = shard.F, shard.psi
            A = np.asarray(shard_F, dtype=np.float64) / shard_psi[:, None]
            lower = np.linalg.cholesky(np.eye(shard.rank) + shard_F.T @ A)
            columns.append(np.linalg.solve(lower, A.T).T)
            diagonal += 1.0 / shard_psi - base
            shift += shard.covariance().covariance_times(shard.mean[None])[0] - base_shift
        B = np.hstack([np.zeros((prior.dim, 0)), *columns])
        scaled = B / diagonal[:, None]
        try:
            root = np.linalg.cholesky(np.eye(B.shape[1]) - B.T @ scaled)
        except np.linalg.LinAlgError:
            root = None
        if root is None or not (diagonal > 0.0).all():
            msg = "shards: they know less than the prior in some direction, so the product is no Gaussian"
            raise ValueError(msg)
        F = np.linalg.solve(root, scaled.T).T
        return cls(shift / diagonal + F @ (F.T @ shift), _thin(F), 1.0 / diagonal, dtype=prior.F.dtype)

    def copy(self) -> Self:
        """An independent copy."""
        return self._of(self.state())

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything; see :meth:`from_state`."""
        return {"mean": self._mean.copy(), "F": self._F.copy(), "psi": self._psi.copy()}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """The belief of :meth:`state`, bit for bit."""
        sizes = schema.check(state, PARTS)
        lowrank_options.check_rank(sizes["p"], sizes["d"], fewest=0)
        return cls._of(state)

    @classmethod
    def _of(cls, state: dict[str, np.ndarray]) -> Self:
        self = cls.__new__(cls)
        self._mean, self._F, self._psi = (state[name].copy() for name in ("mean", "F", "psi"))
        self._view = None
        return self


def _thin(F: Array) -> Array:
    """The same FF' with no more columns than rows."""
    return F if F.shape[1] <= F.shape[0] else np.asarray(np.linalg.qr(F.T, mode="r")).T
