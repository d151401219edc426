"""Passes over rows for a dense belief: exact row-by-row semantics at matrix-multiply speed.

A block of B rows X sees the factor F only through A = F'X'. With A = Q R, the B sequential updates touch nothing
but the B×B matrix R (rows of the engine's loop) and a B×B factor that starts as the identity and ends as M; then

    F ← F - (F Q)(I - M) Q',    mean ← mean + F Q δ.

Three products of 2d²B flops each, whatever B. R comes from the Cholesky factor of A'A where that is well
conditioned, else from Householder's QR.

Many rows at once go through P = F F' instead, in half the operations: one symmetric product and one rank-B
downdate a block, and a Cholesky factor at the end. Subtracting variances loses what the square root keeps, so the
result is accepted only if rounding cannot have been amplified (``MAX_AMPLIFICATION``); else the rows are done again
on the factor. On failure nothing has changed: passes work on copies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import qr
from scipy.linalg.blas import dgemm, dsymm, dsyrk
from scipy.linalg.lapack import dpocon, dpotrf, dtrtri

from gaussfold.beliefs.trace import RowError, Trace
from gaussfold.checks import whole
from gaussfold.engine.dense.absorb import absorb_rows, absorb_rows_forgetting, absorb_rows_walking
from gaussfold.linalg.products import product
from gaussfold.linalg.roots import lower_root, root_from_precision
from gaussfold.types import Array, Program

NO_FALLS: Array = np.empty((0, 0))
DIRECT_DIM = 64
"""Up to this dimension the loop runs on the d×d factor itself: it fits the first cache."""
DIRECT_ROWS = 3
"""So few rows at once are not worth a block."""
SEGMENT = 4
"""Rows, in multiples of d, that go through P before its factor is taken again; half as many are worth starting."""
MAX_AMPLIFICATION = 1e5
"""Largest ‖P before‖ ‖P⁻¹ after‖ at which variances may be subtracted: about 1e-11 is lost."""
WELL_CONDITIONED = 3e-3
"""Smallest ratio of diagonal entries of R at which A'A may be squared (its error grows like the ratio⁻²)."""


def block_length(dim: int, block_size: int | None) -> int:
    """Rows per block: as asked, or what makes the B×B work small against the three products."""
    if block_size is not None:
        return min(whole("block_size", block_size), dim)
    return 32 if dim < 200 else 64


def dense_rows(X: Any, start: int, stop: int) -> Array:
    """Some rows as a C-contiguous array."""
    part = X[start:stop]
    return part.toarray() if sparse.issparse(part) else np.ascontiguousarray(part)


def static_pass(
    mean: Array,
    factor: Array,
    X: Any,
    y: Array,
    weight: Array,
    program: Program,
    trace: Trace,
    block_size: int | None,
) -> tuple[Array, Array]:
    """Absorb all rows without drift; returns the new mean and factor."""
    n, dim = y.size, mean.size
    length = block_length(dim, block_size)
    if n == 0:
        return mean, factor
    with np.errstate(over="ignore", invalid="ignore"):  # a row too large to square is found, and named, by the engine
        return _static_pass(mean, factor, X, y, weight, program, trace, block_size, length)


