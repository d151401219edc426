"""The softmax seen by K independent latents, one row: the site at the very belief that it leads to.

With f_k = m_k + s_k z_k and nodes z that stand for N(0, I), the row's variational problem is

    F(m, s) = Σ_k ((m_k - μ_k)² + s_k²)/(2 v_k) - log s_k - w E log p(y | f),

N(μ_k, v_k) the latents before it: rvga (3)-(4) among independent latents. For fixed nodes it is convex in (m, s) and
smooth, so a step that goes down, taken until none does, finds its one minimum, where

    m_k = μ_k + v_k w E[1{y=k} - p_k],    1/s_k² = 1/v_k + w E[p_k z_k]/s_k.

The last average is E p_k (1 - p_k) by Stein's lemma (rvga (16)-(19), without a second derivative); it is never
negative, since p_k grows with z_k, and is cut off where nodes say otherwise. The mean steps by Newton's method with
diag(ρp) - (√ρ p)(√ρ p)', ρ_k = E[p_k (1 - p_k)]/(E p_k (1 - E p_k)), which takes K operations to solve.
Reference twin: ``tests/reference/softmax.py``.
"""

from __future__ import annotations

import math

import numpy as np

from gaussfold.engine.compiled import compiled, compiled_reduction
from gaussfold.engine.scalar.exponential import exp_nonpositive, log_positive
from gaussfold.engine.scalar.vectors import dot, reciprocal

STEPS = 60
TOLERANCE = 1e-7
"""Of the mean in standard deviations, and of these relative to themselves."""
HALVINGS = 25


@compiled_reduction
def average(
    mean: np.ndarray, std: np.ndarray, nodes: np.ndarray, label: int, work: np.ndarray, p: np.ndarray, pull: np.ndarray
) -> tuple[float, float]:
    """E log p(y|f) and log E p(y|f); ``p`` and ``pull`` receive E p_k and E p_k z_k. ``work``: (K + 2, S)."""
    k, size = nodes.shape
    top, total = work[k], work[k + 1]
    top[:] = -math.inf
    for c in range(k):
        row, z, m, s = work[c], nodes[c], mean[c], std[c]
        for j in range(size):
            row[j] = m + s * z[j]
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
    predicted = dot(own, total)
    for c in range(k):
        row, z = work[c], nodes[c]
        first = 0.0
        second = 0.0
        for j in range(size):
            value = row[j] * total[j]
            first += value
            second += value * z[j]
        p[c] = first / size
        pull[c] = max(second / size, 0.0)
    if predicted < 1e-250:  # all of it beyond what exp holds: the nearest node tells
        return expected / size, highest - math.log(size)
    return expected / size, math.log(predicted / size)


@compiled
def divergence(
    mean: np.ndarray, std: np.ndarray, before_mean: np.ndarray, before_variance: np.ndarray, weight: float, seen: float
) -> float:
    """F of the module's text, ``seen`` = E log p(y | f)."""
    value = -weight * seen
    for c in range(mean.size):
        if before_variance[c] > 0.0:
            away = mean[c] - before_mean[c]
            value += 0.5 * (away * away + std[c] * std[c]) / before_variance[c] - math.log(std[c])
    return value


@compiled
def independent_site(
    before_mean: np.ndarray,
    before_variance: np.ndarray,
    label: int,
    weight: float,
    nodes: np.ndarray,
    work: np.ndarray,
    small: np.ndarray,
    precision: np.ndarray,
    gradient: np.ndarray,
) -> float:
    """Solve for the site; log E p(y|f) before it, NaN if a number is not finite. ``small``: (8, K).

    ``precision`` receives those of the site, ``gradient`` (m_k - μ_k)/v_k: what moves the mean by v_k times itself.
    Weight 0 only predicts.
    """
    k = before_mean.size
    mean, std, p, pull, step_mean, step_std, new_mean, new_std = (
        small[0], small[1], small[2], small[3], small[4], small[5], small[6], small[7],
    )  # fmt: skip
    for c in range(k):
        mean[c] = before_mean[c]
        std[c] = math.sqrt(before_variance[c])
        precision[c] = 0.0
        gradient[c] = 0.0
    seen, predicted = average(mean, std, nodes, label, work, p, pull)
    if weight == 0.0 or not math.isfinite(predicted):
        return predicted
    value = divergence(mean, std, before_mean, before_variance, weight, seen)
    scale = 1.0
    for _ in range(STEPS):
        length = _direction(mean, std, before_mean, before_variance, label, weight, p, pull, step_mean, step_std)
        scale = min(1.0, 2.0 * scale)  # where the last step had to be short, the next one has to be, too
        for _ in range(HALVINGS):
            for c in range(k):
                new_mean[c] = mean[c] + scale * step_mean[c]
                new_std[c] = std[c] + scale * step_std[c]
            seen, _ = average(new_mean, new_std, nodes, label, work, p, pull)
            reached = divergence(new_mean, new_std, before_mean, before_variance, weight, seen)
            if reached <= value + 1e-13 * abs(value):
                break
            scale *= 0.5
        else:  # no step goes down: rounding
            break
        value = reached
        for c in range(k):
            mean[c] = new_mean[c]
            std[c] = new_std[c]
        if scale * length < TOLERANCE:
            break
    for c in range(k):
        v = before_variance[c]
        if v > 0.0:
            precision[c] = weight * pull[c] / std[c]
            gradient[c] = (mean[c] - before_mean[c]) / v
    return predicted


@compiled
def _direction(
    mean: np.ndarray,
    std: np.ndarray,
    before_mean: np.ndarray,
    before_variance: np.ndarray,
    label: int,
    weight: float,
    p: np.ndarray,
    pull: np.ndarray,
    step_mean: np.ndarray,
    step_std: np.ndarray,
) -> float:
    """Where to go from (m, s), and how far that is in the units of ``TOLERANCE``."""
    k = mean.size
    top, bottom = 0.0, 1.0
    for c in range(k):
        v = before_variance[c]
        slope = weight * ((1.0 if c == label else 0.0) - p[c]) * v - (mean[c] - before_mean[c])  # times v
        spread = p[c] * (1.0 - p[c])
        ratio = min(1.0, pull[c] / (std[c] * spread)) if std[c] * spread > 0.0 else 1.0
        held = 1.0 + v * weight * ratio * p[c]
        root = math.sqrt(ratio) * p[c]
        step_mean[c] = slope / held
        step_std[c] = root * v / held
        top += root * step_mean[c]
        bottom -= weight * root * step_std[c]
    common = weight * top / max(bottom, 1e-12)
    length = 0.0
    for c in range(k):
        step_mean[c] += step_std[c] * common
        v = before_variance[c]
        if v > 0.0:
            a = weight * pull[c]
            # 1/s solves t² - a t = 1/v
            step_std[c] = 2.0 / (a + math.sqrt(a * a + 4.0 / v)) - std[c]
            length = max(length, abs(step_mean[c]) / std[c], abs(step_std[c]) / std[c])
        else:
            step_mean[c] = 0.0
            step_std[c] = 0.0
    return length
