"""The paper's own gain for a low-rank belief, for reproduction: the mean moves with the projected precision."""

from __future__ import annotations

import math

import numpy as np

from gaussfold.beliefs.lowrank.state import State
from gaussfold.beliefs.visits import Visits
from gaussfold.engine.lowrank.products import gradient_and_curvature
from gaussfold.engine.programs import forgets_its_trial, makes_a_trial
from gaussfold.factors.woodbury import too_strong
from gaussfold.trace import RowError


def printed_row(state: State, visits: Visits) -> int:
    """The first row with the gain of the projected precision: lrvga (24)-(26), (141)-(143). Returns 1: a row taken."""
    visits = visits.part(0, 1)
    (_, labels, weights), program, trace, _ = visits
    X = visits.matrix
    y, w = float(labels[0]), float(weights[0])
    view = state.precision().view(X, residual=True)
    m0, v0 = float((X @ state.mean)[0]), float(view.covariance[0, 0])
    visits.run(np.eye(1), np.zeros(1), np.sqrt(view.covariance), np.array([m0]))
    if math.isnan(y) or w == 0.0 or v0 == 0.0:
        return 1
    if too_strong(state.psi, X, view.inner[0], trace.site_precision):
        raise RowError(visits.first)
    again = makes_a_trial(program)
    if again:
        gradient, bend = gradient_and_curvature(program, y, w, m0, v0, m0, v0)
        curvature = -bend
    else:  # prior, posterior: the gradient as seen from the mean before
        curvature = float(trace.site_precision[0])
        gradient = float(trace.site_shift[0]) - curvature * m0
    before = (state.W.copy(), state.psi.copy(), state.gram) if forgets_its_trial(program) else None
    state.project(X, np.array([curvature]))
    look = state.precision().view(X, residual=True)
    if again:
        v1 = float(look.covariance[0, 0])
        m1 = m0 + v1 * gradient
        gradient, bend = gradient_and_curvature(program, y, w, m1, v1, m0, v0)
        if before is not None:
            state.W, state.psi, state.gram = before
            curvature = -bend
            state.project(X, np.array([curvature]))
            look = state.precision().view(X, residual=True)
    assert look.residual is not None
    state.mean += gradient * look.residual[0] / state.psi
    trace.site_precision[0], trace.site_shift[0] = curvature, gradient + curvature * m0
    return 1
