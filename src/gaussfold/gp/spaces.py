"""The state-space forms of single covariances: feedback, stationary covariance, transitions and their derivatives."""

from __future__ import annotations

from functools import lru_cache
from math import factorial, pi, sqrt

import numpy as np
from numpy.polynomial import polynomial
from scipy.linalg import block_diag, solve_continuous_lyapunov
from scipy.special import ive

from gaussfold.gp.statespace import Adjoints, StateSpace
from gaussfold.types import Array


def _block_rotations(angles: Array) -> Array:
    """Rotations of the plane, shape (U, J) -> (U, 2J, 2J)."""
    steps, harmonics = angles.shape
    out = np.zeros((steps, harmonics, 2, harmonics, 2))
    j = np.arange(harmonics)
    cosine, sine = np.cos(angles), np.sin(angles)
    out[:, j, 0, j, 0] = out[:, j, 1, j, 1] = cosine
    out[:, j, 1, j, 0] = sine
    out[:, j, 0, j, 1] = -sine
    return out.reshape(steps, 2 * harmonics, 2 * harmonics)


class MaternSpace(StateSpace):
    """Matérn with half-integer ν: f and its first derivatives, all poles at -λ, λ = √(2ν)/lengthscale.

    ``F + λI`` is nilpotent, so that ``e^{F dt}`` is ``e^{-λ dt}`` times a polynomial. The entries of P∞ are the
    derivatives of the covariance at zero, whose Taylor series is that of ``e^{-z} q(z)``.
    """

    def __init__(self, series: Array, variance: float, lengthscale: float) -> None:
        S = len(series)
        self._rate = rate = sqrt(2.0 * S - 1.0) / lengthscale
        F = np.diag(np.ones(S - 1), 1)
        F[-1] = [-_binomial(S, k) * rate ** (S - k) for k in range(S)]
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


class TaylorSpace(StateSpace):
    """The squared exponential with the inverse of its spectral density cut to a Taylor polynomial.

    The state holds f and its derivatives with respect to ``t/lengthscale``, so that only the speed of time depends
    on the lengthscale.
    """

    def __init__(self, order: int, variance: float, lengthscale: float) -> None:
        F, P, self._poles, self._modes = _taylor_model(order)
        self._lengthscale = lengthscale
        super().__init__(F / lengthscale, np.eye(order)[0], variance * P)

    def transition(self, dt: Array) -> Array:
        """By the eigenvalues of F."""
        S = self.size
        growth = np.exp(np.multiply.outer(dt / self._lengthscale, self._poles))
        return np.ascontiguousarray((growth @ self._modes.reshape(S, S * S)).real).reshape(-1, S, S)

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """The lengthscale slows time down."""
        return np.array([np.vdot(adjoints.covariance, self.covariance), -np.vdot(self.feedback, adjoints.flow)])


@lru_cache(maxsize=16)
def _taylor_model(order: int) -> tuple[Array, Array, np.ndarray, np.ndarray]:
    """F, P∞, eigenvalues and spectral projectors for unit variance and lengthscale.

    ``S(ω) = √(2π) e^{-ω²/2} ≈ √(2π) / Σ_k (ω²/2)^k/k!``; the stable half of the roots (s = iω) makes the filter.
    """
    coefficients = np.zeros(2 * order + 1)
    coefficients[::2] = [(-0.5) ** k / factorial(k) for k in range(order + 1)]
    roots = polynomial.polyroots(coefficients)
    stable = np.sort_complex(roots[roots.real < 0.0])
    monic = np.poly(stable).real  # highest power first
    F = np.diag(np.ones(order - 1), 1)
    F[-1] = -monic[:0:-1]
    drive = np.zeros((order, order))
    drive[-1, -1] = sqrt(2.0 * pi) * 2.0**order * factorial(order)
    P = solve_continuous_lyapunov(F, -drive)
    poles, vectors = np.linalg.eig(F)
    modes = np.einsum("ik,kj->kij", vectors, np.linalg.inv(vectors))
    return F, 0.5 * (P + P.T), poles, modes


