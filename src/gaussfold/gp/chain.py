"""Steps in time with the state-space matrices of independent latents on them, and the filter and smoother over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gaussfold.gp import square_root, two_passes
from gaussfold.gp.covariances import Covariance
from gaussfold.gp.covariances.state_space import Adjoints, SumSpace
from gaussfold.gp.kalman import Filtered, GeneralSmoother, Matrices, PairSmoother, Smoother
from gaussfold.gp.origin import Anchor
from gaussfold.gp.priors import lost, space_of
from gaussfold.gp.row_blocks import row_blocks
from gaussfold.linalg.small import non_positive
from gaussfold.types import Array

BLOCK = 4096
"""Rows whose matrices and adjoints are made at a time, so that these stay in the cache however long the series is."""


INFLATED = 1.5
"""Times the prior's variance: a filter in time order loses digits with the square of it."""


class Steps(NamedTuple):
    """Sorted inputs as steps: row n is ``table[step[n]]`` after row n - 1; row 0 is at ``start``."""

    start: float
    step: np.ndarray
    table: Array


def steps_of(times: Array) -> Steps:
    """Differences of sorted inputs, equal ones (to their own rounding) merged into one table entry."""
    if times.size < 2:
        return Steps(float(times[0]) if times.size else 0.0, np.zeros(times.size, dtype=np.int64), np.ones(1))
    dt = np.diff(times)
    quantum = 4.0 * np.finfo(float).eps * max(float(np.abs(times[[0, -1]]).max()), np.finfo(float).tiny)
    keys = np.rint(dt / quantum)
    least, most = keys.min(), keys.max()
    if most - least <= 1.0 and least > 0.0:  # a regular grid, to the rounding of its numbers
        step = np.zeros(times.size, dtype=np.int64)
        return Steps(float(times[0]), step, np.array([(times[-1] - times[0]) / (times.size - 1)]))
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    start = float(times[0])
    if first.size > dt.size // 4:  # hardly any two alike: a table in time order is read straight through
        return Steps(start, np.arange(times.size), np.concatenate([[0.0], np.where(keys == 0.0, 0.0, dt)]))
    table = np.where(keys[first] == 0.0, 0.0, dt[first])
    return Steps(start, np.concatenate([[0], inverse.ravel()]), table)


class ChainMarginals(NamedTuple):
    """Marginals of the latents, log Z, and the filter behind them unless they came from square roots."""

    mean: Array
    cov: Array
    log_z: float
    filtered: Filtered | None


