"""Rows with classes meet covariances: a square-root covariance per class, or one over the weights of all classes.

Potter's form as in ``engine.dense.absorb``, whose text says why: with b = F'x, v = b'b, a site of precision λ turns F
into F - κ (F b) b', κ = (1 - 1/√(1+λv))/v. For one belief over all classes f_k sees block k of the weights; the
site's K × K precision is C C' and each column of C is one such turn. Reference twin: ``tests/reference/softmax.py``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.dense.absorb import LARGEST_GROWTH, cavity
from gaussfold.engine.scalar.vectors import dot
from gaussfold.engine.softmax.independent import independent_site
from gaussfold.engine.softmax.joint import invert, joint_site, lower_root, solve_lower, solve_turned
from gaussfold.engine.softmax.largest import class_log_average, room_for
from gaussfold.engine.softmax.scores import joint_score


@compiled
def _turn(factor: np.ndarray, b: np.ndarray, u: np.ndarray, precision: float, variance: float) -> bool:
    """F after a site of that precision along b = F'x, of which ``variance`` is the square; u receives F b."""
    k = b.size
    grown = 1.0 + precision * variance
    if not (grown > 0.0 and grown < LARGEST_GROWTH):
        return False
    root = math.sqrt(grown)
    kappa = precision / (root * (root + 1.0))
    for r in range(k):
        u[r] = dot(factor[r], b)
    for r in range(k):
        scale = kappa * u[r]
        if scale != 0.0:
            for q in range(k):
                factor[r, q] -= scale * b[q]
    return True


@compiled
def absorb_blocks(
    factors: np.ndarray,
    centres: np.ndarray,
    rows: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    site_precision: np.ndarray,
    site_shift: np.ndarray,
    nodes: np.ndarray,
    table: np.ndarray,
    out_mean: np.ndarray,
    out_variance: np.ndarray,
    out_log_predictive: np.ndarray,
) -> int:
    """Visit the rows in order, K beliefs at once; the first row that failed, or -1.

    Class c sees row x as N(x'μ_c, |F_c'x|²); ``centres`` and ``factors`` are changed in place. Sites that were there
    before (zeros when streaming) are taken out first. A NaN label or a zero weight only predicts.
    """
    k, r = centres.shape
    n = y.size
    b, u = np.empty((k, r)), np.empty(r)
    means, variances, precision, gradient = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    work, small = np.empty((k + 2, nodes.shape[1])), np.empty((8, k))
    room = room_for(k, table)
    for i in range(n):
        for c in range(k):
            x, centre, factor, seen = rows[i], centres[c], factors[c], b[c]
            seen[:] = 0.0
            mean = 0.0
            for q in range(r):
                if x[q] != 0.0:
                    mean += x[q] * centre[q]
                    for t in range(r):
                        seen[t] += x[q] * factor[q, t]
            out_mean[i, c] = mean
            out_variance[i, c] = dot(seen, seen)
        if math.isnan(y[i]):
            out_log_predictive[i] = math.nan
            continue
        proper, largest = True, 0.0
        for c in range(k):
            means[c], variances[c] = cavity(out_mean[i, c], out_variance[i, c], site_precision[i, c], site_shift[i, c])
            proper = proper and variances[c] >= 0.0
            largest = max(largest, variances[c])
        if not proper:
            out_log_predictive[i] = math.nan
            continue
        weight = w[i] if largest > 0.0 else 0.0
        score = class_log_average(means, variances, int(y[i]), table, room, small[:3])
        out_log_predictive[i] = score
        independent_site(means, variances, int(y[i]), weight, nodes, work, small, precision, gradient)
        if weight == 0.0:
            continue
        for c in range(k):
            if not (math.isfinite(score) and math.isfinite(gradient[c]) and variances[c] < math.inf):
                return i
        for c in range(k):
            shift = gradient[c] + precision[c] * (means[c] + variances[c] * gradient[c])
            change = precision[c] - site_precision[i, c]
            v = out_variance[i, c]
            step = (shift - site_shift[i, c]) - change * out_mean[i, c]
            if not _turn(factors[c], b[c], u, change, v):
                return i
            gain = step / (1.0 + change * v)
            for q in range(r):
                centres[c, q] += u[q] * gain
            site_precision[i, c] = precision[c]
            site_shift[i, c] = shift
    return -1


@compiled
def _columns(precision: np.ndarray, columns: np.ndarray) -> None:
    """C with C C' = a positive semi-definite matrix: Cholesky's factor, a pivot of nothing but rounding left out."""
    k = precision.shape[0]
    columns[:] = 0.0
    for c in range(k):
        pivot = precision[c, c]
        for j in range(c):
            pivot -= columns[c, j] * columns[c, j]
        if pivot > 1e-14 * precision[c, c]:
            columns[c, c] = math.sqrt(pivot)
            for r in range(c + 1, k):
                value = precision[r, c]
                for j in range(c):
                    value -= columns[r, j] * columns[c, j]
                columns[r, c] = value / columns[c, c]


@compiled
def _absorb_columns(
    factor: np.ndarray, seen: np.ndarray, columns: np.ndarray, sign: float, b: np.ndarray, u: np.ndarray, d: int,
    x: np.ndarray,
) -> bool:  # fmt: skip
    """Multiply by exp(-½ sign f'C C'f); ``seen`` (K, D) is what the K latents see of F, and is kept up to date."""
    k = columns.shape[0]
    for j in range(k):
        b[:] = 0.0
        for c in range(j, k):
            weight = columns[c, j]
            if weight != 0.0:
                for q in range(b.size):
                    b[q] += weight * seen[c, q]
        variance = dot(b, b)
        if variance == 0.0:
            continue
        if not _turn(factor, b, u, sign, variance):
            return False
        root = math.sqrt(1.0 + sign * variance)
        kappa = sign / (root * (root + 1.0))
        for c in range(k):
            reach = kappa * dot(u[c * d : (c + 1) * d], x)
            for q in range(b.size):
                seen[c, q] -= reach * b[q]
    return True


