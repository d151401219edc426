"""Passes over rows for a low-rank belief: exact sites inside a block, one projection per block.

Rows X of a segment see the belief through K = XPX' and Xμ alone; the sequential visits run on a root of K (the same
compiled loop as for the dense belief). Then mean += PX'a with a = (I + ΛK)⁻¹(s - ΛXμ), all sites at once, and the
rows wait, scaled by the roots of their site precisions, until the block is full and they are projected.
"""

from __future__ import annotations

import math
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.linalg.lapack import dpotrf

from gaussfold.beliefs.trace import RowError, Trace
from gaussfold.dynamics import Forgetting
from gaussfold.engine.dense import absorb_rows
from gaussfold.engine.families import STUDENT_T
from gaussfold.engine.lowrank import gradient_and_curvature, gram, mix_rows
from gaussfold.engine.sites import EXTRAGRADIENT_PRINTED, PRIOR
from gaussfold.factors import resolve_projection
from gaussfold.factors.recursive_em import Seen
from gaussfold.factors.woodbury import Precision, View
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.beliefs.lowrank import LowRankGaussian

_NOTHING = np.empty((0, 0))
SEGMENT = 128
"""Rows looked at in one product at most."""
SNAPSHOT_BYTES = 1 << 26
"""A larger belief is kept safe on disk, not in memory, while a call makes more than one projection."""


def run(
    belief: LowRankGaussian,
    X: Any,
    y: Array,
    weight: Array,
    program: tuple[int, float, float, int, float, int],
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
    calm = y.size == 1 or (moving is None and fits and last == y.size - 1 and program[0] != STUDENT_T)
    keep = None if calm or last < 0 else _Snapshot(belief)
    visit = _paper_row if belief.options.gain == "projected" else _segment
    start = 0
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # overflow is looked for, and becomes a RowError
            while start < y.size:
                if moving is not None and learn[start]:
                    moving.tick(belief)
                stop = _segment_end(learn, start, belief.options.block_size - belief.pending, moving is not None)
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
    program: tuple[int, float, float, int, float, int],
    trace: Trace,
    first: int,
) -> int:
    """Visit some rows that fit into the block; returns how many were taken."""
    precision = belief.precision()
    view = precision.view(X, residual=not sparse.issparse(X))
    if not np.isfinite(view.covariance).all():
        raise RowError(first + int(np.argmax(~np.isfinite(np.diag(view.covariance)))))
    offset = np.asarray(X @ belief._mean, dtype=np.float64)
    root = _root(view.covariance)
    size = root.shape[1]
    trace.site_precision[:] = 0.0
    trace.site_shift[:] = 0.0
    failed = absorb_rows(
        np.eye(size), np.zeros(size), root, offset, y, weight, trace.site_precision, trace.site_shift, program,
        trace.mean, trace.variance, trace.log_predictive, _NOTHING,
    )  # fmt: skip
    if failed >= 0:
        raise RowError(first + int(failed))
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
    _condition(belief, precision, X, view, offset, trace)
    informative = trace.site_precision != 0.0
    if not informative.any():
        return taken
    sites = trace.site_precision[informative]
    if (sites < 0.0).any() or int(informative.sum()) == belief.options.block_size:
        # the eigen-projection has no use for the residual: let its memory go
        residual = view.residual if belief.options.projection == "em" else None
        seen = Seen(view.reach, view.inner, residual) if informative.all() else None
        del view
        _project(belief, X if seen is not None else X[informative], sites, seen)
        return taken
    _wait(belief, X[informative], np.sqrt(sites))
    if belief.pending >= belief.options.block_size:
        flush(belief)
    return taken


def _condition(belief: LowRankGaussian, precision: Precision, X: Any, view: View, offset: Array, trace: Trace) -> None:
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


def _wait(belief: LowRankGaussian, X: Any, root: Array) -> None:
    """Append rows, scaled, to those that wait."""
    scaled = sparse.diags(root) @ X if sparse.issparse(X) else X * root[:, None].astype(X.dtype)
    if belief._rows is None:
        belief._rows = scaled.tocsr() if sparse.issparse(scaled) else scaled
    elif sparse.issparse(scaled) and sparse.issparse(belief._rows):
        belief._rows = sparse.vstack([belief._rows, scaled], format="csr")
    else:
        belief._rows = np.vstack([_dense(belief._rows), _dense(scaled)]).astype(belief._W.dtype)
    belief._view = None


