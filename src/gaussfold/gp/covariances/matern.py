"""Matérn covariances with half-integer ν, and their exact state-space forms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import comb, factorial, sqrt
from typing import ClassVar

import numpy as np
from numpy.polynomial import polynomial

from gaussfold.gp.covariances.state_space import Adjoints, StateSpace
from gaussfold.gp.covariances.stationary import Stationary, horner
from gaussfold.types import Array


class MaternSpace(StateSpace):
    """Matérn with half-integer ν: f and its first derivatives, all poles at -λ, λ = √(2ν)/lengthscale.

    ``F + λI`` is nilpotent, so that ``e^{F dt}`` is ``e^{-λ dt}`` times a polynomial. The entries of P∞ are the
    derivatives of the covariance at zero, whose Taylor series is that of ``e^{-z} q(z)``.
    """

    def __init__(self, series: Array, variance: float, lengthscale: float) -> None:
        S = len(series)
        self._rate = rate = sqrt(2.0 * S - 1.0) / lengthscale
        F = np.diag(np.ones(S - 1), 1)
        F[-1] = [-comb(S, k) * rate ** (S - k) for k in range(S)]
        decay = [(-1.0) ** k / factorial(k) for k in range(2 * S)]
        taylor = polynomial.polymul(decay, series)
        i, j = np.indices((S, S))
        derivative = np.array([factorial(k) * taylor[k] if k % 2 == 0 else 0.0 for k in range(2 * S - 1)])
        P = variance * (-1.0) ** j * derivative[i + j] * rate ** (i + j)
        super().__init__(F, np.eye(S)[0], P)
        nilpotent = F + rate * np.eye(S)
        self._powers = np.stack([np.linalg.matrix_power(nilpotent, k) / factorial(k) for k in range(S)])

    def transition(self, dt: Array) -> Array:
        """``e^{-λ dt} Σ (F + λI)^k dt^k/k!``."""
        S = self.size
        monomials = np.empty((len(dt), S))
        monomials[:, 0] = np.exp(-self._rate * dt)
        for k in range(1, S):
            np.multiply(monomials[:, k - 1], dt, out=monomials[:, k])
        return np.asarray((monomials @ self._powers.reshape(S, S * S)).reshape(-1, S, S))

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """Entry (i, j) of A scales like λ^{i-j}, of P∞ like λ^{i+j}; beyond that, λ is a speed of time."""
        i, j = np.indices((self.size, self.size))
        by_variance = float(np.vdot(adjoints.covariance, self.covariance))
        by_rate = np.vdot(i - j, adjoints.scaling) + np.vdot(self.feedback, adjoints.flow)
        by_rate += np.vdot((i + j) * self.covariance, adjoints.covariance)
        return np.array([by_variance, -by_rate])


class Matern(Stationary):
    """``g = e^{-z} q(z)``, ``z = √(2ν) r``, with q a polynomial of degree ν - 1/2."""

    series: ClassVar[tuple[float, ...]]

    def _decay(self, r2: Array) -> tuple[Array, Array]:
        """Z and e^-z."""
        z = np.sqrt(r2)
        z *= np.sqrt(2.0 * len(self.series) - 1.0)
        decay = np.negative(z)
        return z, np.exp(decay, out=decay)

    def _value(self, r2: Array) -> Array:
        z, decay = self._decay(r2)
        decay *= horner(z, self.series)
        return decay

    def _profile(self, r2: Array) -> tuple[Array, Array]:
        order = len(self.series) - 1
        z, decay = self._decay(r2)
        value = decay * horner(z, self.series)
        if order == 0:
            with np.errstate(divide="ignore", invalid="ignore"):
                return value, np.where(z > 0.0, decay / z, 0.0)
        decay *= horner(z, _slope_series(self.series))
        return value, decay

    def state_space(self) -> StateSpace:
        """As many states as the polynomial has terms: the function and its derivatives."""
        return MaternSpace(np.asarray(self.series), self.variance, self.single())


@cache
def _slope_series(series: tuple[float, ...]) -> list[float]:
    """Of ``-2 g'(r²) e^z``: q' - q starts at z¹, so that -g'(z)/z is a polynomial again."""
    ratio = polynomial.polysub(series, polynomial.polyder(series))[1:]
    return [float((2.0 * len(series) - 1.0) * c) for c in ratio]


# Each says what its parameters are, the same for all: it is what help() shows of a class.


@dataclass(frozen=True)
class Matern12(Matern):
    """Matérn with ν = 1/2, ``variance · e^{-r}``: continuous, rough paths.

    Parameters
    ----------
    variance, lengthscale : float
        Positive; lengthscale may be a tuple with one number per input column.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.5]])
    >>> Matern12(variance=2.0, lengthscale=1.5)(X, X[:1]).round(4)
    array([[2.    ],
           [0.7358]])
    """

    series: ClassVar[tuple[float, ...]] = (1.0,)


@dataclass(frozen=True)
class Matern32(Matern):
    """Matérn with ν = 3/2, ``variance · (1 + z) e^{-z}``, ``z = √3 r``: once differentiable.

    Parameters
    ----------
    variance, lengthscale : float
        Positive; lengthscale may be a tuple with one number per input column.

    Examples
    --------
    >>> Matern32(variance=2.0, lengthscale=0.5)(np.array([[0.0], [0.5]]))
    array([[2.        , 0.96671545],
           [0.96671545, 2.        ]])
    """

    series: ClassVar[tuple[float, ...]] = (1.0, 1.0)


@dataclass(frozen=True)
class Matern52(Matern):
    """Matérn with ν = 5/2, ``variance · (1 + z + z²/3) e^{-z}``, ``z = √5 r``: twice differentiable.

    Parameters
    ----------
    variance, lengthscale : float
        Positive; lengthscale may be a tuple with one number per input column.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.5]])
    >>> Matern52(variance=2.0, lengthscale=1.5)(X, X[:1]).round(4)
    array([[2.   ],
           [1.048]])
    """

    series: ClassVar[tuple[float, ...]] = (1.0, 1.0, 1.0 / 3.0)


@dataclass(frozen=True)
class Matern72(Matern):
    """Matérn with ν = 7/2, ``variance · (1 + z + 2z²/5 + z³/15) e^{-z}``, ``z = √7 r``.

    Parameters
    ----------
    variance, lengthscale : float
        Positive; lengthscale may be a tuple with one number per input column.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.5]])
    >>> Matern72(variance=2.0, lengthscale=1.5)(X, X[:1]).round(4)
    array([[2.    ],
           [1.0899]])
    """

    series: ClassVar[tuple[float, ...]] = (1.0, 1.0, 2.0 / 5.0, 1.0 / 15.0)
