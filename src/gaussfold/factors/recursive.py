"""Recursive factor analysis: α_t S_{t-1} + β_t x x' projected as the rows come, lrvga §5.1 from a prior pseudo-row.

With n rows known (and a prior worth one row), a block of K rows of mean b turns the covariance about the mean into

    (τS + Σ (x-b)(x-b)' + nK/(n+K) (b-mean)(b-mean)') / (τ+K),   τ = n + 1,

which is exact: K rows and one more for the shift of the mean. The paper's α₁ = 0 loses all factors but one at the
first row; the pseudo-row (isotropic, of the rows' own scale) prevents that.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from gaussfold.engine.lowrank.products import gram
from gaussfold.factors.model import FactorStream, Part
from gaussfold.factors.projections import resolve_projection
from gaussfold.types import Array

START_SHARE = 1e-8


class RecursiveFactors(FactorStream):
    """lrvga Alg. 1 on the covariance of the rows.

    Parameters
    ----------
    projection, inner_loops, block_size
        As for :class:`gaussfold.LowRankGaussian`.
    warm_up
        Rows that wait until their scale is known: the prior is isotropic with their mean square. 0: start at once
        from ``start`` and ``start_psi``.
    """

    def __init__(
        self,
        dim: int,
        rank: int,
        *,
        projection: str = "eigen",
        inner_loops: int = 1,
        block_size: int = 1,
        warm_up: int = 100,
        start: Array | None = None,
        start_psi: Array | None = None,
        rng: np.random.Generator,
        **options: Any,
    ) -> None:
        super().__init__(dim, rank, start=start, rng=rng, **options)
        self._project = resolve_projection(projection)
        self.projection, self.inner_loops, self.block_size, self.warm_up = projection, inner_loops, block_size, warm_up
        self.started = int(start_psi is not None and start is not None)
        if start_psi is not None:
            self.psi = start_psi.copy()
        self.G = gram(self.F, self.psi)
        self.due = np.zeros(2)
        self._waits: tuple[Array, ...] = ()
        self.shared = False
        """Whether another stream holds the same factors."""

    def learn(self, X: Array) -> None:
        """Learn from rows, in order; a block that is not full waits."""
        due = self.block_size if self.started else max(self.warm_up, 1)
        if sum(map(len, self._waits)) + len(X) < due:
            self._waits = (*self._waits, X.copy())
            return
        rows = np.vstack([*self._waits, X]) if self._waits else X
        full = len(rows) - len(rows) % self.block_size
        self.take(rows[:full], rows[: max(self.warm_up, 1)])
        self.waiting = rows[full:].copy() if full < len(rows) else None

    @property
    def waiting(self) -> Array | None:
        """Rows that wait; they are kept as they came, so that one more row costs no copy of the others."""
        return np.vstack(self._waits) if self._waits else None

    @waiting.setter
    def waiting(self, rows: Array | None) -> None:
        self._waits = () if rows is None else (rows,)

    def take(self, rows: Array, first: Array | None = None) -> None:
        """Learn rows block by block, the last one full or not; ``first`` (or they) set the scale if none is known."""
        if not self.started:
            self._start(rows if first is None else first)
        for begin in range(0, len(rows), self.block_size):
            self._block(rows[begin : begin + self.block_size])

    def _start(self, rows: Array) -> None:
        self._own()
        centred = rows - rows.mean(axis=0) if self.center else rows
        scale = float(np.einsum("ij,ij->", centred, centred)) / rows.size
        scale = scale if scale > 0.0 else 1.0  # all rows equal: no scale is better than another
        share = START_SHARE if self.projection == "em" else 0.0
        d, p = self.F.shape
        self.F *= np.sqrt(share * scale * d / p) / np.linalg.norm(self.F, axis=0)
        self.psi[:] = (1.0 - share) * scale
        self.G = gram(self.F, self.psi)
        self.started = 1

    def twin(self) -> Self:
        """As of any stream; factors are shared until a block is full, as rows that only wait leave them alone."""
        other = copy.copy(self)
        other.shared = True
        return other

    def _own(self) -> None:
        """Factors and diagonal in memory of one's own, before they change."""
        if self.shared:
            self.F, self.psi, self.due, self.shared = self.F.copy(), self.psi.copy(), self.due.copy(), False

    def _block(self, rows: Array) -> None:
        self._own()
        n, K = self.count, len(rows)
        total = n + 1 + K
        if self.center:
            mean = rows.mean(axis=0)
            shift = np.sqrt(n * K / (n + K)) * (mean - self.mean)
            rows = np.vstack([rows - mean, shift]) if K > 1 else shift[None]
            self.mean = self.mean + (K / (n + K)) * (mean - self.mean)
        weight = np.full(len(rows), 1.0 / total)
        self.G = self._project(self.F, self.psi, self.G, rows, weight, (n + 1) / total, self.inner_loops, due=self.due)
        if self.isotropic:
            self._share_noise()
            self.G = gram(self.F, self.psi)
        self.count += K

    def settled(self) -> FactorStream:
        """A copy that has learned the rows that wait, too."""
        if not self._waits:
            return self
        twin = RecursiveFactors(
            *self.F.shape, projection=self.projection, inner_loops=self.inner_loops, block_size=self.block_size,
            warm_up=self.warm_up, start=self.F, rng=np.random.default_rng(0), center=self.center,
            isotropic=self.isotropic,
        )  # fmt: skip
        twin.restore(self.state())
        rows, twin.waiting = twin.waiting, None
        if rows is not None:
            twin.take(rows)
        return twin

    def parts(self) -> dict[str, Part]:
        """Everything that was learned, by name."""
        return super().parts() | {"G": self.G, "due": self.due, "started": self.started, "waiting": self.waiting}