def flush(belief: LowRankGaussian) -> None:
    """Project the rows that wait."""
    if belief._rows is not None:
        rows, belief._rows = belief._rows, None
        _project(belief, rows, np.ones(rows.shape[0]), None)


def _project(belief: LowRankGaussian, X: Any, sites: Array, seen: Seen | None) -> None:
    belief._view = None
    project = resolve_projection(belief.options.projection)
    belief._gram = project(
        belief._W, belief._psi, belief._gram, X, sites, 1.0, belief.options.inner_loops, seen, belief._due
    )


def _paper_row(
    belief: LowRankGaussian,
    X: Any,
    y: Array,
    weight: Array,
    program: tuple[int, float, float, int, float, int],
    trace: Trace,
    first: int,
) -> int:
    """One row with the gain of the projected precision: lrvga (24)-(26), (141)-(143). For reproduction."""
    X, y, weight, trace = X[:1], y[:1], weight[:1], trace.rows(0, 1)
    precision = belief.precision()
    view = precision.view(X, residual=True)
    m0, v0 = float((X @ belief._mean)[0]), float(view.covariance[0, 0])
    failed = absorb_rows(
        np.eye(1), np.zeros(1), np.sqrt(view.covariance), np.array([m0]), y, weight, trace.site_precision,
        trace.site_shift, program, trace.mean, trace.variance, trace.log_predictive, _NOTHING,
    )  # fmt: skip
    if failed >= 0:
        raise RowError(first)
    if math.isnan(y[0]) or weight[0] == 0.0 or v0 == 0.0:
        return 1
    at = program[5]
    if at <= PRIOR + 1:  # prior, posterior: the gradient as seen from the mean before
        curvature = float(trace.site_precision[0])
        gradient = float(trace.site_shift[0]) - curvature * m0
        again = False
    else:
        gradient, bend = gradient_and_curvature(program, y[0], weight[0], m0, v0, m0, v0)
        curvature, again = -bend, True
    before = (belief._W.copy(), belief._psi.copy(), belief._gram) if at == EXTRAGRADIENT_PRINTED else None
    _project(belief, X, np.array([curvature]), None)
    look = belief.precision().view(X, residual=True)
    if again:
        v1 = float(look.covariance[0, 0])
        m1 = m0 + v1 * gradient
        gradient, bend = gradient_and_curvature(program, y[0], weight[0], m1, v1, m0, v0)
        if before is not None:
            belief._W, belief._psi, belief._gram = before
            curvature = -bend
            _project(belief, X, np.array([curvature]), None)
            look = belief.precision().view(X, residual=True)
    assert look.residual is not None
    belief._mean += gradient * look.residual[0] / belief._psi
    trace.site_precision[0], trace.site_shift[0] = curvature, gradient + curvature * m0
    return 1


def absorb_site(belief: LowRankGaussian, X: Array, precision: float, shift: float) -> None:
    """One given site."""
    rows = X.astype(belief._W.dtype)
    view = belief.precision().view(rows)
    if not 0.0 < 1.0 + precision * view.covariance[0, 0] < math.inf:
        msg = f"precision={precision!r}: the belief would no longer be a Gaussian"
        raise ValueError(msg)
    trace = Trace.empty(1)
    trace.site_precision[0], trace.site_shift[0] = precision, shift
    _condition(belief, belief.precision(), rows, view, np.asarray(rows @ belief._mean, dtype=np.float64), trace)
    if precision < 0.0:
        flush(belief)
        _project(belief, rows, np.array([precision]), None)
    elif precision > 0.0:
        _wait(belief, rows, np.sqrt([precision]))
        if belief.pending >= belief.options.block_size:
            flush(belief)