@compiled
def absorb_joint(
    factor: np.ndarray,
    mean: np.ndarray,
    rows: np.ndarray,
    y: np.ndarray,
    w: np.ndarray,
    site_precision: np.ndarray,
    site_shift: np.ndarray,
    nodes: np.ndarray,
    scoring: np.ndarray,
    out_mean: np.ndarray,
    out_cov: np.ndarray,
    out_log_predictive: np.ndarray,
) -> int:
    """Visit the rows in order, one belief over K d weights, class after class; the first row that failed, or -1.

    As :func:`absorb_blocks`, with sites (n, K, K) and (n, K) where old ones are to be taken out; a site is written only
    where there is room for it (a first dimension of n; 0: streams that nobody revisits).
    """
    k, size = out_mean.shape[1], mean.size
    d = rows.shape[1]
    keep = site_precision.shape[0] == y.size
    seen, b, u = np.empty((k, size)), np.empty(size), np.empty(size)
    cov, before, precision, columns = np.empty((k, k)), np.empty((k, k)), np.empty((k, k)), np.empty((k, k))
    root, inverse = np.empty((k, k)), np.empty((k, k))
    middle, gradient, shift, column, start = np.empty(k), np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    work, matrices, vectors = np.empty((k + 2, nodes.shape[1])), np.empty((7, k, k)), np.empty((6, k))
    looked = np.empty((k + 2, scoring.shape[1]))
    for i in range(y.size):
        x = rows[i]
        seen[:] = 0.0
        largest = 0.0
        for c in range(k):
            start[c] = dot(mean[c * d : (c + 1) * d], x)
            for q in range(d):
                if x[q] != 0.0:
                    for t in range(size):
                        seen[c, t] += x[q] * factor[c * d + q, t]
        for c in range(k):
            for j in range(c + 1):
                cov[c, j] = cov[j, c] = dot(seen[c], seen[j])
            largest = max(largest, cov[c, c])
        out_mean[i] = start
        out_cov[i if keep else 0] = cov
        if math.isnan(y[i]):
            out_log_predictive[i] = math.nan
            continue
        if largest == 0.0:  # a row of zeros: certain, and nothing to learn
            out_log_predictive[i] = _log_softmax(start, int(y[i]))
            continue
        before[:] = cov
        middle[:] = start
        if keep and not _take_out(cov, start, site_precision[i], site_shift[i], before, middle, root, inverse, column):
            out_log_predictive[i] = math.nan
            continue
        score = joint_score(middle, before, int(y[i]), scoring, root, looked)
        out_log_predictive[i] = score
        made = joint_site(middle, before, int(y[i]), w[i], nodes, work, matrices, vectors, precision, gradient)
        if not math.isfinite(score + made):
            return i
        if w[i] == 0.0:
            continue
        # the mean that the site leads to: μ + V J, and the weights' by P H'V⁻¹(what is left to go)
        for c in range(k):
            column[c] = middle[c] + dot(before[c], gradient) - start[c]
        for c in range(k):
            shift[c] = gradient[c] + dot(precision[c], column) + dot(precision[c], start)
        if not lower_root(cov, root):
            return i
        solve_lower(root, column)
        solve_turned(root, column)
        b[:] = 0.0
        for c in range(k):
            if not math.isfinite(column[c]):
                return i
            for q in range(size):
                b[q] += column[c] * seen[c, q]
        for r in range(size):
            mean[r] += dot(factor[r], b)
        if keep and site_precision[i, 0, 0] != 0.0:
            _columns(site_precision[i], columns)
            if not _absorb_columns(factor, seen, columns, -1.0, b, u, d, x):
                return i
        _columns(precision, columns)
        if not _absorb_columns(factor, seen, columns, 1.0, b, u, d, x):
            return i
        if keep:
            site_precision[i] = precision
            site_shift[i] = shift
    return -1


@compiled
def _log_softmax(f: np.ndarray, label: int) -> float:
    """f_y - log Σ exp(f_k)."""
    top = f.max()
    total = 0.0
    for c in range(f.size):
        total += math.exp(f[c] - top)
    return float(f[label] - top - math.log(total))


@compiled
def _take_out(
    cov: np.ndarray, mean: np.ndarray, precision: np.ndarray, shift: np.ndarray, before: np.ndarray, middle: np.ndarray,
    root: np.ndarray, inverse: np.ndarray, column: np.ndarray,
) -> bool:  # fmt: skip
    """N(mean, cov) without the site, into ``before`` and ``middle``; False where what is left is no Gaussian."""
    k = mean.size
    if precision[0, 0] == 0.0 and shift[0] == 0.0:
        return True
    if not lower_root(cov, root):
        return False
    invert(root, inverse, column)
    for r in range(k):
        middle[r] = dot(inverse[r], mean) - shift[r]
    for r in range(k):
        for c in range(k):
            inverse[r, c] -= precision[r, c]
    if not lower_root(inverse, root):
        return False
    solve_lower(root, middle)
    solve_turned(root, middle)
    invert(root, before, column)
    return True
