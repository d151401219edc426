"""The scalar functions of the engine, run over arrays: one loop each, for every family.

``row_functions`` gathers those that a likelihood's expectations need; families for which there are faster ways replace
some of them (``expectations_logit``, ``expectations_probit``). Nobody waits for the compilation of what is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import Family
from gaussfold.engine.rules import RuleRecord, rule_site
from gaussfold.engine.scalar.expectations import expected_derivatives as expected_derivatives_of_one
from gaussfold.engine.scalar.expectations import expected_log_density
from gaussfold.engine.scalar.expectations import log_predictive as log_predictive_of_one
from gaussfold.engine.scalar.expectations import predictive as predictive_of_one
from gaussfold.engine.scalar.quadrature import tilted as tilted_of_one
from gaussfold.engine.scalar.sites import make_site

Column: TypeAlias = np.ndarray


class RowFunctions(NamedTuple):
    """Expectations of one family over rows: labels y, and means and variances of the latent."""

    expected_log_prob: Callable[[Column, Column, Column], Column]
    """E log p."""
    expected_derivatives: Callable[[Column, Column, Column], tuple[Column, Column]]
    """E l' and E l''."""
    log_predictive: Callable[[Column, Column, Column], Column]
    """Log E p."""
    tilted: Callable[[float, Column, Column, Column], tuple[Column, Column, Column]]
    """Log E p^power and its first two derivatives in the mean; the power comes first."""
    predictive: Callable[[Column, Column], tuple[Column, Column, Column]]
    """Mean and variance of y, and variance of E[y|f]."""


def row_functions(family: Family) -> RowFunctions:
    """The compiled loops for a family."""
    return RowFunctions(
        partial(expected_log_prob, family),
        partial(expected_derivatives, family),
        partial(log_predictive, family),
        partial(tilted, family),
        partial(predictive, family),
    )


@compiled
def expected_log_prob(family: Family, y: Column, m: Column, v: Column) -> Column:
    """E log p under N(m, v), row by row; NaN for a missing label, here and below."""
    value = np.empty(y.size)
    for i in range(y.size):
        value[i] = expected_log_density(family, y[i], m[i], v[i]) if not np.isnan(y[i]) else np.nan
    return value


@compiled
def expected_derivatives(family: Family, y: Column, m: Column, v: Column) -> tuple[Column, Column]:
    """E l' and E l'' under N(m, v), row by row."""
    first = np.empty(y.size)
    second = np.empty(y.size)
    for i in range(y.size):
        if np.isnan(y[i]):
            first[i] = second[i] = np.nan
            continue
        first[i], second[i], _, _ = expected_derivatives_of_one(family, y[i], m[i], v[i])
    return first, second


@compiled
def tilted(family: Family, power: float, y: Column, m: Column, v: Column) -> tuple[Column, Column, Column]:
    """Log E p(y|f)^power under N(m, v), and its first two derivatives in m, row by row."""
    value = np.empty(y.size)
    first = np.empty(y.size)
    second = np.empty(y.size)
    for i in range(y.size):
        if np.isnan(y[i]):
            value[i] = first[i] = second[i] = np.nan
        else:
            value[i], first[i], second[i] = tilted_of_one(family, y[i], power, m[i], v[i])
    return value, first, second


@compiled
def log_predictive(family: Family, y: Column, m: Column, v: Column) -> Column:
    """Log E p(y|f), row by row."""
    out = np.empty(y.size)
    for i in range(y.size):
        out[i] = log_predictive_of_one(family, y[i], m[i], v[i])
    return out


@compiled
def predictive(family: Family, m: Column, v: Column) -> tuple[Column, Column, Column]:
    """Mean and variance of y, and variance of E[y|f], with f ~ N(m, v) integrated out."""
    mean = np.empty(m.size)
    total = np.empty(m.size)
    of_mean = np.empty(m.size)
    for i in range(m.size):
        mean[i], _, total[i], of_mean[i] = predictive_of_one(family, m[i], v[i])
    return mean, total, of_mean


@compiled
def sites(
    family: Family, rule: RuleRecord, at: int, y: Column, w: Column, m0: Column, v0: Column
) -> tuple[Column, Column, Column, Column, Column]:
    """One site per row, each from its own marginal: gradient at the new mean, curvature, new m, v, iterations."""
    gradient = np.empty(y.size)
    curvature = np.empty(y.size)
    m = np.empty(y.size)
    v = np.empty(y.size)
    iterations = np.empty(y.size, dtype=np.int64)
    for i in range(y.size):
        gradient[i], curvature[i], m[i], v[i], iterations[i] = make_site(family, rule, at, y[i], w[i], m0[i], v0[i])
    return gradient, curvature, m, v, iterations


@compiled
def surrogates(family: Family, rule: RuleRecord, y: Column, w: Column, m: Column, v: Column) -> tuple[Column, Column]:
    """What the rule says when it looks at N(m, v), row by row: gradient at m and curvature."""
    gradient = np.empty(y.size)
    curvature = np.empty(y.size)
    for i in range(y.size):
        gradient[i], curvature[i] = rule_site(family, rule, y[i], w[i], m[i], v[i], m[i], v[i])
    return gradient, curvature


def where_it_fits(
    fits: Column,
    fast: Callable[..., tuple[Column, ...]],
    slow: Callable[..., tuple[Column, ...]],
    columns: tuple[Column, Column, Column],
    outputs: int,
) -> Column:
    """Rows that fit by the fast function, the rest that has a label by the slow one; NaN elsewhere."""
    if fits.all():
        return np.stack(fast(*columns))
    out = np.full((outputs, fits.size), np.nan)
    for rows, function in ((fits, fast), (~fits & ~np.isnan(columns[0]), slow)):
        if rows.any():
            out[:, rows] = function(*(column[rows] for column in columns))
    return out
