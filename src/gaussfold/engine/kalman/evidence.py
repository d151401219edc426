"""The log normaliser alone: the filter of :mod:`gaussfold.engine.kalman.pair` that keeps nothing behind it.

While step and site precision stay the same the covariances settle, after as many points as the process remembers. From
there on the gain is a number, and a point costs the mean's recursion only. Twin: ``forward_pair`` itself.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled_fused
from gaussfold.engine.kalman.pair import times

SETTLED = 4e-16
"""Relative change of every entry of the predicted covariance that is rounding."""


@compiled_fused
def evidence_pair(
    step: np.ndarray, A: np.ndarray, Q: np.ndarray, m0: np.ndarray, P0: np.ndarray,
    precision: np.ndarray, shift: np.ndarray,
) -> tuple[float, int]:  # fmt: skip
    """Log Z and the first row whose site leaves no positive covariance, or -1."""
    m1, m2 = m0[0], m0[1]
    p, q, r = P0[0, 0], P0[0, 1], P0[1, 1]  # filtered
    pp, pq, pr = p, q, r  # predicted
    a, b, c, d = 1.0, 0.0, 0.0, 1.0
    total, product, s, inverse, y = 0.0, 1.0, 1.0, 1.0, 0.0
    settled, last, steady = False, -1, 0
    for n in range(shift.shape[0]):
        u = step[n]
        if settled and u == last and precision[n] == y:
            m1, m2 = a * m1 + b * m2, c * m1 + d * m2
            e = shift[n] - y * m1
            w = e * inverse
            total += 0.5 * ((shift[n] + e) * m1 + e * w * pp)
            m1 += pp * w
            m2 += pq * w
            steady += 1
            continue
        total -= 0.5 * steady * np.log(s)
        steady = 0
        before_p, before_q, before_r = pp, pq, pr
        same = n > 1 and u == last and precision[n] == y
        if n > 0:
            a, b, c, d = A[u, 0, 0], A[u, 0, 1], A[u, 1, 0], A[u, 1, 1]
            m1, m2 = a * m1 + b * m2, c * m1 + d * m2
            ap, aq, cp, cq = times(a, b, c, d, p, q, r)
            pp = a * ap + b * aq + Q[u, 0, 0]
            pq = c * ap + d * aq + Q[u, 0, 1]
            pr = c * cp + d * cq + Q[u, 1, 1]
        settled = (
            same
            and abs(pp - before_p) <= SETTLED * pp
            and abs(pq - before_q) <= SETTLED * np.sqrt(pp * pr)
            and abs(pr - before_r) <= SETTLED * pr
        )
        y, last = precision[n], u
        s = 1.0 + pp * y
        if not s > 0.0:
            return total, n
        e = shift[n] - y * m1
        inverse = 1.0 / s
        w = e * inverse
        total += 0.5 * ((shift[n] + e) * m1 + e * w * pp)
        product *= s
        if not 1e-90 < product < 1e90:
            total -= 0.5 * np.log(product)
            product = 1.0
        m1 += pp * w
        m2 += pq * w
        r = pr - pq * pq * y * inverse
        p = pp * inverse
        q = pq * inverse
    return total - 0.5 * np.log(product) - 0.5 * steady * np.log(s), -1
