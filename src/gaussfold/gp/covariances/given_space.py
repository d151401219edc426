"""A covariance that is given as a stationary state space: one's own differential equation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.linalg import expm, logm, solve_continuous_lyapunov, solve_discrete_lyapunov

from gaussfold.checks import positive
from gaussfold.gp.covariances.base import Covariance, difference
from gaussfold.gp.covariances.state_space import Adjoints, StateSpace
from gaussfold.types import Array, ArrayLike

Matrix = tuple[tuple[float, ...], ...]


class GivenSpace(StateSpace):
    """F, h and P∞ as they are."""

    def transition(self, dt: Array) -> Array:
        """Matrix exponentials, one for each step that is different from the others."""
        steps, where = np.unique(dt, return_inverse=True)
        each = (
            np.stack([expm(self.feedback * step) for step in steps])
            if steps.size
            else np.empty((0, *self.feedback.shape))
        )
        return np.ascontiguousarray(each[where.ravel()])

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """The variance scales P∞, the time scale slows time down."""
        return np.array(
            [float(np.vdot(adjoints.covariance, self.covariance)), -float(np.vdot(self.feedback, adjoints.flow))]
        )


@dataclass(frozen=True)
class GivenStateSpace(Covariance):
    """``dx = F x dt + L dβ``, ``f = h'x``, bayes-newton (68), with ``diffusion = L Q_c L'``; on one input column.

    Two numbers are learned: the variance multiplies the covariance, the time scale stretches time. Matrices are given
    for both equal to one and are not learned. The process must forget its start (eigenvalues of F left of zero).

    Parameters
    ----------
    feedback : array of shape (S, S)
        F.
    measurement : array of shape (S,)
        h.
    diffusion : array of shape (S, S)
        ``L Q_c L'``.
    variance, timescale : float
        Positive.

    Examples
    --------
    A damped oscillator, pushed at random:

    >>> kernel = GivenStateSpace([[0.0, 1.0], [-4.0, -0.4]], [1.0, 0.0], [[0.0, 0.0], [0.0, 1.0]])
    >>> kernel(np.array([[0.0]]), np.array([[0.0], [1.5]])).round(4)
    array([[ 0.3125, -0.225 ]])
    """

    feedback: Matrix
    measurement: tuple[float, ...]
    diffusion: Matrix
    variance: float = 1.0
    timescale: float = 1.0
    learned: ClassVar[tuple[str, ...]] = ("variance", "timescale")

    def __post_init__(self) -> None:
        F, D = _square("feedback", self.feedback), _square("diffusion", self.diffusion)
        h = np.asarray(self.measurement, dtype=np.float64).ravel()
        if F.shape != D.shape or h.shape != (len(F),) or not np.isfinite(h).all():
            msg = f"feedback {F.shape}, measurement {h.shape}, diffusion {D.shape}: give (S, S), (S,) and (S, S)"
            raise ValueError(msg)
        if not (np.linalg.eigvals(F).real < 0.0).all():
            worst = float(np.linalg.eigvals(F).real.max())
            msg = f"feedback has an eigenvalue with real part {worst:.3g}: all must lie left of zero, so that P∞ exists"
            raise ValueError(msg)
        if np.abs(D - D.T).max() > 1e-12 * np.abs(D).max() or np.linalg.eigvalsh(D)[0] < -1e-12 * np.abs(D).max():
            msg = "diffusion must be symmetric and positive semi-definite, as L Qc L' is"
            raise ValueError(msg)
        for name, value in (("feedback", _tuples(F)), ("measurement", tuple(h.tolist())), ("diffusion", _tuples(D))):
            object.__setattr__(self, name, value)
        for name in ("variance", "timescale"):
            object.__setattr__(self, name, positive(name, vars(self)[name], owner="GivenStateSpace"))

    @classmethod
    def from_steps(
        cls, transition: ArrayLike, noise: ArrayLike, measurement: Sequence[float], step: float = 1.0
    ) -> Self:
        """From ``x' = A x + N(0, Q)`` over steps of one length: F is the logarithm of A."""
        A, Q = _square("transition", transition), _square("noise", noise)
        F = logm(A)
        if np.abs(np.imag(F)).max() > 1e-9 or not (np.abs(np.linalg.eigvals(A)) < 1.0).all():
            msg = "transition: A must have a real logarithm and eigenvalues within the unit circle"
            raise ValueError(msg)
        F = np.real(F) / positive("step", step)
        flow = F @ solve_discrete_lyapunov(A, Q)
        D = -(flow + flow.T)
        values, vectors = np.linalg.eigh(0.5 * (D + D.T))
        if values[0] < -1e-6 * values[-1]:
            msg = "noise: no process in continuous time has these steps; give the differential equation instead"
            raise ValueError(msg)
        D = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return cls(_tuples(F), tuple(float(h) for h in measurement), _tuples(0.5 * (D + D.T)))

    def state_space(self) -> StateSpace:
        """As given."""
        F = np.array(self.feedback)
        P = solve_continuous_lyapunov(F, -np.array(self.diffusion))
        return GivenSpace(F / self.timescale, np.array(self.measurement), self.variance * 0.5 * (P + P.T))

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """``h'e^{F|r|}P∞h`` for all pairs of rows."""
        r = np.abs(difference(self, X, Z))
        space = self.state_space()
        return np.asarray(
            (space.measurement @ space.transition(r.ravel()) @ space.covariance @ space.measurement).reshape(r.shape)
        )

    def diagonal(self, X: Array) -> Array:
        """``h'P∞h``."""
        space = self.state_space()
        return np.full(len(X), float(space.measurement @ space.covariance @ space.measurement))


def _square(name: str, matrix: object) -> Array:
    found = np.asarray(matrix, dtype=np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not np.isfinite(found).all():
        msg = f"{name} has shape {found.shape}; give a square matrix of finite numbers"
        raise ValueError(msg)
    return found


def _tuples(matrix: Array) -> Matrix:
    return tuple(tuple(row) for row in matrix.tolist())
