"""The scalar functions of the engine, run over arrays."""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.evaluate import (
    expected_derivatives,
    expected_log_density,
    rule_site,
)
from gaussfold.engine.evaluate import log_predictive as _log_predictive
from gaussfold.engine.evaluate import predictive as _predictive
from gaussfold.engine.sites import visit


@compiled
def expected(
    code: int, p0: float, p1: float, y: np.ndarray, m: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """E log p, E l', E l'' under N(m, v), row by row."""
    value = np.empty(y.size)
    first = np.empty(y.size)
    second = np.empty(y.size)
    for i in range(y.size):
        if np.isnan(y[i]):
            value[i] = first[i] = second[i] = np.nan
            continue
        value[i] = expected_log_density(code, p0, p1, y[i], m[i], v[i])
        first[i], second[i], _, _ = expected_derivatives(code, p0, p1, y[i], m[i], v[i])
    return value, first, second


@compiled
def log_predictive(code: int, p0: float, p1: float, y: np.ndarray, m: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Log E p(y|f), row by row."""
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
