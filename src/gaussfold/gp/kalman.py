"""The compiled Kalman filter and smoother behind one interface: for two states and one latent, and for any.

A pass forward leaves everything that later passes read in one array. Passes backward walk a block of rows and carry
r and N of `engine.kalman.smoother` from one block to the next; adjoints of a table's step u go to ``u - first``.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from gaussfold.types import Array

Bars: TypeAlias = tuple[Array, Array]
"""Adjoints of the tables A and Q, to add to."""


class Matrices(NamedTuple):
    """A table of steps and what reads the state."""

    step: np.ndarray
    A: Array
    Q: Array
    H: Array


class Filtered(NamedTuple):
    """What a forward pass leaves behind."""

    precision: Array
    store: Array
    log_z: float


class Moved(NamedTuple):
    """Tangents of a forward pass, when the sites move by ``precision`` and ``shift``."""

    precision: Array
    shift: Array
    store: Array


class Smoother(Protocol):
    """What a `Chain` needs."""

    def __init__(self, matrices: Matrices) -> None: ...

    def forward(self, m: Array, P: Array, precision: Array, shift: Array, spare: Array | None) -> tuple[Filtered, int]:
        """Filter from the first state, into a spare store if there is one; also the first bad row, or -1."""
        ...

    def log_z(self, m: Array, P: Array, precision: Array, shift: Array) -> tuple[float, int]:
        """What `forward` says of log Z and of bad rows, and nothing else."""
        ...

    def backward(
        self, rows: slice, first: int, filtered: Filtered, carry: Array, mean: Array, cov: Array, bars: Bars | None
    ) -> None:
        """Smooth a block of rows into mean (n, D) and cov (n, D, D); bars is None or (bar_A, bar_Q) to add to."""
        ...

    def tangents(self, filtered: Filtered, precision: Array, shift: Array) -> Moved:
        """The forward pass differentiated."""
        ...

    def backward_moved(
        self, rows: slice, first: int, filtered: Filtered, moved: Moved, carry: Array, bars: Bars
    ) -> None:
        """Add ``tangent - adjoint``."""
        ...

    def carry(self) -> Array:
        """Nothing is known of the future: r, N, dr, dN are zero."""
        ...

    def carried(self, carry: Array) -> tuple[Array, Array, Array, Array]:
        """Find r, N, dr, dN in it."""
        ...

    def states(self, filtered: Filtered) -> tuple[Array, Array]:
        """Filtered means (N, S) and covariances (N, S, S)."""
        ...


class PairSmoother:
    """Two states and one latent, the first state."""

    def __init__(self, matrices: Matrices) -> None:
        self._m = matrices

    def forward(self, m: Array, P: Array, precision: Array, shift: Array, spare: Array | None) -> tuple[Filtered, int]:
        """Filter."""
        from gaussfold.engine.kalman.pair import WIDTH, forward_pair

        store = np.empty((len(shift), WIDTH)) if spare is None else spare
        flat = _flat(precision)
        log_z, bad = forward_pair(self._m.step, self._m.A, self._m.Q, m, P, flat, _flat(shift), store)
        return Filtered(flat, store, log_z), bad

    def log_z(self, m: Array, P: Array, precision: Array, shift: Array) -> tuple[float, int]:
        """Filter, leaving nothing behind."""
        from gaussfold.engine.kalman.evidence import evidence_pair

        log_z, bad = evidence_pair(self._m.step, self._m.A, self._m.Q, m, P, _flat(precision), _flat(shift))
        return float(log_z), int(bad)

    def backward(
        self, rows: slice, first: int, filtered: Filtered, carry: Array, mean: Array, cov: Array, bars: Bars | None
    ) -> None:
        """Smooth a block of rows."""
        from gaussfold.engine.kalman.pair import backward_pair

        span, tables = (rows.start, rows.stop, first), (self._m.step, self._m.A)
        marginals = mean[:, 0], cov[:, 0, 0]
        backward_pair(span, tables, filtered.precision, filtered.store, carry, marginals, bars or _nowhere(self._m.A))

    def tangents(self, filtered: Filtered, precision: Array, shift: Array) -> Moved:
        """Differentiate the filter."""
        from gaussfold.engine.kalman.pair_tangent import tangent_forward_pair

        moved = Moved(_flat(precision), _flat(shift), np.empty((len(shift), 5)))
        tangent_forward_pair(self._m.step, self._m.A, filtered.precision, filtered.store, *moved)
        return moved

    def backward_moved(
        self, rows: slice, first: int, filtered: Filtered, moved: Moved, carry: Array, bars: Bars
    ) -> None:
        """Add ``tangent - adjoint``."""
        from gaussfold.engine.kalman.pair_tangent import tangent_backward_pair

        span, tables = (rows.start, rows.stop, first), (self._m.step, self._m.A)
        tangent_backward_pair(span, tables, filtered.precision, filtered.store, moved, carry, bars)

    def carry(self) -> Array:
        """Zeros."""
        return np.zeros(10)

    def carried(self, carry: Array) -> tuple[Array, Array, Array, Array]:
        """A symmetric matrix is kept as three numbers."""
        full = np.array([[2, 3], [3, 4]])
        return carry[:2], carry[full], carry[5:7], carry[5 + full]

    def states(self, filtered: Filtered) -> tuple[Array, Array]:
        """Filtered means and covariances."""
        return filtered.store[:, :2].copy(), filtered.store[:, [2, 3, 3, 4]].reshape(-1, 2, 2)


class GeneralSmoother:
    """Any number of states and latents."""

    def __init__(self, matrices: Matrices) -> None:
        self._latents, self._states = matrices.H.shape
        self._m = Matrices(matrices.step, *(_flat(a) for a in matrices[1:]))

    @property
    def _chain(self) -> tuple[int, np.ndarray, Array, Array]:
        """As the loops backward take it."""
        return self._latents, self._m.step, self._m.A, self._m.H

    @property
    def _scratch(self) -> Array:
        """Room for what the loops keep of one row."""
        return np.empty(10 * (self._states + self._latents) ** 2)

    def forward(self, m: Array, P: Array, precision: Array, shift: Array, spare: Array | None) -> tuple[Filtered, int]:
        """Filter."""
        from gaussfold.engine.kalman.algebra import store_width
        from gaussfold.engine.kalman.smoother import forward

        D, S = self._latents, self._states
        store = np.empty((len(shift), store_width(S, D))) if spare is None else spare
        flat = _flat(precision)
        log_z, bad = forward(*self._m, m, _flat(P), flat, _flat(shift), store.reshape(-1), self._scratch)
        return Filtered(flat, store, log_z), bad

    def log_z(self, m: Array, P: Array, precision: Array, shift: Array) -> tuple[float, int]:
        """Filter."""
        filtered, bad = self.forward(m, P, precision, shift, None)
        return float(filtered.log_z), int(bad)

    def backward(
        self, rows: slice, first: int, filtered: Filtered, carry: Array, mean: Array, cov: Array, bars: Bars | None
    ) -> None:
        """Smooth a block of rows."""
        from gaussfold.engine.kalman.smoother import backward

        bar_A, bar_Q = bars or _nowhere(self._m.A)
        marginals, adjoints = (_flat(mean), _flat(cov)), (_flat(bar_A), _flat(bar_Q))
        found = filtered.precision, filtered.store.reshape(-1)
        backward((rows.start, rows.stop, first), self._chain, *found, carry, marginals, adjoints, self._scratch)

    def tangents(self, filtered: Filtered, precision: Array, shift: Array) -> Moved:
        """Differentiate the filter."""
        from gaussfold.engine.kalman.tangent import tangent_forward

        moved = Moved(_flat(precision), _flat(shift), np.empty(filtered.store.size))
        tangent_forward(self._chain, filtered.store.reshape(-1), *moved, self._scratch)
        return moved

    def backward_moved(
        self, rows: slice, first: int, filtered: Filtered, moved: Moved, carry: Array, bars: Bars
    ) -> None:
        """Add ``tangent - adjoint``."""
        from gaussfold.engine.kalman.tangent import tangent_backward

        adjoints = _flat(bars[0]), _flat(bars[1])
        found = filtered.store.reshape(-1), moved.store
        tangent_backward((rows.start, rows.stop, first), self._chain, *found, carry, adjoints, self._scratch)

    def carry(self) -> Array:
        """Zeros."""
        return np.zeros(2 * self._states * (1 + self._states))

    def carried(self, carry: Array) -> tuple[Array, Array, Array, Array]:
        """One after the other."""
        S = self._states
        r, N, dr, dN = np.split(carry, np.cumsum([S, S * S, S]))
        return r, N.reshape(S, S), dr, dN.reshape(S, S)

    def states(self, filtered: Filtered) -> tuple[Array, Array]:
        """Filtered means and covariances."""
        S = self._states
        return filtered.store[:, :S].copy(), filtered.store[:, S : S + S * S].reshape(-1, S, S)


def _nowhere(A: Array) -> tuple[Array, Array]:
    """Adjoints that nobody asked for."""
    return A[:0], A[:0]


def _flat(array: Array) -> Array:
    """A view if the array is contiguous and may be written to (the loops are compiled for no other), else a copy."""
    return np.require(array, np.float64, ["C", "A", "W"]).reshape(-1)
