"""The step ρ of (9), shortened when the energy shows that it overshoots."""

from __future__ import annotations

import numpy as np

FORGIVEN = 2
"""Rises of the energy before steps become shorter: the first step may come from far away, and rounding plays too."""
HALVINGS = 7


class Damping:
    """ρ for the next iteration, given the energies so far.

    With rule vi and exact curvature (9) is a natural gradient of (16), so that an energy which keeps rising means
    steps too long (they swing around the optimum): each further rise halves them. Energies of other rules need not
    fall, and their steps are left alone.

    Examples
    --------
    >>> damping = Damping(1.0, adapts=True)
    >>> for energy in (3.0, 2.0, 2.5, 2.0, 2.5, 2.0, 2.5):
    ...     damping.see(energy)
    >>> damping.value
    0.5
    """

    def __init__(self, most: float, *, adapts: bool) -> None:
        self._most, self._adapts = most, adapts
        self._last, self._rises = np.inf, 0

    @property
    def value(self) -> float:
        """The step to take."""
        return self._most * 0.5 ** min(max(self._rises - FORGIVEN, 0), HALVINGS)

    def see(self, energy: float) -> None:
        """Take note of the energy after a step."""
        self._rises += self._adapts and energy > self._last
        self._last = energy
