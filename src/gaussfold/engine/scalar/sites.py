"""One visit: from the marginal before, N(m0, v0), to the site and the marginal after.

``at`` prior, posterior (implicit) or extragradient, for every rule and family. The implicit form solves

    m = m0 + v0 J(m, v),    v = v0 / (1 - v0 H(m, v))            rvga (69)-(70), DESIGN §2

for two scalars by Newton's method on (m, log v) from a start that is exact for the mode, backed by a
bracketing search for whatever Newton does not settle. Reference twin: ``tests/reference/sites.py``.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import GAUSSIAN, LOGIT, PROBIT, STUDENT_T, derivatives, landmark
from gaussfold.engine.scalar.evaluate import (
    APPROXIMATE,
    EP,
    NEWTON,
    PL,
    QUADRATIC,
    TAYLOR,
    VI,
    bounded_site,
    expected_derivatives,
    rule_site,
)
from gaussfold.engine.scalar.initial_guess import nearby
from gaussfold.engine.scalar.quadrature import tilted_mode
from gaussfold.engine.scalar.search import bracket, bracketed, profile_variance, scan

PRIOR, POSTERIOR, EXTRAGRADIENT, EXTRAGRADIENT_PRINTED, EXTRAGRADIENT_MEAN_ONLY = range(5)
TOLERANCE = 1e-14
MAX_NEWTON = 40


@compiled
def _site_with_slopes(
    code: int,
    p0: float,
    p1: float,
    rule: int,
    alpha: float,
    y: float,
    w: float,
    m: float,
    v: float,
    m0: float,
    v0: float,
) -> tuple[float, float, float, float, float, float]:
    """(J, H) and their derivatives with respect to m and log v; analytic for newton and vi (Price's theorem)."""
    if rule == NEWTON:
        d1, d2, d3, _ = derivatives(code, p0, p1, y, m)
        return w * d1, w * d2, w * d2, 0.0, w * d3, 0.0
    if rule == VI and not (code == LOGIT and p0 == APPROXIMATE):
        e1, e2, e3, e4 = expected_derivatives(code, p0, p1, y, m, v)
        return w * e1, w * e2, w * e2, 0.5 * w * v * e3, w * e3, 0.5 * w * v * e4
    if rule == QUADRATIC:
        j, h, hm, hv = bounded_site(code, p0, p1, y, m, v)
        if code == PROBIT:
            _, d2, _, _ = derivatives(code, p0, p1, y, m)
            return w * j, w * h, w * d2, 0.0, 0.0, 0.0
        center, _ = landmark(code, p0, p1, y)
        reach = m - center  # J = constant + H · reach
        return w * j, w * h, w * (h + hm * reach), w * hv * v * reach, w * hm, w * hv * v
    j, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
    step = 1e-6 * math.sqrt(v)
    j_plus, h_plus = rule_site(code, p0, p1, rule, alpha, y, w, m + step, v, m0, v0)
    j_minus, h_minus = rule_site(code, p0, p1, rule, alpha, y, w, m - step, v, m0, v0)
    jm = 0.5 * (j_plus - j_minus) / step
    hm = 0.5 * (h_plus - h_minus) / step
    j_plus, h_plus = rule_site(code, p0, p1, rule, alpha, y, w, m, v * (1.0 + 1e-6), m0, v0)
    return j, h, jm, 1e6 * (j_plus - j), hm, 1e6 * (h_plus - h)


@compiled
def _newton(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float,
    m0: float, v0: float, m: float, v: float,
) -> tuple[bool, float, float, float, float, int]:  # fmt: skip
    """Damped Newton on r1 = m - m0 - v0 J and r2 = log v - log v0 + log(1 - v0 H)."""
    best = math.inf
    last = math.inf
    dm = 0.0
    dv = 0.0
    j = 0.0
    h = 0.0
    for n in range(1, MAX_NEWTON + 1):
        j, h, jm, jv, hm, hv = _site_with_slopes(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
        scale = 1.0 - v0 * h
        r1 = m - m0 - v0 * j
        r2 = math.log(v / v0 * scale) if scale > 0.0 else math.inf
        merit = abs(r1) / math.sqrt(v0) + abs(r2)
        if not merit <= 2.0 * best:  # also catches NaN: halve the last step
            if n == 1:
                return False, j, h, m, v, n
            dm *= 0.5
            dv *= 0.5
            m -= dm
            v *= math.exp(-dv)
            continue
        best = min(best, merit)
        # [1 - v0 jm, -v0 jv; -v0 hm/scale, 1 - v0 hv/scale] (dm, dv) = -(r1, r2)
        a11 = 1.0 - v0 * jm
        a12 = -v0 * jv
        a21 = -v0 * hm / scale
        a22 = 1.0 - v0 * hv / scale
        det = a11 * a22 - a12 * a21
        dm = -(a22 * r1 - a12 * r2) / det
        dv = -(a11 * r2 - a21 * r1) / det
        if not (abs(dm) < math.inf and abs(dv) < math.inf):
            return False, j, h, m, v, n
        size = abs(dm) / (abs(m) + math.sqrt(v)) + abs(dv)
        # Done when the step is at rounding, or small and no longer shrinking.
        if size <= TOLERANCE or (size <= 1e-10 and size >= 0.5 * last):
            return True, j, h, m, v, n
        last = size
        dv = min(max(dv, -3.0), 3.0)
        m += dm
        v *= math.exp(dv)
    return False, j, h, m, v, MAX_NEWTON


@compiled
def implicit(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float
) -> tuple[float, float, float, float, int]:
    """The posterior form: (J, H, m, v, iterations) with m = m0 + v0 J and v = v0/(1 - v0 H)."""
    if code == STUDENT_T and rule in (NEWTON, VI):
        # Convex as long as the largest l'' cannot outweigh the prior's precision; else look at both lumps.
        steepest = w * (p0 + 1.0) / (8.0 * p0 * p1 * p1)
        if v0 * steepest >= 1.0:
            m, v = scan(code, p0, p1, rule, alpha, y, w, m0, v0)
            ok, j, h, m_polished, v_polished, n = _newton(code, p0, p1, rule, alpha, y, w, m0, v0, m, v)
            if ok and abs(m_polished - m) <= 1e-6 * (abs(m) + math.sqrt(v)):
                return j, h, m_polished, v_polished, n
            j, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
            return j, h, m, v, n
    m, v, n_start = nearby(code, p0, p1, rule, y, w, m0, v0)
    if (rule in (NEWTON, TAYLOR) and code != STUDENT_T) or (rule == VI and code == LOGIT and p0 == APPROXIMATE):
        # The start is the root. Taylor's gradient is newton's, only its curvature is Fisher's.
        j, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
        return j, h, m, v0 / (1.0 - v0 * h), n_start
    ok, j, h, m, v, n = _newton(code, p0, p1, rule, alpha, y, w, m0, v0, m, v)
    if not ok and code != STUDENT_T:  # from the mode instead
        m, v, _ = tilted_mode(code, p0, p1, y, w, m0, v0)
        ok, j, h, m, v, n_more = _newton(code, p0, p1, rule, alpha, y, w, m0, v0, m, v)
        n += n_more
    if not ok and rule == PL:  # where e^v has outgrown the label the site vanishes, and the prior is the answer
        ok, j, h, m, v, n_more = _newton(code, p0, p1, rule, alpha, y, w, m0, v0, m0, v0)
        n += n_more
    if ok:
        return j, h, m, v, n
    low, high = bracket(code, p0, p1, rule, alpha, y, w, m0, v0)
    m = bracketed(code, p0, p1, rule, alpha, y, w, m0, v0, low, high)
    v = profile_variance(code, p0, p1, rule, alpha, y, w, m0, v0, m)
    j, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
    return j, h, m, v, n + 100


@compiled
def visit(
    code: int, p0: float, p1: float, rule: int, alpha: float, at: int, y: float, w: float, m0: float, v0: float
) -> tuple[float, float, float, float, int]:
    """(J, H, m, v, iterations): mean += u J, precision += -H x x', with u = P x of the belief before.

    J is the gradient *as seen from the new mean* whatever ``at``, so one formula serves all three.
    """
    if not v0 > 0.0:
        return 0.0, 0.0, m0, v0, 0  # a row that sees nothing uncertain teaches nothing
    if code == GAUSSIAN:
        h = -w / (p0 * p0)
        v = v0 / (1.0 - v0 * h)
        j = v / v0 * w * (y - m0) / (p0 * p0)
        if at in (EXTRAGRADIENT_PRINTED, EXTRAGRADIENT_MEAN_ONLY):
            j *= v / v0
        return j, h, m0 + v0 * j, v, 1
    if at == POSTERIOR and not (rule == EP and alpha == 1.0):
        j, h, m, v, n = implicit(code, p0, p1, rule, alpha, y, w, m0, v0)
        if v0 * h < -1.0:
            j = (m - m0) / v0  # a stiff site: the root is known better than the gradient there
        return j, h, m, v, n
    j, h = rule_site(code, p0, p1, rule, alpha, y, w, m0, v0, m0, v0)
    shrink = 1.0 / (1.0 - v0 * h)
    n = 1
    if at >= EXTRAGRADIENT:
        m1 = m0 + v0 * shrink * j
        j1, h1 = rule_site(code, p0, p1, rule, alpha, y, w, m1, v0 * shrink, m0, v0)
        n = 2
        if at == EXTRAGRADIENT_MEAN_ONLY:  # lrvga (141)-(143)
            j = j1
        elif at == EXTRAGRADIENT_PRINTED:  # lrvga (137)-(140)
            j, h = j1, h1
        else:  # the site at the trial belief, as natural parameters: exact for Gaussian data
            j, h = j1 + h1 * (m0 - m1), h1
        shrink = 1.0 / (1.0 - v0 * h)
    return shrink * j, h, m0 + v0 * shrink * j, v0 * shrink, n
