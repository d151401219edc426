"""A dense belief that drifts between the rows: as ``dense.absorb``, in the forms in which a tick of time is cheap.

Forgetting works on natural parameters, a random walk on the covariance. Reference twin: ``tests/reference/dense.py``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.scalar.expectations import log_predictive
from gaussfold.engine.scalar.sites import make_site
from gaussfold.engine.scalar.vectors import dot
from gaussfold.types import Program


@compiled
def _forward_solve(lower: np.ndarray, right: np.ndarray) -> np.ndarray:
    """L⁻¹ r by substitution."""
    out = np.empty(right.size)
    for r in range(right.size):
        out[r] = (right[r] - dot(lower[r, :r], out[:r])) / lower[r, r]
    return out


@compiled
def _visit(
    program: Program,
    i: int,
    y: float,
    w: float,
    m0: float,
    v0: float,
    out_mean: np.ndarray,
    out_variance: np.ndarray,
    out_log_predictive: np.ndarray,
    site_precision: np.ndarray,
    site_shift: np.ndarray,
) -> tuple[bool, bool, float, float]:
    """Note marginal and score of row i, and make its site if it teaches; (fine, taught, gradient, curvature).

    For the two loops below, where a row costs far more than a call with arrays does.
    """
    family, rule, at = program
    out_mean[i] = m0
    out_variance[i] = v0
    out_log_predictive[i] = log_predictive(family, y, m0, v0)
    if not _teaches(y, w) or v0 == 0.0:
        return True, False, 0.0, 0.0
    j, h, m, v, _ = make_site(family, rule, at, y, w, m0, v0)
    if not (v > 0.0 and v < math.inf and abs(j) < math.inf and abs(h) < math.inf):
        return False, False, j, h
    site_precision[i] = -h
    site_shift[i] = j - h * m
    return True, True, j, h


@compiled
def _teaches(y: float, w: float) -> bool:
    return not math.isnan(y) and w != 0.0


@compiled
def _tick_natural(
    precision: np.ndarray,
    shift: np.ndarray,
    prior_precision: np.ndarray,
    factor: float,
) -> None:
    d = shift.size
    for r in range(d):
        shift[r] *= factor
        for q in range(d):
            precision[r, q] = factor * precision[r, q] + (1.0 - factor) * prior_precision[r, q]


# The arguments of this loop and of the next are alike, one by one, as in ``absorb_rows``: a record of arrays would be
# looked through by Numba at every call from Python.


@compiled
def absorb_rows_forgetting(
    precision: np.ndarray,
    shift: np.ndarray,
    prior_mean: np.ndarray,
    prior_precision: np.ndarray,
    forgetting: float,
    rows: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    program: Program,
    out_mean: np.ndarray,
    out_variance: np.ndarray,
    out_log_predictive: np.ndarray,
    site_precision: np.ndarray,
    site_shift: np.ndarray,
) -> int:
    """As ``absorb.absorb_rows`` with one tick of stabilised forgetting before each learned row, in natural parameters.

    Λ ← γΛ + (1-γ)Λ₀, h ← γh with h = Λ(μ-μ₀). A tick has full rank, so each row costs a Cholesky factor.
    """
    n, d = rows.shape
    for i in range(n):
        if _teaches(y[i], w[i]):
            _tick_natural(precision, shift, prior_precision, forgetting)
        lower = np.linalg.cholesky(precision)
        x = rows[i]
        b = _forward_solve(lower, x)
        g = _forward_solve(lower, shift)
        variance = 0.0
        mean = 0.0
        for q in range(d):
            variance += b[q] * b[q]
            mean += b[q] * g[q] + x[q] * prior_mean[q]
        fine, taught, _, h = _visit(
            program, i, y[i], w[i], mean, variance,
            out_mean, out_variance, out_log_predictive, site_precision, site_shift,
        )  # fmt: skip
        if not fine:
            return i
        if not taught:
            continue
        base = 0.0
        for q in range(d):
            base += x[q] * prior_mean[q]
        gain = site_shift[i] + h * base  # the site's shift seen from the prior mean
        for r in range(d):
            shift[r] += gain * x[r]
            for q in range(d):
                precision[r, q] -= h * x[r] * x[q]
    return -1


@compiled
def absorb_rows_walking(
    mean: np.ndarray,
    cov: np.ndarray,
    step_variance: np.ndarray,
    rows: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    program: Program,
    out_mean: np.ndarray,
    out_variance: np.ndarray,
    out_log_predictive: np.ndarray,
    site_precision: np.ndarray,
    site_shift: np.ndarray,
) -> int:
    """As ``absorb.absorb_rows`` with P ← P + Q before each learned row: the Kalman filter of a random walk.

    Q is diagonal, ``step_variance`` its entries.
    """
    n, d = rows.shape
    u = np.empty(d)
    for i in range(n):
        if _teaches(y[i], w[i]):
            for r in range(d):
                cov[r, r] += step_variance[r]
        m0 = 0.0
        variance = 0.0
        for r in range(d):
            u[r] = dot(cov[r], rows[i])
            m0 += rows[i, r] * mean[r]
            variance += rows[i, r] * u[r]
        fine, taught, j, h = _visit(
            program, i, y[i], w[i], m0, variance,
            out_mean, out_variance, out_log_predictive, site_precision, site_shift,
        )  # fmt: skip
        if not fine:
            return i
        if not taught:
            continue
        kappa = -h / (1.0 - variance * h)
        for r in range(d):
            mean[r] += u[r] * j
            scale = kappa * u[r]
            for q in range(d):
                cov[r, q] -= scale * u[q]
    return -1