class Chain:
    """State-space matrices of independent latents on one sequence of steps, and the filter and smoother over them."""

    def __init__(self, covariances: Sequence[Covariance], steps: Steps) -> None:
        spaces = [space_of(c) for c in covariances]
        self.space = SumSpace(spaces)
        self.steps = steps
        S = self.space.size
        self.A, self.Q = np.empty((2, len(steps.table), S, S))
        for part in row_blocks(len(steps.table), BLOCK):
            self.A[part] = self.space.transition(steps.table[part])
            self.Q[part] = self.space.noise(steps.table[part], self.A[part])
        self.H = np.zeros((len(spaces), S))
        at = 0
        for d, space in enumerate(spaces):
            self.H[d, at : at + space.size] = space.measurement
            at += space.size
        self.start = np.zeros(S), np.ascontiguousarray(self.space.initial(steps.start))
        is_pair = self.H.shape == (1, 2) and self.H[0, 0] == 1.0 and self.H[0, 1] == 0.0
        matrices = Matrices(steps.step, self.A, self.Q, self.H)
        self._smoother: Smoother = PairSmoother(matrices) if is_pair else GeneralSmoother(matrices)

    def start_after(self, anchor: Anchor) -> None:
        """Begin with what that state predicts for the first row."""
        dt = np.array([self.steps.start - anchor.time])
        A = self.space.transition(dt)
        Q = self.space.noise(dt, A)[0]
        self.start = A[0] @ anchor.mean, A[0] @ anchor.cov @ A[0].T + Q

    def posterior(self, precision: Array, shift: Array, spare: Array | None = None) -> ChainMarginals:
        """Filter, into the store of an earlier pass if one can be spared, and smooth.

        On square roots where rounding defeats the covariances, and in two passes where negative sites do; raises if
        the sites leave no positive covariance.
        """
        filtered, bad = self._smoother.forward(*self.start, precision, shift, spare)
        if (bad >= 0 or self._is_inflated(filtered)) and non_positive(precision).any():
            return self._in_two_passes(precision, shift, filtered if bad < 0 else None)
        if bad < 0:
            mean, cov = self.backward(filtered)
            if np.isfinite(filtered.log_z + mean.sum() + cov.sum()):
                return ChainMarginals(mean, cov, float(filtered.log_z), filtered)
        found = self.on_roots(precision, shift, int(bad))
        return ChainMarginals(found.mean, found.cov, found.log_z, None)

    def _is_inflated(self, filtered: Filtered) -> bool:
        """Whether a filtered variance exceeds the prior's: negative sites have come near to leaving no posterior."""
        at_start = np.einsum("di,ij,dj->d", self.H, self.start[1], self.H)
        covs = self._smoother.states(filtered)[1]
        return bool((np.einsum("di,nij,dj->nd", self.H, covs, self.H) > INFLATED * at_start).any())

    def _in_two_passes(self, precision: Array, shift: Array, filtered: Filtered | None) -> ChainMarginals:
        """The positive parts of the sites first; ``filtered`` is what one pass over both has left, for gradients."""
        positive, negative = two_passes.parts(precision)
        first, bad = self._smoother.forward(*self.start, positive, shift, None)
        if bad >= 0:
            raise lost(int(bad), "first seen at, in time order,")
        matrices = Matrices(self.steps.step, self.A, self.Q, self.H)
        found = two_passes.smooth(matrices, (self._smoother, first, self.backward(first)[0]), negative)
        return ChainMarginals(*found, filtered)

    def log_z(self, precision: Array, shift: Array) -> float:
        """The normaliser alone, from a pass forward."""
        log_z, bad = self._smoother.log_z(*self.start, precision, shift)
        return log_z if bad < 0 and np.isfinite(log_z) else self.on_roots(precision, shift, int(bad)).log_z

    def on_roots(self, precision: Array, shift: Array, bad: int = -1) -> square_root.Smoothed:
        """The posterior on square roots; ``bad`` is the row that defeated the covariances, for the error."""
        if non_positive(precision).any():
            raise lost(bad if bad >= 0 else None, "first seen at, in time order,")
        m, P = self.start
        Q, root = square_root.roots_of(self.Q), square_root.roots_of(P[None])[0]
        return square_root.smooth(square_root.Model(self.steps.step, self.A, Q, self.H, m, root), precision, shift)

    def state(self, precision: Array, shift: Array, row: int) -> tuple[Array, Array]:
        """Filtered mean and covariance of the state at a row."""
        filtered, bad = self._smoother.forward(*self.start, precision, shift, None)
        if bad < 0:
            means, covs = self._smoother.states(filtered._replace(store=filtered.store[row : row + 1]))
            return means[0], covs[0]
        found = self.on_roots(precision, shift, int(bad))
        root = found.filtered_root[row]
        return found.filtered_mean[row], root @ root.T

    def backward(self, filtered: Filtered) -> tuple[Array, Array]:
        """Smooth: marginal means (N, D) and covariances (N, D, D)."""
        N, D = len(self.steps.step), len(self.H)
        mean, cov = np.empty((N, D)), np.empty((N, D, D))
        self._smoother.backward(slice(0, N), 0, filtered, self._smoother.carry(), mean, cov, None)
        return mean, cov

    def log_z_gradient(self, filtered: Filtered, move: tuple[Array, Array] | None = None) -> Array:
        """``g = ∂log Z/∂log θ``; or ``dg - g``, dg the change of g when the sites move by (dΛ, dλ)."""
        smoother = self._smoother
        carry, D = smoother.carry(), len(self.H)
        moved = None if move is None else smoother.tangents(filtered, *move)
        unread = np.empty((BLOCK, D)), np.empty((BLOCK, D, D))  # marginals that nobody asked for
        in_order = len(self.steps.table) == len(self.steps.step)
        whole = np.zeros((2, *self.A.shape)) if not in_order else None
        S = self.space.size
        sums = np.zeros((3, S, S))
        for rows in reversed(list(row_blocks(len(self.steps.step), BLOCK))):
            first = rows.start if whole is None else 0
            bars = np.zeros((2, rows.stop - rows.start, *self.A.shape[1:])) if whole is None else whole
            if moved is None:
                smoother.backward(rows, first, filtered, carry, *unread, (bars[0], bars[1]))
            else:
                smoother.backward_moved(rows, first, filtered, moved, carry, (bars[0], bars[1]))
            if whole is None:
                sums += self.space.adjoints(self.steps.table[rows], self.A[rows], *bars)
        if whole is not None:
            sums += self.space.adjoints(self.steps.table, self.A, *whole)
        r, N, dr, dN = smoother.carried(carry)
        bar_P = 0.5 * (np.outer(r, r) - N)
        if moved is not None:
            bar_P = 0.5 * (np.outer(r, dr) + np.outer(dr, r) - dN) - bar_P
        return self.space.vjp(Adjoints(*sums), self.steps.start, bar_P)
