"""Gaussian processes on a line as linear stochastic differential equations, bayes-newton (68)-(70).

``dx = F x dt + L dβ``, ``f = h'x``. Between two inputs a step ``dt`` apart the state moves by
``x' = A x + noise``, ``A = e^{F dt}``, with noise covariance Q. A stationary process has
``Q = P∞ - A P∞ A'`` (what the state keeps of its stationary covariance, the noise must give back).

Every space knows the derivatives of A, Q and the first covariance with respect to its log hyperparameters, as
vector-Jacobian products: adjoints of these matrices in, one number per hyperparameter out. Of a table of steps two
sums are enough: every hyperparameter stretches time (``dA = F A dt``) or scales entries (``dA ∝ A``, entry by entry).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from gaussfold.types import Array


class Adjoints(NamedTuple):
    """Sums over a table of steps, B_u the adjoint of A_u once Q is made of A and P∞; all (S, S)."""

    scaling: Array
    """``Σ B_u ∘ A_u``"""
    flow: Array
    """``Σ dt_u B_u A_u'``"""
    covariance: Array
    """Adjoint of P∞."""

    def block(self, where: slice) -> Adjoints:
        """Those of one block of independent states."""
        return Adjoints(*(a[where, where] for a in self))


class StateSpace(ABC):
    """One linear stochastic differential equation; the parent of all, and itself the stationary kind.

    Attributes
    ----------
    feedback : ndarray of shape (S, S)
        F.
    measurement : ndarray of shape (S,)
        h, so that ``f = h'x``.
    covariance : ndarray of shape (S, S)
        P∞, the covariance of the state when it has forgotten its start.
    is_stationary : bool
        Whether P∞ means anything; only such spaces can be multiplied.
    """

    is_stationary = True
    own_adjoints = False
    """Whether Q is not made of A and P∞, so that the space sums its adjoints itself."""

    def __init__(self, feedback: Array, measurement: Array, covariance: Array) -> None:
        self.feedback, self.measurement, self.covariance = feedback, measurement, covariance

    @property
    def size(self) -> int:
        """Number of states S."""
        return len(self.measurement)

    @property
    def diffusion(self) -> Array:
        """``L Q_c L'``, from the stationary equation ``F P∞ + P∞ F' + L Q_c L' = 0``."""
        flow = self.feedback @ self.covariance
        return -(flow + flow.T)

    @abstractmethod
    def transition(self, dt: Array) -> Array:
        """``A = e^{F dt}`` for every step, shape (U, S, S)."""

    def noise(self, dt: Array, A: Array) -> Array:
        """``Q`` for every step whose transition is A."""
        del dt  # what is stationary needs only A
        from gaussfold.engine.kalman.process_noise import process_noise, process_noise_pair

        Q = np.empty(A.shape)
        (process_noise_pair if self.size == 2 else process_noise)(A, self.covariance, Q)
        return Q

    def initial(self, start: float) -> Array:
        """Covariance of the state at the first input."""
        del start
        return self.covariance

    def adjoints(self, dt: Array, A: Array, bar_A: Array, bar_Q: Array) -> Adjoints:
        """Sum the adjoints of a table of steps (bar_A is used up); sums over parts of a table add up."""
        from gaussfold.engine.kalman.process_noise import add_adjoints, add_adjoints_pair

        sums = np.zeros((3, self.size, self.size))
        add = add_adjoints_pair if self.size == 2 else add_adjoints
        add(dt, A, np.nan_to_num(self.covariance), bar_A, bar_Q, sums)
        return Adjoints(*sums)

    def vjp(self, adjoints: Adjoints, start: float, bar_P: Array) -> Array:
        """``∂/∂log θ`` from the adjoints of every A and Q and of the first covariance."""
        del start
        return self.stationary_vjp(Adjoints(adjoints.scaling, adjoints.flow, adjoints.covariance + bar_P))

    @abstractmethod
    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """``∂/∂log θ`` from the adjoints of every A and of P∞."""


