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

from typing import NamedTuple

import numpy as np
from scipy.linalg import qr
from scipy.linalg.blas import dgemm, dsymm, dsyrk
from scipy.linalg.lapack import dpocon, dpotrf, dtrtri

from gaussfold.beliefs.visits import Visits
from gaussfold.checks import whole
from gaussfold.engine.dense.drifting import absorb_rows_forgetting, absorb_rows_walking
from gaussfold.linalg.products import applied, product
from gaussfold.linalg.roots import lower_root, root_from_precision
from gaussfold.rows import dense_rows
from gaussfold.types import Array

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


def static_pass(mean: Array, factor: Array, visits: Visits, block_size: int | None) -> tuple[Array, Array]:
    """Absorb all rows without drift; returns the new mean and factor."""
    length = block_length(mean.size, block_size)
    if visits.size == 0:
        return mean, factor
    few = mean.size <= DIRECT_DIM or visits.size <= DIRECT_ROWS
    with np.errstate(over="ignore", invalid="ignore"):  # a row too large to square is found, and named, by the engine
        if length == 1 or (block_size is None and few):
            return _absorb_directly(mean, factor, visits)
        return _absorb_blocks(mean, factor, visits, length, subtract=block_size is None)


def _absorb_directly(mean: Array, factor: Array, visits: Visits) -> tuple[Array, Array]:
    """All rows on the d×d factor itself."""
    factor, delta = factor.copy(), np.zeros(mean.size)
    rows = dense_rows(visits.data.X)
    visits.run(factor, delta, rows, rows @ mean)
    return mean + delta, factor


