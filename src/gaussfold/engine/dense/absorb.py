"""Sequential updates of a square-root covariance: P = F F', one row at a time.

Potter's form: with b = F'c, v = b'b, a site of precision λ turns F into F - κ (F b) b' where
κ = (1 - 1/√(1+λv))/v. It subtracts square roots, not variances, so P stays positive definite and its small
eigenvalues keep half their digits where P - u u'/(...) would lose all of them. λ may be negative as long as
1 + λv > 0.

The same loop serves two sizes: ``F`` the d×d factor itself and rows x (small d, or a single row), or ``F`` = I of
the size of a block and rows R (the triangle of a QR of the block seen through the factor), see
``beliefs.dense``. Reference twin: ``tests/reference/dense.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import typeof
from numba.core import types

from gaussfold.engine.compilation.entry import entry_point
from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import is_label
from gaussfold.engine.scalar.expectations import log_predictive
from gaussfold.engine.scalar.sites import scored_site
from gaussfold.engine.scalar.vectors import dot
from gaussfold.types import Program

LARGEST_GROWTH = 2e31
"""Of a precision, by one row: its root is the factor by which a standard deviation falls; doubles have 16 digits."""


@compiled
def cavity(m: float, v: float, precision: float, shift: float) -> tuple[float, float]:
    """N(m, v) without the site of the given precision and shift; as it is where there was no site."""
    if precision == 0.0 and shift == 0.0:
        return m, v
    variance = 1.0 / (1.0 / v - precision)
    return variance * (m / v - shift), variance


@compiled
def absorb_rows(
    factor: np.ndarray,
    delta: np.ndarray,
    rows: np.ndarray,
    offset: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    site_precision: np.ndarray,
    site_shift: np.ndarray,
    program: Program,
    out_mean: np.ndarray,
    out_variance: np.ndarray,
    out_log_predictive: np.ndarray,
    falls: np.ndarray,
) -> int:
    """Visit the rows in order: marginal, site, absorb. Returns the first row that failed, or -1.

    The marginal of row i is N(offset_i + rows_i'δ, |F'rows_i|²); ``factor`` and ``delta`` (the mean's change) are
    updated in place, as are the sites: what was there before is taken out first (zeros when streaming), so the
    same loop runs the first pass and every later sweep. A NaN label or a zero weight only predicts; a row that sees
    no uncertainty teaches nothing; ``falls`` (n×k, or empty) receives the vectors whose squares P loses (NaN where it
    gains); a row whose cavity is not a Gaussian (possible only beside sites of negative
    precision) keeps its site in this sweep.
    """
    # One long body of many arguments: calls with arrays count references to them, and a record of arrays would be
    # looked through by Numba at every call from Python, both of which show in a row of ten features.
    family, rule, at = program
    n, k = rows.shape
    b = np.empty(k)
    keeps_falls = falls.size > 0
    for i in range(n):
        mean = offset[i]
        for r in range(k):
            b[r] = 0.0
        for r in range(k):
            c = rows[i, r]
            if c != 0.0:
                mean += c * delta[r]
                for q in range(k):
                    b[q] += c * factor[r, q]
        variance = dot(b, b)
        out_mean[i] = mean
        out_variance[i] = variance
        if math.isnan(y[i]):
            out_log_predictive[i] = math.nan
            continue
        before_mean, before_variance = cavity(mean, variance, site_precision[i], site_shift[i])
        if before_variance < 0.0:
            out_log_predictive[i] = math.nan
            continue
        if w[i] == 0.0 or variance == 0.0:
            out_log_predictive[i] = log_predictive(family, y[i], before_mean, before_variance)
            continue
        out_log_predictive[i], j, h, m, v = scored_site(family, rule, at, y[i], w[i], before_mean, before_variance)
        precision = -h
        shift = j - h * m
        if not (v > 0.0 and v < math.inf and abs(shift) < math.inf and variance < math.inf):
            return i
        change = precision - site_precision[i]
        step = (shift - site_shift[i]) - change * mean  # the change of the site, as a gradient at the old mean
        grown = 1.0 + change * variance
        if not (grown > 0.0 and grown < LARGEST_GROWTH):
            return i
        site_precision[i] = precision
        site_shift[i] = shift
        gain = step / grown
        root = math.sqrt(grown)
        kappa = change / (root * (root + 1.0))  # = (1 - 1/root)/variance without cancellation
        fall = math.sqrt(change) / root if change >= 0.0 else math.nan
        for r in range(k):  # one way through the factor: each of its rows is used while it is near
            u = dot(factor[r], b)
            delta[r] += u * gain
            scale = kappa * u
            if scale != 0.0:
                for q in range(k):
                    factor[r, q] -= scale * b[q]
            if keeps_falls:
                falls[i, r] = fall * u
    return -1


_ENTRIES: dict[tuple[type, type], Callable[..., bool]] = {}


def absorb_row(
    factor: np.ndarray, mean: np.ndarray, row: np.ndarray, y: float, program: Program, out: np.ndarray
) -> bool:
    """As :func:`absorb_checked_row`, called past Numba's look at every argument, which takes as long as the update.

    What that look would find is made sure of here: float64 arrays (all of a dense belief's are) in C order.
    """
    if not (factor.flags.c_contiguous and mean.flags.c_contiguous and row.flags.c_contiguous):
        return bool(absorb_checked_row(factor, mean, row, y, program, out))
    kind = (type(program.family), type(program.rule))
    entry = _ENTRIES.get(kind)
    if entry is None:
        entry = _ENTRIES[kind] = _entry(program)
    return entry(factor, mean, row, y, program, out)


def _entry(program: Program) -> Callable[..., bool]:
    """The machine code of :func:`absorb_checked_row` for programs of these types."""
    matrix, vector = types.Array(types.float64, 2, "C"), types.Array(types.float64, 1, "C")
    return entry_point(absorb_checked_row, (matrix, vector, matrix, types.float64, typeof(program), matrix))


@compiled
def absorb_checked_row(
    factor: np.ndarray,
    mean: np.ndarray,
    row: np.ndarray,
    y: float,
    program: Program,
    out: np.ndarray,
) -> bool:
    """One row of weight one, checks included; ``out`` receives the five columns of a trace.

    False, and nothing has changed, if anything is wrong with the row: the caller finds out what in its own time.
    """
    if not (math.isnan(y) or is_label(program.family, y)):
        return False
    offset = np.empty(1)
    offset[0] = dot(row[0], mean)
    if not abs(offset[0]) < math.inf:
        return False
    delta = np.zeros(mean.size)
    label = np.full(1, y)
    if absorb_rows(
        factor, delta, row, offset, label, np.ones(1), out[3], out[4], program, out[0], out[1], out[2], np.empty((0, 0))
    ) >= 0:  # fmt: skip
        return False
    for r in range(mean.size):
        mean[r] += delta[r]
    return True
