"""One dense row meets a low-rank precision of few factors: look, check, fold, each one pass over the memory.

With few factors the arithmetic is nothing and reading W, Ψ, the mean and the row is everything, so what
``products`` does in a dozen passes is fused here into two (three when digits cancel, one more when the noise
is due, see ``factors.eigen``). Work goes in strips short enough for the first cache; sums are taken strip by strip
in float64. Reference twin: ``tests/reference/lowrank.py``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.engine.compiled import compiled_reduction

STRIP = 512


class RowCut(NamedTuple):
    """What one row takes from the factors and gives back."""

    dropped: np.ndarray
    """The dropped direction's part of W ..."""
    dropped_x: float
    """... and of the row."""
    turned_x: float
    """How much of the row is turned into the factors."""
    back: np.ndarray
    """How what was dropped returns to the columns of W."""


class KeptVariance(NamedTuple):
    """How a row keeps the marginal variances, ``factors.marginal``; with weight 0 it keeps the precision's diagonal."""

    weight: float
    """1/(1 + g) of the dropped direction: also the least share of a variance that is left."""
    floor: float
    """The least that 1 - ρ can be."""
    whiten: np.ndarray
    """L⁻¹ of LL' = I + W'Ψ⁻¹W, the new W in the old metric."""


AS_THEY_ARE = KeptVariance(0.0, 0.0, np.empty((0, 0)))
"""Squares go to the diagonal as they are: the eigen-projection."""


class Rescaled(NamedTuple):
    """What a row's projection does to the diagonal above its base, ``factors.calibrated``."""

    base: np.ndarray
    """Ψ before any data; empty where the projection keeps none."""
    factor: float
    """What is above the base is multiplied by this."""


@compiled_reduction
def look_row(W: np.ndarray, psi: np.ndarray, mean: np.ndarray, x: np.ndarray, reach: np.ndarray) -> tuple[float, float]:
    """``reach`` becomes W'Ψ⁻¹x; returns x'Ψ⁻¹x and x'mean."""
    d, p = W.shape
    scaled = np.empty(STRIP)
    reach[:] = 0.0
    inner, centre = 0.0, 0.0
    for start in range(0, d, STRIP):
        n = min(STRIP, d - start)
        for i in range(n):
            scaled[i] = np.float64(x[start + i]) / psi[start + i]
        strip_inner, strip_centre = 0.0, 0.0
        for i in range(n):
            value = np.float64(x[start + i])
            strip_inner += value * scaled[i]
            strip_centre += value * mean[start + i]
        inner += strip_inner
        centre += strip_centre
        for k in range(p):
            total = 0.0
            for i in range(n):
                total += W[start + i, k] * scaled[i]
            reach[k] += total
    return inner, centre


@compiled_reduction
def check_row(W: np.ndarray, psi: np.ndarray, x: np.ndarray, explained: np.ndarray) -> float:
    """(x - Wc)'Ψ⁻¹(x - Wc)."""
    d, p = W.shape
    rest = np.empty(STRIP)
    square = 0.0
    for start in range(0, d, STRIP):
        n = min(STRIP, d - start)
        for i in range(n):
            rest[i] = x[start + i]
        for k in range(p):
            factor = explained[k]  # a local number: for all LLVM knows, a store to rest changes the array
            for i in range(n):
                rest[i] -= W[start + i, k] * factor
        strip = 0.0
        for i in range(n):
            strip += rest[i] * rest[i] / psi[start + i]
        square += strip
    return square


