"""The belief after one observation, and the site that is made at that very belief: two scalars to solve for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

Look: TypeAlias = Callable[[float, float], tuple[float, float]]
"""From a marginal (m, v) to the site made there: (gradient at m, curvature)."""

TOLERANCE = 1e-10  # taylor and pl take slopes by differences, which leave about 1e-11
MAX_STEPS = 2000


def after(precision: float, shift: float, m0: float, v0: float) -> tuple[float, float]:
    """N(m0, v0) times the site: exact (docs/architecture.md, "The one idea")."""
    v = 1.0 / (1.0 / v0 + precision)
    return v * (m0 / v0 + shift), v


def implicit_site(look: Look, m0: float, v0: float) -> tuple[float, float]:
    """Solve for the site that the rule makes at the very belief it leads to, by damped substitution.

    A full step is Newton's for the mean; when it does not bring (m, v) nearer to where it leads, half of it is taken.
    """
    precision, shift = 0.0, 0.0
    damping, last = 1.0, np.inf
    for _ in range(MAX_STEPS):
        m, v = after(precision, shift, m0, v0)
        gradient, curvature = look(m, v)
        target = -curvature, gradient - curvature * m
        m_next, v_next = after(*target, m0, v0)
        distance = abs(m_next - m) / np.sqrt(v) + abs(np.log(v_next / v)) if v_next > 0.0 else np.inf
        if distance <= TOLERANCE:
            return target
        if distance > 0.9 * last:
            damping = max(0.5 * damping, 1e-3)
        last = distance
        precision += damping * (target[0] - precision)
        shift += damping * (target[1] - shift)
    msg = f"the implicit update at N({m0!r}, {v0!r}) did not settle in {MAX_STEPS} steps; use at='prior'"
    raise ValueError(msg)
