"""One site: from the marginal before, N(m0, v0), to the site and the marginal after.

``at`` prior, posterior (implicit) or extragradient, for every rule and family. The implicit form solves

    m = m0 + v0 J(m, v),    v = v0 / (1 - v0 H(m, v))            rvga (69)-(70)

(docs/architecture.md, "The update") for two scalars by Newton's method on (m, log v) from a start that is exact for the
mode, backed by a bracketing search for whatever Newton does not settle. Reference twin: ``tests/reference/sites.py``.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import part
from gaussfold.engine.dispatch import by_family
from gaussfold.engine.families import Family, closed_form, is_log_concave
from gaussfold.engine.rules import (
    RuleRecord,
    looks_at_prior_only,
    may_vanish,
    nearby_root,
    nearby_root_and_score,
    rule_site,
    site_with_slopes,
    start,
    starts_at_root,
)
from gaussfold.engine.scalar.expectations import log_predictive
from gaussfold.engine.scalar.quadrature import tilted_mode
from gaussfold.engine.scalar.search import EXACT, bracket, bracketed, profile_variance

PRIOR, POSTERIOR, EXTRAGRADIENT, EXTRAGRADIENT_PRINTED, EXTRAGRADIENT_MEAN_ONLY = range(5)
TOLERANCE = 1e-14
MAX_NEWTON = 40


@part
def _at_rounding(size: float, last: float) -> bool:
    """Whether a step is at rounding, or small and no longer shrinking."""
    return size <= TOLERANCE or (size <= 1e-10 and size >= 0.5 * last)


@part
def _is_last(size: float, last: float) -> bool:
    """Whether the next step would be at rounding: steps that shrink as size → C size² tell C."""
    return last <= 0.1 and size * size * size <= 1e-17 * last * last


@part
def newton(
    family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float, m: float, v: float
) -> tuple[bool, float, float, float, float, int]:
    """Damped Newton on r1 = m - m0 - v0 J and r2 = log v - log v0 + log(1 - v0 H)."""
    best = math.inf
    last = math.inf
    dm = 0.0
    dv = 0.0
    j = 0.0
    h = 0.0
    for n in range(1, MAX_NEWTON + 1):
        j, h, jm, jv, hm, hv = site_with_slopes(family, rule, y, w, m, v, m0, v0)
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
        if _at_rounding(size, last):
            return True, j, h, m, v, n
        if _is_last(size, last):  # the slopes give the site behind it
            j += jm * dm + jv * dv
            h += hm * dm + hv * dv
            return True, j, h, m + dm, v * math.exp(dv), n
        last = size
        dv = min(max(dv, -3.0), 3.0)
        m += dm
        v *= math.exp(dv)
    return False, j, h, m, v, MAX_NEWTON


@by_family
def may_have_lumps(family: Family, rule: RuleRecord, w: float, v0: float) -> bool:
    """Whether :func:`among_lumps` is to be asked first."""
    return False


@by_family
def among_lumps(
    family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float
) -> tuple[bool, float, float, float, float, int]:
    """(True, J, H, m, v, steps) where the posterior may have several lumps and the best root was looked for."""
    return False, 0.0, 0.0, m0, v0, 0


@part
def implicit(
    family: Family, rule: RuleRecord, y: float, w: float, m0: float, v0: float
) -> tuple[float, float, float, float, int]:
    """The posterior form: (J, H, m, v, iterations) with m = m0 + v0 J and v = v0/(1 - v0 H)."""
    found, j, h, m, v, n = among_lumps(family, rule, y, w, m0, v0)
    if found:
        return j, h, m, v, n
    found, j, h, m, v, n = nearby_root(family, rule, y, w, m0, v0)
    if found:
        return j, h, m, v, n
    m, v, n = start(family, rule, y, w, m0, v0)
    if starts_at_root(family, rule):
        j, h = rule_site(family, rule, y, w, m, v, m0, v0)
        return j, h, m, v0 / (1.0 - v0 * h), n
    ok, j, h, m, v, n = newton(family, rule, y, w, m0, v0, m, v)
    if not ok and is_log_concave(family):  # from the mode instead
        m, v, _ = tilted_mode(family, y, w, m0, v0)
        ok, j, h, m, v, n_more = newton(family, rule, y, w, m0, v0, m, v)
        n += n_more
    if not ok and may_vanish(family, rule):
        ok, j, h, m, v, n_more = newton(family, rule, y, w, m0, v0, m0, v0)
        n += n_more
    if ok:
        return j, h, m, v, n
    low, high = bracket(family, rule, y, w, m0, v0)
    m = bracketed(family, rule, y, w, m0, v0, low, high, EXACT)
    v = profile_variance(family, rule, y, w, m0, v0, m, EXACT)
    j, h = rule_site(family, rule, y, w, m, v, m0, v0)
    return j, h, m, v, n + 100


@part
def _after_trial(
    family: Family, rule: RuleRecord, at: int, y: float, w: float, m0: float, v0: float, j: float, h: float
) -> tuple[float, float, float, float, int]:
    """The extragradient forms: (J, H) at the prior make a trial belief, whose site updates the original one."""
    shrink = 1.0 / (1.0 - v0 * h)
    m1 = m0 + v0 * shrink * j
    j1, h1 = rule_site(family, rule, y, w, m1, v0 * shrink, m0, v0)
    if at == EXTRAGRADIENT_MEAN_ONLY:  # lrvga (141)-(143)
        j = j1
    elif at == EXTRAGRADIENT_PRINTED:  # lrvga (137)-(140)
        j, h = j1, h1
    else:  # the site at the trial belief, as natural parameters: exact for Gaussian data
        j, h = j1 + h1 * (m0 - m1), h1
    shrink = 1.0 / (1.0 - v0 * h)
    return shrink * j, h, m0 + v0 * shrink * j, v0 * shrink, 2


@part
def _is_implicit(family: Family, rule: RuleRecord, at: int) -> bool:
    """Whether the site is made at the belief that it leads to."""
    return at == POSTERIOR and not looks_at_prior_only(family, rule)


@part
def make_site(
    family: Family, rule: RuleRecord, at: int, y: float, w: float, m0: float, v0: float
) -> tuple[float, float, float, float, int]:
    """(J, H, m, v, iterations): mean += u J, precision += -H x x', with u = P x of the belief before.

    J is the gradient *as seen from the new mean* whatever ``at``, so one formula serves all three.
    """
    if not v0 > 0.0:
        return 0.0, 0.0, m0, v0, 0  # a row that sees nothing uncertain teaches nothing
    if at < PRIOR or at > EXTRAGRADIENT_MEAN_ONLY:
        raise ValueError("an at of that number does not exist")  # noqa: EM101 - compiled code takes no variable
    exact, j, h = closed_form(family, y, w, m0, v0)
    if exact:
        v = v0 / (1.0 - v0 * h)
        if at in (EXTRAGRADIENT_PRINTED, EXTRAGRADIENT_MEAN_ONLY):
            j *= v / v0
        return j, h, m0 + v0 * j, v, 1
    if _is_implicit(family, rule, at):
        j, h, m, v, n = implicit(family, rule, y, w, m0, v0)
        if v0 * h < -1.0:
            j = (m - m0) / v0  # a stiff site: the root is known better than the gradient there
        return j, h, m, v, n
    j, h = rule_site(family, rule, y, w, m0, v0, m0, v0)
    if at < EXTRAGRADIENT:
        shrink = 1.0 / (1.0 - v0 * h)
        return shrink * j, h, m0 + v0 * shrink * j, v0 * shrink, 1
    return _after_trial(family, rule, at, y, w, m0, v0, j, h)


@part
def scored_site(
    family: Family, rule: RuleRecord, at: int, y: float, w: float, m0: float, v0: float
) -> tuple[float, float, float, float, float]:
    """(score, J, H, m, v): the row's log probability under N(m0, v0), and its site; w > 0."""
    if _is_implicit(family, rule, at) and v0 > 0.0 and not may_have_lumps(family, rule, w, v0):
        found, score, j, h, m, v, _ = nearby_root_and_score(family, rule, y, w, m0, v0)
        if found and v0 * h >= -1.0:
            return score, j, h, m, v
    j, h, m, v, _ = make_site(family, rule, at, y, w, m0, v0)
    return log_predictive(family, y, m0, v0), j, h, m, v