class SumSpace(StateSpace):
    """Independent states side by side, all measured at once: the sum of covariances."""

    def __init__(self, parts: Sequence[StateSpace]) -> None:
        self.parts = tuple(parts)
        self.is_stationary = all(part.is_stationary for part in parts)
        self.own_adjoints = any(part.own_adjoints for part in parts)
        ends = np.cumsum([part.size for part in parts])
        self._slices = [slice(end - part.size, end) for end, part in zip(ends, parts, strict=True)]
        super().__init__(
            block_diag(*(part.feedback for part in parts)),
            np.concatenate([part.measurement for part in parts]),
            block_diag(*(part.covariance for part in parts)),
        )

    def _blocks(self, pieces: Sequence[Array]) -> Array:
        if len(pieces) == 1:
            return pieces[0]
        out = np.zeros((len(pieces[0]), self.size, self.size))
        for where, piece in zip(self._slices, pieces, strict=True):
            out[:, where, where] = piece
        return out

    def transition(self, dt: Array) -> Array:
        """Block by block."""
        return self._blocks([part.transition(dt) for part in self.parts])

    def noise(self, dt: Array, A: Array) -> Array:
        """Block by block."""
        each = zip(self._slices, self.parts, strict=True)
        return self._blocks([part.noise(dt, np.ascontiguousarray(A[:, w, w])) for w, part in each])

    def initial(self, start: float) -> Array:
        """Block by block."""
        return np.asarray(block_diag(*(part.initial(start) for part in self.parts)))

    def adjoints(self, dt: Array, A: Array, bar_A: Array, bar_Q: Array) -> Adjoints:
        """All blocks at once, or block by block where one has its own way."""
        if not self.own_adjoints:
            return super().adjoints(dt, A, bar_A, bar_Q)
        sums = np.zeros((3, self.size, self.size))
        for where, part in zip(self._slices, self.parts, strict=True):
            mine = (np.ascontiguousarray(a[:, where, where]) for a in (A, bar_A, bar_Q))
            sums[:, where, where] = part.adjoints(dt, *mine)
        return Adjoints(*sums)

    def vjp(self, adjoints: Adjoints, start: float, bar_P: Array) -> Array:
        """Block by block."""
        each = zip(self._slices, self.parts, strict=True)
        return np.concatenate([part.vjp(adjoints.block(w), start, bar_P[w, w]) for w, part in each])

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """Block by block."""
        each = zip(self._slices, self.parts, strict=True)
        return np.concatenate([part.stationary_vjp(adjoints.block(w)) for w, part in each])


class ProductSpace(StateSpace):
    """The Kronecker product of stationary spaces: the product of covariances."""

    def __init__(self, parts: Sequence[StateSpace]) -> None:
        for part in parts:
            if not part.is_stationary:
                raise not_stationary()
        self._left = parts[0]
        self._right = parts[1] if len(parts) == 2 else ProductSpace(parts[1:])
        F, G = self._left.feedback, self._right.feedback
        super().__init__(
            np.kron(F, np.eye(len(G))) + np.kron(np.eye(len(F)), G),
            np.asarray(np.kron(self._left.measurement, self._right.measurement)),
            np.asarray(np.kron(self._left.covariance, self._right.covariance)),
        )

    def transition(self, dt: Array) -> Array:
        """``A_left ⊗ A_right``."""
        S = self.size
        outer = np.einsum("uac,ubd->uabcd", self._left.transition(dt), self._right.transition(dt))
        return np.asarray(outer.reshape(-1, S, S))

    def stationary_vjp(self, adjoints: Adjoints) -> Array:
        """Each side by itself: the other one's share of a sum over entries or over a product is a partial trace."""
        n, m = self._left.size, self._right.size
        scaling, flow, bar_P = (a.reshape(n, m, n, m) for a in adjoints)
        left = Adjoints(
            scaling.sum(axis=(1, 3)),
            np.einsum("abcb->ac", flow),
            np.einsum("abcd,bd->ac", bar_P, self._right.covariance),
        )
        right = Adjoints(
            scaling.sum(axis=(0, 2)),
            np.einsum("abad->bd", flow),
            np.einsum("abcd,ac->bd", bar_P, self._left.covariance),
        )
        return np.concatenate([self._left.stationary_vjp(left), self._right.stationary_vjp(right)])


def not_stationary() -> ValueError:
    """The error for a product with something that never forgets its start."""
    msg = (
        "a product with a linear covariance has no stationary state-space form; "
        "use structure='dense' or 'sparse', or add the linear part instead"
    )
    return ValueError(msg)


def block_rotations(angles: Array) -> Array:
    """Rotations of the plane, shape (U, J) -> (U, 2J, 2J)."""
    steps, harmonics = angles.shape
    out = np.zeros((steps, harmonics, 2, harmonics, 2))
    j = np.arange(harmonics)
    cosine, sine = np.cos(angles), np.sin(angles)
    out[:, j, 0, j, 0] = out[:, j, 1, j, 1] = cosine
    out[:, j, 1, j, 0] = sine
    out[:, j, 0, j, 1] = -sine
    return out.reshape(steps, 2 * harmonics, 2 * harmonics)