class CosineSpace(StateSpace):
    """A rotation with constant frequency; no noise enters."""

    def __init__(self, frequency: float) -> None:
        self._frequency = frequency
        super().__init__(np.array([[0.0, -frequency], [frequency, 0.0]]), np.array([1.0, 0.0]), np.eye(2))

    def transition(self, dt: Array) -> Array:
        """Rotations by ``frequency · dt``."""
        return _block_rotations(self._frequency * dt[:, None])

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """The frequency is a speed of time."""
        return np.array([np.vdot(self.feedback, adjoints.flow)])


class PeriodicSpace(StateSpace):
    """Harmonics 0 to ``order`` of a periodic covariance, one rotation each.

    The j-th has variance ``2 I_j(z) e^{-z}`` (j = 0: half of that) with ``z = 1/lengthscale²``.
    """

    def __init__(self, order: int, variance: float, lengthscale: float, period: float) -> None:
        self._angular = 2.0 * pi / period * np.arange(order + 1)
        self._variance, self._z, self._j = variance, lengthscale**-2, np.arange(order + 1)
        F = block_diag(*(w * np.array([[0.0, -1.0], [1.0, 0.0]]) for w in self._angular))
        weight = variance * self._share * ive(self._j, self._z)
        super().__init__(F, np.tile([1.0, 0.0], order + 1), np.diag(np.repeat(weight, 2)))

    @property
    def _share(self) -> Array:
        return np.where(self._j == 0, 1.0, 2.0)

    def transition(self, dt: Array) -> Array:
        """Rotations by ``j · 2π dt/period``."""
        return _block_rotations(np.multiply.outer(dt, self._angular))

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """The period slows time down; the lengthscale shares the variance out among the harmonics."""
        j, z = self._j, self._z
        slope = 0.5 * (ive(np.abs(j - 1), z) + ive(j + 1, z)) - ive(j, z)
        by_length = np.repeat(self._variance * self._share * slope * -2.0 * z, 2)
        return np.array(
            [
                np.vdot(adjoints.covariance, self.covariance),
                np.diag(adjoints.covariance) @ by_length,
                -np.vdot(self.feedback, adjoints.flow),
            ]
        )


class ConstantSpace(StateSpace):
    """One state that never moves."""

    def __init__(self, variance: float) -> None:
        super().__init__(np.zeros((1, 1)), np.ones(1), np.array([[variance]]))

    def transition(self, dt: Array) -> Array:
        """One."""
        return np.ones((len(dt), 1, 1))

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """Through P∞."""
        return np.array([np.vdot(adjoints.covariance, self.covariance)])


class WhiteSpace(ConstantSpace):
    """One state that is drawn anew at every step, and kept over a step of no length."""

    def transition(self, dt: Array) -> Array:
        """Nothing is kept, unless the step has no length."""
        return np.where(dt == 0.0, 1.0, 0.0)[:, None, None]


class LinearSpace(StateSpace):
    """Value and slope of a random line; not stationary, no noise enters."""

    is_stationary = False

    def __init__(self, variance: float, centre: float) -> None:
        self._variance, self._centre = variance, centre
        super().__init__(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([1.0, 0.0]), np.full((2, 2), np.nan))

    def transition(self, dt: Array) -> Array:
        """The value moves by slope times dt."""
        out = np.tile(np.eye(2), (len(dt), 1, 1))
        out[:, 0, 1] = dt
        return out

    def noise(self, dt: Array, A: Array) -> Array:  # noqa: ARG002
        """None."""
        return np.zeros((len(dt), 2, 2))

    def initial(self, start: float) -> Array:
        """The line at the first input."""
        x = start - self._centre
        return self._variance * np.array([[x * x, x], [x, 1.0]])

    def vjp(self, adjoints: Adjoints, start: float, bar_P: Array) -> Array:  # noqa: ARG002
        """Through the first covariance."""
        return np.array([np.vdot(bar_P, self.initial(start))])


def _binomial(n: int, k: int) -> float:
    return factorial(n) / (factorial(k) * factorial(n - k))
