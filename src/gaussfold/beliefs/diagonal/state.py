"""What a diagonal belief holds: cells, their coupling, and the time that passes over them.

A cell is the K means and K variances of one feature (``engine.sparse.cells``). A belief over d features is one array of
cells, shape (d, 2, K), and nothing else of that size, except one clock reading per feature once forgetting or drift is
used. Until the first row is learned a prior that is the same for all features is a single cell; after that all cells
are written or, of a large belief, a page of them when a row first meets one (``lazy_cells``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gaussfold.beliefs.diagonal.coupling import Coupling
from gaussfold.beliefs.diagonal.kept_rows import KeptRows
from gaussfold.beliefs.diagonal.lazy_cells import LazyCells
from gaussfold.engine.sparse.cells import FORGETS, STILL, WALKS, list_touched
from gaussfold.types import Array, Moments

FADED = "second_look: a row that has faded has no site left to take out; leave out forgetting and drift, or second_look"
STRETCH = 1 << 20
"""Cells that are looked through at a time for those that were touched."""


@dataclass
class State:
    """Cells, coupling and clock."""

    cells: np.ndarray
    """(d, 2, K), or (1, 2, K) while all features are alike."""
    dim: int
    coupling: Coupling
    log_weights: Array
    """Of the K components."""
    seen: Array
    """The clock when each feature was last written; empty while no time passes."""
    clock: Array
    """One number, an array because loops write to it."""
    prior: np.ndarray
    """What forgetting pulls cells towards: one for all, or one each."""
    kind: int = STILL
    """What the clock counts: see ``engine.sparse.cells``."""
    blank: np.ndarray | None = None
    """The cell that all features shared before any was learned; None if they began with their own."""
    lazy: LazyCells | None = None
    """Which cells are written; None: all of them."""
    kept: KeptRows | None = None
    """Rows that are due for a second look; None: every row is visited once."""

    @classmethod
    def start(cls, cells: np.ndarray, dim: int, coupling: Coupling) -> State:
        """Components of equal weight, and no time passes."""
        k = cells.shape[2]
        weights = np.full(k, -math.log(k))
        prior = np.zeros((1, 2, k), dtype=cells.dtype)
        return cls(cells, dim, coupling, weights, np.empty(0), np.zeros(1), prior)

    @property
    def alike(self) -> bool:
        """Whether one cell stands for all features."""
        return bool(self.cells.shape[0] < self.dim)

    @property
    def uniform(self) -> bool:
        """Whether one cell says all, now and later."""
        return self.alike and self.still

    @property
    def still(self) -> bool:
        """Whether no time passes."""
        return self.kind == STILL

    def written_over(self, entries: int) -> int:
        """How many cells a pass over so many entries may write to, those of rows that are looked at again included."""
        return entries if self.kept is None else 2 * entries + self.kept.entries

    def widen(self, columns: np.ndarray | None = None, *, sparingly: bool = False) -> None:
        """Give every feature a cell of its own, to write to for these columns (None: for all).

        ``sparingly``: pages of cells are written when they are met, even of a belief that is not large.
        """
        if self.alike:
            self.blank = self.cells
            self.lazy = LazyCells(self.blank, self.dim, sparingly=sparingly)
            self.cells = self.lazy.cells
        self.write(columns)
        if self.lazy is not None:
            self.lazy.mark(columns)

    def write(self, columns: np.ndarray | None = None) -> None:
        """Write blank cells for features that no row has met."""
        if self.lazy is not None and self.lazy.left:
            self.lazy.write(columns)

    def scale_means(self, factor: float, shift: float, constant: int | None) -> None:
        """Multiply the means of all cells that were met; then add to those of one feature."""
        if self.kept is not None:
            self.kept = self.kept.in_other_units(factor, shift, constant)
        if self.alike:
            return
        columns = self.touched()
        self.cells[columns, 0] *= self.cells.dtype.type(factor)
        if constant is not None:
            self.cells[constant, 0] += self.cells.dtype.type(shift)

    def current(self, columns: np.ndarray | None = None) -> Array:
        """Cells as of now, time applied, in float64: all of them (a single one if they are all alike), or some."""
        if not self.alike:
            self.write(columns)
        cells = self.cells if columns is None or self.alike else self.cells[columns]
        cells = cells.astype(np.float64)
        if self.still:
            return cells
        seen = self.seen if columns is None else self.seen[columns]
        elapsed = (self.clock[0] - seen)[:, None]
        if self.kind == WALKS:
            return np.stack([np.broadcast_to(cells[:, 0], (seen.size, cells.shape[2])), cells[:, 1] + elapsed], axis=1)
        prior = self.prior if self.prior.shape[0] == 1 or columns is None else self.prior[columns]
        old, new = np.exp(-elapsed) / cells[:, 1], -np.expm1(-elapsed) / prior[:, 1]
        variance = 1.0 / (old + new)
        return np.stack([variance * (old * cells[:, 0] + new * prior[:, 0]), variance], axis=1)

    def each(self, columns: np.ndarray | None = None) -> Array:
        """As :meth:`current`, one per feature even where they are all alike."""
        count = self.dim if columns is None else columns.size
        return np.broadcast_to(self.current(columns), (count, *self.cells.shape[1:]))

    def touched(self, limit: int | None = None) -> np.ndarray:
        """Features whose cell differs from the one all began with; all of them if they began with their own.

        Where there are ``limit`` of them or more, only so many that this is seen.
        """
        if self.alike:
            return np.empty(0, np.uint32)
        if self.blank is None:
            return np.arange(self.dim, dtype=np.uint32)
        # without lazy cells all of memory is one page
        written, shift = self.pages()
        room = np.empty(min(self.dim, STRETCH) + 1, np.uint32)
        found, total = [room[:0]], 0
        for start in range(0, self.dim, STRETCH):
            stop = min(start + STRETCH, self.dim)
            n = list_touched(self.cells, self.blank, written, shift, start, stop, room)
            found.append(room[:n].copy())
            total += n
            if limit is not None and total >= limit:
                break
        return np.concatenate(found)

    def pages(self) -> tuple[np.ndarray, int]:
        """Which pages hold cells that may differ from a blank one, and the logarithm of how many cells a page has."""
        if self.lazy is None:
            return np.ones(1, bool), 62
        return self.lazy.written if self.lazy.met is None else self.lazy.met, self.lazy.shift

    # Time.

    def keep_time(self, kind: int, prior: np.ndarray) -> None:
        """Start the clock, or go on with it; another prior or kind settles all features first."""
        if kind == self.kind and (prior is self.prior or np.array_equal(prior, self.prior)):
            return
        if prior.shape[2] != self.cells.shape[2]:
            msg = f"prior: {prior.shape[2]} components, the belief has {self.cells.shape[2]}"
            raise ValueError(msg)
        if self.kept is not None:
            raise ValueError(FADED)
        if not self.still:
            self.cells = self.each().astype(self.cells.dtype)
            self.blank, self.lazy = None, None
        self.kind = kind
        self.prior = prior.copy() if kind == FORGETS else self.prior
        self.seen, self.clock = np.zeros(self.dim), np.zeros(1)


def mix_moments(log_weights: Array, means: Array, variances: Array) -> Moments:
    """Mean and variance of mixtures, one a row: within the components and between them."""
    if log_weights.size == 1:
        return Moments(means[:, 0].copy(), variances[:, 0].copy())
    weights = np.exp(log_weights)
    with np.errstate(over="ignore", invalid="ignore"):  # looked for, and named, by `check_moments`
        mean = means @ weights
        return Moments(mean, (variances + (means - mean[:, None]) ** 2) @ weights)
