"""The softmax seen by K latents with covariances, one row: the site at the very belief that it leads to.

As ``independent``, with f = m + L z: the row's variational problem is

    F(m, L) = ½ (m - μ)'V⁻¹(m - μ) + ½ tr(V⁻¹ L L') - log |L| - w E log p(y | f),

N(μ, V) the latents before it, rvga (3)-(4). A step goes to the Gaussian that the site made at (m, L) leads to, of
precision w E[diag(p) - pp'] and gradient w E[e_y - p], or part of the way, so far as F falls: rvga (73)-(77).
Reference twin: ``tests/reference/softmax.py``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_reduction
from gaussfold.engine.scalar.exponential import exp_nonpositive, log_positive
from gaussfold.engine.scalar.vectors import reciprocal

STEPS = 60
TOLERANCE = 1e-7
HALVINGS = 12


@compiled
def lower_root(matrix: np.ndarray, root: np.ndarray) -> bool:
    """Cholesky's factor; False if the matrix is not positive definite."""
    k = matrix.shape[0]
    for r in range(k):
        for c in range(r + 1):
            value = matrix[r, c]
            for j in range(c):
                value -= root[r, j] * root[c, j]
            if r == c:
                if not value > 0.0:
                    return False
                root[r, r] = math.sqrt(value)
            else:
                root[r, c] = value / root[c, c]
                root[c, r] = 0.0
    return True


@compiled
def solve_lower(root: np.ndarray, vector: np.ndarray) -> None:
    """L⁻¹ x, in place."""
    for r in range(vector.size):
        value = vector[r]
        for c in range(r):
            value -= root[r, c] * vector[c]
        vector[r] = value / root[r, r]


@compiled
def solve_turned(root: np.ndarray, vector: np.ndarray) -> None:
    """L⁻ᵀ x, in place."""
    for r in range(vector.size - 1, -1, -1):
        value = vector[r]
        for c in range(r + 1, vector.size):
            value -= root[c, r] * vector[c]
        vector[r] = value / root[r, r]


@compiled
def invert(root: np.ndarray, inverse: np.ndarray, column: np.ndarray) -> None:
    """(L L')⁻¹, symmetric."""
    k = root.shape[0]
    for c in range(k):
        column[:] = 0.0
        column[c] = 1.0
        solve_lower(root, column)
        solve_turned(root, column)
        inverse[:, c] = column
    for r in range(k):
        for c in range(r):
            inverse[r, c] = inverse[c, r] = 0.5 * (inverse[r, c] + inverse[c, r])


@compiled_reduction
def joint_average(
    mean: np.ndarray, root: np.ndarray, nodes: np.ndarray, label: int, work: np.ndarray, p: np.ndarray, bend: np.ndarray
) -> tuple[float, float]:
    """E log p(y|f) and log E p(y|f); ``p`` and ``bend`` receive E p and E[diag(p) - pp']. ``work``: (K + 2, S)."""
    k, size = nodes.shape
    top, total = work[k], work[k + 1]
    top[:] = -math.inf
    for c in range(k):
        row = work[c]
        row[:] = mean[c]
        for b in range(c + 1):
            z, s = nodes[b], root[c, b]
            for j in range(size):
                row[j] += s * z[j]
        for j in range(size):
            top[j] = max(top[j], row[j])
    own = work[label]
    expected = 0.0
    highest = -math.inf
    total[:] = 0.0
    for j in range(size):
        own_value = own[j] - top[j]
        expected += own_value
        highest = max(highest, own_value)
    for c in range(k):
        row = work[c]
        for j in range(size):
            row[j] = exp_nonpositive(row[j] - top[j])
            total[j] += row[j]
    for j in range(size):
        expected -= log_positive(total[j])
    reciprocal(total)
    for c in range(k):
        row = work[c]
        first = 0.0
        for j in range(size):
            row[j] *= total[j]
        for j in range(size):
            first += row[j]
        p[c] = first / size
    for c in range(k):
        row = work[c]
        rest = 0.0
        for b in range(c):
            other = work[b]
            both = 0.0
            for j in range(size):
                both += row[j] * other[j]
            bend[c, b] = bend[b, c] = -both / size
    for c in range(k):  # rows of diag(p) - pp' add up to nothing: no cancellation in p - p²
        rest = 0.0
        for b in range(k):
            if b != c:
                rest -= bend[c, b]
        bend[c, c] = rest
    predicted = p[label]
    if predicted < 1e-250:  # all of it beyond what exp holds: the nearest node tells
        return expected / size, highest - math.log(size)
    return expected / size, math.log(predicted)


