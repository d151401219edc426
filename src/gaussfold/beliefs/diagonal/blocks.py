"""Weights of several classes without any covariance: one mean and variance per feature and class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self, final

import numpy as np
from numpy.typing import DTypeLike

from gaussfold import checks
from gaussfold.beliefs.diagonal.base import NO_SECOND_VISIT, DiagonalBelief, check_dim
from gaussfold.beliefs.diagonal.belief import DiagonalGaussian
from gaussfold.beliefs.diagonal.class_weights import ClassWeights
from gaussfold.beliefs.diagonal.coupling import resolve_coupling
from gaussfold.beliefs.diagonal.mixture import DiagonalMixture
from gaussfold.beliefs.diagonal.passes import Undo
from gaussfold.dynamics import Dynamics, moving
from gaussfold.engine.softmax.sparse import absorb_classes
from gaussfold.observations import Observations, admit
from gaussfold.rows import sparse_rows
from gaussfold.trace import ONCE, Pass, RowError, Trace
from gaussfold.types import Array, ArrayLike, ClassProgram, Moments, Program


class LearnedClasses(NamedTuple):
    """A pass that is over: what it met, the row that failed or -1, and how it is taken back."""

    trace: Trace
    failed: int
    undoing: Undo
    size: int
    before: dict[str, object]


@final
class DiagonalBlocks(ClassWeights, DiagonalBelief):
    """N(mean, diag(var)) over the weights of K classes, d features each; the classes of a feature lie side by side.

    As :class:`gaussfold.BlockGaussian` of diagonal blocks, for wide sparse rows: a row costs time in proportion to its
    active features times K. ``fold(belief, Softmax(K), X, y)`` takes rows of d columns.

    Parameters
    ----------
    mean, var
        Means and variances, shape (K, d).
    dtype
        How numbers are stored, "float64" or "float32"; arithmetic is in float64.

    Examples
    --------
    >>> import numpy as np
    >>> import gaussfold as gf
    >>> belief = DiagonalBlocks.isotropic(3, 2**20, std=0.7)
    >>> from scipy.sparse import csr_array
    >>> X = csr_array(([1.0, 1.0, 1.0], ([0, 0, 1], [5, 77, 5])), shape=(2, 2**20))
    >>> result = gf.fold(belief, gf.likelihoods.Softmax(3), X, [1, 2])
    >>> print(result.log_predictive.round(2))
    [-1.1  -1.22]
    """

    def __init__(self, mean: ArrayLike, var: ArrayLike, dtype: DTypeLike = np.float64) -> None:
        centre, variance = np.asarray(mean, dtype=np.float64), np.asarray(var, dtype=np.float64)
        if centre.ndim != 2 or centre.shape[0] < 2 or variance.shape != centre.shape:
            msg = f"mean, var: shapes {centre.shape} and {variance.shape}; both must be (K, d), K >= 2 classes"
            raise ValueError(msg)
        self._take([DiagonalGaussian(m, v, "joint", dtype) for m, v in zip(centre, variance, strict=True)])

    @classmethod
    def isotropic(
        cls, classes: int, features: int, std: float = 1.0, mean: float = 0.0, dtype: DTypeLike = np.float64
    ) -> Self:
        """N(mean, std² I). Takes no memory before the first row."""
        count, size = checks.whole("classes", classes, least=2), check_dim(features)
        return cls.of([DiagonalGaussian.isotropic(size, std, mean, "joint", dtype) for _ in range(count)])

    @classmethod
    def of(cls, blocks: Iterable[DiagonalGaussian]) -> Self:
        """From a diagonal Gaussian for each class."""
        self = cls.__new__(cls)
        self._take(list(blocks))
        return self

    def _take(self, blocks: list[DiagonalGaussian]) -> None:
        self._state = DiagonalMixture(blocks).parts()
        self._state.coupling = resolve_coupling("joint")

    @property
    def dim(self) -> int:
        """Number of weights, d for each class."""
        return self._state.dim * self.classes

    @property
    def features(self) -> int:
        """Number of features d."""
        return self._state.dim

    @property
    def classes(self) -> int:
        """Number of classes K."""
        return int(self._state.cells.shape[2])

    @property
    def blocks(self) -> list[DiagonalGaussian]:
        """The Gaussians of the classes, as copies."""
        cells = self.cells()
        return [DiagonalGaussian(cells[:, 0, k], cells[:, 1, k], "joint", self.dtype) for k in range(self.classes)]

    def weights(self, columns: ArrayLike | None = None) -> Moments:
        """Mean and variance (K, d) of all weights, or of those of some features."""
        cells = self.cells() if columns is None else self.cells(np.asarray(columns))
        return Moments(cells[:, 0].T.copy(), cells[:, 1].T.copy())

    def class_marginals(self, X: ArrayLike, classes: int) -> Moments:
        """Mean and variance (n, K) of x'θ_k for each row x."""
        checks.same_dim("classes", classes, self.classes)
        return self.marginals(X)

    def sample_latent(self, X: ArrayLike, n: int, rng: np.random.Generator) -> Array:
        """Draw x'θ_k at all rows jointly, n times, shape (n, rows, K): only the weights that the rows see are drawn."""
        rows = sparse_rows(X, self.features)
        columns, place = np.unique(rows.indices, return_inverse=True)
        mean, variance = self.weights(columns)
        draws = mean.T + np.sqrt(variance.T) * rng.standard_normal((n, *mean.T.shape))
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        out = np.zeros((n, rows.shape[0], self.classes))
        for draw, path in zip(draws, out, strict=True):
            np.add.at(path, row, rows.data[:, None] * draw[place])
        return out

    def look_again(self, rows: int) -> Self:
        """Refuse: a row of classes is a site on all of them, and nobody writes it down."""
        if checks.whole("second_look", rows, least=0):
            msg = f"second_look={rows}: classes in one belief have no second look; take one belief for each class"
            raise ValueError(msg)
        return self

    def state(self, *, copy: bool = True) -> dict[str, np.ndarray]:
        """As of every diagonal belief, and that its components are classes."""
        return super().state(copy=copy) | {"classes": np.array([self.classes])}

    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Refuse: a site on one number of all classes' weights leaves no diagonal."""
        del x, precision, shift
        msg = "belief: DiagonalBlocks takes Softmax(K) with rule='vi', at='posterior'; use BlockGaussian for others"
        raise ValueError(msg)

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE, *loose: object) -> Trace:
        """Refuse: a likelihood of one latent has no classes."""
        del data, program, how, loose
        msg = "belief: DiagonalBlocks has weights for each class; fold Softmax(K) into it"
        raise ValueError(msg)

    def absorb_classes(self, data: Observations, program: ClassProgram, how: Pass = ONCE) -> Trace:
        """Visit rows with classes in order, each once: marginals, sites, absorb."""
        if how.sites is not None:
            raise ValueError(NO_SECOND_VISIT)
        checks.same_dim("likelihood's classes", program.nodes.shape[0], self.classes)
        if data.y.size == 0:
            return Trace.several(0, self.classes, independent=True)
        learned = self.learn_classes(admit(data, self.features), program, how.dynamics, logged=how.whole)
        failed = learned.failed
        if failed < 0:
            return learned.trace
        if how.whole:
            self.take_back(learned)
            raise RowError(failed)
        raise RowError(failed, Trace(*(column[:failed].copy() for column in learned.trace)))

    def learn_classes(
        self, data: Observations, program: ClassProgram, dynamics: Dynamics | None, *, logged: bool, scored: bool = True
    ) -> LearnedClasses:
        """Visit checked rows up to one that fails; where a log is kept they can be taken back."""
        state, before = self._state, dict(vars(self._state))
        trace = Trace.several(data.y.size, self.classes, independent=True)
        rows = sparse_rows(data.X, self.features)
        try:
            state.widen(rows.indices)
            rate = self._start_clock(moving(dynamics))
        except BaseException:
            vars(state).update(before)
            raise
        undoing = Undo(state, rows.data.size if logged else 0)
        info = np.finfo(state.cells.dtype)
        failed, size = absorb_classes(
            state.cells, (state.seen, state.clock, state.kind, rate, state.prior), undoing.log, *rows.plain(), data.y,
            data.weight, (float(info.tiny), float(info.max)), rows.longest, program.nodes, program.largest, scored,
            trace.mean, trace.variance, trace.log_predictive, trace.site_precision, trace.site_shift,
        )  # fmt: skip
        return LearnedClasses(trace, int(failed), undoing, int(size), before)

    def take_back(self, learned: LearnedClasses) -> None:
        """Put everything back as it was before."""
        learned.undoing.restore(self._state, learned.size)
        vars(self._state).update(learned.before)
