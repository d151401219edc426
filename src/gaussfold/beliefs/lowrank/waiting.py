"""Rows of a low-rank belief that wait for their projection, and the projection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from gaussfold.factors import resolve_projection
from gaussfold.factors.recursive_em import Seen
from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.beliefs.lowrank.belief import LowRankGaussian


def wait(belief: LowRankGaussian, X: Any, root: Array) -> None:
    """Append rows, scaled, to those that wait."""
    scaled = sparse.diags(root) @ X if sparse.issparse(X) else X * root[:, None].astype(X.dtype)
    if belief._rows is None:
        belief._rows = scaled.tocsr() if sparse.issparse(scaled) else scaled
    elif sparse.issparse(scaled) and sparse.issparse(belief._rows):
        belief._rows = sparse.vstack([belief._rows, scaled], format="csr")
    else:
        belief._rows = np.vstack([dense(belief._rows), dense(scaled)]).astype(belief._W.dtype)
    belief._view = None


def flush(belief: LowRankGaussian) -> None:
    """Project the rows that wait."""
    if belief._rows is not None:
        rows, belief._rows = belief._rows, None
        project(belief, rows, np.ones(rows.shape[0]), None)


def project(belief: LowRankGaussian, X: Any, sites: Array, seen: Seen | None = None) -> None:
    """Project the precision with X'diag(sites)X added."""
    belief._view = None
    belief._gram = resolve_projection(belief.options.projection)(
        belief._W, belief._psi, belief._gram, X, sites, 1.0, belief.options.inner_loops, seen, belief._due
    )


def dense(rows: Any) -> Array:
    """Rows as an array."""
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)
