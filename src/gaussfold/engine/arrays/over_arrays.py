"""The scalar functions of the engine, run over arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import gammaln, log_ndtr

from gaussfold.engine.arrays.expectations_logit import logit_rows, softplus_rows, tilted_logit_rows
from gaussfold.engine.arrays.expectations_probit import FARTHEST, WIDE, log_probit_rows, probit_rows
from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import GAUSSIAN, HUGE, LOGIT, POISSON, PROBIT
from gaussfold.engine.scalar.evaluate import APPROXIMATE, expected_log_density, rule_site
from gaussfold.engine.scalar.evaluate import expected_derivatives as derivatives_of_one
from gaussfold.engine.scalar.evaluate import log_predictive as _log_predictive
from gaussfold.engine.scalar.evaluate import predictive as _predictive
from gaussfold.engine.scalar.quadrature import tilted_moments
from gaussfold.engine.scalar.sites import visit

COMMON = -12.0
"""Log probability of a label above which cancellation and the reach of the nodes do no harm."""


def expected_log_prob(code: int, p0: float, p1: float, y: np.ndarray, m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """E log p under N(m, v), row by row. Not compiled itself: no family need wait for the code of all."""
    if code == LOGIT:
        value: np.ndarray = y * m - softplus_rows(m, v)
        return value
    if code == PROBIT:
        value = np.full(y.size, np.nan)
        for rows, few in _probit_parts(y, m, v):
            part = y[rows], m[rows], v[rows]
            value[rows] = log_probit_rows(*part) if few else _expected_log_prob(code, p0, p1, *part)
        return value
    if code == POISSON:
        return np.asarray(y * m - _mean_count(m, v) - gammaln(y + 1.0))
    return _expected_log_prob(code, p0, p1, y, m, v)


def _mean_count(m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """E e^f."""
    return np.exp(np.minimum(m + 0.5 * v, HUGE))


def expected_derivatives(
    code: int, p0: float, p1: float, y: np.ndarray, m: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E l' and E l'' under N(m, v), row by row. Not compiled itself, as above."""
    if code == LOGIT and p0 != APPROXIMATE:
        return logit_rows(y, m, v)
    if code == PROBIT:
        first, second = np.full((2, y.size), np.nan)
        for rows, few in _probit_parts(y, m, v):
            part = y[rows], m[rows], v[rows]
            first[rows], second[rows] = probit_rows(*part) if few else _expected_derivatives(code, p0, p1, *part)
        return first, second
    if code == POISSON:
        r = _mean_count(m, v) + 0.0 * y
        return y - r, -r
    return _expected_derivatives(code, p0, p1, y, m, v)


def _probit_parts(y: np.ndarray, m: np.ndarray, v: np.ndarray) -> Iterator[tuple[Any, bool]]:
    """Rows that fit into lanes (True), and what else has a label (False); most often the former are all there are."""
    fits = ((y == 0.0) | (y == 1.0)) & (v < WIDE * WIDE) & (np.abs(m) <= FARTHEST)
    if fits.all():
        yield slice(None), True
        return
    for rows, few in ((fits, True), (~fits & ~np.isnan(y), False)):
        if rows.any():
            yield rows, few


@compiled
def _expected_log_prob(code: int, p0: float, p1: float, y: np.ndarray, m: np.ndarray, v: np.ndarray) -> np.ndarray:
    value = np.empty(y.size)
    for i in range(y.size):
        value[i] = expected_log_density(code, p0, p1, y[i], m[i], v[i]) if not np.isnan(y[i]) else np.nan
    return value


