"""What happens to a low-rank belief besides rows of data: given sites and factors, forgetting, drift, combination."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg import eigh

from gaussfold.beliefs.lowrank.passes import condition
from gaussfold.beliefs.lowrank.waiting import dense, flush, project, wait
from gaussfold.beliefs.trace import Trace
from gaussfold.engine.lowrank.products import gram
from gaussfold.factors.woodbury import Precision
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.beliefs.lowrank.belief import LowRankGaussian


def absorb_site(belief: LowRankGaussian, X: Array, precision: float, shift: float) -> None:
    """One given site."""
    rows = X.astype(belief._W.dtype)
    view = belief.precision().view(rows)
    if not 0.0 < 1.0 + precision * view.covariance[0, 0] < math.inf:
        msg = f"precision={precision!r}: the belief would no longer be a Gaussian"
        raise ValueError(msg)
    trace = Trace.empty(1)
    trace.site_precision[0], trace.site_shift[0] = precision, shift
    condition(belief, belief.precision(), rows, view, np.asarray(rows @ belief._mean, dtype=np.float64), trace)
    if precision < 0.0:
        flush(belief)
        project(belief, rows, np.array([precision]), None)
    elif precision > 0.0:
        wait(belief, rows, np.sqrt([precision]))
        if belief.pending >= belief.options.block_size:
            flush(belief)


def absorb_factors(belief: LowRankGaussian, rows: Array, mean: Any) -> None:
    """Rows of a precision to add, and where the mean goes."""
    flush(belief)
    project(belief, np.ascontiguousarray(rows, dtype=belief._W.dtype), np.ones(len(rows)), None)
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
        project(belief, waiting, np.ones(len(waiting)), None)


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
            columns.append(dense(shard._rows))
    if columns:
        result._rows = np.ascontiguousarray(np.vstack(columns), dtype=result._W.dtype)
        result._mean[:] = result.precision().covariance_times(pull)[0]
        flush(result)
    return result
