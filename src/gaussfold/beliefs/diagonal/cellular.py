"""What the beliefs without covariances share: looking at rows, and learning them, whole or not at all."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gaussfold.beliefs.diagonal.cell_store import CellStore
from gaussfold.beliefs.diagonal.rows import Rows, sparse_rows
from gaussfold.beliefs.trace import RowError, Trace
from gaussfold.dynamics import Forgetting, RandomWalk
from gaussfold.engine.programs import can_be_marginalised, is_fast, is_newton_at_posterior, mix_rows, score_rows
from gaussfold.engine.sparse.absorb import absorb_any, absorb_logit
from gaussfold.engine.sparse.cells import FORGETS, WALKS, look, undo
from gaussfold.engine.sparse.visit_any import HEIGHT, JOINT, MARGINAL, ONE_STEP
from gaussfold.types import Array, ArrayLike, Program

MAX_DIM = 2**31 - 1
LANES = (1, 8)
"""Numbers of components that the fast loop is written for."""
NEAR = 1 << 20
"""Cells of fewer bytes are in the caches: asking for them ahead of time only costs."""
LOOKED_AT, SCATTERED = 1024, 256
"""So many entries of the rows are looked at, and are all over the memory if they lie in more cache lines than this."""


def _far(cells: np.ndarray, indices: np.ndarray) -> bool:
    """Whether the rows' cells are too many for the caches, and are to be asked for ahead of time."""
    if cells.nbytes <= NEAR:
        return False
    some = indices[:: max(1, indices.size // LOOKED_AT)]
    lines = some.astype(np.int64) * cells[0].nbytes >> 6
    return np.unique(lines).size > SCATTERED


class Cellular(CellStore):
    """Rows over cells. Subclasses say what K means."""

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

    def _rate(self, dynamics: Forgetting | RandomWalk | None) -> float:
        if isinstance(dynamics, Forgetting) and dynamics.factor != 1.0:
            self._keep_time(FORGETS, dynamics.prior._all_cells())
            return -math.log(dynamics.factor)
        if isinstance(dynamics, RandomWalk):
            self._keep_time(WALKS, self._prior)
            return dynamics.std**2
        return 0.0

    def absorb_stream(
        self,
        X: Any,
        y: Array,
        weight: Array,
        program: Program,
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
        program: Program,
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

    def _check(self, program: Program) -> None:
        coupling, mean, variance = self._coupling.form
        if coupling == MARGINAL and not can_be_marginalised(program):
            msg = "coupling='marginal': a Student-t likelihood cannot be integrated over; use coupling='joint'"
            raise ValueError(msg)
        if coupling != JOINT and (mean == ONE_STEP or variance == HEIGHT) and not is_newton_at_posterior(program):
            msg = f"coupling={self._coupling!r} goes with rule='newton', at='posterior'; use Marginal() for others"
            raise ValueError(msg)

    def _run(
        self,
        rows: Rows,
        y: Array,
        weight: Array,
        program: Program,
        time: tuple[Any, ...],
        log: tuple[np.ndarray, np.ndarray, np.ndarray],
        marginals: Array,
        sites: Array,
    ) -> tuple[int, int]:
        """Choose the loop; returns the row that failed or -1, and the size of the log."""
        form, k = self._coupling.form, self._cells.shape[2]
        info = np.finfo(self.dtype)
        limits = (float(info.tiny), float(info.max))
        shared = (self._cells, time, log, *rows, y, weight, limits, rows.longest)
        if is_fast(program, form) and k in LANES:
            failed, size = absorb_logit(*shared, _far(self._cells, rows.indices), marginals[0], marginals[1])
        else:
            failed, size = absorb_any(*shared, marginals[0], marginals[1], program, form, sites[0], sites[1])
        return int(failed), int(size)

    def _score(
        self,
        y: Array,
        weight: Array,
        program: Program,
        marginals: Array,
        sites: Array,
    ) -> Trace:
        """What was predicted from the marginals; the components' weights follow from it."""
        scores = np.empty(marginals.shape[1:])
        score_rows(program, y, marginals[0], marginals[1], scores)
        if marginals.shape[2] == 1:
            return Trace(marginals[0, :, 0], marginals[1, :, 0], scores[:, 0], sites[0], sites[1])
        mixed = mix_rows(program, y, weight, self._log_weights, marginals[0], marginals[1], scores)
        return Trace(mixed[0], mixed[1], mixed[2], sites[0], sites[1])
