"""What the two diagonal beliefs share: cells in, rows through, time over them, arrays out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Self

import numpy as np

from gaussfold.beliefs.diagonal import exchange, passes, storage
from gaussfold.beliefs.diagonal.apart import AnyDelta, Apart, Cells
from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.beliefs.diagonal.delta import CellDelta
from gaussfold.beliefs.diagonal.looking_again import LooksAgain
from gaussfold.beliefs.diagonal.state import State, mix_moments
from gaussfold.checks import between, not_negative, places, positive, same_dim, scales
from gaussfold.checks import whole as whole_number
from gaussfold.dynamics import Dynamics, Forgetting, moving
from gaussfold.engine.sparse.cells import FORGETS, WALKS
from gaussfold.engine.sparse.one_row import RowLoops, row_loops
from gaussfold.observations import Observations, admit
from gaussfold.protocols import Belief
from gaussfold.rows import Rows, sparse_rows
from gaussfold.trace import ONCE, Pass, Trace, check_moments
from gaussfold.types import Array, ArrayLike, Moments, Program

ALL = 745.0
"""On the clock of forgetting: e^-745 is the smallest number, so nothing is left of what was learned before."""
NO_SECOND_VISIT = (
    "refine, sweep: a diagonal belief drops part of every site, so a site cannot be taken out again; "
    "use a full covariance, or belief.look_again(rows) before the rows come"
)
ONE_CLOCK = "RandomWalk(scale=...): features of a diagonal belief share a clock, and walk alike; leave scale=None"


class DiagonalBelief(LooksAgain, ABC):
    """K independent Gaussians per feature; a row costs time in proportion to its active features."""

    _state: State

    @property
    def dim(self) -> int:
        """Number of features."""
        return self._state.dim

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """How numbers are stored: float64 or float32. Arithmetic is in float64."""
        return self._state.cells.dtype

    @property
    def log_weights(self) -> Array:
        """Logarithms of the components' weights (a copy)."""
        return self._state.log_weights.copy()

    @property
    def coupling(self) -> Coupling:
        """How the features of a row share an observation."""
        return self._state.coupling

    @property
    def uniform(self) -> bool:
        """Whether all features are alike and one cell stands for them."""
        return self._state.uniform

    @property
    @abstractmethod
    def mean(self) -> Array:
        """Mean vector (a copy)."""

    @abstractmethod
    def variance(self) -> Array:
        """Variance of each parameter."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n parameter vectors, shape (n, dim). For wide beliefs see :meth:`sample_latent`."""

    @abstractmethod
    def sample_latent(self, X: ArrayLike, n: int, rng: np.random.Generator) -> Array:
        """Draw x'θ at all rows jointly, n times, shape (n, rows): only the parameters that the rows see are drawn."""

    @abstractmethod
    def log_prob(self, theta: ArrayLike) -> Array:
        """Log density at each row of theta (or at one vector)."""

    @abstractmethod
    def absorb(self, x: Array, precision: float, shift: float) -> None:
        """Multiply by one site exp(shift·f - ½·precision·f²), f = x'θ, and keep the diagonal."""

    # Reading off.

    def marginals(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row and component, shape (n, K)."""
        return check_moments(passes.look_at(self._state, sparse_rows(X, self._state.dim)))

    def marginal(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ for each row x of X (dense or sparse); of a mixture, within and between."""
        return check_moments(mix_moments(self._state.log_weights, *self.marginals(X)))

    def reports(self, X: ArrayLike) -> Moments:
        """Mean and variance of x'θ as each component reports them, (n, K): what it predicts with, but see a stack."""
        return self.marginals(X)

    def readings(self, X: ArrayLike) -> tuple[Moments, Moments]:
        """What each component predicts with, (n, K); and mean and variance of x'θ for each row."""
        components = self.marginals(X)
        return components, mix_moments(self.log_weights, *components)

    def moments(self, columns: ArrayLike) -> Moments:
        """Mean and variance of some parameters, without touching the others; of a mixture, within and between."""
        cells = self._state.each(places("columns", columns, self._state.dim))
        return mix_moments(self._state.log_weights, cells[:, 0], cells[:, 1])

    def cells(self, columns: np.ndarray | None = None) -> Array:
        """Means and variances per feature and component, shape (d, 2, K), of all features or some, as of now."""
        return self._state.each(None if columns is None else places("columns", columns, self._state.dim))

    def stored_cells(self) -> np.ndarray:
        """Means and variances as they are stored, time not applied, not to be written to: one for all, or one each."""
        self._state.write()
        return self._state.cells

    def touched(self) -> np.ndarray:
        """Features whose cell differs from the one all began with; all of them if they began with their own."""
        return self._state.touched()

    # What is known of single features beforehand.

    def set_prior(self, columns: np.ndarray, std: np.ndarray) -> None:
        """Give features that no row has met a prior standard deviation of their own; forgetting returns to it."""
        columns = places("columns", columns, self._state.dim)
        scales("std", std)
        self._state.widen(columns)
        self._state.cells[columns, 1] = (std**2)[:, None]
        if self._state.prior.shape[0] > 1:
            self._state.prior[columns, 1] = (std**2)[:, None]

    def spread(self, prior: np.ndarray | None = None) -> None:
        """Give every feature a cell of its own, that of ``prior`` if there is one each."""
        self._state.widen()
        if prior is not None and prior.shape == self._state.cells.shape:
            self._state.cells[:] = prior

    @property
    def pull(self) -> np.ndarray | None:
        """Cells that forgetting pulls towards, one for all or one each; None if nothing was forgotten yet."""
        return self._state.prior if self._state.kind == FORGETS else None

    def set_start(self, prior: Self) -> None:
        """Say which cell all features began with, where that is not known: files from before it was stored."""
        if self._state.blank is None:
            self._state.blank = prior.stored_cells()

    def change_units(self, ratio: float, shift: float = 0.0, constant: int | None = None) -> None:
        """Measure x'θ in a unit ``ratio`` times as large, then add ``shift`` to the mean of the feature ``constant``.

        Variances stay: they are in units of the noise, which is what changes (see ``gaussfold.cli.noise``).
        """
        positive("ratio", ratio)
        self._state.scale_means(1.0 / ratio, shift, constant)

    # Time.

    def relax(self, factor: float, prior: Belief) -> None:
        """1/v ← factor/v + (1-factor)/v₀, and the same for m/v: noted on the clock, applied when it is seen."""
        if between("factor", factor, 0, 1) != 1.0:
            self._state.keep_time(FORGETS, self._cells_of(prior))
            self._state.clock[0] += min(-math.log(factor), ALL) if factor > 0.0 else ALL

    def diffuse(self, variance: float | Array) -> None:
        """V ← v + variance (one for all): noted on the clock, applied when a feature is next seen."""
        if np.ndim(variance):
            raise ValueError(ONE_CLOCK)
        if not_negative("variance", variance) != 0.0:
            self._state.keep_time(WALKS, self._state.prior)
            self._state.clock[0] += variance

    def _start_clock(self, dynamics: Dynamics | None) -> float:
        """Start the clock, or go on with it; returns what it counts per learned row."""
        if dynamics is None:
            return 0.0
        if isinstance(dynamics, Forgetting):
            self._state.keep_time(FORGETS, self._cells_of(dynamics.prior))
            return -math.log(dynamics.factor)
        if dynamics.scale is not None:
            raise ValueError(ONE_CLOCK)
        self._state.keep_time(WALKS, self._state.prior)
        return dynamics.std**2

    def _cells_of(self, prior: Belief) -> np.ndarray:
        """Of a prior that this belief may return to."""
        if not isinstance(prior, DiagonalBelief):
            msg = f"prior: a {type(prior).__name__}; a diagonal belief forgets towards one of its own kind"
            raise ValueError(msg)  # noqa: TRY004 - the one kind of error that arguments raise here
        same_dim("prior", prior.dim, self.dim)
        return prior.stored_cells()

    # Learning.

    def absorb_row(self, row: Array, y: float, program: Program) -> Trace | None:  # noqa: ARG002 - see the protocol
        """None: a row of a diagonal belief has nothing quicker than a stream of one."""
        return None

    def absorb_stream(self, data: Observations, program: Program, how: Pass = ONCE, *loose: object) -> Trace:
        """Visit rows in order, each once: marginal, site, absorb."""
        data = admit(data, self.dim, *loose)
        if how.sites is not None:
            raise ValueError(NO_SECOND_VISIT)
        passes.check(self._state, program)
        if data.y.size == 0:
            return Trace.empty(0)
        rows = sparse_rows(data.X, self.dim)
        before = dict(vars(self._state))
        try:
            self._state.widen(rows.indices)
            rate = self._start_clock(moving(how.dynamics))
            return passes.absorb(self._state, passes.Sparse(rows, data.y, data.weight), program, rate, whole=how.whole)
        except BaseException:
            if how.whole:  # with one cell for all features, and without a clock, if it was so
                vars(self._state).update(before)
            raise

    # One row at a time, as its entries: for streams that come in dictionaries.

    def row_loops(self, program: Program) -> RowLoops | None:
        """The loops of :meth:`learn_entries` and :meth:`look_entries`; None where rows go as streams of one only."""
        state = self._state
        if state.cells.shape[2] != 1 or state.cells.dtype != np.float64 or state.kept is not None:
            return None
        passes.check(self._state, program)
        return row_loops(program, self._state.coupling.form)

    def learn_entries(
        self,
        loops: RowLoops,
        columns: np.ndarray,
        values: Array,
        y: float,
        weight: float,
        program: Program,
        rate: float,
    ) -> tuple[bool, float, float]:
        """Visit one row by its columns (int64, each once, below ``dim``) and values; ``rate`` is what a tick counts.

        Whether it was good, and mean and variance of x'θ before. If not, nothing has changed:
        :meth:`absorb_stream` says what is wrong with it. The clock, if any, runs already.
        """
        state = self._state
        if state.alike or state.lazy is not None:
            state.widen(columns)
        time = state.seen, state.clock, state.kind, rate, state.prior
        return loops.learn(state.cells, time, columns, values, y, weight, program, state.coupling.form)

    def look_entries(self, loops: RowLoops, columns: np.ndarray, values: Array) -> tuple[float, float]:
        """Mean and variance of x'θ of one row, of the same form."""
        state = self._state
        if state.alike or state.lazy is not None:
            state.widen(columns)
        return loops.look(state.cells, (state.seen, state.clock, state.kind, 0.0, state.prior), columns, values)

    def remember(self, columns: np.ndarray) -> tuple[np.ndarray, ...]:
        """What :meth:`learn_entries` may write over, for :meth:`put_back`."""
        state = self._state
        seen = state.seen[columns] if state.seen.size else state.seen
        return state.cells[columns], seen, state.clock.copy(), state.log_weights.copy()

    def put_back(self, columns: np.ndarray, remembered: tuple[np.ndarray, ...]) -> None:
        """Undo what was learned of one row since :meth:`remember`."""
        state = self._state
        cells, seen, state.clock[:], state.log_weights[:] = remembered
        state.cells[columns] = cells
        if state.seen.size:
            state.seen[columns] = seen

    def ticks(self, dynamics: Dynamics | None) -> float:
        """Start the clock of these dynamics, or go on with it; what it counts per learned row."""
        return self._start_clock(moving(dynamics))

    # Several workers: see `exchange`.

    def tempered(self, shards: int, least: float = 16.0) -> Self:
        """What one of so many shards begins with: the same means, 1/v ← max(1/(v·shards), min(1/v, max(1/v₀, least))).

        ``least`` is for features of size about 1; where x² is c on average, c times as much does the same.
        """
        whole_number("shards", shards)
        return self._of(exchange.tempered(self._state, shards, not_negative("least", least)))

    def delta(self, base: Self) -> CellDelta:
        """What was learned since ``base``: natural parameters less its own, of the features that differ.

        They add up over workers exactly for normal noise where no two features meet in a row; else approximately.
        """
        return exchange.delta(self._state, base.parts())

    def apart(self, shards: int, least: float = 16.0) -> Apart:
        """What the shards of a round, so many, are learned by in one process; they begin ``tempered``."""
        return Cells(self._state, whole_number("shards", shards), not_negative("least", least))

    def apply(self, delta: AnyDelta) -> None:
        """Multiply in what was learned elsewhere, whole or not at all; in place."""
        if isinstance(delta, CellDelta):
            exchange.apply(self._state, delta)
            return
        msg = f"delta: a {type(delta).__name__}; a {type(self).__name__} takes a CellDelta, as its delta(base) is"
        raise ValueError(msg)

    def parts(self) -> State:
        """Cells and clock themselves: not to be written to, unless the belief is handed over with them."""
        return self._state

    # Copies and arrays.

    def become(self, other: Self) -> None:
        """Take over another belief's numbers; the other must not be used any more."""
        vars(self).update(vars(other))

    def copy(self) -> Self:
        """An independent copy."""
        return self._of(exchange.twin(self._state))

    def state(self, *, copy: bool = True) -> dict[str, np.ndarray]:
        """Named arrays that hold everything: of the cells only those that were touched, if that is less.

        ``copy=False`` gives views where it can, to save a belief as large as the memory.
        """
        return storage.to_arrays(self._state, copy=copy)

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray], *, copy: bool = True) -> Self:
        """The belief of :meth:`state`, bit for bit; ``copy=False`` takes the arrays over."""
        storage.check(state)
        return cls._of(storage.from_arrays(state, copy=copy))

    @classmethod
    def _of(cls, state: State) -> Self:
        self = cls.__new__(cls)
        self._state = state
        return self


def check_dim(dim: int) -> int:
    """Return a number of features that an index can count."""
    return whole_number("dim", dim, most=storage.MAX_DIM)


def sum_draws(rows: Rows, place: np.ndarray, draws: list[Array]) -> Array:
    """x'θ of every row for each draw of the parameters, whose entries' places among them are given."""
    row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    return np.array([np.bincount(row, rows.data * draw[place], rows.shape[0]) for draw in draws])
