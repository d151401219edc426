"""The squared exponential, and its approximate state-space form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial, pi, sqrt

import numpy as np
from numpy.polynomial import polynomial
from scipy.linalg import solve_continuous_lyapunov

from gaussfold.checks import whole
from gaussfold.gp.covariances.state_space import Adjoints, StateSpace
from gaussfold.gp.covariances.stationary import Stationary
from gaussfold.types import Array


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


@dataclass(frozen=True)
class SquaredExponential(Stationary):
    """``variance · e^{-r²/2}``: smooth paths.

    Its state-space form is an approximation: the inverse of the spectral density is cut to its Taylor polynomial in
    the squared frequency, of degree ``order``.

    Parameters
    ----------
    variance, lengthscale : float
        Positive; lengthscale may be a tuple with one number per input column.
    order : int
        Degree of the Taylor polynomial, which is the size of the Markov state; 1 to 10. Dense and sparse
        structures do not use it.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.5]])
    >>> SquaredExponential(variance=2.0, lengthscale=1.5)(X, X[:1]).round(4)
    array([[2.    ],
           [1.2131]])
    """

    order: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("order", self.order, most=10, owner="the Taylor polynomial", remedy="6 is accurate to about 1e-3")

    def _profile(self, r2: Array) -> tuple[Array, Array]:
        value = np.exp(-0.5 * r2)
        return value, value

    def state_space(self) -> StateSpace:
        """By the Taylor polynomial."""
        return TaylorSpace(self.order, self.variance, self.single())
