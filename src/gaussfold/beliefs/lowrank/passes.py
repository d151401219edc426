"""Passes over rows for a low-rank belief: exact sites inside a block, one projection per block.

Rows X of a segment see the belief through K = XPX' and Xμ alone; the sequential visits run on a root of K (the same
compiled loop as for the dense belief). Then mean += PX'a with a = (I + ΛK)⁻¹(s - ΛXμ), all sites at once, and the
rows wait, scaled by the roots of their site precisions, until the block is full and they are projected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf

from gaussfold.beliefs.lowrank.printed import printed_row
from gaussfold.beliefs.lowrank.snapshot import Snapshot
from gaussfold.beliefs.lowrank.waiting import flush, project, wait
from gaussfold.beliefs.trace import RowError, Trace
from gaussfold.dynamics import Forgetting
from gaussfold.engine.dense.absorb import absorb_rows
from gaussfold.engine.lowrank.products import mix_rows
from gaussfold.engine.lowrank.row import check_row, look_row
from gaussfold.engine.programs import log_concave
from gaussfold.factors.eigen import FEW, Sight, project_row
from gaussfold.factors.recursive_em import Seen
from gaussfold.factors.woodbury import Precision, View
from gaussfold.types import Array, Program

if TYPE_CHECKING:
    from gaussfold.beliefs.lowrank.belief import LowRankGaussian

_NOTHING = np.empty((0, 0))
SEGMENT = 128
"""Rows looked at in one product at most."""
SURE = 1e-3
"""One row: above this share of x'Ψ⁻¹x, x'Px is a difference that has lost three digits at most."""


def run(
    belief: LowRankGaussian,
    X: Any,
    y: Array,
    weight: Array,
    program: Program,
    dynamics: Any,
) -> Trace:
    """Absorb all rows, or none."""
    trace = Trace.empty(y.size)
    learn = ~np.isnan(y) & (weight != 0.0)
    moving = dynamics if not (isinstance(dynamics, Forgetting) and dynamics.factor == 1.0) else None
    if moving is not None and belief.options.block_size != 1:
        msg = (
            f"block_size={belief.options.block_size}: forgetting and drift move the diagonal at every row; 1 is needed"
        )
        raise ValueError(msg)
    rows = X if sparse.issparse(X) else np.ascontiguousarray(X, dtype=belief._W.dtype)
    last = int(np.flatnonzero(learn)[-1]) if learn.any() else -1
    fits = belief.pending + int(learn.sum()) <= belief.options.block_size
    calm = y.size == 1 or (moving is None and fits and last == y.size - 1 and log_concave(program))
    keep = None if calm or last < 0 else Snapshot(belief)
    visit = _one_row if _is_one_row(belief, rows) else _segment
    if belief.options.gain == "projected":
        visit = printed_row
    start = 0
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is looked for, and becomes a RowError
            while start < y.size:
                if moving is not None and learn[start]:
                    moving.tick(belief)
                stop = _segment_end(
                    learn, start, belief.options.block_size - belief.pending, moving is not None or visit is _one_row
                )
                part = slice(start, stop)
                start += visit(belief, rows[part], y[part], weight[part], program, trace.rows(start, stop), start)
    except BaseException as problem:
        if keep is not None:
            keep.restore(belief)
        if isinstance(problem, np.linalg.LinAlgError) or "infs or NaNs" in str(problem):  # NumPy's and SciPy's words
            raise RowError(start) from problem
        raise
    finally:
        if keep is not None:
            keep.close()
    return trace


def _segment_end(learn: np.ndarray, start: int, room: int, one: bool) -> int:
    """Up to the row that fills the block: rows that are only predicted after it see it projected."""
    if one:
        return start + 1
    ahead = np.flatnonzero(learn[start : start + SEGMENT])
    if ahead.size >= room:
        return start + int(ahead[room - 1]) + 1
    return min(start + SEGMENT, learn.size)


def _segment(
    belief: LowRankGaussian,
    X: Any,
    y: Array,
    weight: Array,
    program: Program,
    trace: Trace,
    first: int,
) -> int:
    """Visit some rows that fit into the block; returns how many were taken."""
    precision = belief.precision()
    view = precision.view(X, residual=not sparse.issparse(X))
    if not np.isfinite(view.covariance).all():
        raise RowError(first + int(np.argmax(~np.isfinite(np.diag(view.covariance)))))
    offset = np.asarray(X @ belief._mean, dtype=np.float64)
    _visit(_root(view.covariance), offset, y, weight, program, trace, first)
    taken = y.size
    negative = np.flatnonzero(trace.site_precision < 0.0)
    if negative.size:  # no factor can hold a negative term: project what comes before, then this row by itself
        at = int(negative[0])
        alone = at == 0 and not belief.pending
        taken = 1 if alone else at
        if taken == 0:
            flush(belief)
            return 0
        if taken < y.size:
            return _segment(belief, X[:taken], y[:taken], weight[:taken], program, trace.rows(0, taken), first)
    condition(belief, precision, X, view, offset, trace)
    informative = trace.site_precision != 0.0
    if not informative.any():
        return taken
    sites = trace.site_precision[informative]
    if (sites < 0.0).any() or int(informative.sum()) == belief.options.block_size:
        # the eigen-projection has no use for the residual: let its memory go
        residual = view.residual if belief.options.projection == "em" else None
        seen = Seen(view.reach, view.inner, residual) if informative.all() else None
        del view
        project(belief, X if seen is not None else X[informative], sites, seen)
        return taken
    wait(belief, X[informative], np.sqrt(sites))
    if belief.pending >= belief.options.block_size:
        flush(belief)
    return taken


def _one_row(
    belief: LowRankGaussian,
    X: Any,
    y: Array,
    weight: Array,
    program: Program,
    trace: Trace,
    first: int,
) -> int:
    """One dense row, few factors, the eigen-projection: as :func:`_segment`, in two passes over the memory."""
    x, reach = X[0], np.empty(belief.rank)
    inner, offset = look_row(belief._W, belief._psi, belief._mean, x, reach)
    explained = belief.precision().solve(reach)
    variance = inner - float(reach @ explained)
    if not variance > SURE * inner:  # too many digits cancelled, or nothing is finite: as a sum of squares
        variance = check_row(belief._W, belief._psi, x, explained) + float(explained @ explained)
    if not np.isfinite(variance):
        raise RowError(first)
    _visit(np.array([[np.sqrt(variance)]]), np.array([offset]), y, weight, program, trace, first)
    site = float(trace.site_precision[0])
    if not site > 0.0:  # nothing to project, or nothing that a factor can hold
        return _segment(belief, X, y, weight, program, trace, first)
    gain = (float(trace.site_shift[0]) - site * offset) / (1.0 + site * variance)
    if not np.isfinite(gain):
        raise RowError(first)
    sight = Sight(reach, inner, explained)
    belief._gram = project_row(belief._W, belief._psi, belief._gram, belief._mean, x, sight, site, gain, belief._due)
    belief._view = None
    return 1


def _is_one_row(belief: LowRankGaussian, rows: Any) -> bool:
    options = belief.options
    return (
        options.projection == "eigen"
        and options.block_size == 1
        and options.inner_loops == 1
        and belief.rank <= FEW
        and not belief.pending
        and not sparse.issparse(rows)
    )


def _visit(
    root: Array,
    offset: Array,
    y: Array,
    weight: Array,
    program: Program,
    trace: Trace,
    first: int,
) -> None:
    """The sites of rows with covariance ``root root'`` and means ``offset``, one after the other, into the trace."""
    size = root.shape[1]
    trace.site_precision[:] = 0.0
    trace.site_shift[:] = 0.0
    failed = absorb_rows(
        np.eye(size), np.zeros(size), root, offset, y, weight, trace.site_precision, trace.site_shift, program,
        trace.mean, trace.variance, trace.log_predictive, _NOTHING,
    )  # fmt: skip
    if failed >= 0:
        raise RowError(first + int(failed))


def condition(belief: LowRankGaussian, precision: Precision, X: Any, view: View, offset: Array, trace: Trace) -> None:
    """Mean += PX'a: the exact posterior mean of the rows' Gaussian sites."""
    inner = np.eye(offset.size) + trace.site_precision[:, None] * view.covariance
    a = np.linalg.solve(inner, trace.site_shift - trace.site_precision * offset)
    if view.residual is not None:
        step = a.astype(belief._W.dtype) @ view.residual
    else:
        explained = view.explained @ a
        step = mix_rows(a[None], X, belief._W.dtype)[0]
        step -= belief._W @ explained[: belief.rank].astype(belief._W.dtype)
        if precision.rows is not None:
            step -= mix_rows(explained[None, belief.rank :], precision.rows, belief._W.dtype)[0]
    step /= belief._psi
    if not np.isfinite(step).all():
        raise RowError(0)
    belief._mean += step


def _root(K: Array) -> Array:
    """Any R with RR' = K: Cholesky where K is well conditioned, eigenvectors where rows repeat.

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
