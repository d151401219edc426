"""How a diagonal belief is told to visit its rows twice; what is kept is in ``kept_rows``."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from gaussfold.beliefs.diagonal.kept_rows import MOST, REMEDY, KeptRows
from gaussfold.beliefs.diagonal.state import FADED, State
from gaussfold.checks import whole


class LooksAgain:
    """A belief with cells, whose rows may be kept for a second look."""

    _state: State

    @property
    def second_look(self) -> int:
        """How many rows are kept for a second visit; 0: none."""
        return 0 if self._state.kept is None else self._state.kept.rows

    def look_again(self, rows: int) -> Self:
        """Keep so many rows after they were learned, and visit each once more before it is let go; returns itself.

        (Of the first rows a quarter of those learned: more is known soon, and much of a first visit is wrong then.)
        What a row said of its features is taken out of their cells, and the row is learned anew with what is known by
        then of the others: closer to what all rows say together, for twice the work and ``24 + 16 K`` bytes for each
        feature of each row that is kept. Rows are counted that have a label and a weight, so chunks make no difference.
        For a belief over which no time passes. 0 lets go of all rows, as they are.

        Examples
        --------
        >>> import gaussfold as gf
        >>> belief = gf.DiagonalGaussian.isotropic(2**20).look_again(10_000)
        >>> belief.second_look
        10000
        """
        state = self._state
        if whole("second_look", rows, least=0, most=MOST, remedy=REMEDY) == 0:
            state.kept = None
        elif not state.still:
            raise ValueError(FADED)
        elif state.kept is None:
            state.kept = KeptRows.start(rows, state.cells.shape[2])
        else:
            state.kept = replace(state.kept, rows=rows)
        return self
