"""The filter and smoother of :mod:`gaussfold.engine.kalman.smoother` for two states and one latent, ``f = x₁``.

Matérn-3/2 and the cosine are such. The same equations written out in scalars: no inner loops, one division a point.
Tables are (U, 2, 2), the rest flat.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled_fused, compiled_inline

WIDTH = 7
"""Of a row of store: the filtered m₁, m₂, P₁₁, P₁₂, P₂₂, then ω and ``s = 1 + P⁻₁₁Λ``."""


@compiled_inline
def times(a: float, b: float, c: float, d: float, p: float, q: float, r: float) -> tuple[float, float, float, float]:
    """``A P`` of a symmetric P, row by row."""
    return a * p + b * q, a * q + b * r, c * p + d * q, c * q + d * r


@compiled_inline
def turned(a: float, b: float, c: float, d: float, x: float, y: float, z: float) -> tuple[float, float, float]:
    """``A'NA`` of a symmetric N."""
    xa, xb = x * a + y * c, x * b + y * d
    ya, yb = y * a + z * c, y * b + z * d
    return a * xa + c * ya, a * xb + c * yb, b * xb + d * yb


@compiled_fused
def forward_pair(
    step: np.ndarray, A: np.ndarray, Q: np.ndarray, m0: np.ndarray, P0: np.ndarray,
    precision: np.ndarray, shift: np.ndarray, store: np.ndarray,
) -> tuple[float, int]:  # fmt: skip
    """Filter into store; returns log Z and the first row whose site leaves no positive covariance, or -1."""
    m1, m2 = m0[0], m0[1]
    p, q, r = P0[0, 0], P0[0, 1], P0[1, 1]
    total = 0.0
    product = 1.0
    for n in range(shift.shape[0]):
        if n > 0:
            u = step[n]
            a, b, c, d = A[u, 0, 0], A[u, 0, 1], A[u, 1, 0], A[u, 1, 1]
            m1, m2 = a * m1 + b * m2, c * m1 + d * m2
            ap, aq, cp, cq = times(a, b, c, d, p, q, r)
            p = a * ap + b * aq + Q[u, 0, 0]
            q = c * ap + d * aq + Q[u, 0, 1]
            r = c * cp + d * cq + Q[u, 1, 1]
        y = precision[n]
        s = 1.0 + p * y
        if not s > 0.0:
            return total, n
        e = shift[n] - y * m1
        inverse = 1.0 / s
        w = e * inverse
        total += 0.5 * ((shift[n] + e) * m1 + e * w * p)
        product *= s
        if not 1e-90 < product < 1e90:  # a logarithm a point would cost more than all the rest
            total -= 0.5 * np.log(product)
            product = 1.0
        m1 += p * w
        m2 += q * w
        r -= q * q * y * inverse
        p *= inverse
        q *= inverse
        store[n, 0] = m1
        store[n, 1] = m2
        store[n, 2] = p
        store[n, 3] = q
        store[n, 4] = r
        store[n, 5] = w
        store[n, 6] = s
    return total - 0.5 * np.log(product), -1


@compiled_fused
def backward_pair(
    span: tuple[int, int, int], tables: tuple[np.ndarray, np.ndarray], precision: np.ndarray, store: np.ndarray,
    carry: np.ndarray, marginals: tuple[np.ndarray, np.ndarray], bars: tuple[np.ndarray, np.ndarray],
) -> None:  # fmt: skip
    """Smooth rows low to high, and add up the adjoints unless there is no room; carry is r₁, r₂, N₁₁, N₁₂, N₂₂.

    ``span`` is low, high and the step whose adjoint is the first of bars.
    """
    low, high, first = span
    step, A = tables
    f_mean, f_var = marginals
    bar_A, bar_Q = bars
    differentiate = bar_A.size > 0
    r1, r2, x, y, z = carry[0], carry[1], carry[2], carry[3], carry[4]
    for n in range(high - 1, low - 1, -1):
        p, q = store[n, 2], store[n, 3]
        f_mean[n - low] = store[n, 0] + p * r1 + q * r2
        # back through the measurement, with b = P⁻h and Ω = Λ/s
        s = store[n, 6]
        weight = precision[n] / s
        b1, b2 = p * s, q * s
        n1, n2 = x * b1 + y * b2, y * b1 + z * b2
        k = b1 * n1 + b2 * n2
        v = b1 - k / (1.0 + k * weight)  # what past and future say without this site
        v = max(v, 0.0)  # rounding: they say everything
        f_var[n - low] = v / (1.0 + v * precision[n])
        r1 += store[n, 5] - weight * (b1 * r1 + b2 * r2)
        x += weight * (1.0 - 2.0 * n1 + weight * k)
        y -= weight * n2
        if n == 0:
            break
        u = step[n]
        a, b, c, d = A[u, 0, 0], A[u, 0, 1], A[u, 1, 0], A[u, 1, 1]
        if differentiate:
            o = u - first
            g, h, i = r1 * r1 - x, r1 * r2 - y, r2 * r2 - z
            bar_Q[o, 0, 0] += 0.5 * g
            bar_Q[o, 0, 1] += 0.5 * h
            bar_Q[o, 1, 0] += 0.5 * h
            bar_Q[o, 1, 1] += 0.5 * i
            m1, m2, p, q, v = store[n - 1, 0], store[n - 1, 1], store[n - 1, 2], store[n - 1, 3], store[n - 1, 4]
            ap, aq, cp, cq = times(a, b, c, d, p, q, v)
            bar_A[o, 0, 0] += r1 * m1 + g * ap + h * cp
            bar_A[o, 0, 1] += r1 * m2 + g * aq + h * cq
            bar_A[o, 1, 0] += r2 * m1 + h * ap + i * cp
            bar_A[o, 1, 1] += r2 * m2 + h * aq + i * cq
        r1, r2 = a * r1 + c * r2, b * r1 + d * r2
        x, y, z = turned(a, b, c, d, x, y, z)
    carry[0], carry[1], carry[2], carry[3], carry[4] = r1, r2, x, y, z