def absorb_factors(belief: LowRankGaussian, rows: Array, mean: Any) -> None:
    """Rows of a precision to add, and where the mean goes."""
    flush(belief)
    _project(belief, np.ascontiguousarray(rows, dtype=belief._W.dtype), np.ones(len(rows)), None)
    belief._mean[:] = mean


def relax(belief: LowRankGaussian, factor: float, prior: LowRankGaussian) -> None:
    """Stabilised forgetting; exact if the prior is diagonal, else its factors are projected in."""
    flush(belief)
    pull = factor * belief.precision().times((belief.mean - prior.mean)[None])
    belief._W *= belief._W.dtype.type(math.sqrt(factor))
    belief._psi *= belief._psi.dtype.type(factor)
    belief._psi += (1.0 - factor) * prior._psi
    belief._gram = gram(belief._W, belief._psi)
    belief._view = None
    factors = np.ascontiguousarray(prior._W.T, dtype=belief._W.dtype)
    share = np.full(prior.rank, 1.0 - factor)
    used = factors.any(axis=1)
    waiting = factors[used] * np.sqrt(share[used])[:, None].astype(factors.dtype) if used.any() else None
    whole = Precision(belief._W, belief._psi, belief._gram, waiting)
    belief._mean[:] = prior.mean + whole.covariance_times(pull)[0]
    if waiting is not None:
        _project(belief, waiting, np.ones(len(waiting)), None)


def diffuse(belief: LowRankGaussian, variance: float) -> None:
    """P + qI = D - AA' with D = Ψ⁻¹ + q and A = Ψ⁻¹WM^(-1/2); its inverse is D⁻¹ + D⁻¹A(I - A'D⁻¹A)⁻¹A'D⁻¹."""
    flush(belief)
    p = belief.rank
    values, vectors = eigh(np.eye(p) + belief._gram)
    half = vectors / np.sqrt(values)  # M^(-1/2) up to a rotation
    fresh = belief._psi / (1.0 + variance * belief._psi)
    ratio = fresh / belief._psi
    inner = np.eye(p) - half.T @ gram(belief._W, belief._psi / ratio) @ half
    spread, turn = eigh(inner)
    mixing = (half @ turn / np.sqrt(spread)).astype(belief._W.dtype)
    belief._W = (belief._W * ratio[:, None]) @ mixing
    belief._psi = fresh
    belief._gram = gram(belief._W, belief._psi)
    belief._view = None


def combine(prior: LowRankGaussian, shards: list[LowRankGaussian]) -> LowRankGaussian:
    """All shards' factors side by side, projected at once."""
    if prior.W.any():
        msg = "prior: its W is not zero; combining needs a diagonal prior, as isotropic() makes it"
        raise ValueError(msg)
    result = prior.copy()
    base = prior.precision().times(prior.mean[None])
    pull = base.copy()
    columns = []
    for shard in shards:
        result._psi += shard._psi - prior._psi
        pull += shard.precision().times(shard.mean[None]) - base
        columns.append(shard._W.T)
        if shard._rows is not None:
            columns.append(_dense(shard._rows))
    if columns:
        result._rows = np.ascontiguousarray(np.vstack(columns), dtype=result._W.dtype)
        result._mean[:] = result.precision().covariance_times(pull)[0]
        flush(result)
    return result


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


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


class _Snapshot:
    """What is needed to undo a call: in memory if small, else in a temporary file."""

    def __init__(self, belief: LowRankGaussian) -> None:
        self._rest = (belief._mean.copy(), belief._psi.copy(), belief._gram.copy(), belief._due.copy(), belief._rows)
        self._W: Array | None = None
        self._file: Any = None
        if belief._W.nbytes <= SNAPSHOT_BYTES:
            self._W = belief._W.copy()
        else:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the snapshot
            belief._W.tofile(self._file)

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()

    def restore(self, belief: LowRankGaussian) -> None:
        """Put everything back."""
        belief._mean, belief._psi, belief._gram, belief._due, belief._rows = self._rest
        if self._W is not None:
            belief._W = self._W
        else:
            self._file.seek(0)
            belief._W.reshape(-1)[:] = np.fromfile(self._file, dtype=belief._W.dtype)
        belief._view = None