@compiled_reduction
def fold_row(
    W: np.ndarray,
    psi: np.ndarray,
    mean: np.ndarray,
    x: np.ndarray,
    explained: np.ndarray,
    gain: float,
    cut: RowCut,
    kept_variance: KeptVariance,
    rescaled: Rescaled,
    gram: np.ndarray,
) -> float:
    """The projection of one row and the mean's step, in place; returns the mean of Ψ before over Ψ after.

    With a base, Ψ above it is ``rescaled``, and the mean of the base over Ψ after is returned instead.

    mean += gain Ψ⁻¹(x - Wc), D = W·dropped + x·dropped_x, W += (D - x·turned_x)·back', Ψ += D² (or, with a
    ``kept_variance``, so that the marginal variances are kept: ``factors.marginal``), and ``gram`` becomes W'Ψ⁻¹W of
    the new ones.
    """
    d, p = W.shape
    dropped, dropped_x, turned_x, back = cut.dropped, cut.dropped_x, cut.turned_x, cut.back
    squares, share = np.empty(STRIP), np.empty(STRIP)
    columns, inverse = np.empty((p, STRIP)), np.empty(STRIP)
    row, rest, drop = np.empty(STRIP), np.empty(STRIP), np.empty(STRIP)
    gram[:] = 0.0
    kept = 0.0
    for start in range(0, d, STRIP):
        n = min(STRIP, d - start)
        for i in range(n):
            row[i] = x[start + i]
            rest[i] = row[i]
            drop[i] = dropped_x * row[i]
        for k in range(p):
            column, first, second = columns[k], explained[k], dropped[k]
            for i in range(n):
                column[i] = W[start + i, k]
            for i in range(n):
                rest[i] -= column[i] * first
                drop[i] += column[i] * second
        for i in range(n):  # short loops over few arrays: LLVM gives up on those it would have to compare
            rest[i] *= gain / psi[start + i]
        for i in range(n):
            mean[start + i] += rest[i]
        for i in range(n):
            squares[i] = drop[i] * drop[i]
        for i in range(n):
            drop[i] -= turned_x * row[i]
        for k in range(p):
            column, factor = columns[k], back[k]
            for i in range(n):
                column[i] += drop[i] * factor
            for i in range(n):
                W[start + i, k] = column[i]
        if kept_variance.weight > 0.0:
            _keep_variance(columns, psi, start, n, kept_variance, share, squares)
        for i in range(n):
            drop[i] = psi[start + i]
        for i in range(n):
            squares[i] += drop[i]
        if rescaled.base.size:
            for i in range(n):
                drop[i] = rescaled.base[start + i]
            for i in range(n):
                squares[i] = drop[i] + rescaled.factor * (squares[i] - drop[i])
        strip_kept = 0.0
        for i in range(n):
            inverse[i] = 1.0 / squares[i]
        for i in range(n):
            strip_kept += drop[i] * inverse[i]
        for i in range(n):
            psi[start + i] = squares[i]
        kept += strip_kept
        _add_gram(columns, inverse, n, gram)
    return float(kept / d)


@compiled_reduction
def _keep_variance(
    columns: np.ndarray,
    psi: np.ndarray,
    start: int,
    n: int,
    kept: KeptVariance,
    share: np.ndarray,
    squares: np.ndarray,
) -> None:
    """Squares D² become ψ t/(1 - ρ - t): what ψ grows by, on a strip."""
    p = columns.shape[0]
    seen = np.empty(STRIP)
    share[:] = 0.0
    for k in range(p):
        for i in range(n):
            seen[i] = 0.0
        for j in range(k + 1):
            column, factor = columns[j], kept.whiten[k, j]
            for i in range(n):
                seen[i] += column[i] * factor
        for i in range(n):
            share[i] += seen[i] * seen[i]
    for i in range(n):
        before = np.float64(psi[start + i])
        left = max(1.0 - share[i] / before, kept.floor)
        ratio = max(1.0 - kept.weight * squares[i] / (before * left), kept.weight)
        squares[i] = before * (1.0 / ratio - 1.0)


@compiled_reduction
def turn_rows(
    W: np.ndarray, psi: np.ndarray, turn: np.ndarray, kept: np.ndarray, lost: np.ndarray, gram: np.ndarray
) -> None:
    """W ← (W·turn)·diag(kept), Ψ += the squares of W·turn weighted by ``lost``; ``gram`` becomes W'Ψ⁻¹W."""
    d, p = W.shape
    columns, turned = np.empty((p, STRIP)), np.empty((p, STRIP))
    diagonal = np.empty(STRIP)
    gram[:] = 0.0
    for start in range(0, d, STRIP):
        n = min(STRIP, d - start)
        for i in range(n):
            diagonal[i] = psi[start + i]
        for k in range(p):
            column = columns[k]
            for i in range(n):
                column[i] = W[start + i, k]
        for k in range(p):
            new = turned[k]
            new[:] = 0.0
            for j in range(p):
                column, factor = columns[j], turn[j, k]
                for i in range(n):
                    new[i] += column[i] * factor
            factor, share = kept[k], lost[k]
            for i in range(n):
                diagonal[i] += share * new[i] * new[i]
            for i in range(n):
                new[i] *= factor
                W[start + i, k] = new[i]
        for i in range(n):
            psi[start + i] = diagonal[i]
            diagonal[i] = 1.0 / diagonal[i]
        _add_gram(turned, diagonal, n, gram)


@compiled_reduction
def _add_gram(columns: np.ndarray, inverse: np.ndarray, n: int, gram: np.ndarray) -> None:
    """Gram += W'Ψ⁻¹W on a strip, W by columns."""
    for k in range(columns.shape[0]):
        one = columns[k]
        for j in range(k + 1):
            other = columns[j]
            total = 0.0
            for i in range(n):
                total += one[i] * other[i] * inverse[i]
            gram[k, j] += total
            if j != k:
                gram[j, k] += total
