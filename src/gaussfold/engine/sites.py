"""One visit: from the marginal before, N(m0, v0), to the site and the marginal after.

``at`` prior, posterior (implicit) or extragradient, for every rule and family. The implicit form solves

    m = m0 + v0 J(m, v),    v = v0 / (1 - v0 H(m, v))            rvga (69)-(70), DESIGN §2

for two scalars by Newton's method on (m, log v) from a start that is exact for the mode, backed by a
bracketing search for whatever Newton does not settle. Reference twin: ``tests/reference/sites.py``.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import compiled
from gaussfold.engine.evaluate import (
    APPROXIMATE,
    EP,
    NEWTON,
    QUADRATIC,
    TAYLOR,
    VI,
    bounded_site,
    ep_site,
    expected_derivatives,
    expected_log_density,
    rule_site,
)
from gaussfold.engine.families import (
    GAUSSIAN,
    LOGIT,
    NEGATIVE_BINOMIAL,
    POISSON,
    PROBIT,
    STUDENT_T,
    derivatives,
    landmark,
    log_density,
)
from gaussfold.engine.logistic import logistic_root
from gaussfold.engine.quadrature import tilted_mode
from gaussfold.engine.special import wright_omega

PRIOR, POSTERIOR, EXTRAGRADIENT, EXTRAGRADIENT_PRINTED, EXTRAGRADIENT_MEAN_ONLY = range(5)
TOLERANCE = 1e-14
MAX_NEWTON = 40
PROBIT_SLOPE = 1.702


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
def _start(
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
        return m0, v0, 0
    return tilted_mode(code, p0, p1, y, w, m0, v0)


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
def _profile_variance(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float, m: float
) -> float:
    """For a fixed mean the v with 1/v = 1/v0 - H(m, v), an upward crossing: Illinois steps on log v."""
    x_low = math.log(v0) - 50.0
    x_high = math.log(v0)
    f_low = -1.0
    f_high = 1.0
    for _ in range(60):  # a likelihood that is not log-concave may widen the marginal
        v = math.exp(x_high)
        _, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
        f_high = v * (1.0 / v0 - h) - 1.0
        if f_high >= 0.0:
            break
        x_high += 1.0
    f_high = min(f_high, 1e3)
    side = 0
    for n in range(120):
        x = 0.5 * (x_low + x_high) if n % 3 == 2 else (x_low * f_high - x_high * f_low) / (f_high - f_low)
        if not (x_low < x < x_high):
            x = 0.5 * (x_low + x_high)
        v = math.exp(x)
        _, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
        f = v * (1.0 / v0 - h) - 1.0
        if f > 0.0:
            x_high = x
            f_high = f
            f_low = 0.5 * f_low if side == 1 else f_low
            side = 1
        else:
            x_low = x
            f_low = f
            f_high = 0.5 * f_high if side == -1 else f_high
            side = -1
        if x_high - x_low <= 1e-15 or abs(f) <= 1e-15:
            break
    return math.exp(x_low) if abs(f_low) < abs(f_high) else math.exp(x_high)


@compiled
def _residual(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float, m: float
) -> float:
    v = _profile_variance(code, p0, p1, rule, alpha, y, w, m0, v0, m)
    j, _ = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
    return m - m0 - v0 * j


@compiled
def _bracketed(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float,
    m0: float, v0: float, low: float, high: float,
) -> float:  # fmt: skip
    """The mean at which the profiled residual crosses zero upwards between low and high (Illinois steps)."""
    f_low = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, low)
    f_high = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, high)
    if f_low >= 0.0:
        return low
    if f_high <= 0.0:
        return high
    side = 0
    for n in range(200):
        # Illinois converges fast; every third step bisects, so a flat end cannot stall it.
        x = 0.5 * (low + high) if n % 3 == 2 else (low * f_high - high * f_low) / (f_high - f_low)
        if not (low < x < high):
            x = 0.5 * (low + high)
        f = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, x)
        if f > 0.0:
            high = x
            f_high = f
            f_low = 0.5 * f_low if side == 1 else f_low
            side = 1
        else:
            low = x
            f_low = f
            f_high = 0.5 * f_high if side == -1 else f_high
            side = -1
        if high - low <= 4e-16 * (abs(low) + abs(high)):
            break
    return 0.5 * (low + high)


@compiled
def _objective(
    code: int, p0: float, p1: float, rule: int, y: float, w: float, m0: float, v0: float, m: float, v: float
) -> float:
    """What the posterior form minimises: KL to prior × likelihood (vi), or its value at the mode (newton)."""
    if rule == NEWTON:
        return 0.5 * (m - m0) * (m - m0) / v0 - w * log_density(code, p0, p1, y, m)
    fit = expected_log_density(code, p0, p1, y, m, v)
    return 0.5 * (v / v0 + (m - m0) * (m - m0) / v0 - math.log(v / v0)) - w * fit


@compiled
def _scan(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float
) -> tuple[float, float]:
    """All upward crossings between m0 and y, the best of them by objective: for Student-t's two lumps.

    The gradient always points from m towards y, so every stationary point lies between m0 and y. Marks are
    dense around y on the likelihood's own length and around m0.
    """
    length = math.sqrt(p0) * p1
    gap = y - m0
    best_m = m0
    best = math.inf
    previous = m0
    f_previous = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, m0) * (1.0 if gap > 0.0 else -1.0)
    for k in range(1, 16):
        if k <= 6:
            mark = m0 + gap * (k / 6.0) * 0.5
        else:
            distance = min(length * 2.0 ** (12 - k), 0.5 * abs(gap)) if k < 15 else 0.0
            mark = y - math.copysign(distance, gap)
        if (mark - previous) * gap <= 0.0:
            continue
        f = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, mark) * (1.0 if gap > 0.0 else -1.0)
        if f_previous < 0.0 <= f:
            m = _bracketed(code, p0, p1, rule, alpha, y, w, m0, v0, min(previous, mark), max(previous, mark))
            v = _profile_variance(code, p0, p1, rule, alpha, y, w, m0, v0, m)
            value = _objective(code, p0, p1, rule, y, w, m0, v0, m, v)
            if value < best:
                best = value
                best_m = m
        previous = mark
        f_previous = f
    return best_m, _profile_variance(code, p0, p1, rule, alpha, y, w, m0, v0, best_m)


@compiled
def implicit(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float
) -> tuple[float, float, float, float, int]:
    """The posterior form: (J, H, m, v, iterations) with m = m0 + v0 J and v = v0/(1 - v0 H)."""
    if code == STUDENT_T and rule in (NEWTON, VI):
        # Convex as long as the largest l'' cannot outweigh the prior's precision; else look at both lumps.
        steepest = w * (p0 + 1.0) / (8.0 * p0 * p1 * p1)
        if v0 * steepest >= 1.0:
            m, v = _scan(code, p0, p1, rule, alpha, y, w, m0, v0)
            ok, j, h, m_polished, v_polished, n = _newton(code, p0, p1, rule, alpha, y, w, m0, v0, m, v)
            if ok and abs(m_polished - m) <= 1e-6 * (abs(m) + math.sqrt(v)):
                return j, h, m_polished, v_polished, n
            j, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
            return j, h, m, v, n
    m, v, n_start = _start(code, p0, p1, rule, y, w, m0, v0)
    if (rule in (NEWTON, TAYLOR) and code != STUDENT_T) or (rule == VI and code == LOGIT and p0 == APPROXIMATE):
        # The start is the root. Taylor's gradient is newton's, only its curvature is Fisher's.
        j, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
        return j, h, m, v0 / (1.0 - v0 * h), n_start
    ok, j, h, m, v, n = _newton(code, p0, p1, rule, alpha, y, w, m0, v0, m, v)
    if not ok and code != STUDENT_T:  # from the mode instead
        m, v, _ = tilted_mode(code, p0, p1, y, w, m0, v0)
        ok, j, h, m, v, n_more = _newton(code, p0, p1, rule, alpha, y, w, m0, v0, m, v)
        n += n_more
    if ok:
        return j, h, m, v, n
    low, high = _bracket(code, p0, p1, rule, alpha, y, w, m0, v0)
    m = _bracketed(code, p0, p1, rule, alpha, y, w, m0, v0, low, high)
    v = _profile_variance(code, p0, p1, rule, alpha, y, w, m0, v0, m)
    j, h = rule_site(code, p0, p1, rule, alpha, y, w, m, v, m0, v0)
    return j, h, m, v, n + 100


@compiled
def _bracket(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: float, w: float, m0: float, v0: float
) -> tuple[float, float]:
    """Two means around the root: m0 on one side, and on the other y (Student-t) or doubling steps from m0."""
    if code == STUDENT_T:
        return min(m0, y), max(m0, y)
    f = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, m0)
    step = math.sqrt(v0)
    other = m0
    for _ in range(200):
        other = m0 - step if f > 0.0 else m0 + step
        g = _residual(code, p0, p1, rule, alpha, y, w, m0, v0, other)
        if (f > 0.0) != (g > 0.0):
            break
        step *= 2.0
    return min(m0, other), max(m0, other)


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