@compiled
def joint_divergence(
    mean: np.ndarray, root: np.ndarray, before_mean: np.ndarray, before_root: np.ndarray, weight: float, seen: float,
    column: np.ndarray,
) -> float:  # fmt: skip
    """F of the module's text, ``seen`` = E log p(y | f)."""
    k = mean.size
    value = -weight * seen
    for c in range(k):
        column[c] = mean[c] - before_mean[c]
    solve_lower(before_root, column)
    for c in range(k):
        value += 0.5 * column[c] * column[c] - math.log(root[c, c])
    for b in range(k):
        for c in range(k):
            column[c] = root[c, b]
        solve_lower(before_root, column)
        for c in range(k):
            value += 0.5 * column[c] * column[c]
    return value


@compiled
def joint_site(
    before_mean: np.ndarray,
    before_cov: np.ndarray,
    label: int,
    weight: float,
    nodes: np.ndarray,
    work: np.ndarray,
    matrices: np.ndarray,
    vectors: np.ndarray,
    precision: np.ndarray,
    gradient: np.ndarray,
) -> float:
    """Solve for the site; log E p(y|f) before it, NaN if that cannot be. ``matrices``: (7, K, K), ``vectors``: (6, K).

    ``precision`` (K, K) receives that of the site, ``gradient`` V⁻¹(m - μ): what moves the mean by V times itself.
    """
    k = before_mean.size
    before_root, root, new_root, bend, inner, inverse, before_precision = (
        matrices[0], matrices[1], matrices[2], matrices[3], matrices[4], matrices[5], matrices[6],
    )  # fmt: skip
    mean, new_mean, p, step, column, pulled = (
        vectors[0], vectors[1], vectors[2], vectors[3], vectors[4], vectors[5],
    )  # fmt: skip
    precision[:] = 0.0
    gradient[:] = 0.0
    if not lower_root(before_cov, before_root):
        return math.nan
    invert(before_root, before_precision, column)
    mean[:] = before_mean
    root[:] = before_root
    seen, predicted = joint_average(mean, root, nodes, label, work, p, bend)
    if weight == 0.0 or not math.isfinite(predicted):
        return predicted
    value = joint_divergence(mean, root, before_mean, before_root, weight, seen, column)
    held = False
    for _ in range(STEPS):
        for r in range(k):
            for c in range(k):
                inner[r, c] = before_precision[r, c] + weight * bend[r, c]
        if not lower_root(inner, new_root):
            return math.nan
        for c in range(k):
            column[c] = before_mean[c] - mean[c]
        for r in range(k):
            back = 0.0
            for c in range(k):
                back += before_precision[r, c] * column[c]
            step[r] = weight * ((1.0 if r == label else 0.0) - p[r]) + back
        solve_lower(new_root, step)
        length = 0.0
        for c in range(k):
            length = max(length, abs(step[c]))  # in standard deviations
        solve_turned(new_root, step)
        if held:
            inner[:] = root
        else:
            invert(new_root, inverse, column)
            if not lower_root(inverse, inner):
                return math.nan
            for c in range(k):
                length = max(length, abs(inner[c, c] / root[c, c] - 1.0))
        scale = 1.0
        for _ in range(HALVINGS):
            for r in range(k):
                new_mean[r] = mean[r] + scale * step[r]
                for c in range(r + 1):
                    new_root[r, c] = root[r, c] + scale * (inner[r, c] - root[r, c])
                for c in range(r + 1, k):
                    new_root[r, c] = 0.0
            seen, _ = joint_average(new_mean, new_root, nodes, label, work, p, bend)
            reached = joint_divergence(new_mean, new_root, before_mean, before_root, weight, seen, column)
            if reached <= value + 1e-13 * abs(value):
                break
            scale *= 0.5
        else:
            joint_average(mean, root, nodes, label, work, p, bend)
            if held:  # rounding
                break
            held = True  # the nodes' average of the curvature is not F's slope in L: the mean alone goes on
            continue
        value = reached
        mean[:] = new_mean
        root[:] = new_root
        if scale * length < TOLERANCE:
            break
    for r in range(k):
        for c in range(k):
            precision[r, c] = weight * bend[r, c]
        pulled[r] = mean[r] - before_mean[r]
    for r in range(k):
        value = 0.0
        for c in range(k):
            value += before_precision[r, c] * pulled[c]
        gradient[r] = value
    return predicted
