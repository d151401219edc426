"""Passes over a tall thin factor W (d×p): Gram matrix, products into place, squared rows.

All d-sized work of a low-rank belief is here, in matrix products over tiles of rows that stay in cache; nothing of
size d×p is ever allocated. Arrays may be float64 or float32; what is p×p is always float64. Reference twin:
``tests/reference/lowrank.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg.blas import dgemm, dsyrk, sgemm, ssyrk

from gaussfold.engine.compiled import compiled
from gaussfold.engine.rules import rule_site
from gaussfold.types import Program

TILE_BYTES = 1 << 19
"""Tiles of this size stay in the second cache while they are scaled and multiplied."""

MOST_SURPRISED = 10.0
"""The largest squared deviation that counts as evidence on a scale."""
NOISELESS = 0.9
"""How much less a row without noise counts."""


def tile_rows(W: np.ndarray) -> int:
    """Rows per tile."""
    return max(64, TILE_BYTES // int(W.itemsize * W.shape[1]))


def gram(W: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """W'Ψ⁻¹W, half the flops of a product (syrk), tile by tile."""
    d, p = W.shape
    rank_update = dsyrk if W.dtype == np.float64 else ssyrk
    step = tile_rows(W)
    total = np.zeros((p, p))
    for start in range(0, d, step):
        tile = W[start : start + step] / np.sqrt(psi[start : start + step])[:, None]
        total += rank_update(1.0, tile.T)  # upper triangle; sums across tiles are in float64
    return total + np.triu(total, 1).T


def add_product(W: np.ndarray, E: np.ndarray, N: np.ndarray) -> None:
    """W += E'N in place; E is K×d, N is K×p."""
    multiply = dgemm if W.dtype == np.float64 else sgemm
    left = np.asarray(N, dtype=W.dtype, order="C")
    if not (W.flags.c_contiguous and E.flags.c_contiguous):
        msg = "W, E: C-contiguous arrays are needed"
        raise ValueError(msg)  # pragma: no cover - internal
    # Fortran sees W as W' (p×d) and E as E' (d×K): W' += N' E
    multiply(1.0, left.T, E.T, beta=1.0, c=W.T, trans_b=1, overwrite_c=1)


def add_squares(psi: np.ndarray, E: np.ndarray, S: np.ndarray | None = None) -> None:
    """ψ += diag(E'SE) in place, S the identity if not given."""
    left = E if S is None else np.asarray(S, dtype=E.dtype) @ E
    step = max(1, TILE_BYTES // (E.itemsize * E.shape[0]))
    for start in range(0, psi.size, step):
        part = slice(start, start + step)
        psi[part] += np.einsum("kd,kd->d", left[:, part], E[:, part])


def mix_rows(coefficients: np.ndarray, X: Any, dtype: Any) -> np.ndarray:
    """Coefficients @ X for rows X (B×d) dense or sparse, as a C-contiguous array."""
    if sparse.issparse(X):
        return np.ascontiguousarray((X.T @ coefficients.T).T, dtype=dtype)
    return np.asarray(np.asarray(coefficients, dtype=dtype) @ X)


def mix(W: np.ndarray, C: np.ndarray, X: Any, D: np.ndarray | None = None) -> np.ndarray:
    """C'W' + D'X (K×d), D the identity if not given: columns of W and rows of X mixed; X dense or sparse."""
    product = np.asarray(C.T, dtype=W.dtype, order="C") @ W.T
    product += X if D is None else mix_rows(D.T, X, W.dtype)
    return np.asarray(product)


def reach(W: np.ndarray, psi: np.ndarray, X: Any) -> tuple[np.ndarray, np.ndarray]:
    """W'Ψ⁻¹X' (p×K) and XΨ⁻¹X' (K×K), in float64; linear in the non-zeros of a sparse X."""
    if sparse.issparse(X):
        scaled = X.copy()
        scaled.data = scaled.data / psi[scaled.indices]
        return np.asarray((scaled @ W).T, dtype=np.float64), np.asarray((scaled @ X.T).toarray(), dtype=np.float64)
    R, inner = np.zeros((W.shape[1], len(X))), np.zeros((len(X), len(X)))
    for part in columns(X):
        scaled = X[:, part] / psi[part]
        R += (scaled @ W[part]).T
        inner += scaled @ X[:, part].T
    return R, inner


def weighted_gram(E: np.ndarray, psi: np.ndarray) -> np.ndarray:
    """EΨ⁻¹E' of dense rows E, in float64."""
    total = np.zeros((len(E), len(E)))
    for part in columns(E):
        total += (E[:, part] / psi[part]) @ E[:, part].T
    return total


def columns(X: np.ndarray, besides: int = 0) -> list[slice]:
    """Columns of some rows that stay in cache: an array of the rows' size would go through memory three times.

    ``besides`` is how many numbers per column are looked at with them.
    """
    step = max(1024, TILE_BYTES // (X.itemsize * max(len(X) + besides, 1)))
    return [slice(start, start + step) for start in range(0, X.shape[1], step)]


@compiled
def gradient_and_curvature(
    program: Program, y: float, w: float, m: float, v: float, m0: float, v0: float
) -> tuple[float, float]:
    """The rule's raw (J, H) looking from N(m, v), for ``gain="projected"``."""
    return rule_site(program.family, program.rule, y, w, m, v, m0, v0)


@compiled
def add_evidence(
    site_precision: np.ndarray, site_shift: np.ndarray, mean: np.ndarray, variance: np.ndarray, evidence: np.ndarray
) -> None:
    """Add what rows say about the scale of a belief's variances to ``evidence``: score and information.

    A site λ, shift is an observation shift/λ with noise 1/λ of a latent N(mean, variance): with h = λv/(1 + λv), the
    part of the observation's variance that the belief predicts, and z² its squared deviation in units of that
    variance, the log evidence has the slope ½h(z² - 1) in the log of the belief's scale, and the information ½h².
    Both are weighted by 1 - 0.9h: where the noise is nothing the gain is one at any scale, and a scale that is
    brought down to such rows is too small for the directions that they have not met. z² is bounded: one outlier says
    no more about the scale than its neighbours.
    """
    for i in range(site_precision.size):
        precision = site_precision[i]
        if precision > 0.0:
            total = 1.0 + precision * variance[i]
            share = precision * variance[i] / total
            away = site_shift[i] - precision * mean[i]
            square = min(away * away / (precision * total), MOST_SURPRISED)
            slope = 0.5 * share * (1.0 - NOISELESS * share)
            evidence[0] += slope * (square - 1.0)
            evidence[1] += slope * share
