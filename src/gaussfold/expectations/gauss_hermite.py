"""Gauss-Hermite quadrature: ``E g(f) ≈ Σ wᵢ g(m + √v xᵢ)``, exact for polynomials of degree 2n - 1.

This serves likelihoods that only Python knows; the built-in families go through the compiled
engine. The rule converges fast while g is smooth on the scale of √v. It does not when √v is
much wider than the features of g (a logistic seen from v = 100, a kink): raise ``order`` then, and
compare two orders to see what is left.
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


@lru_cache(maxsize=32)
def nodes(order: int = ORDER) -> tuple[Array, Array]:
    """Nodes and weights of the rule for N(0, 1); the weights add up to one.

    Parameters
    ----------
    order : int
        Number of points, 1 to 256.

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


def expect(fn: Callable[[Array], Array], moments: Moments, order: int = ORDER) -> Array:
    """``E fn(f)`` for ``f ~ N(mean, variance)``, elementwise.

    Parameters
    ----------
    fn : callable
        Elementwise function. It receives f with one more axis, the last, than ``moments`` have; give
        other arrays that it closes over a trailing axis of length one. Axes that it puts in front are kept,
        so several functions can share one set of nodes.
    moments : Moments
        Mean and variance (not standard deviation), any shapes that broadcast.
    order : int
        Number of points.

    Examples
    --------
    >>> expect(np.exp, Moments(np.array([0.3]), np.array([0.5])))  # exp(m + v/2)
    array([1.7333])
    """
    x, w = nodes(order)
    return np.asarray(fn(_spread(moments, x)) @ w)


def log_expect_exp(log_fn: Callable[[Array], Array], moments: Moments, order: int = ORDER) -> Array:
    """``log E exp(log_fn(f))``, without leaving the log scale; arguments as for :func:`expect`."""
    x, w = nodes(order)
    return np.asarray(scipy.special.logsumexp(log_fn(_spread(moments, x)), b=w, axis=-1))


def _spread(moments: Moments, x: Array) -> Array:
    mean, variance = np.broadcast_arrays(
        np.asarray(moments.mean, dtype=np.float64), np.asarray(moments.variance, dtype=np.float64)
    )
    spread: Array = mean[..., None] + np.sqrt(variance)[..., None] * x
    return spread