def _static_pass(
    mean: Array, factor: Array, X: Any, y: Array, weight: Array, program: Program, trace: Trace,
    block_size: int | None, length: int,
) -> tuple[Array, Array]:  # fmt: skip
    n, dim = y.size, mean.size
    if length == 1 or (block_size is None and (dim <= DIRECT_DIM or n <= DIRECT_ROWS)):
        factor = factor.copy()
        rows = dense_rows(X, 0, n)
        delta = np.zeros(dim)
        _checked(_engine_pass(factor, delta, rows, rows @ mean, y, weight, program, trace), 0)
        return mean + delta, factor
    mean = mean.copy()
    start, segment = 0, SEGMENT * dim
    subtract = block_size is None and bool(np.count_nonzero(~np.isnan(y) & (weight > 0.0)) >= segment // 2)
    ours = False  # the caller's factor is copied before it is written to
    while start < n:
        subtract = subtract and n - start >= segment // 2
        stop = min(start + segment, n) if subtract else n
        after = _absorb_segment(mean, factor, X, y, weight, program, trace, start, stop, length) if subtract else None
        if after is None:
            subtract = False
            factor = factor if ours else factor.copy()
            for first in range(start, stop, length):
                _absorb_block(mean, factor, X, y, weight, program, trace, first, min(first + length, stop))
        else:
            mean, factor = after
        ours, start = True, stop
    return mean, factor


def _absorb_segment(
    mean: Array, factor: Array, X: Any, y: Array, weight: Array, program: Program, trace: Trace,
    start: int, stop: int, length: int,
) -> tuple[Array, Array] | None:  # fmt: skip
    """Rows ``start`` to ``stop`` by way of the covariance; None where its square root is the safer way."""
    kept = trace.rows(start, stop)
    sites = kept.site_precision.copy(), kept.site_shift.copy()
    mean = mean.copy()
    cov = dsyrk(1.0, factor.T, trans=1)  # in Fortran order, upper triangle: its root's transpose is C-ordered
    size_before = _largest_variance(factor)
    for first in range(start, stop, length):
        last = min(first + length, stop)
        rows = dense_rows(X, first, last)
        reach = dsymm(1.0, cov, rows.T)  # P X', d×B
        root, info = dpotrf(product(rows, reach), lower=1, clean=1)
        diagonal = np.diag(root)
        if info != 0 or not diagonal.min() > WELL_CONDITIONED * diagonal.max():
            break
        size = last - first
        delta, falls = np.zeros(size), np.zeros((size, size))
        part = trace.rows(first, last)
        failed = _engine_pass(
            np.eye(size),
            delta,
            np.ascontiguousarray(root),
            rows @ mean,
            y[first:last],
            weight[first:last],
            program,
            part,
            falls,
        )
        _checked(failed, first)
        if not np.isfinite(falls).all():
            break
        inverse, _ = dtrtri(root, lower=1)
        mean += reach @ (inverse.T @ delta)
        fall = product(product(falls, inverse), reach.T)  # B×d: what P loses, as rows
        dsyrk(-1.0, fall.T, beta=1.0, c=cov, overwrite_c=1)
    else:
        upper, info = dpotrf(cov, clean=1, overwrite_a=1)
        if info == 0:
            rcond, _ = dpocon(upper, 1.0)  # with anorm = 1 this is 1/‖P⁻¹‖
            if size_before <= MAX_AMPLIFICATION * rcond:
                return mean, np.ascontiguousarray(upper.T)
    kept.site_precision[:], kept.site_shift[:] = sites
    return None


def _absorb_block(
    mean: Array, factor: Array, X: Any, y: Array, weight: Array, program: Program, trace: Trace, start: int, stop: int
) -> None:
    """One block, in place on ``mean`` and ``factor``."""
    rows = dense_rows(X, start, stop)
    seen = product(rows, factor)  # A', B×d
    gram_root, info = dpotrf(product(seen, seen.T), lower=1, clean=1)
    diagonal = np.diag(gram_root)
    squared = info == 0 and diagonal.min() > WELL_CONDITIONED * diagonal.max()
    if squared:
        triangle = np.ascontiguousarray(gram_root)
    else:
        basis, upper = qr(seen.T, mode="economic")
        triangle = np.ascontiguousarray(upper.T)
        seen = np.ascontiguousarray(basis.T)
    size = triangle.shape[1]
    small = np.eye(size)
    delta = np.zeros(size)
    failed = _engine_pass(
        small, delta, triangle, rows @ mean, y[start:stop], weight[start:stop], program, trace.rows(start, stop)
    )
    _checked(failed, start)
    change = np.eye(size) - small
    if squared:  # Q = A R⁻¹ stays implicit: fold the two inverses into the B×B middle
        inverse, _ = dtrtri(gram_root, lower=1)
        change = product(product(inverse.T, change), inverse)
        delta = inverse.T @ delta
    reach = product(seen, factor.T)  # (F A)' or (F Q)', B×d
    mean += delta @ reach
    # F' -= A (change' reach): in place, through the transpose, which is what Fortran calls F
    dgemm(-1.0, seen.T, product(change.T, reach).T, beta=1.0, c=factor.T, overwrite_c=1, trans_b=1)


def _largest_variance(factor: Array) -> float:
    """‖F F'‖ to a few per cent, by power iteration from a fixed start."""
    direction = np.asarray(np.random.default_rng(0).standard_normal(factor.shape[0]))
    size = 0.0
    for _ in range(10):
        direction = factor @ (direction @ factor)
        size = float(np.linalg.norm(direction))
        direction = direction / size
    return size


def _engine_pass(
    factor: Array, delta: Array, rows: Array, offset: Array, y: Array, weight: Array, program: Program, trace: Trace,
    falls: Array = NO_FALLS,
) -> int:  # fmt: skip
    return int(
        absorb_rows(
            factor, delta, rows, offset, y, weight, trace.site_precision, trace.site_shift, program,
            trace.mean, trace.variance, trace.log_predictive, falls,
        )
    )  # fmt: skip


def _checked(failed: int, start: int) -> None:
    if failed >= 0:
        raise RowError(start + failed)


def forgetting_pass(
    mean: Array,
    precision: Array,
    prior_mean: Array,
    prior_precision: Array,
    forgetting: float,
    X: Any,
    y: Array,
    weight: Array,
    program: Program,
    trace: Trace,
) -> tuple[Array, Array]:
    """Absorb all rows, relaxing towards the prior before each learned one."""
    precision = np.ascontiguousarray(precision)
    shift = precision @ (mean - prior_mean)
    rows = dense_rows(X, 0, y.size)
    _checked(
        int(
            absorb_rows_forgetting(
                precision, shift, prior_mean, np.ascontiguousarray(prior_precision), forgetting, rows, y, weight,
                program, trace.mean, trace.variance, trace.log_predictive, trace.site_precision, trace.site_shift,
            )
        ),
        0,
    )  # fmt: skip
    factor = root_from_precision(precision, "the forgotten precision")
    return prior_mean + factor @ (factor.T @ shift), factor


def walking_pass(
    mean: Array,
    cov: Array,
    step_variance: float,
    X: Any,
    y: Array,
    weight: Array,
    program: Program,
    trace: Trace,
) -> tuple[Array, Array]:
    """Absorb all rows, adding ``step_variance`` to every parameter before each learned one."""
    mean = mean.copy()
    cov = np.ascontiguousarray(cov)
    rows = dense_rows(X, 0, y.size)
    _checked(
        int(
            absorb_rows_walking(
                mean, cov, step_variance, rows, y, weight, program, trace.mean, trace.variance,
                trace.log_predictive, trace.site_precision, trace.site_shift,
            )
        ),
        0,
    )  # fmt: skip
    return mean, lower_root(cov, "the covariance after the random walk")