def _absorb_blocks(mean: Array, factor: Array, visits: Visits, length: int, *, subtract: bool) -> tuple[Array, Array]:
    """Blocks of ``length`` rows, in segments that go through the covariance while that is allowed and safe."""
    n, segment = visits.size, SEGMENT * mean.size
    mean = mean.copy()
    subtract = subtract and bool(np.count_nonzero(visits.data.learned) >= segment // 2)
    start, ours = 0, False  # the caller's factor is copied before it is written to
    while start < n:
        subtract = subtract and n - start >= segment // 2
        stop = min(start + segment, n) if subtract else n
        part = visits.part(start, stop)
        after = _absorb_segment(mean, factor, part, length) if subtract else None
        if after is None:
            subtract = False
            factor = factor if ours else factor.copy()
            for first in range(0, part.size, length):
                _absorb_block(mean, factor, part.part(first, min(first + length, part.size)))
        else:
            mean, factor = after
        ours, start = True, stop
    return mean, factor


def _absorb_segment(mean: Array, factor: Array, visits: Visits, length: int) -> tuple[Array, Array] | None:
    """Some rows by way of the covariance; None where its square root is the safer way."""
    sites = visits.trace.site_precision.copy(), visits.trace.site_shift.copy()
    mean = mean.copy()
    cov = dsyrk(1.0, factor.T, trans=1)  # in Fortran order, upper triangle: its root's transpose is C-ordered
    size_before = _largest_variance(factor)
    safe = all(
        _subtract_block(mean, cov, visits.part(first, min(first + length, visits.size)))
        for first in range(0, visits.size, length)
    )
    if safe:
        upper, info = dpotrf(cov, clean=1, overwrite_a=1)
        if info == 0:
            rcond, _ = dpocon(upper, 1.0)  # with anorm = 1 this is 1/‖P⁻¹‖
            if size_before <= MAX_AMPLIFICATION * rcond:
                return mean, np.ascontiguousarray(upper.T)
    visits.trace.site_precision[:], visits.trace.site_shift[:] = sites
    return None


def _subtract_block(mean: Array, cov: Array, visits: Visits) -> bool:
    """One block, in place on ``mean`` and the upper triangle of ``cov``; False where that loses too many digits."""
    rows = dense_rows(visits.data.X)
    reach = dsymm(1.0, cov, rows.T)  # P X', d×B
    root, info = dpotrf(product(rows, reach), lower=1, clean=1)
    if not _well_conditioned(root, info):
        return False
    size = visits.size
    delta, falls = np.zeros(size), np.zeros((size, size))
    visits.run(np.eye(size), delta, np.ascontiguousarray(root), applied(rows, mean), falls)
    if not np.isfinite(falls).all():
        return False
    inverse, _ = dtrtri(root, lower=1)
    mean += applied(reach, applied(inverse.T, delta))
    fall = product(product(falls, inverse), reach.T)  # B×d: what P loses, as rows
    dsyrk(-1.0, fall.T, beta=1.0, c=cov, overwrite_c=1)
    return True


def _well_conditioned(root: Array, info: int) -> bool:
    diagonal = np.diag(root)
    return info == 0 and bool(diagonal.min() > WELL_CONDITIONED * diagonal.max())


def _absorb_block(mean: Array, factor: Array, visits: Visits) -> None:
    """One block, in place on ``mean`` and ``factor``."""
    rows = dense_rows(visits.data.X)
    seen = product(rows, factor)  # A', B×d
    gram_root, info = dpotrf(product(seen, seen.T), lower=1, clean=1)
    squared = _well_conditioned(gram_root, info)
    if squared:
        triangle = np.ascontiguousarray(gram_root)
    else:
        basis, upper = qr(seen.T, mode="economic")
        triangle = np.ascontiguousarray(upper.T)
        seen = np.ascontiguousarray(basis.T)
    size = triangle.shape[1]
    small, delta = np.eye(size), np.zeros(size)
    visits.run(small, delta, triangle, applied(rows, mean))
    change = np.eye(size) - small
    if squared:  # Q = A R⁻¹ stays implicit: fold the two inverses into the B×B middle
        inverse, _ = dtrtri(gram_root, lower=1)
        change = product(product(inverse.T, change), inverse)
        delta = applied(inverse.T, delta)
    reach = product(seen, factor.T)  # (F A)' or (F Q)', B×d
    mean += applied(reach.T, delta)
    # F' -= A (change' reach): in place, through the transpose, which is what Fortran calls F
    dgemm(-1.0, seen.T, product(change.T, reach).T, beta=1.0, c=factor.T, overwrite_c=1, trans_b=1)


def _largest_variance(factor: Array) -> float:
    """‖F F'‖ to a few per cent, by power iteration from a fixed start."""
    direction = np.asarray(np.random.default_rng(0).standard_normal(factor.shape[0]))
    size = 0.0
    for _ in range(10):
        direction = applied(factor, applied(factor.T, direction))
        size = float(np.linalg.norm(direction))
        direction = direction / size
    return size


class Known(NamedTuple):
    """A Gaussian by its mean and precision."""

    mean: Array
    precision: Array


def forgetting_pass(belief: Known, prior: Known, forgetting: float, visits: Visits) -> tuple[Array, Array]:
    """Absorb all rows, relaxing towards the prior before each learned one; returns the new mean and factor."""
    (X, y, weight), trace = visits.data, visits.trace
    precision = np.ascontiguousarray(belief.precision)
    shift = precision @ (belief.mean - prior.mean)
    visits.check(
        absorb_rows_forgetting(
            precision, shift, prior.mean, np.ascontiguousarray(prior.precision), forgetting, dense_rows(X), y, weight,
            visits.program, trace.mean, trace.variance, trace.log_predictive, trace.site_precision, trace.site_shift,
        )
    )  # fmt: skip
    factor = root_from_precision(precision, "the forgotten precision")
    return prior.mean + factor @ (factor.T @ shift), factor


def walking_pass(mean: Array, cov: Array, step_variance: Array, visits: Visits) -> tuple[Array, Array]:
    """Absorb all rows, adding ``step_variance`` (one per parameter) to the variances before each learned one."""
    (X, y, weight), trace = visits.data, visits.trace
    mean = mean.copy()
    cov = np.ascontiguousarray(cov)
    visits.check(
        absorb_rows_walking(
            mean, cov, step_variance, dense_rows(X), y, weight, visits.program, trace.mean, trace.variance,
            trace.log_predictive, trace.site_precision, trace.site_shift,
        )
    )  # fmt: skip
    return mean, lower_root(cov, "the covariance after the random walk")
