"""What the beliefs without covariances share: cells of K means and K variances per feature, time, whole-or-not passes.

A belief over d features is one array of shape (d, 2, K) (see ``engine.cells``) and nothing else of that size, except
one clock reading per feature once forgetting or drift is used. Until the first row is learned a prior that is the same
for all features is a single cell; after that its cells are written page by page, when a row first meets one of them
(``beliefs.pages``).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from gaussfold.beliefs.coupling import Coupling, coupling_from_form, resolve_coupling
from gaussfold.beliefs.pages import Pages
from gaussfold.beliefs.rows import Rows, sparse_rows
from gaussfold.beliefs.trace import RowError, Trace
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.engine.cells import FORGETS, STILL, WALKS, list_touched, look, undo
from gaussfold.engine.diagonal import absorb_any, absorb_logit
from gaussfold.engine.evaluate import NEWTON
from gaussfold.engine.families import LOGIT, STUDENT_T
from gaussfold.engine.logit_scores import logit_scores
from gaussfold.engine.mixing import any_scores, mix
from gaussfold.engine.rows_any import CURVATURE, HEIGHT, JOINT, MARGINAL, ONE_STEP, SOLVED
from gaussfold.engine.sites import POSTERIOR
from gaussfold.types import Array, ArrayLike, Moments

MAX_DIM = 2**31 - 1
FAST = (LOGIT, NEWTON, POSTERIOR, (MARGINAL, SOLVED, CURVATURE))
LANES = (1, 8)
"""Numbers of components that the fast loop is written for."""
NEAR = 1 << 23
"""Cells of fewer bytes are in the caches: asking for them ahead of time only costs."""


def mix_moments(weights: Array, means: Array, variances: Array) -> Moments:
    """Mean and variance of mixtures, one a row."""
    mean = means @ weights
    return Moments(mean, (variances + (means - mean[:, None]) ** 2) @ weights)


class Cellular:
    """Cells, coupling and clock. Subclasses say what K means."""

    _cells: np.ndarray
    _blank: np.ndarray | None  # the cell that all features shared before any was learned
    _pages: Pages | None  # which cells are written; None: all of them
    _dim: int
    _log_weights: Array
    _coupling: Coupling
    _seen: Array
    _clock: Array
    _kind: int
    _prior: np.ndarray

    def _start(self, cells: np.ndarray, dim: int, coupling: str | Coupling) -> None:
        k = cells.shape[2]
        self._cells, self._dim, self._coupling = cells, dim, resolve_coupling(coupling)
        self._blank, self._pages = None, None
        self._log_weights = np.full(k, -math.log(k))
        self._kind = STILL
        self._seen, self._clock = np.empty(0), np.zeros(1)
        self._prior = np.zeros((1, 2, k), dtype=cells.dtype)

    @property
    def dim(self) -> int:
        """Number of features."""
        return self._dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """How numbers are stored: float64 or float32. Arithmetic is in float64."""
        return self._cells.dtype

    @property
    def log_weights(self) -> Array:
        """Logarithms of the components' weights (a copy)."""
        return self._log_weights.copy()

    @property
    def coupling(self) -> Coupling:
        """How the features of a row share an observation."""
        return self._coupling

    def _current(self, columns: np.ndarray | None = None) -> Array:
        """Cells as of now, time applied, in float64: all of them (a single one if they are all alike), or some."""
        wide = self._cells.shape[0] > 1 or self._dim == 1
        if wide:
            self._write(columns)
        cells = self._cells if columns is None or not wide else self._cells[columns]
        cells = cells.astype(np.float64)
        if self._kind == STILL:
            return cells
        seen = self._seen if columns is None else self._seen[columns]
        elapsed = (self._clock[0] - seen)[:, None]
        if self._kind == WALKS:
            return np.stack([np.broadcast_to(cells[:, 0], (seen.size, cells.shape[2])), cells[:, 1] + elapsed], axis=1)
        prior = self._prior if self._prior.shape[0] == 1 or columns is None else self._prior[columns]
        old, new = np.exp(-elapsed) / cells[:, 1], -np.expm1(-elapsed) / prior[:, 1]
        variance = 1.0 / (old + new)
        return np.stack([variance * (old * cells[:, 0] + new * prior[:, 0]), variance], axis=1)

    def _widen(self, columns: np.ndarray | None = None) -> None:
        """Give every feature a cell of its own, written for these columns (None: for all)."""
        if self._cells.shape[0] < self._dim:
            self._blank = self._cells
            self._pages = Pages(self._blank, self._dim)
            self._cells = self._pages.cells
        self._write(columns)

    def _write(self, columns: np.ndarray | None) -> None:
        """Write blank cells for features that no row has met."""
        if self._pages is not None and self._pages.left:
            self._pages.write(columns)

    def moments(self, columns: ArrayLike) -> Moments:
        """Mean and variance of some parameters, without touching the others; of a mixture, within and between."""
        chosen = np.asarray(columns)
        cells = np.broadcast_to(self._current(chosen), (chosen.size, *self._cells.shape[1:]))
        return mix_moments(np.exp(self._log_weights), cells[:, 0], cells[:, 1])

    def touched(self) -> np.ndarray:
        """Features whose cell differs from the one all began with; all of them if they began with their own."""
        if self._cells.shape[0] < self._dim:
            return np.empty(0, np.uint32)
        if self._blank is None:
            return np.arange(self._dim, dtype=np.uint32)
        columns = np.empty(self._count_touched(), np.uint32)
        self._list_touched(columns)
        return columns

    def _count_touched(self) -> int:
        return self._list_touched(np.empty(0, np.uint32))

    def _list_touched(self, columns: np.ndarray) -> int:
        return int(list_touched(self._cells, self._blank, *Pages.of(self._pages), columns))

    def _look(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of x'θ per row and component."""
        return self.look_rows(sparse_rows(X, self._dim))

    def look_rows(self, rows: Rows) -> tuple[Array, Array]:
        """Mean and variance of x'θ per row and component, shape (n, K), from CSR arrays without repetitions."""
        n, k = rows.indptr.size - 1, self._cells.shape[2]
        mean, variance = np.empty((n, k)), np.empty((n, k))
        plain = rows.plain(narrow=True)
        if self._cells.shape[0] > 1:
            self._write(plain.indices)
        look(self._cells, self._seen, self._clock[0], self._kind, self._prior, *plain, mean, variance)
        return mean, variance

    # Time.

    def relax(self, factor: float, prior: Self) -> None:
        """1/v ← factor/v + (1-factor)/v₀, and the same for m/v: noted on the clock, applied when it is seen."""
        if factor != 1.0:
            self._keep_time(FORGETS, prior._all_cells())
            self._clock[0] -= math.log(factor)

    def _all_cells(self) -> np.ndarray:
        """Cells, all of them written (or the one that all features share)."""
        self._write(None)
        return self._cells

    def diffuse(self, variance: float) -> None:
        """V ← v + variance: noted on the clock, applied when a feature is next seen."""
        if variance != 0.0:
            self._keep_time(WALKS, self._prior)
            self._clock[0] += variance

    def _keep_time(self, kind: int, prior: np.ndarray) -> None:
        """Start the clock, or go on with it; another prior or kind settles all features first."""
        if kind == self._kind and (prior is self._prior or np.array_equal(prior, self._prior)):
            return
        if prior.shape[2] != self._cells.shape[2]:
            msg = f"prior: {prior.shape[2]} components, the belief has {self._cells.shape[2]}"
            raise ValueError(msg)
        if self._kind != STILL:
            self._cells = np.broadcast_to(self._current(), (self._dim, *self._cells.shape[1:])).astype(self.dtype)
            self._blank, self._pages = None, None
        self._kind = kind
        self._prior = prior.copy() if kind == FORGETS else self._prior
        self._seen, self._clock = np.zeros(self._dim), np.zeros(1)

    def _rate(self, dynamics: Forgetting | RandomWalk | None) -> float:
        if isinstance(dynamics, Forgetting) and dynamics.factor != 1.0:
            self._keep_time(FORGETS, dynamics.prior._all_cells())
            return -math.log(dynamics.factor)
        if isinstance(dynamics, RandomWalk):
            self._keep_time(WALKS, self._prior)
            return dynamics.std**2
        return 0.0

    # Learning.

    def absorb_stream(
        self,
        X: Any,
        y: Array,
        weight: Array,
        program: tuple[int, float, float, int, float, int],
        dynamics: Forgetting | RandomWalk | None = None,
        sites: Trace | None = None,
        block_size: int | None = None,  # noqa: ARG002 - rows are visited one by one
    ) -> Trace:
        """Visit rows in order, each once; all of them, or none on an error. See :class:`gaussfold.DenseGaussian`."""
        if sites is not None:
            msg = (
                "refine, sweep: a diagonal belief drops part of every site, so a site cannot be taken out again; "
                "use a full covariance"
            )
            raise ValueError(msg)
        return self.absorb_rows(sparse_rows(X, self._dim), y, weight, program, dynamics)

    def absorb_rows(
        self,
        rows: Rows,
        y: Array,
        weight: Array,
        program: tuple[int, float, float, int, float, int],
        dynamics: Forgetting | RandomWalk | None = None,
        *,
        whole: bool = True,
    ) -> Trace:
        """As :meth:`absorb_stream` from CSR arrays whose indices are in range and do not repeat within a row.

        ``whole=False``: on an error the rows before the one that failed stay learned (``RowError.trace``); no copy
        of what is overwritten has to be kept then.
        """
        self._check(program)
        if y.size == 0:
            return Trace.empty(0)
        self._widen(rows.indices)
        rate = self._rate(dynamics)
        clock, log_weights = self._clock[0], self._log_weights.copy()
        # Where the cells are fewer than the entries of these rows a copy of them is the cheaper log.
        copied = self._cells.copy() if whole and self._dim <= rows.data.size else None
        copied_seen = self._seen.copy() if copied is not None else None
        logged = rows.data.size if whole and copied is None else 0
        log = (
            np.empty((logged, *self._cells.shape[1:]), dtype=self.dtype),
            np.empty(logged if self._seen.size else 0),
            np.empty(logged, dtype=np.uint64),
        )
        marginals = np.empty((2, y.size, self._cells.shape[2]))
        # With marginal coupling there is a site per feature, none per row.
        sites = np.full((2, y.size), 0.0 if self._coupling.form[0] == JOINT else np.nan)
        time = (self._seen, self._clock, self._kind, rate, self._prior)
        failed, size = self._run(rows.plain(narrow=True), y, weight, program, time, log, marginals, sites)
        if failed < 0:
            return self._score(y, weight, program, marginals, sites)
        if not whole:
            before = marginals[:, :failed].copy()
            raise RowError(failed, self._score(y[:failed], weight[:failed], program, before, sites[:, :failed]))
        if copied is not None and copied_seen is not None:
            self._cells[:] = copied
            self._seen[:] = copied_seen
        else:
            undo(self._cells, self._seen, *log, size)
        self._clock[0] = clock
        self._log_weights[:] = log_weights
        raise RowError(failed)

    def _check(self, program: tuple[int, float, float, int, float, int]) -> None:
        code, _, _, rule, _, at = program
        coupling, mean, variance = self._coupling.form
        if coupling == MARGINAL and code == STUDENT_T:
            msg = "coupling='marginal': a Student-t likelihood cannot be integrated over; use coupling='joint'"
            raise ValueError(msg)
        if coupling != JOINT and (mean == ONE_STEP or variance == HEIGHT) and (rule, at) != (NEWTON, POSTERIOR):
            msg = f"coupling={self._coupling!r} goes with rule='newton', at='posterior'; use Marginal() for others"
            raise ValueError(msg)

    def _run(
        self,
        rows: Rows,
        y: Array,
        weight: Array,
        program: tuple[int, float, float, int, float, int],
        time: tuple[Any, ...],
        log: tuple[np.ndarray, np.ndarray, np.ndarray],
        marginals: Array,
        sites: Array,
    ) -> tuple[int, int]:
        """Choose the loop; returns the row that failed or -1, and the size of the log."""
        code, _, _, rule, _, at = program
        form, k = self._coupling.form, self._cells.shape[2]
        info = np.finfo(self.dtype)
        limits = (float(info.tiny), float(info.max))
        shared = (self._cells, time, log, *rows, y, weight, limits, rows.longest)
        if (code, rule, at, form) == FAST and k in LANES:
            failed, size = absorb_logit(*shared, self._cells.nbytes > NEAR, marginals[0], marginals[1])
        else:
            failed, size = absorb_any(*shared, marginals[0], marginals[1], program, form, sites[0], sites[1])
        return int(failed), int(size)

    def _score(
        self,
        y: Array,
        weight: Array,
        program: tuple[int, float, float, int, float, int],
        marginals: Array,
        sites: Array,
    ) -> Trace:
        """What was predicted from the marginals; the components' weights follow from it."""
        code, p0, p1 = program[:3]
        scores = np.empty(marginals.shape[1:])
        if code == LOGIT:
            logit_scores(p0, y, marginals[0], marginals[1], scores)
        else:
            any_scores(code, p0, p1, y, marginals[0], marginals[1], scores)
        if marginals.shape[2] == 1:
            return Trace(marginals[0, :, 0], marginals[1, :, 0], scores[:, 0], sites[0], sites[1])
        mixed = np.empty((3, y.size))
        mix(
            code, p0, p1, y, weight, self._log_weights, marginals[0], marginals[1], scores, mixed[0], mixed[1], mixed[2]
        )
        return Trace(mixed[0], mixed[1], mixed[2], sites[0], sites[1])

    # Storage.

    def state(self, *, copy: bool = True) -> dict[str, np.ndarray]:
        """Named arrays that hold everything: of the cells only those that were touched, if that is less.

        ``copy=False`` gives views where it can, to save a belief as large as the memory.
        """
        arrays = self._cell_state() | {
            "dim": np.array([self._dim]),
            "coupling": np.array(self._coupling.form),
            "log_weights": self._log_weights,
        }
        if self._kind != STILL:
            arrays |= {"seen": self._seen, "clock": self._clock, "kind": np.array([self._kind]), "prior": self._prior}
        return {name: array.copy() for name, array in arrays.items()} if copy else arrays

    def _cell_state(self) -> dict[str, np.ndarray]:
        if self._blank is None or 2 * self._count_touched() >= self._dim:
            return {"cells": self._all_cells()} | ({} if self._blank is None else {"blank": self._blank})
        columns = self.touched()
        return {"cells": self._cells[columns], "touched": columns, "blank": self._blank}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray], *, copy: bool = True) -> Self:
        """The belief of :meth:`state`, bit for bit; ``copy=False`` takes the arrays over."""
        self = cls.__new__(cls)
        form = tuple(int(part) for part in state["coupling"])
        sparsely = "touched" in state
        cells = state["blank"] if sparsely else state["cells"]
        self._start(cells.copy() if copy else cells, int(state["dim"][0]), coupling_from_form(form))  # type: ignore[arg-type]
        if sparsely:
            self._widen(state["touched"])
            self._cells[state["touched"]] = state["cells"]
        elif "blank" in state:
            self._blank = state["blank"].copy()
        self._log_weights[:] = state["log_weights"]
        if "kind" in state:
            self._kind, self._prior = int(state["kind"][0]), state["prior"].copy()
            self._seen, self._clock = state["seen"].copy(), state["clock"].copy()
        return self

    def become(self, other: Self) -> None:
        """Take over another belief's numbers; the other must not be used any more."""
        vars(self).update(vars(other))

    def copy(self) -> Self:
        """An independent copy."""
        return self.from_state(self.state(copy=False))
