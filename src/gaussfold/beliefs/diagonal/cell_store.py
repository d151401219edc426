"""Cells of K means and K variances per feature, the time that passes over them, and how they are kept.

A belief over d features is one array of shape (d, 2, K) (see ``engine.sparse.cells``) and nothing else of that size,
except one clock reading per feature once forgetting or drift is used. Until the first row is learned a prior that is
the same for all features is a single cell; after that all cells are written or, of a large belief, a page of them when
a row first meets one (``beliefs.diagonal.pages``).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from gaussfold.beliefs.diagonal.coupling import Coupling, coupling_from_form, resolve_coupling
from gaussfold.beliefs.diagonal.pages import Pages
from gaussfold.engine.sparse.cells import FORGETS, STILL, WALKS, list_touched
from gaussfold.types import Array, ArrayLike, Moments

STRETCH = 1 << 20
"""Cells that are looked through at a time for those that were touched."""
LARGE = 1 << 30
"""Bytes of cells from which on memory matters more than the size of a file."""


def mix_moments(weights: Array, means: Array, variances: Array) -> Moments:
    """Mean and variance of mixtures, one a row."""
    mean = means @ weights
    return Moments(mean, (variances + (means - mean[:, None]) ** 2) @ weights)


class CellStore:
    """Cells, coupling and clock."""

    _cells: np.ndarray
    _blank: np.ndarray | None  # the cell that all features shared before any was learned
    _pages: Pages | None  # which cells are written; None: all of them
    _dim: int
    _log_weights: Array
    _coupling: Coupling
    _seen: Array
    _clock: Array
    _kind: int
    _prior: np.ndarray

    def _start(self, cells: np.ndarray, dim: int, coupling: str | Coupling) -> None:
        k = cells.shape[2]
        self._cells, self._dim, self._coupling = cells, dim, resolve_coupling(coupling)
        self._blank, self._pages = None, None
        self._log_weights = np.full(k, -math.log(k))
        self._kind = STILL
        self._seen, self._clock = np.empty(0), np.zeros(1)
        self._prior = np.zeros((1, 2, k), dtype=cells.dtype)

    @property
    def dim(self) -> int:
        """Number of features."""
        return self._dim

    @property
    def dtype(self) -> np.dtype[Any]:
        """How numbers are stored: float64 or float32. Arithmetic is in float64."""
        return self._cells.dtype

    @property
    def log_weights(self) -> Array:
        """Logarithms of the components' weights (a copy)."""
        return self._log_weights.copy()

    @property
    def coupling(self) -> Coupling:
        """How the features of a row share an observation."""
        return self._coupling

    def _current(self, columns: np.ndarray | None = None) -> Array:
        """Cells as of now, time applied, in float64: all of them (a single one if they are all alike), or some."""
        wide = self._cells.shape[0] > 1 or self._dim == 1
        if wide:
            self._write(columns)
        cells = self._cells if columns is None or not wide else self._cells[columns]
        cells = cells.astype(np.float64)
        if self._kind == STILL:
            return cells
        seen = self._seen if columns is None else self._seen[columns]
        elapsed = (self._clock[0] - seen)[:, None]
        if self._kind == WALKS:
            return np.stack([np.broadcast_to(cells[:, 0], (seen.size, cells.shape[2])), cells[:, 1] + elapsed], axis=1)
        prior = self._prior if self._prior.shape[0] == 1 or columns is None else self._prior[columns]
        old, new = np.exp(-elapsed) / cells[:, 1], -np.expm1(-elapsed) / prior[:, 1]
        variance = 1.0 / (old + new)
        return np.stack([variance * (old * cells[:, 0] + new * prior[:, 0]), variance], axis=1)

    def _widen(self, columns: np.ndarray | None = None) -> None:
        """Give every feature a cell of its own, written for these columns (None: for all)."""
        if self._cells.shape[0] < self._dim:
            self._blank = self._cells
            self._pages = Pages(self._blank, self._dim)
            self._cells = self._pages.cells
        self._write(columns)

    def _write(self, columns: np.ndarray | None) -> None:
        """Write blank cells for features that no row has met."""
        if self._pages is not None and self._pages.left:
            self._pages.write(columns)

    def moments(self, columns: ArrayLike) -> Moments:
        """Mean and variance of some parameters, without touching the others; of a mixture, within and between."""
        chosen = np.asarray(columns)
        cells = np.broadcast_to(self._current(chosen), (chosen.size, *self._cells.shape[1:]))
        return mix_moments(np.exp(self._log_weights), cells[:, 0], cells[:, 1])

    def touched(self) -> np.ndarray:
        """Features whose cell differs from the one all began with; all of them if they began with their own."""
        if self._cells.shape[0] < self._dim:
            return np.empty(0, np.uint32)
        if self._blank is None:
            return np.arange(self._dim, dtype=np.uint32)
        return self._touched_below(self._dim + 1)

    def _touched_below(self, limit: int) -> np.ndarray:
        """Touched features; where there are ``limit`` of them or more, only so many that this is seen."""
        room = np.empty(min(self._dim, STRETCH) + 1, np.uint32)
        found, total = [room[:0]], 0
        for start in range(0, self._dim, STRETCH):
            stop = min(start + STRETCH, self._dim)
            n = list_touched(self._cells, self._blank, *Pages.of(self._pages), start, stop, room)
            found.append(room[:n].copy())
            total += n
            if total >= limit:
                break
        return np.concatenate(found)

    # Time.

    def relax(self, factor: float, prior: Self) -> None:
        """1/v ← factor/v + (1-factor)/v₀, and the same for m/v: noted on the clock, applied when it is seen."""
        if factor != 1.0:
            self._keep_time(FORGETS, prior._all_cells())
            self._clock[0] -= math.log(factor)

    def _all_cells(self) -> np.ndarray:
        """Cells, all of them written (or the one that all features share)."""
        self._write(None)
        return self._cells

    def diffuse(self, variance: float) -> None:
        """V ← v + variance: noted on the clock, applied when a feature is next seen."""
        if variance != 0.0:
            self._keep_time(WALKS, self._prior)
            self._clock[0] += variance

    def _keep_time(self, kind: int, prior: np.ndarray) -> None:
        """Start the clock, or go on with it; another prior or kind settles all features first."""
        if kind == self._kind and (prior is self._prior or np.array_equal(prior, self._prior)):
            return
        if prior.shape[2] != self._cells.shape[2]:
            msg = f"prior: {prior.shape[2]} components, the belief has {self._cells.shape[2]}"
            raise ValueError(msg)
        if self._kind != STILL:
            self._cells = np.broadcast_to(self._current(), (self._dim, *self._cells.shape[1:])).astype(self.dtype)
            self._blank, self._pages = None, None
        self._kind = kind
        self._prior = prior.copy() if kind == FORGETS else self._prior
        self._seen, self._clock = np.zeros(self._dim), np.zeros(1)

    # Storage.

    def state(self, *, copy: bool = True) -> dict[str, np.ndarray]:
        """Named arrays that hold everything: of the cells only those that were touched, if that is less.

        ``copy=False`` gives views where it can, to save a belief as large as the memory.
        """
        arrays = self._cell_state() | {
            "dim": np.array([self._dim]),
            "coupling": np.array(self._coupling.form),
            "log_weights": self._log_weights,
        }
        if self._kind != STILL:
            arrays |= {"seen": self._seen, "clock": self._clock, "kind": np.array([self._kind]), "prior": self._prior}
        return {name: array.copy() for name, array in arrays.items()} if copy else arrays

    def _cell_state(self) -> dict[str, np.ndarray]:
        # Touched cells are copied, the whole is not: a large belief must not need half of its memory again.
        few = self._dim // (2 if self._cells.nbytes < LARGE else 4)
        if self._blank is None:
            return {"cells": self._all_cells()}
        columns = self._touched_below(few)
        if columns.size >= few:
            return {"cells": self._all_cells(), "blank": self._blank}
        return {"cells": self._cells[columns], "touched": columns, "blank": self._blank}

    @classmethod
    def from_state(cls, state: dict[str, np.ndarray], *, copy: bool = True) -> Self:
        """The belief of :meth:`state`, bit for bit; ``copy=False`` takes the arrays over."""
        self = cls.__new__(cls)
        form = tuple(int(part) for part in state["coupling"])
        sparsely = "touched" in state
        cells = state["blank"] if sparsely else state["cells"]
        self._start(cells.copy() if copy else cells, int(state["dim"][0]), coupling_from_form(form))  # type: ignore[arg-type]
        if sparsely:
            self._widen(state["touched"])
            self._cells[state["touched"]] = state["cells"]
        elif "blank" in state:
            self._blank = state["blank"].copy()
        self._log_weights[:] = state["log_weights"]
        if "kind" in state:
            self._kind, self._prior = int(state["kind"][0]), state["prior"].copy()
            self._seen, self._clock = state["seen"].copy(), state["clock"].copy()
        return self

    def become(self, other: Self) -> None:
        """Take over another belief's numbers; the other must not be used any more."""
        vars(self).update(vars(other))

    def copy(self) -> Self:
        """An independent copy."""
        return self.from_state(self.state(copy=False))
