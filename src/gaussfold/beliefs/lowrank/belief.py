"""A Gaussian whose precision is low rank plus diagonal: a million parameters on a laptop."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Self, Unpack, final

import numpy as np
from numpy.typing import DTypeLike

from gaussfold import checks
from gaussfold.beliefs.dense.belief import DenseGaussian
from gaussfold.beliefs.lowrank import moves, options, passes, storage
from gaussfold.beliefs.lowrank.options import Choices, Options
from gaussfold.beliefs.lowrank.state import State
from gaussfold.beliefs.visits import Visits
from gaussfold.dynamics import moving
from gaussfold.factors.woodbury import Precision
from gaussfold.observations import Observations, admit
from gaussfold.rows import as_matrix, as_rows, is_sparse
from gaussfold.trace import ONCE, Pass, Trace, check_moments, learn_before_failure
from gaussfold.types import Array, ArrayLike, Moments, Program


@final
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
        "calibrated" drops the weakest directions, keeps the variance of every parameter and learns the scale of what
        it keeps from how far later rows deviate from their predictions, so that error bars can be believed.
        "marginal" is the same without that scale. "eigen" keeps the precision's diagonal instead; "em" is lrvga Alg.
        1, which cannot start from W = 0 (a stationary point). Both are too sure of what the factors cannot hold.
    inner_loops
        Steps of a projection, 1 to 3 are sensible; the second and later are steps of EM ("marginal",
        "calibrated": they bring the variances closer to those before the projection).
    gain
        "exact": condition, then project. "projected": the mean moves with the projected precision, lrvga (24),
        which diverges with flat priors; for reproduction only, block_size=1.
    block_size
        Rows per projection. None: as many as suit the rank (from 8 to 128), and 4 for the first 2d rows of up to 512
        parameters.
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
        projection: str = options.CALIBRATED,
        inner_loops: int = 1,
        gain: str = "exact",
        block_size: int | None = 1,
        dtype: DTypeLike = np.float64,
    ) -> None:
        checked = options.check(projection, inner_loops, gain, block_size)
        arrays = options.check_arrays(mean, W, psi, dtype)
        options.check_start(projection, arrays[1])
        self._state = State.start(checked, *arrays)

    @classmethod
    def isotropic(
        cls,
        dim: int,
        rank: int,
        std: float = 1.0,
        mean: ArrayLike = 0.0,
        rng: np.random.Generator | None = None,
        **chosen: Unpack[Choices],
    ) -> Self:
        """N(mean, std² I); see :meth:`independent` for ``rng`` and the options."""
        factors = options.check_rank(rank, checks.whole("dim", dim))
        checks.room("dim", dim, dim * (factors + 2), "use DiagonalGaussian, or hash the features into fewer")
        centre = np.broadcast_to(np.asarray(mean, dtype=float), (dim,))
        return cls.independent(centre, np.full(dim, std), rank, rng, **chosen)

    @classmethod
    def independent(
        cls,
        mean: ArrayLike,
        std: ArrayLike,
        rank: int,
        rng: np.random.Generator | None = None,
        *,
        epsilon: float | None = None,
        **chosen: Unpack[Choices],
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
        chosen
            As for the class.
        """
        deviations = np.asarray(std, dtype=float)
        checks.scales("std", deviations)
        rank = options.check_rank(rank, deviations.size)
        share = options.share(epsilon, chosen.get("projection", Options().projection))
        W = np.zeros((deviations.size, rank))
        if share > 0.0:
            W = options.generator(rng).standard_normal((deviations.size, rank))
            W *= math.sqrt(share * deviations.size / rank) / np.linalg.norm(W, axis=0)
            W /= deviations[:, None]
        return cls(mean, W, (1.0 - share) / deviations**2, **chosen)

    @property
    def dim(self) -> int:
        """Number of parameters d."""
        return int(self._state.psi.size)

    @property
    def rank(self) -> int:
        """Number of factors p."""
        return self._state.rank

    @property
    def mean(self) -> Array:
        """Mean vector (a copy)."""
        return np.array(self._state.mean, dtype=np.float64)

    @property
    def W(self) -> Array:
        """Factors of the precision (a copy); rows that wait are projected in the copy."""
        return self._projected().W.copy()

    @property
    def psi(self) -> Array:
        """Diagonal part of the precision (a copy); rows that wait are projected in the copy."""
        return self._projected().psi.copy()

    def _projected(self) -> State:
        if not self.pending:
            return self._state
        twin = self._state.copy()
        twin.flush()
        return twin

    @property
    def options(self) -> Options:
        """How this belief is projected."""
        return self._state.options

    @property
    def pending(self) -> int:
        """Rows learned since the last projection."""
        return self._state.pending

    def precision(self) -> Precision:
        """The precision, waiting rows included, ready to be applied."""
        return self._state.precision()

    def variance(self) -> Array:
        """Marginal variance of each parameter."""
        return self.precision().diagonal()

    def trace(self) -> float:
        """Trace of the covariance."""
        return float(self.variance().sum())

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row x of X (dense or sparse)."""
        rows = as_matrix(as_rows(X, self.dim))
        with np.errstate(over="ignore", invalid="ignore"):  # looked for, and named
            mean = np.asarray(rows @ self._state.mean, dtype=np.float64)
            return check_moments(Moments(mean, self.precision().variances(rows)))

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, shape (n, dim), by ensemble sampling: lrvga Prop. 1, corrected."""
        out = np.empty((n, self.dim))
        step = max(1, (1 << 20) // self.dim)
        factors = rng.standard_normal((n, self.rank + self.pending))
        for start in range(0, n, step):
            part = slice(start, min(start + step, n))
            rng.standard_normal(out=out[part])
            out[part] = self._state.mean + self.precision().ensemble(out[part], factors[part])
        return out

    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector)."""
        away = np.asarray(theta, dtype=float) - self._state.mean
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
        spread = float(self.variance() @ np.asarray(theirs.psi, dtype=np.float64)) - self.dim
        spread += float(ours.variances(np.ascontiguousarray(theirs.W.T)).sum())
        if theirs.rows is not None:
            spread += float(ours.variances(theirs.rows).sum())
        shift = (self.mean - other.mean)[None]
        distance = float(shift[0] @ theirs.times(shift)[0])
        return 0.5 * (spread + distance + ours.log_det() - theirs.log_det())

    def to_dense(self) -> DenseGaussian:
        """The same Gaussian with its covariance written out: d×d numbers."""
        state = self._state
        matrix = np.asarray(state.W @ state.W.T, dtype=np.float64) + np.diag(state.psi)
        if state.rows is not None:
            extra = state.rows.T @ state.rows
            matrix += extra.toarray() if is_sparse(extra) else extra
        return DenseGaussian.from_natural(matrix, matrix @ self.mean)

    @classmethod
    def combine(cls, prior: LowRankGaussian, shards: Iterable[LowRankGaussian]) -> LowRankGaussian:
        """Prior × Π (shard / prior): what one pass over all shards' data would know, learned in parallel.

        The mean is exact, the factors of all shards are projected at once. The prior must be diagonal (W = 0).
        """
        if prior.W.any():
            msg = "prior: its W is not zero; combining needs a diagonal prior, as isotropic() makes it"
            raise ValueError(msg)
        self = prior.copy()
        moves.combine(self._state, [(shard.mean, shard.precision()) for shard in shards])
        return self

    def copy(self) -> Self:
        """An independent copy."""
        return self._of(self._state.copy())

    @classmethod
    def _of(cls, state: State) -> Self:
        self = cls.__new__(cls)
        self._state = state
        return self

    def become(self, other: LowRankGaussian) -> None:
        """Take over another belief's numbers; the other must not be used any more."""
        vars(self).update(vars(other))

    def state(self) -> dict[str, np.ndarray]:
        """Named arrays that hold everything, rows that wait included; see :meth:`from_state`."""
        return storage.to_arrays(self._state)

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray]) -> Self:
        """The belief of :meth:`state`, bit for bit."""
        return cls._of(storage.from_arrays(state))

    def flush(self) -> None:
        """Project the rows that wait, now."""
        self._state.flush()

    def relax(self, factor: float, prior: LowRankGaussian) -> None:
        """Λ ← factor·Λ + (1-factor)·Λ₀, and the same for Λ·mean."""
        checks.same_dim("prior", prior.dim, self.dim)
        if checks.between("factor", factor, 0, 1) != 1.0:
            moves.relax(self._state, factor, prior.mean, prior.precision())

    def diffuse(self, variance: float | Array) -> None:
        """P ← P + Q, Q diagonal with ``variance``, which keeps the form: exact."""
        steps = checks.variances("variance", variance, self.dim)
        if steps.any():
            moves.diffuse(self._state, steps)

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Multiply by one site exp(shift·f - ½·precision·f²), f = x'θ."""
        row = checks.finite_vector("x", x, self.dim)[None]
        moves.absorb_site(self._state, row, precision, checks.number("shift", shift))

    def absorb_factors(self, rows: Array, mean: ArrayLike) -> None:
        """Λ ← Λ + rows'rows, projected; the mean becomes ``mean``, which the caller has conditioned."""
        moves.absorb_factors(self._state, rows, mean)

    def absorb_row(self, row: Array, y: float, program: Program) -> Trace | None:  # noqa: ARG002 - see the protocol
        """None: a row of a low-rank belief has nothing quicker than a stream of one."""
        return None

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE, *loose: object) -> Trace:
        """Visit rows in order, each once: marginal, site, absorb."""
        data = admit(data, self.dim, *loose)
        dynamics, sites, block_size, whole = how
        if sites is not None:
            msg = (
                "sites: a low-rank belief has projected them away and cannot revisit rows; refine needs a dense belief"
            )
            raise ValueError(msg)
        size, drift = self._block_size(block_size), moving(dynamics)
        if drift is not None and size != 1:
            msg = f"block_size={size or None}: forgetting and drift move the diagonal at every row; 1 is needed"
            raise ValueError(msg)
        if not whole:
            return learn_before_failure(
                lambda part: self.absorb_stream(part, program, Pass(dynamics, block_size=block_size)), data
            )
        rows = as_matrix(data.X)
        with np.errstate(over="ignore"):  # what a float32 cannot hold is infinite then, and refused
            rows = rows if is_sparse(rows) else np.ascontiguousarray(rows, dtype=self._state.W.dtype)
        trace = Trace.empty(data.y.size)
        tick = None if drift is None else partial(drift.tick, self)
        before = self.options
        self._state.options = before._replace(block_size=size)
        try:
            passes.run(self._state, Visits(Observations(rows, data.y, data.weight), program, trace), tick)
        except BaseException:
            self._state.options = before
            raise
        return trace

    def _block_size(self, asked: int | None) -> int:
        """Rows per projection from now on: as asked, which must fit the options and the rows that wait."""
        size = self.options.block_size if asked is None else options.check(*self.options[:3], asked).block_size
        if self.pending and size != self.options.block_size:
            msg = (
                f"block_size={asked!r}: {self.pending} rows wait in a block of {self._state.block}; "
                "keep that size, or call flush() first"
            )
            raise ValueError(msg)
        return size
