"""Where the implicit solver starts: near the root, and often on it."""

from __future__ import annotations

import math

from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import LOGIT, NEGATIVE_BINOMIAL, POISSON, PROBIT, STUDENT_T
from gaussfold.engine.scalar.evaluate import EP, NEWTON, QUADRATIC, TAYLOR, VI, ep_site
from gaussfold.engine.scalar.logistic import logistic_root
from gaussfold.engine.scalar.quadrature import tilted_mode
from gaussfold.engine.scalar.special import wright_omega

PROBIT_SLOPE = 1.702
"""Φ(f) ≈ σ(1.702 f)."""


@compiled
def _poisson_vi_start(y: float, w: float, m0: float, v0: float) -> tuple[float, float]:
    """Exact: for fixed v the mean is a Lambert function, and v (1 + ω) = v0 increases in v."""
    a = m0 + v0 * w * y
    log_scale = math.log(v0 * w)
    z = log_scale + a
    low = 0.0
    high = v0
    v = min(v0, 1.0)
    for _ in range(100):
        omega = wright_omega(z + 0.5 * v)
        residual = v * (1.0 + omega) - v0
        if residual > 0.0:
            high = v
        else:
            low = v
        target = v - residual / (1.0 + omega + 0.5 * v * omega / (1.0 + omega))
        if not (low < target < high):
            target = 0.5 * (low + high)
        done = abs(target - v) <= 1e-15 * v
        v = target
        if done:
            break
    omega = wright_omega(z + 0.5 * v)
    return a - omega if omega < 1.0 else math.log(omega) - log_scale - 0.5 * v, v


@compiled
def _student_bound_start(df: float, scale: float, y: float, w: float, m0: float, v0: float) -> tuple[float, float]:
    """Near the fixed point of the Gaussian scale mixture, where coordinate ascent from the prior leads.

    With t = v0/v the site's precision is (df+1)/(df scale² + (y-m0)²/t² + v0/t): t climbs from 1, never past the root.
    """
    gap = y - m0
    t = 1.0
    for _ in range(200):
        before = t
        t = 1.0 + v0 * w * (df + 1.0) / (df * scale * scale + (gap / t) * (gap / t) + v0 / t)
        if t - before <= 1e-3 * t:
            break
    return m0 + gap * (1.0 - 1.0 / t), v0 / t


@compiled
def nearby(
    code: int, p0: float, p1: float, rule: int, y: float, w: float, m0: float, v0: float
) -> tuple[float, float, int]:
    """A point near the root: exact for newton, for vi on Poisson, and for vi on logit as approximated."""
    if rule == EP:  # the full moment match, which is the answer for alpha = 1
        j, h = ep_site(code, p0, p1, 1.0, y, w, m0, v0)
        v = v0 / (1.0 - v0 * h)
        return m0 + v * j, v, 1
    if rule not in (NEWTON, TAYLOR):
        if code == LOGIT:
            return logistic_root(w * y, w, m0, v0, True)
        if code == NEGATIVE_BINOMIAL:
            shift = math.log(p0)
            m, v, n = logistic_root(w * y, w * (y + p0), m0 - shift, v0, True)
            return m + shift, v, n
        if code == PROBIT:  # Φ(f) ≈ σ(1.702 f)
            m, v, n = logistic_root(w * y, w, PROBIT_SLOPE * m0, PROBIT_SLOPE * PROBIT_SLOPE * v0, True)
            return m / PROBIT_SLOPE, v / (PROBIT_SLOPE * PROBIT_SLOPE), n
        if code == POISSON and rule == VI:
            m, v = _poisson_vi_start(y, w, m0, v0)
            return m, v, 1
    if code == STUDENT_T:
        if rule == QUADRATIC:
            m, v = _student_bound_start(p0, p1, y, w, m0, v0)
            return m, v, 1
        return m0, v0, 0
    return tilted_mode(code, p0, p1, y, w, m0, v0)
