"""Rows on their way through a belief with covariances: the record that its passes cut up and hand on."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np

from gaussfold.engine.dense.absorb import absorb_rows
from gaussfold.observations import Observations
from gaussfold.rows import Matrix
from gaussfold.trace import RowError, Trace
from gaussfold.types import Array, Program

NO_FALLS: Array = np.empty((0, 0))


class Visits(NamedTuple):
    """Some rows of a call: their data, how sites are made, where the trace goes, which row of the call is the first."""

    data: Observations
    program: Program
    trace: Trace
    first: int = 0

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.data.y.size

    @property
    def matrix(self) -> Matrix:
        """X of a belief that has made it an array or a matrix of SciPy's."""
        return cast("Matrix", self.data.X)

    def part(self, start: int, stop: int) -> Visits:
        """Some of them; their trace is written here."""
        (X, y, weight), program, trace, first = self
        part = slice(start, stop)
        return Visits(Observations(X[part], y[part], weight[part]), program, trace.rows(start, stop), first + start)

    def run(self, factor: Array, delta: Array, rows: Array, offset: Array, falls: Array = NO_FALLS) -> None:
        """Visit the rows one after the other by the compiled loop, which see the belief as ``rows`` see N(δ, FF').

        ``engine.dense.absorb.absorb_rows`` says what it does to ``factor``, ``delta`` and ``falls``.
        """
        _, y, weight = self.data
        trace = self.trace
        self.check(
            absorb_rows(
                factor, delta, rows, offset, y, weight, trace.site_precision, trace.site_shift, self.program,
                trace.mean, trace.variance, trace.log_predictive, falls,
            )
        )  # fmt: skip

    def check(self, failed: int) -> None:
        """Raise if the loop says that a row failed."""
        if failed >= 0:
            raise RowError(self.first + int(failed))
