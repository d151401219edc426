"""Passes over rows for a low-rank belief: exact sites inside a block, one projection per block.

Rows X of a segment see the belief through K = XPX' and Xμ alone; the sequential visits run on a root of K (the same
compiled loop as for the dense belief). Then mean += PX'a with a = (I + ΛK)⁻¹(s - ΛXμ), all sites at once, and the
rows wait, scaled by the roots of their site precisions, until the block is full and they are projected.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeAlias

import numpy as np
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf

from gaussfold.beliefs.lowrank.printed import printed_row
from gaussfold.beliefs.lowrank.snapshot import kept_safe
from gaussfold.beliefs.lowrank.state import State
from gaussfold.beliefs.visits import Visits
from gaussfold.engine.lowrank.products import mix_rows
from gaussfold.engine.lowrank.row import check_row, look_row
from gaussfold.engine.programs import log_concave
from gaussfold.factors import calibrated, eigen, marginal
from gaussfold.factors.eigen import FEW, Sight
from gaussfold.factors.recursive_em import Seen
from gaussfold.factors.woodbury import View, too_strong
from gaussfold.rows import Matrix, is_sparse
from gaussfold.trace import RowError, Trace
from gaussfold.types import Array

SEGMENT = 128
"""Rows looked at in one product at most."""
SURE = 1e-3
"""One row: above this share of x'Ψ⁻¹x, x'Px is a difference that has lost three digits at most."""

Visit: TypeAlias = Callable[[State, Visits], int]
"""Visits some of the first rows and returns how many."""


def run(state: State, visits: Visits, tick: Callable[[], None] | None) -> None:
    """Absorb all rows, or none; ``tick`` lets time pass before each learned row."""
    learn = visits.data.learned
    visit = _visit_for(state, visits.matrix)
    start, one_by_one = 0, tick is not None or visit is _one_row
    safe = kept_safe(state) if _may_fail_late(state, visits, learn, tick is not None) else nullcontext()
    try:
        with safe, np.errstate(over="ignore", invalid="ignore"):  # overflow is looked for, and becomes a RowError
            while start < learn.size:
                if tick is not None and learn[start]:
                    tick()
                stop = start + 1 if one_by_one else _segment_end(state, learn, start)
                start += visit(state, visits.part(start, stop))
    except ValueError as problem:
        if isinstance(problem, np.linalg.LinAlgError) or "infs or NaNs" in str(problem):  # NumPy's and SciPy's words
            raise RowError(start) from problem
        raise


def _visit_for(state: State, X: Matrix) -> Visit:
    if state.options.gain == "projected":
        return printed_row
    return _one_row if _is_one_row(state, X) else _segment


def _may_fail_late(state: State, visits: Visits, learn: np.ndarray, moving: bool) -> bool:
    """Whether a row may fail after something was changed for good: then what is there is kept safe first."""
    if visits.size == 1 or not learn.any():
        return False
    fits = state.pending + int(learn.sum()) <= state.block
    return moving or not (fits and learn[-1] and log_concave(visits.program))


def _segment_end(state: State, learn: np.ndarray, start: int) -> int:
    """Up to the row that fills the block: rows that are only predicted after it see it projected."""
    room = state.block - state.pending
    ahead = np.flatnonzero(learn[start : start + SEGMENT])
    if ahead.size >= room:
        return start + int(ahead[room - 1]) + 1
    return min(start + SEGMENT, learn.size)


def _segment(state: State, visits: Visits) -> int:
    """Visit some rows that fit into the block; returns how many were taken."""
    X, trace = visits.matrix, visits.trace
    view = state.precision().view(X, residual=not is_sparse(X))
    if not np.isfinite(view.covariance).all():
        raise RowError(visits.first + int(np.argmax(~np.isfinite(np.diag(view.covariance)))))
    offset = np.asarray(X @ state.mean, dtype=np.float64)
    _make_sites(visits, _root(view.covariance), offset)
    strong = too_strong(state.psi, X, np.diag(view.inner), trace.site_precision)
    if strong:
        raise RowError(visits.first + strong[0])
    negative = np.flatnonzero(trace.site_precision < 0.0)
    if negative.size:  # no factor can hold a negative term: project what comes before, then this row by itself
        at = int(negative[0])
        if at == 0 and state.pending:
            state.flush()
            return 0
        if max(at, 1) < visits.size:
            return _segment(state, visits.part(0, max(at, 1)))
    condition(state, X, view, offset, trace, visits.first)
    _add(state, X, trace.site_precision, view)
    return visits.size


def _add(state: State, X: Matrix, sites: Array, view: View) -> None:
    """Add the rows to the precision: by a projection if they fill a block or a site is negative, else they wait."""
    informative = sites != 0.0
    if not informative.any():
        return
    weight = sites[informative]
    if (weight < 0.0).any() or weight.size == state.block:
        # the eigen-projection has no use for the residual: let its memory go
        residual = view.residual if state.options.projection == "em" else None
        seen = Seen(view.reach, view.inner, residual) if informative.all() else None
        del view
        state.project(X if seen is not None else X[informative], weight, seen)
        return
    state.wait(X[informative], np.sqrt(weight))
    if state.full:
        state.flush()


def _one_row(state: State, visits: Visits) -> int:
    """One dense row, few factors, a fused projection: as :func:`_segment`, in two passes over the memory."""
    x, reach, trace = visits.matrix[0], np.empty(state.rank), visits.trace
    inner, offset = look_row(state.W, state.psi, state.mean, x, reach)
    explained = state.precision().solve(reach)
    variance = inner - float(reach @ explained)
    if not variance > SURE * inner:  # too many digits cancelled, or nothing is finite: as a sum of squares
        variance = check_row(state.W, state.psi, x, explained) + float(explained @ explained)
    if not np.isfinite(variance):
        raise RowError(visits.first)
    _make_sites(visits, np.array([[np.sqrt(variance)]]), np.array([offset]))
    site = float(trace.site_precision[0])
    if not site > 0.0:  # nothing to project, or nothing that a factor can hold
        return _segment(state, visits)
    gain = (float(trace.site_shift[0]) - site * offset) / (1.0 + site * variance)
    if not np.isfinite(gain) or too_strong(state.psi, x[None], np.array([inner]), trace.site_precision):
        raise RowError(visits.first)
    sight = Sight(reach, inner, explained)
    if state.ledger is not None:
        state.ledger.observe(trace)
    state.gram = _project_row(state, x, sight, site, gain)
    state.view = None
    return 1


def _project_row(state: State, x: Array, sight: Sight, site: float, gain: float) -> Array:
    """The projections that have a fused pass."""
    if state.ledger is not None:
        return calibrated.project_row(state.W, state.psi, state.gram, state.mean, x, sight, site, gain, state.ledger)
    if state.options.projection == "eigen":
        return eigen.project_row(state.W, state.psi, state.gram, state.mean, x, sight, site, gain, state.due)
    return marginal.project_row(state.W, state.psi, state.gram, state.mean, x, sight, site, gain)


def _is_one_row(state: State, X: Matrix) -> bool:
    options = state.options
    return (
        options.fused
        and options.block_size == 1
        and options.inner_loops == 1
        and state.rank <= FEW
        and not state.pending
        and not is_sparse(X)
    )


def _make_sites(visits: Visits, root: Array, offset: Array) -> None:
    """The sites of rows with covariance ``root root'`` and means ``offset``, one after the other, into the trace."""
    size, trace = root.shape[1], visits.trace
    trace.site_precision[:] = 0.0
    trace.site_shift[:] = 0.0
    visits.run(np.eye(size), np.zeros(size), root, offset)


