"""What happens to a low-rank belief besides rows of data: given sites and factors, forgetting, drift, combination."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import eigh

from gaussfold.beliefs.lowrank.passes import condition
from gaussfold.beliefs.lowrank.state import State, dense
from gaussfold.checks import same_dim
from gaussfold.engine.lowrank.products import gram
from gaussfold.factors.woodbury import Precision, too_strong
from gaussfold.trace import Trace
from gaussfold.types import Array, ArrayLike


def absorb_site(state: State, X: Array, precision: float, shift: float) -> None:
    """One given site."""
    rows = X.astype(state.W.dtype)
    view = state.precision().view(rows)
    if not 0.0 < 1.0 + precision * view.covariance[0, 0] < math.inf:
        msg = f"precision={precision!r}: the belief would no longer be a Gaussian"
        raise ValueError(msg)
    if too_strong(state.psi, rows, view.inner[0], np.array([precision])):
        msg = f"precision={precision!r}: with this x all else that is known would be lost in rounding; scale x down"
        raise ValueError(msg)
    trace = Trace.empty(1)
    trace.site_precision[0], trace.site_shift[0] = precision, shift
    offset = np.asarray(rows @ state.mean, dtype=np.float64)
    trace.mean[:], trace.variance[:] = offset, view.covariance[0, 0]
    condition(state, rows, view, offset, trace)
    if precision < 0.0:
        state.flush()
        state.project(rows, np.array([precision]))
    elif precision > 0.0:
        state.wait(rows, np.sqrt([precision]))
        if state.full:
            state.flush()


def absorb_factors(state: State, rows: Array, mean: ArrayLike) -> None:
    """Rows of a precision to add, and where the mean goes."""
    state.flush()
    state.project(np.ascontiguousarray(rows, dtype=state.W.dtype), np.ones(len(rows)))
    state.mean[:] = mean


def relax(state: State, factor: float, prior_mean: Array, prior: Precision) -> None:
    """Stabilised forgetting; exact if the prior is diagonal, else its factors are projected in."""
    state.flush()
    pull = factor * state.precision().times((np.asarray(state.mean, dtype=np.float64) - prior_mean)[None])
    state.W *= state.W.dtype.type(math.sqrt(factor))
    state.psi *= state.psi.dtype.type(factor)
    state.psi += (1.0 - factor) * prior.psi
    if state.ledger is not None:
        state.ledger.base *= state.psi.dtype.type(factor)
        state.ledger.base += (1.0 - factor) * prior.psi
        state.ledger.forget(factor, state.psi)
    state.gram = gram(state.W, state.psi)
    state.view = None
    factors = np.ascontiguousarray(prior.W.T, dtype=state.W.dtype)
    share = np.full(prior.rank, 1.0 - factor)
    used = factors.any(axis=1)
    waiting = factors[used] * np.sqrt(share[used])[:, None].astype(factors.dtype) if used.any() else None
    whole = Precision(state.W, state.psi, state.gram, waiting)
    state.mean[:] = prior_mean + whole.covariance_times(pull)[0]
    if waiting is not None:
        state.project(waiting, np.ones(len(waiting)))


def diffuse(state: State, variance: Array) -> None:
    """P + Q = D - AA', Q diagonal, D = Ψ⁻¹ + Q and A = Ψ⁻¹WM^(-1/2); its inverse is D⁻¹ + D⁻¹A(I - A'D⁻¹A)⁻¹A'D⁻¹."""
    state.flush()
    p = state.rank
    values, vectors = eigh(np.eye(p) + state.gram)
    half = vectors / np.sqrt(values)  # M^(-1/2) up to a rotation
    fresh = state.psi / (1.0 + variance.astype(state.psi.dtype) * state.psi)
    ratio = fresh / state.psi
    inner = np.eye(p) - half.T @ gram(state.W, state.psi / ratio) @ half
    spread, turn = eigh(inner)
    mixing = (half @ turn / np.sqrt(spread)).astype(state.W.dtype)
    state.W = (state.W * ratio[:, None]) @ mixing
    state.psi = fresh
    if state.ledger is not None:
        state.ledger.base /= 1.0 + variance * state.ledger.base
        state.ledger.recount(state.psi)
    state.gram = gram(state.W, state.psi)
    state.view = None


def combine(result: State, shards: Sequence[tuple[Array, Precision]]) -> None:
    """Multiply a prior without factors by (shard / prior) for each shard, given by its mean and precision.

    All shards' factors go side by side and are projected at once.
    """
    prior = result.precision()
    prior_psi = result.psi.copy()
    base = prior.times(np.asarray(result.mean, dtype=np.float64)[None])
    pull = base.copy()
    columns = []
    for mean, shard in shards:
        same_dim("shards", mean.size, prior_psi.size)
        result.psi += shard.psi - prior_psi
        pull += shard.times(mean[None]) - base
        columns.append(shard.W.T)
        if shard.rows is not None:
            columns.append(dense(shard.rows))
    if columns:
        result.rows = np.ascontiguousarray(np.vstack(columns), dtype=result.W.dtype)
        result.view = None
        result.mean[:] = result.precision().covariance_times(pull)[0]
        result.flush()