@compiled
def _expected_derivatives(
    code: int, p0: float, p1: float, y: np.ndarray, m: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    first = np.empty(y.size)
    second = np.empty(y.size)
    for i in range(y.size):
        if np.isnan(y[i]):
            first[i] = second[i] = np.nan
            continue
        first[i], second[i], _, _ = derivatives_of_one(code, p0, p1, y[i], m[i], v[i])
    return first, second


def tilted(
    code: int, p0: float, p1: float, power: float, y: np.ndarray, m: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log E p(y|f)^power under N(m, v), and its first two derivatives in m, row by row. Not compiled itself."""
    fits = ((y == 0.0) | (y == 1.0)) & (power == 1.0)
    if code == LOGIT and p0 != APPROXIMATE:
        fits &= (v < 4.0) & (np.abs(m) <= FARTHEST)
        rows = tilted_logit_rows
    elif code == PROBIT:
        rows = _tilted_probit
    else:
        return _tilted(code, p0, p1, power, y, m, v)
    out = np.full((3, y.size), np.nan)
    if fits.any():
        out[:, fits] = rows(y[fits], m[fits], v[fits])
    rest = ~np.isnan(y) & ~(out[0] > COMMON)
    if rest.any():
        out[:, rest] = _tilted(code, p0, p1, power, y[rest], m[rest], v[rest])
    return out[0], out[1], out[2]


def _tilted_probit(y: np.ndarray, m: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log Φ(a), a = ±m/√(1+v), with slope ρ = φ/Φ and curvature -ρ(ρ + a) in a."""
    sign, scale = 2.0 * y - 1.0, np.sqrt(1.0 + v)
    a = sign * m / scale
    value = log_ndtr(a)
    rho = np.exp(-0.5 * a * a - value) / math.sqrt(2.0 * math.pi)
    return value, sign * rho / scale, -rho * (rho + a) / (1.0 + v)


@compiled
def _tilted(
    code: int, p0: float, p1: float, power: float, y: np.ndarray, m: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    value = np.empty(y.size)
    first = np.empty(y.size)
    second = np.empty(y.size)
    for i in range(y.size):
        if np.isnan(y[i]):
            value[i] = first[i] = second[i] = np.nan
        elif code == GAUSSIAN:
            total = p0 * p0 + power * v[i]
            away = y[i] - m[i]
            value[i] = -0.5 * (power * (math.log(2.0 * math.pi * p0 * p0) + away * away / total))
            value[i] -= 0.5 * math.log(total / (p0 * p0))
            first[i] = power * away / total
            second[i] = -power / total
        else:
            value[i], first[i], second[i], _, _ = tilted_moments(code, p0, p1, y[i], power, m[i], v[i])
    return value, first, second


def log_predictive(code: int, p0: float, p1: float, y: np.ndarray, m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Log E p(y|f), row by row. Not compiled itself, as above."""
    if code == PROBIT:
        a = m / np.sqrt(1.0 + v)
        log_p = np.where(y > 0.0, y * log_ndtr(a), 0.0) + np.where(y < 1.0, (1.0 - y) * log_ndtr(-a), 0.0)
        return np.where(np.isnan(y), np.nan, log_p)
    if code != LOGIT or p0 == APPROXIMATE:
        return _log_predictive_rows(code, p0, p1, y, m, v)
    likely = (m >= 0.0).astype(np.float64)
    rare = np.abs(logit_rows(likely, m, v)[0])  # E σ of the less likely label, which has all the digits
    surprise = np.abs(y - likely)  # the share of the less likely label in y: 0 or 1, or between for a soft one
    with np.errstate(divide="ignore", invalid="ignore"):
        value: np.ndarray = np.where(surprise > 0.0, surprise * np.log(rare), 0.0) + (1.0 - surprise) * np.log1p(-rare)
    far = (rare < 1e-9) & (surprise > 0.0)  # too rare for a rule that is exact in absolute terms
    if far.any():
        value[far] = _log_predictive_rows(code, p0, p1, y[far], m[far], v[far])
    return value


@compiled
def _log_predictive_rows(code: int, p0: float, p1: float, y: np.ndarray, m: np.ndarray, v: np.ndarray) -> np.ndarray:
    out = np.empty(y.size)
    for i in range(y.size):
        out[i] = _log_predictive(code, p0, p1, y[i], m[i], v[i])
    return out


@compiled
def predictive(
    code: int, p0: float, p1: float, m: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and variance of y, and variance of E[y|f], with f ~ N(m, v) integrated out."""
    mean = np.empty(m.size)
    total = np.empty(m.size)
    of_mean = np.empty(m.size)
    for i in range(m.size):
        mean[i], _, total[i], of_mean[i] = _predictive(code, p0, p1, m[i], v[i])
    return mean, total, of_mean


@compiled
def sites(
    code: int, p0: float, p1: float, rule: int, alpha: float, at: int,
    y: np.ndarray, w: np.ndarray, m0: np.ndarray, v0: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """One visit per row, each from its own marginal: gradient at the new mean, curvature, new m, v, iterations."""
    gradient = np.empty(y.size)
    curvature = np.empty(y.size)
    m = np.empty(y.size)
    v = np.empty(y.size)
    iterations = np.empty(y.size, dtype=np.int64)
    for i in range(y.size):
        gradient[i], curvature[i], m[i], v[i], iterations[i] = visit(
            code, p0, p1, rule, alpha, at, y[i], w[i], m0[i], v0[i]
        )
    return gradient, curvature, m, v, iterations


@compiled
def surrogates(
    code: int, p0: float, p1: float, rule: int, alpha: float, y: np.ndarray, w: np.ndarray, m: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What the rule says when it looks at N(m, v), row by row: gradient at m and curvature."""
    gradient = np.empty(y.size)
    curvature = np.empty(y.size)
    for i in range(y.size):
        gradient[i], curvature[i] = rule_site(code, p0, p1, rule, alpha, y[i], w[i], m[i], v[i], m[i], v[i])
    return gradient, curvature
