"""Where the implicit solver starts, near the root and often on it: a mean, a variance and the steps it took.

Generic in the family (``engine.dispatch``); a rule's file says which of them it takes.
"""

from __future__ import annotations

from gaussfold.engine.dispatch import by_family
from gaussfold.engine.families import Family
from gaussfold.engine.scalar.quadrature import tilted_mode


@by_family
def mode_start(family: Family, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """The mode of prior × likelihood: the root itself for newton, and a point near it for the rest."""
    return tilted_mode(family, y, w, m0, v0)


@by_family
def averaged_start(family: Family, y: float, w: float, m0: float, v0: float) -> tuple[float, float, int]:
    """For rules that average over the marginal: the mode, unless the family knows where averages settle."""
    return mode_start(family, y, w, m0, v0)


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
