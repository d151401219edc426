"""The paper's own gain for a low-rank belief, for reproduction: the mean moves with the projected precision."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gaussfold.beliefs.lowrank.waiting import project
from gaussfold.beliefs.trace import RowError, Trace
from gaussfold.engine.dense.absorb import absorb_rows
from gaussfold.engine.lowrank.products import gradient_and_curvature
from gaussfold.engine.programs import forgets_its_trial, makes_a_trial
from gaussfold.types import Array, Program

if TYPE_CHECKING:
    from gaussfold.beliefs.lowrank.belief import LowRankGaussian

_NOTHING = np.empty((0, 0))


def printed_row(
    belief: LowRankGaussian,
    X: Any,
    y: Array,
    weight: Array,
    program: Program,
    trace: Trace,
    first: int,
) -> int:
    """One row with the gain of the projected precision: lrvga (24)-(26), (141)-(143). For reproduction."""
    X, y, weight, trace = X[:1], y[:1], weight[:1], trace.rows(0, 1)
    precision = belief.precision()
    view = precision.view(X, residual=True)
    m0, v0 = float((X @ belief._mean)[0]), float(view.covariance[0, 0])
    failed = absorb_rows(
        np.eye(1), np.zeros(1), np.sqrt(view.covariance), np.array([m0]), y, weight, trace.site_precision,
        trace.site_shift, program, trace.mean, trace.variance, trace.log_predictive, _NOTHING,
    )  # fmt: skip
    if failed >= 0:
        raise RowError(first)
    if math.isnan(y[0]) or weight[0] == 0.0 or v0 == 0.0:
        return 1
    if not makes_a_trial(program):  # prior, posterior: the gradient as seen from the mean before
        curvature = float(trace.site_precision[0])
        gradient = float(trace.site_shift[0]) - curvature * m0
        again = False
    else:
        gradient, bend = gradient_and_curvature(program, y[0], weight[0], m0, v0, m0, v0)
        curvature, again = -bend, True
    before = (belief._W.copy(), belief._psi.copy(), belief._gram) if forgets_its_trial(program) else None
    project(belief, X, np.array([curvature]), None)
    look = belief.precision().view(X, residual=True)
    if again:
        v1 = float(look.covariance[0, 0])
        m1 = m0 + v1 * gradient
        gradient, bend = gradient_and_curvature(program, y[0], weight[0], m1, v1, m0, v0)
        if before is not None:
            belief._W, belief._psi, belief._gram = before
            curvature = -bend
            project(belief, X, np.array([curvature]), None)
            look = belief.precision().view(X, residual=True)
    assert look.residual is not None
    belief._mean += gradient * look.residual[0] / belief._psi
    trace.site_precision[0], trace.site_shift[0] = curvature, gradient + curvature * m0
    return 1
