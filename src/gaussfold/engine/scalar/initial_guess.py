"""Where the implicit solver starts, near the root and often on it: a mean, a variance and the steps it took.

Generic in the family (``engine.dispatch``); a rule's file says which of them it takes.
"""

from __future__ import annotations

import math

from gaussfold.engine.compiled import part
from gaussfold.engine.dispatch import by_family
from gaussfold.engine.families import Family, derivatives, landmark
from gaussfold.engine.scalar.quadrature import tilted_mode


@by_family
def mode_start(family: Family, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """The mode of prior × likelihood: the root itself for newton, and a point near it for the rest."""
    return tilted_mode(family, y, w, m0, v0)


@by_family
def averaged_start(family: Family, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """For rules that average over the marginal: beside the mode, unless the family knows where averages settle.

    To first order in v an average is the value and v/2 times its second derivative. That moves the root of the mode by
    a step which is taken if it is small.
    """
    m, v, n = mode_start(family, y, w, m0, v0)
    _, d2, d3, d4 = derivatives(family, y, m)
    step = 0.5 * w * v * v * d3
    grown = 1.0 - v0 * w * (d2 + 0.5 * v * d4 + d3 * step)
    if abs(step) <= 0.2 * math.sqrt(v) and 0.8 * v0 <= grown * v <= 1.25 * v0:
        return m + step, v0 / grown, n
    return m, v, n


@part
def beside_prior(family: Family, y: float, w: float, m0: float, v0: float) -> tuple[bool, float, float]:
    """(True, m, v) near the root of rule vi where the row moves a narrow belief a little: series in the step and in v.

    To first order an average over N(m, v) is the value at m and v/2 times its second derivative.
    """
    _, length = landmark(family, y)
    d1, d2, d3, d4 = derivatives(family, y, m0)
    grown = 1.0 - v0 * w * d2
    first = v0 * w * d1 / grown
    if not (v0 <= 0.01 * length * length and grown > 0.5 and abs(first) <= 0.1 * length):
        return False, m0, v0
    v = v0 / grown
    step = first + 0.5 * v * w * d3 * (first * first + v)
    after = 1.0 - v0 * w * (d2 + d3 * step + 0.5 * d4 * (step * step + v))
    return after > 0.5, m0 + step, v0 / after


@by_family
def vi_start(family: Family, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """For rule vi."""
    return averaged_start(family, y, w, m0, v0)


@by_family
def vi_start_is_root(family: Family) -> bool:
    """Whether :func:`vi_start` is the mean of the root itself, so that nothing is left to solve."""
    return False


@by_family
def bound_start(family: Family, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """For rule quadratic."""
    return averaged_start(family, y, w, m0, v0)
