"""A Gaussian whose precision is low rank plus diagonal: a million parameters on a laptop."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from scipy import sparse

from gaussfold import checks
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.lowrank import moves as lowrank_moves
from gaussfold.beliefs.lowrank import options as lowrank_options
from gaussfold.beliefs.lowrank import passes as lowrank_pass
from gaussfold.beliefs.lowrank.options import Options
from gaussfold.beliefs.lowrank.waiting import flush
from gaussfold.beliefs.trace import Trace
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.engine.lowrank.products import gram
from gaussfold.factors.woodbury import Precision
from gaussfold.types import Array, ArrayLike, Moments, Program

_ARRAYS = ("mean", "W", "psi", "gram", "due")


class LowRankGaussian:
    """N(mean, (WW' + Ψ)⁻¹) over d parameters, W of shape (d, p), Ψ diagonal; never a d×d array.

    A row of data adds a rank-one term to the precision. The mean moves with the gain of the belief before (exact),
    then W and Ψ are projected back to rank p, once per ``block_size`` rows. Rows that wait for their projection are
    part of the belief all the same: mean, marginals, samples and densities count them exactly.

    Parameters
    ----------
    mean
        Mean vector, shape (d,).
    W
        Factors of the precision, shape (d, p), 1 ≤ p ≤ d.
    psi
        Diagonal of the precision, shape (d,), all > 0.
    projection
        "eigen" drops the weakest directions and keeps the diagonal; "em" is lrvga Alg. 1, which cannot start
        from W = 0 (a stationary point).
    inner_loops
        Steps of a projection, 1 to 3 are sensible; the second and later are steps of EM.
    gain
        "exact": condition, then project. "projected": the mean moves with the projected precision, lrvga (24),
        which diverges with flat priors; for reproduction only, block_size=1.
    block_size
        Rows per projection.
    dtype
        numpy.float64 or numpy.float32.

    Examples
    --------
    >>> import numpy as np
    >>> belief = LowRankGaussian([0.0, 1.0], [[1.0], [0.0]], [1.0, 0.5])
    >>> mean, variance = belief.marginal(np.eye(2))
    >>> print(mean, variance)
    [0. 1.] [0.5 2. ]
    """

    def __init__(
        self,
        mean: ArrayLike,
        W: ArrayLike,
        psi: ArrayLike,
        *,
        projection: str = "eigen",
        inner_loops: int = 1,
        gain: str = "exact",
        block_size: int = 1,
        dtype: Any = np.float64,
    ) -> None:
        self._options = lowrank_options.check(projection, inner_loops, gain, block_size)
        self._mean, self._W, self._psi = lowrank_options.check_arrays(mean, W, psi, dtype)
        self._gram = gram(self._W, self._psi)
        self._due = np.zeros(2)  # what the projection leaves for later: see factors.eigen
        self._rows: Any = None  # rows that wait, times the root of their site precision: Λ = WW' + rows'rows + Ψ
        self._view: Precision | None = None

    @classmethod
    def isotropic(
        cls,
        dim: int,
        rank: int,
        std: float = 1.0,
        mean: ArrayLike = 0.0,
        rng: np.random.Generator | None = None,
        **options: Any,
    ) -> Self:
        """N(mean, std² I); see :meth:`independent` for ``rng`` and the options."""
        checks.whole("dim", dim)
        centre = np.broadcast_to(np.asarray(mean, dtype=float), (dim,))
        return cls.independent(centre, np.full(dim, std), rank, rng, **options)

    @classmethod
    def independent(
        cls,
        mean: ArrayLike,
        std: ArrayLike,
        rank: int,
        rng: np.random.Generator | None = None,
        *,
        epsilon: float | None = None,
        **options: Any,
    ) -> Self:
        """N(mean, diag(std²)): one standard deviation per parameter (lrvga Remark 1).

        Parameters
        ----------
        rank
            Number of factors p.
        rng
            Draws the directions of W; a generator of its own with a fixed seed if not given.
        epsilon
            Share of the precision's trace that goes to W, lrvga §5.1.2. EM needs some (1e-8 by default); the
            eigen-projection needs none, and then the prior is exact.
        options
            As for the class.
        """
        deviations = np.asarray(std, dtype=float)
        checks.positive_entries("std", deviations)
        rank = lowrank_options.check_rank(rank, deviations.size)
        share = lowrank_options.share(epsilon, options.get("projection", "eigen"))
        W = np.zeros((deviations.size, rank))
        if share > 0.0:
            draw = np.random.default_rng(0) if rng is None else rng
            W = draw.standard_normal((deviations.size, rank))
            W *= math.sqrt(share * deviations.size / rank) / np.linalg.norm(W, axis=0)
            W /= deviations[:, None]
        return cls(mean, W, (1.0 - share) / deviations**2, **options)

    @property
    def dim(self) -> int:
        """Number of parameters d."""
        return int(self._psi.size)

    @property
    def rank(self) -> int:
        """Number of factors p."""
        return int(self._W.shape[1])

    @property
    def mean(self) -> Array:
        """Mean vector (a copy)."""
        return np.array(self._mean, dtype=np.float64)

    @property
    def W(self) -> Array:
        """Factors of the precision (a copy); rows that wait are projected in the copy."""
        return self._projected()._W.copy()

    @property
    def psi(self) -> Array:
        """Diagonal part of the precision (a copy); rows that wait are projected in the copy."""
        return self._projected()._psi.copy()

    @property
    def options(self) -> Options:
        """How this belief is projected."""
        return self._options

    @property
    def pending(self) -> int:
        """Rows learned since the last projection."""
        return 0 if self._rows is None else int(self._rows.shape[0])

    def precision(self) -> Precision:
        """The precision, waiting rows included, ready to be applied."""
        if self._view is None:
            self._view = Precision(self._W, self._psi, self._gram, self._rows)
        return self._view

    def variance(self) -> Array:
        """Marginal variance of each parameter."""
        return self.precision().diagonal()

    def trace(self) -> float:
        """Trace of the covariance."""
        return float(self.variance().sum())

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row x of X (dense or sparse)."""
        rows = self._checked_rows(X)
        return Moments(np.asarray(rows @ self._mean, dtype=np.float64), self.precision().variances(rows))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, shape (n, dim), by ensemble sampling: lrvga Prop. 1, corrected."""
        out = np.empty((n, self.dim))
        step = max(1, (1 << 20) // self.dim)
        factors = rng.standard_normal((n, self.rank + self.pending))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            rng.standard_normal(out=out[part])
            out[part] = self._mean + self.precision().ensemble(out[part], factors[part])
        return out

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector)."""
        away = np.asarray(theta, dtype=float) - self._mean
        rows = np.atleast_2d(away)
        quadratic = np.einsum("ij,ij->i", rows, self.precision().times(rows))
        value = 0.5 * (self.precision().log_det() - quadratic - self.dim * math.log(2.0 * math.pi))
        return np.asarray(value[0] if away.ndim == 1 else value)

    def entropy(self) -> float:
        """Differential entropy in nats."""
        return 0.5 * (self.dim * (1.0 + math.log(2.0 * math.pi)) - self.precision().log_det())

    def kl(self, other: LowRankGaussian | DenseGaussian) -> float:
        """KL(self ‖ other) in nats; linear in d if the other is of low rank too."""
        if isinstance(other, DenseGaussian):
            return self.to_dense().kl(other)
        ours, theirs = self.precision(), other.precision()
        spread = float(self.variance() @ np.asarray(other._psi, dtype=np.float64)) - self.dim
        spread += float(ours.variances(np.ascontiguousarray(other._W.T)).sum())
        if other._rows is not None:
            spread += float(ours.variances(other._rows).sum())
        shift = (self.mean - other.mean)[None]
        distance = float(shift[0] @ theirs.times(shift)[0])
        return 0.5 * (spread + distance + ours.log_det() - theirs.log_det())

    def to_dense(self) -> DenseGaussian:
        """The same Gaussian with its covariance written out: d×d numbers."""
        matrix = np.asarray(self._W @ self._W.T, dtype=np.float64) + np.diag(self._psi)
        if self._rows is not None:
            extra = self._rows.T @ self._rows
            matrix += extra.toarray() if sparse.issparse(extra) else extra
        return DenseGaussian.from_natural(matrix, matrix @ self.mean)

    @classmethod
    def combine(cls, prior: LowRankGaussian, shards: Iterable[LowRankGaussian]) -> LowRankGaussian:
        """Prior × Π (shard / prior): what one pass over all shards' data would know, learned in parallel.

        The mean is exact, the factors of all shards are projected at once. The prior must be diagonal (W = 0).
        """
        return lowrank_moves.combine(prior, list(shards))

    def copy(self) -> Self:
        """An independent copy."""
        twin = type(self).__new__(type(self))
        twin._options = self._options
        twin._mean, twin._W, twin._psi = self._mean.copy(), self._W.copy(), self._psi.copy()
        twin._gram, twin._due = self._gram.copy(), self._due.copy()
        twin._rows = None if self._rows is None else self._rows.copy()
        twin._view = None
        return twin

    def become(self, other: LowRankGaussian) -> None:
        """Take over another belief's numbers; the other must not be used any more."""
        self._options, self._mean, self._W, self._psi = other._options, other._mean, other._W, other._psi
        self._gram, self._due, self._rows, self._view = other._gram, other._due, other._rows, None

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything, rows that wait included; see :meth:`from_state`."""
        arrays = {name: getattr(self, f"_{name}").copy() for name in _ARRAYS}
        arrays["options"] = lowrank_options.encode(self._options)
        if sparse.issparse(self._rows):
            arrays |= {f"rows_{part}": getattr(self._rows, part).copy() for part in ("data", "indices", "indptr")}
        elif self._rows is not None:
            arrays["rows"] = self._rows.copy()
        return arrays

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """The belief of :meth:`state`, bit for bit."""
        self = cls.__new__(cls)
        self._options = lowrank_options.decode(state["options"])
        self._mean, self._W, self._psi, self._gram, self._due = (state[name].copy() for name in _ARRAYS)
        self._rows = state["rows"].copy() if "rows" in state else None
        if "rows_data" in state:
            parts = tuple(state[f"rows_{part}"] for part in ("data", "indices", "indptr"))
            self._rows = sparse.csr_matrix(parts, shape=(parts[2].size - 1, self._psi.size))
        self._view = None
        return self

    def flush(self) -> None:
        """Project the rows that wait, now."""
        flush(self)

    def relax(self, factor: float, prior: LowRankGaussian) -> None:
        """Λ ← factor·Λ + (1-factor)·Λ₀, and the same for Λ·mean."""
        if factor != 1.0:
            lowrank_moves.relax(self, factor, prior)

    def diffuse(self, variance: float) -> None:
        """P ← P + variance·I, which keeps the form: exact."""
        if variance != 0.0:
            lowrank_moves.diffuse(self, variance)

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Multiply by one site exp(shift·f - ½·precision·f²), f = x'θ."""
        lowrank_moves.absorb_site(self, np.asarray(x, dtype=float)[None], precision, shift)

    def absorb_factors(self, rows: Array, mean: ArrayLike) -> None:
        """Λ ← Λ + rows'rows, projected; the mean becomes ``mean``, which the caller has conditioned."""
        lowrank_moves.absorb_factors(self, rows, mean)

    def absorb_stream(
        self,
        X: Any,
        y: Array,
        weight: Array,
        program: Program,
        dynamics: Forgetting | RandomWalk | None = None,
        sites: Trace | None = None,
        block_size: int | None = None,
    ) -> Trace:
        """Visit rows in order, each once: marginal, site, absorb. All of them, or none on an error."""
        if sites is not None:
            msg = (
                "sites: a low-rank belief has projected them away and cannot revisit rows; refine needs a dense belief"
            )
            raise ValueError(msg)
        if block_size is not None and block_size != self._options.block_size:
            if self.pending:
                msg = (
                    f"block_size={block_size!r}: {self.pending} rows wait in a block of {self._options.block_size}; "
                    "keep that size, or call flush() first"
                )
                raise ValueError(msg)
            self._options = lowrank_options.check(*self._options[:3], block_size)
        return lowrank_pass.run(self, X, y, weight, program, dynamics)

    def _projected(self) -> LowRankGaussian:
        if not self.pending:
            return self
        twin = self.copy()
        twin.flush()
        return twin

    def _checked_rows(self, X: ArrayLike) -> Any:
        rows = X.tocsr() if sparse.issparse(X) else np.asarray(X, dtype=float)
        checks.columns("X", rows, self.dim)
        return rows
