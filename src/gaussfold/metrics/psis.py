"""Pareto-smoothed importance sampling: how heavy the tail of the importance weights is.

The largest weights ``w = p/q`` of draws from q follow a generalised Pareto distribution whose shape k
says how many moments they have: below ½ the variance is finite, and from about 0.7 on no practical
number of draws corrects q to p, so q is a poor stand-in.

References
----------
Vehtari, Simpson, Gelman, Yao, Gabry, "Pareto smoothed importance sampling", JMLR 25 (2024); Zhang and
Stephens, "A new and efficient estimation method for the generalized Pareto distribution",
Technometrics 51 (2009).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from gaussfold.types import Array, ArrayLike

_PRIOR_COUNT, _PRIOR_K = 10.0, 0.5  # ten pseudo-observations of k = 1/2 steady the fit of short tails
_SHORTEST_TAIL = 5
_FLAT = 1e-8  # a tail that varies less than this in log weight is constant for every purpose


class ParetoFit(NamedTuple):
    """Generalised Pareto distribution: ``P(x > t) = (1 + k t/scale)^(-1/k)``."""

    k: float
    scale: float


def pareto_fit(exceedances: ArrayLike, *, regularise: bool = True) -> ParetoFit:
    """Fit a generalised Pareto distribution to positive values by Zhang and Stephens' estimator.

    The profile likelihood in ``θ = -k/scale`` is averaged over a data-driven grid: quasi-Bayesian, no
    iteration, defined for every k.

    Parameters
    ----------
    exceedances
        Positive numbers, at least five.
    regularise
        Shrink k towards ½ with the weight of ten observations, as PSIS does.
    """
    x = np.sort(np.asarray(exceedances, dtype=float))
    n = x.size
    if x.ndim != 1 or n < _SHORTEST_TAIL or not x[0] > 0.0 or not x[-1] < np.inf:
        span = f"from {x.min(initial=np.inf)} to {x.max(initial=-np.inf)}"
        msg = f"exceedances: {n} values {span}; at least five are needed, positive and finite"
        raise ValueError(msg)
    grid = 30 + math.isqrt(n)
    quartile = x[int(n / 4 + 0.5) - 1]
    theta = 1.0 / x[-1] + (1.0 - np.sqrt(grid / (np.arange(1, grid + 1) - 0.5))) / (3.0 * quartile)
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    profile = n * (np.log(-theta / k) - k - 1.0)
    best = float(np.exp(profile - logsumexp(profile)) @ theta)
    shape = float(np.log1p(-best * x).mean())
    scale = -shape / best
    if regularise:
        shape = (n * shape + _PRIOR_COUNT * _PRIOR_K) / (n + _PRIOR_COUNT)
    return ParetoFit(shape, scale)


def psis_khat(log_weights: ArrayLike) -> float:
    """Shape k of the tail of importance weights, from their logarithms (any constant may be added).

    Parameters
    ----------
    log_weights
        ``log p(θ_s) - log q(θ_s)`` of draws ``θ_s ~ q``, at least 21 of them. ``-inf`` is a zero weight.

    Returns
    -------
    float
        ``-inf`` if the tail is flat (q = p up to rounding), ``inf`` if one or a few weights outweigh
        all others so much that nothing can be fitted.

    Examples
    --------
    >>> u = (np.arange(10_000) + 0.5) / 10_000
    >>> psis_khat(-0.7 * np.log(u))  # w = u^-k has k = 0.7 exactly
    0.68998
    """
    return psis_log_weights(log_weights)[1]


def psis_log_weights(log_weights: ArrayLike) -> tuple[Array, float]:
    """Smooth the log weights, keeping their additive constant, and return them with k.

    The tail's weights are replaced by the fitted distribution's expected order statistics, none above the
    largest raw weight.
    """
    raw = np.asarray(log_weights, dtype=float)
    _check_log_weights(raw)
    top = raw.max()
    shifted = raw - top
    size = _tail_size(raw.size)
    order = np.argsort(shifted, kind="stable")
    tail, cutoff = order[-size:], float(shifted[order[-size - 1]])
    smoothed, khat = _smooth(shifted[tail], cutoff)
    shifted[tail] = smoothed
    return shifted + top, khat


def _smooth(tail: Array, cutoff: float) -> tuple[Array, float]:
    """Fit the tail (ascending, maximum 0) above the cutoff; return its smoothed values and k."""
    if -cutoff < _FLAT:
        return tail, -math.inf
    excess = np.exp(tail) - np.exp(cutoff)
    positive = excess[excess > 0.0]
    # Ties with the cutoff carry no information on the tail; too few others cannot be fitted.
    if positive.size < _SHORTEST_TAIL:
        return tail, math.inf
    with np.errstate(all="ignore"):
        k, scale = pareto_fit(positive)
        p = (np.arange(tail.size) + 0.5) / tail.size
        quantile = scale * (np.expm1(-k * np.log1p(-p)) / k if k != 0.0 else -np.log1p(-p))
    if not (np.isfinite(k) and np.isfinite(quantile).all()):
        return tail, math.inf
    return np.minimum(np.log(quantile + np.exp(cutoff)), 0.0), k


def _tail_size(n: int) -> int:
    return math.ceil(min(0.2 * n, 3.0 * math.sqrt(n)))


def _check_log_weights(raw: Array) -> None:
    if raw.ndim != 1 or _tail_size(raw.size) < _SHORTEST_TAIL:
        msg = f"log_weights: shape {raw.shape}; a one-dimensional array of at least 21 is needed"
        raise ValueError(msg)
    bad = np.isnan(raw) | (raw == np.inf)
    if bad.any():
        row = int(np.argmax(bad))
        msg = f"log_weights: row {row} is {raw[row]}; finite numbers, or -inf for a zero weight, are allowed"
        raise ValueError(msg)
    if np.isneginf(raw).all():
        msg = "log_weights: all are -inf; q must put some mass where p does"
        raise ValueError(msg)