def condition(state: State, X: Matrix, view: View, offset: Array, trace: Trace, first: int = 0) -> None:
    """Mean += PX'a: the exact posterior mean of the rows' Gaussian sites; ``first`` of them is told if it fails."""
    inner = np.eye(offset.size) + trace.site_precision[:, None] * view.covariance
    a = np.linalg.solve(inner, trace.site_shift - trace.site_precision * offset)
    if view.residual is not None:
        step = a.astype(state.W.dtype) @ view.residual
    else:
        explained = view.explained @ a
        step = mix_rows(a[None], X, state.W.dtype)[0]
        step -= state.W @ explained[: state.rank].astype(state.W.dtype)
        if state.rows is not None:
            step -= mix_rows(explained[None, state.rank :], state.rows, state.W.dtype)[0]
    step /= state.psi
    if not np.isfinite(step).all():
        raise RowError(first)
    state.mean += step
    if state.ledger is not None:
        state.ledger.observe(trace)


def _root(K: Array) -> Array:
    """Some R with RR' = K: Cholesky where K is well conditioned, eigenvectors where rows repeat.

    A row that sees nothing keeps a variance of exactly zero, and so teaches nothing.
    """
    std = np.sqrt(np.diag(K))
    alive = std > 0.0
    scaled = K[np.ix_(alive, alive)] / np.outer(std[alive], std[alive])
    root = np.zeros((len(K), len(scaled)))
    lower, info = dpotrf(scaled, lower=1, clean=1) if len(scaled) else (scaled, 0)
    if info == 0 and np.diag(lower).min(initial=1.0) > 1e-6:
        root[alive] = lower
    else:
        values, vectors = eigh(scaled)
        root[alive] = vectors * np.sqrt(np.maximum(values, 0.0))
    return root * std[:, None]
