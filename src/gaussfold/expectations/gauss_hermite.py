"""One latent: ``E g(f) ≈ Σ wᵢ g(m + √v xᵢ)`` by Gauss-Hermite quadrature or by evenly spaced nodes.

This serves likelihoods that only Python knows; the built-in families go through the compiled
engine. Gauss-Hermite with n nodes is exact for polynomials of degree 2n - 1, and converges fast while g is smooth on
the scale of √v. It does not when √v is much wider than the features of g (a logistic seen from v = 100, a kink). Evenly
spaced nodes (the trapezoidal rule against the normal density, whose error falls as exp(-2π²/h²) for smooth g) are as
good to rounding and closer together: what a kink leaves, which is a kink of the sum in m and in √v at every node, is of
the order h², twenty times less than with 64 Gauss-Hermite nodes. They are what ``order=None`` means.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy

from gaussfold.checks import whole
from gaussfold.types import Array, Moments

ORDER = 64
_MAX_ORDER = 256  # the outermost weights underflow to zero beyond about 360 points


PER_DEVIATION, REACH = 12, 12
"""Evenly spaced nodes: how many to a standard deviation, and how many standard deviations to either side."""


@lru_cache(maxsize=1)
def even_nodes() -> tuple[Array, Array]:
    """Evenly spaced nodes and weights for N(0, 1), read-only.

    Examples
    --------
    >>> x, w = even_nodes()
    >>> x.size, round(float(w @ x**4), 12)
    (289, 3.0)
    """
    x = np.arange(-REACH * PER_DEVIATION, REACH * PER_DEVIATION + 1) / PER_DEVIATION
    w = np.exp(-0.5 * x * x)
    w /= w.sum()
    x.flags.writeable = False
    w.flags.writeable = False
    return x, w


@lru_cache(maxsize=32)
def nodes(order: int | None = ORDER) -> tuple[Array, Array]:
    """Nodes and weights of the rule for N(0, 1); the weights add up to one.

    Parameters
    ----------
    order : int or None
        Number of points, 1 to 256; None: evenly spaced ones.

    Returns
    -------
    nodes, weights : ndarray of shape (order,)
        Read-only, because they are shared by all callers.

    Examples
    --------
    >>> x, w = nodes(3)
    >>> float(w @ x**4)
    3.0
    """
    if order is None:
        return even_nodes()
    check_order(order)
    x, w = scipy.special.roots_hermitenorm(order)
    x = 0.5 * (x - x[::-1])  # odd moments vanish exactly
    w = 0.5 * (w + w[::-1])
    w /= w.sum()
    x.flags.writeable = False
    w.flags.writeable = False
    return x, w


def check_order(order: int) -> None:
    """Refuse numbers of points for which there is no rule."""
    whole("order", order, most=_MAX_ORDER, owner="Gauss-Hermite")


def expect(fn: Callable[[Array], Array], moments: Moments, order: int | None = ORDER) -> Array:
    """``E fn(f)`` for ``f ~ N(mean, variance)``, elementwise.

    Parameters
    ----------
    fn : callable
        Elementwise function. It receives f with one more axis, the last, than ``moments`` have; give
        other arrays that it closes over a trailing axis of length one. Axes that it puts in front are kept,
        so several functions can share one set of nodes.
    moments : Moments
        Mean and variance (not standard deviation), any shapes that broadcast.
    order : int or None
        Number of points; None: evenly spaced ones.

    Examples
    --------
    >>> expect(np.exp, Moments(np.array([0.3]), np.array([0.5])))  # exp(m + v/2)
    array([1.7333])
    """
    x, w = nodes(order)
    return np.asarray(fn(_spread(moments, x)) @ w)


def log_expect_exp(log_fn: Callable[[Array], Array], moments: Moments, order: int | None = ORDER) -> Array:
    """``log E exp(log_fn(f))``, without leaving the log scale; arguments as for :func:`expect`."""
    x, w = nodes(order)
    return np.asarray(scipy.special.logsumexp(log_fn(_spread(moments, x)), b=w, axis=-1))


def _spread(moments: Moments, x: Array) -> Array:
    mean, variance = np.broadcast_arrays(
        np.asarray(moments.mean, dtype=np.float64), np.asarray(moments.variance, dtype=np.float64)
    )
    spread: Array = mean[..., None] + np.sqrt(variance)[..., None] * x
    return spread
