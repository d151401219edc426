"""The tangents of :mod:`gaussfold.engine.kalman.tangent` for two states and one latent, in scalars.

With c = P⁺h and ``M = I - P⁻hΩh'``, whose first entry is 1/s: ``dP⁺ = M dP⁻ M' - cc' dΛ`` and
``dm⁺ = M(dm⁻ + dP⁻h ω) + c(dλ - dΛ f)``.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled_fused
from gaussfold.engine.kalman.pair import times, turned


@compiled_fused
def tangent_forward_pair(
    step: np.ndarray, A: np.ndarray, precision: np.ndarray, store: np.ndarray,
    d_precision: np.ndarray, d_shift: np.ndarray, moved: np.ndarray,
) -> None:  # fmt: skip
    """Tangents of the filtered m₁, m₂, P₁₁, P₁₂, P₂₂, into the rows of ``moved``."""
    m1, m2, p, q, r = 0.0, 0.0, 0.0, 0.0, 0.0
    for n in range(d_shift.shape[0]):
        u = step[n]
        a, b, c, d = A[u, 0, 0], A[u, 0, 1], A[u, 1, 0], A[u, 1, 1]  # of no effect in row 0, where all is zero
        m1, m2 = a * m1 + b * m2, c * m1 + d * m2
        ap, aq, cp, cq = times(a, b, c, d, p, q, r)
        p, q, r = a * ap + b * aq, c * ap + d * aq, c * cp + d * cq
        c1, c2, w = store[n, 2], store[n, 3], store[n, 5]
        inverse = 1.0 / store[n, 6]
        y = d_precision[n]
        tilt = c2 * precision[n]  # q⁻Ω
        e = d_shift[n] - y * store[n, 0]
        m1 += p * w
        m2 += q * w - tilt * m1 + c2 * e
        m1 = inverse * m1 + c1 * e
        r += tilt * (tilt * p - 2.0 * q) - c2 * c2 * y
        q = inverse * (q - tilt * p) - c1 * c2 * y
        p = inverse * inverse * p - c1 * c1 * y
        moved[n, 0] = m1
        moved[n, 1] = m2
        moved[n, 2] = p
        moved[n, 3] = q
        moved[n, 4] = r


@compiled_fused
def tangent_backward_pair(
    span: tuple[int, int, int], tables: tuple[np.ndarray, np.ndarray], precision: np.ndarray, store: np.ndarray,
    move: tuple[np.ndarray, np.ndarray, np.ndarray], carry: np.ndarray, bars: tuple[np.ndarray, np.ndarray],
) -> None:  # fmt: skip
    """Add up ``tangent - adjoint`` of A and Q; carry is r₁, r₂, N₁₁, N₁₂, N₂₂ and their tangents.

    ``span`` is as in :func:`~gaussfold.engine.kalman.pair.backward_pair`; ``move`` is dΛ, dλ and the filter's tangents.
    """
    low, high, first = span
    step, A = tables
    d_precision, d_shift, moved = move
    bar_A, bar_Q = bars
    r1, r2, x, y, z = carry[0], carry[1], carry[2], carry[3], carry[4]
    s1, s2, dx, dy, dz = carry[5], carry[6], carry[7], carry[8], carry[9]
    for n in range(high - 1, low - 1, -1):
        u = step[n]
        a, b, c, d = A[u, 0, 0], A[u, 0, 1], A[u, 1, 0], A[u, 1, 1]
        # filtered before the step, and A dP; what is predicted from nothing does not move
        m1, m2, p, q, v = 0.0, 0.0, 0.0, 0.0, 0.0
        if n > 0:
            m1, m2, p, q, v = moved[n - 1, 0], moved[n - 1, 1], moved[n - 1, 2], moved[n - 1, 3], moved[n - 1, 4]
        ap, aq, cp, cq = times(a, b, c, d, p, q, v)
        d1, d2 = a * ap + b * aq, c * ap + d * aq  # dP⁻h
        s, w = store[n, 6], store[n, 5]
        inverse = 1.0 / s
        weight = precision[n] * inverse
        b1, b2 = store[n, 2] * s, store[n, 3] * s  # P⁻h
        e = d_shift[n] - d_precision[n] * store[n, 0]
        d_pull = inverse * e - weight * (a * m1 + b * m2 + d1 * w)
        d_weight = inverse * inverse * d_precision[n] - weight * weight * d1
        g = b1 * r1 + b2 * r2
        dg = d1 * r1 + d2 * r2 + b1 * s1 + b2 * s2
        n1, n2 = x * b1 + y * b2, y * b1 + z * b2
        k = b1 * n1 + b2 * n2
        dn1 = dx * b1 + dy * b2 + x * d1 + y * d2
        dn2 = dy * b1 + dz * b2 + y * d1 + z * d2
        dk = b1 * dn1 + b2 * dn2 + d1 * n1 + d2 * n2
        s1 += d_pull - d_weight * g - weight * dg
        r1 += w - weight * g
        dx += d_weight * (1.0 - 2.0 * n1 + 2.0 * weight * k) + weight * (weight * dk - 2.0 * dn1)
        dy -= d_weight * n2 + weight * dn2
        x += weight * (1.0 - 2.0 * n1 + weight * k)
        y -= weight * n2
        if n == 0:
            break
        o = u - first
        # twice the adjoint of Q, then (below) twice what its tangent has more
        g, h, i = r1 * r1 - x, r1 * r2 - y, r2 * r2 - z
        bar_A[o, 0, 0] += r1 * m1 + g * ap + h * cp
        bar_A[o, 0, 1] += r1 * m2 + g * aq + h * cq
        bar_A[o, 1, 0] += r2 * m1 + h * ap + i * cp
        bar_A[o, 1, 1] += r2 * m2 + h * aq + i * cq
        g = 2.0 * s1 * r1 - dx - g
        h = s1 * r2 + r1 * s2 - dy - h
        i = 2.0 * s2 * r2 - dz - i
        m1, m2, p, q, v = store[n - 1, 0], store[n - 1, 1], store[n - 1, 2], store[n - 1, 3], store[n - 1, 4]
        ap, aq, cp, cq = times(a, b, c, d, p, q, v)
        bar_A[o, 0, 0] += (s1 - r1) * m1 + g * ap + h * cp
        bar_A[o, 0, 1] += (s1 - r1) * m2 + g * aq + h * cq
        bar_A[o, 1, 0] += (s2 - r2) * m1 + h * ap + i * cp
        bar_A[o, 1, 1] += (s2 - r2) * m2 + h * aq + i * cq
        bar_Q[o, 0, 0] += 0.5 * g
        bar_Q[o, 0, 1] += 0.5 * h
        bar_Q[o, 1, 0] += 0.5 * h
        bar_Q[o, 1, 1] += 0.5 * i
        r1, r2 = a * r1 + c * r2, b * r1 + d * r2
        s1, s2 = a * s1 + c * s2, b * s1 + d * s2
        x, y, z = turned(a, b, c, d, x, y, z)
        dx, dy, dz = turned(a, b, c, d, dx, dy, dz)
    carry[0], carry[1], carry[2], carry[3], carry[4] = r1, r2, x, y, z
    carry[5], carry[6], carry[7], carry[8], carry[9] = s1, s2, dx, dy, dz
