"""What a low-rank belief holds: mean, factors, diagonal, rows that wait for their projection; and the projection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from gaussfold.beliefs.lowrank.options import Options
from gaussfold.engine.lowrank.products import gram
from gaussfold.factors import calibrated, resolve_projection
from gaussfold.factors.calibrated import Ledger
from gaussfold.factors.recursive_em import Seen
from gaussfold.factors.woodbury import Precision
from gaussfold.rows import Matrix, is_sparse
from gaussfold.types import Array


@dataclass
class State:
    """N(mean, Λ⁻¹) with Λ = WW' + rows'rows + Ψ."""

    options: Options
    mean: Array
    W: Array
    psi: Array
    gram: Array
    """W'Ψ⁻¹W."""
    due: Array
    """What the projection leaves for later: see ``factors.eigen``."""
    ledger: Ledger | None = None
    """How true the error bars were: of a calibrated belief."""
    rows: Matrix | None = None
    """Rows that wait, times the root of their site precision."""
    taken: int = 0
    """Rows projected so far."""
    view: Precision | None = None
    """Λ ready to be applied, as long as nothing has changed it."""

    @classmethod
    def start(cls, options: Options, mean: Array, W: Array, psi: Array) -> State:
        """Nothing waits."""
        ledger = Ledger.start(psi) if options.calibrated else None
        return cls(options, mean, W, psi, gram(W, psi), np.zeros(2), ledger)

    @property
    def rank(self) -> int:
        """Number of factors p."""
        return int(self.W.shape[1])

    @property
    def pending(self) -> int:
        """Rows learned since the last projection."""
        return 0 if self.rows is None else int(self.rows.shape[0])

    @property
    def block(self) -> int:
        """Rows per projection, at present."""
        return self.options.block(self.psi.size, self.rank, self.taken)

    @property
    def full(self) -> bool:
        """Whether as many rows wait as a block holds."""
        return self.pending >= self.block

    def precision(self) -> Precision:
        """Λ, waiting rows included, ready to be applied."""
        if self.view is None:
            self.view = Precision(self.W, self.psi, self.gram, self.rows)
        return self.view

    def copy(self) -> State:
        """The same numbers in memory of their own."""
        mean, W, psi, gram, due = (array.copy() for array in (self.mean, self.W, self.psi, self.gram, self.due))
        ledger = None if self.ledger is None else self.ledger.copy()
        rows = None if self.rows is None else self.rows.copy()
        return State(self.options, mean, W, psi, gram, due, ledger, rows, self.taken)

    def wait(self, X: Matrix, root: Array) -> None:
        """Append rows, scaled, to those that wait."""
        scaled = sparse.diags(root) @ X if is_sparse(X) else X * root[:, None].astype(X.dtype)
        if self.rows is None:
            self.rows = scaled.tocsr() if is_sparse(scaled) else scaled
        elif is_sparse(scaled) and is_sparse(self.rows):
            self.rows = sparse.vstack([self.rows, scaled], format="csr")
        else:
            self.rows = np.vstack([dense(self.rows), dense(scaled)]).astype(self.W.dtype)
        self.view = None

    def flush(self) -> None:
        """Project the rows that wait."""
        if self.rows is not None:
            rows, self.rows = self.rows, None
            self.project(rows, np.ones(rows.shape[0]))

    def project(self, X: Matrix, sites: Array, seen: Seen | None = None) -> None:
        """Project the precision with X'diag(sites)X added."""
        self.view = None
        self.taken += X.shape[0]
        if self.ledger is not None:
            loops = self.options.inner_loops
            self.gram = calibrated.project(self.W, self.psi, self.gram, X, sites, loops, seen, self.ledger)
            return
        self.gram = resolve_projection(self.options.projection)(
            self.W, self.psi, self.gram, X, sites, 1.0, self.options.inner_loops, seen, self.due
        )


def dense(rows: Matrix) -> Array:
    """Rows as an array."""
    return np.asarray(rows.toarray() if is_sparse(rows) else rows)
