"""The logistic and normal distribution functions, with full relative precision in both tails.

Both are symmetric, ``1 - g(f) = g(-f)``: write it so, and nothing cancels.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import Literal, NamedTuple

import numpy as np
import scipy

from gaussfold.types import Array


class Link(NamedTuple):
    """A symmetric distribution function g, as a Bernoulli likelihood needs it."""

    cdf: Callable[[Array], Array]
    """``g(f)``"""
    log_cdf: Callable[[Array], Array]
    """``log g(f)``"""
    score: Callable[[Array], tuple[Array, Array]]
    """First and second derivative of ``log g(f)``"""
    slopes: Callable[[Array], tuple[Array, Array]]
    """First and second derivative of ``g(f)``"""


def sigmoid(f: Array) -> Array:
    """``σ(f) = 1/(1 + exp(-f))``; the exponential is only ever taken of a number below zero."""
    e = np.exp(-np.abs(f))
    return np.asarray(np.where(f >= 0.0, 1.0, e) / (1.0 + e))


def sigmoid_slope(f: Array) -> Array:
    """``σ'(f) = σ(f) σ(-f)``."""
    e = np.exp(-np.abs(f))
    return np.asarray(e / (1.0 + e) ** 2)


def softplus(f: Array) -> Array:
    """``log(1 + exp(f)) = -log σ(-f)``."""
    return np.asarray(np.logaddexp(0.0, f))


def log_sigmoid(f: Array) -> Array:
    """``log σ(f)``."""
    return -softplus(-f)


def _logit_score(f: Array) -> tuple[Array, Array]:
    return sigmoid(-f), -sigmoid_slope(f)


def _logit_slopes(f: Array) -> tuple[Array, Array]:
    slope = sigmoid_slope(f)
    return slope, np.asarray(slope * (sigmoid(-f) - sigmoid(f)))


def _probit(f: Array) -> Array:
    return np.asarray(scipy.special.ndtr(f))


def _log_probit(f: Array) -> Array:
    return np.asarray(scipy.special.log_ndtr(f))


def _probit_slopes(f: Array) -> tuple[Array, Array]:
    density = np.exp(-0.5 * f * f) / sqrt(2.0 * pi)
    return np.asarray(density), np.asarray(-f * density)


_FAR = -4.0  # from here on, f + λ(f) loses more by subtraction than the fraction does by stopping
_TERMS = 32  # relative error 2e-15 at _FAR, less beyond


def inverse_mills(f: Array) -> Array:
    """``λ(f) = φ(f)/Φ(f)``, the slope of ``log Φ``; about ``-f`` far to the left."""
    return np.asarray(sqrt(2.0 / pi) / scipy.special.erfcx(-f / sqrt(2.0)))


def _probit_score(f: Array) -> tuple[Array, Array]:
    """``λ`` and ``-λ (f + λ)``.

    Far to the left λ ≈ -f, and the sum in the second cancels. There Laplace's continued fraction
    ``λ(-x) = x + 1/(x + 2/(x + 3/(x + ...)))`` gives ``f + λ`` without its leading x.
    """
    mills = inverse_mills(f)
    excess = f + mills
    far = f < _FAR
    if far.any():
        x = -f[far]
        tail = x
        for j in range(_TERMS, 1, -1):
            tail = x + j / tail
        excess = np.where(far, 0.0, excess)
        excess[far] = 1.0 / tail
    return mills, -mills * excess


LOGIT = Link(cdf=sigmoid, log_cdf=log_sigmoid, score=_logit_score, slopes=_logit_slopes)
PROBIT = Link(cdf=_probit, log_cdf=_log_probit, score=_probit_score, slopes=_probit_slopes)

Name = Literal["logit", "probit"]
BY_NAME: dict[str, Link] = {"logit": LOGIT, "probit": PROBIT}


def logistic_bound(half: Array, weight: Array, g: Array, variance: Array) -> tuple[Array, Array]:
    """Jaakkola-Jordan: ``-weight log(1 + exp(g))`` from below, tightest on average; rvga (82)-(89).

    With ``ξ² = E g²`` and ``λ = tanh(ξ/2)/(2ξ)`` the bound has curvature ``-weight λ`` and, at the mean of g,
    slope ``half - weight λ g``, where ``half`` is the label minus half the weight.
    """
    xi = np.sqrt(variance + g * g)
    zero = xi == 0.0  # where tanh(ξ/2)/(2ξ) is 1/4; next to it the quotient is accurate as it stands
    rate = np.where(zero, 0.25, np.tanh(0.5 * xi) / (2.0 * np.where(zero, 1.0, xi)))
    return np.asarray(half - weight * rate * g), np.asarray(-weight * rate)
