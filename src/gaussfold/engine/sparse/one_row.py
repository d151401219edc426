"""One row of a diagonal belief of one component, for streams that arrive row by row: the loops of ``absorb``, once.

What takes time there is the way in from Python, so these are called by their entry points (``compilation.entry``), with
the arrays that the caller keeps anyway, and answer in numbers. A row that has anything wrong with it is refused and has
changed nothing: the caller finds out what it is in its own time, by the loop for many rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import typeof
from numba.core import types
from numba.core.types.containers import Tuple

from gaussfold.engine.compilation.entry import entry_point
from gaussfold.engine.compiled import compiled
from gaussfold.engine.families import Family, is_label
from gaussfold.engine.programs import is_fast
from gaussfold.engine.scalar.expectations import log_predictive
from gaussfold.engine.sparse.absorb import Time, absorb_any, absorb_logit
from gaussfold.engine.sparse.cells import look
from gaussfold.engine.sparse.visit_any import MARGINAL, Form
from gaussfold.types import Program

LIMITS = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)


@compiled
def _good(family: Family, data: np.ndarray, y: float, w: float) -> bool:
    """Finite values, a label of the family (or none), a weight."""
    total = 0.0
    for q in range(data.size):
        total += abs(data[q])
    return total < math.inf and 0.0 <= w < math.inf and (math.isnan(y) or is_label(family, y))


@compiled
def learn_logit(
    cells: np.ndarray, time: Time, indices: np.ndarray, data: np.ndarray, y: float, w: float, program: Program,
    form: Form,
) -> tuple[bool, float, float]:  # fmt: skip
    """(whether the row was good, mean and variance of x'θ before it was learned), where the loop in lanes will do."""
    if form[0] != MARGINAL or not _good(program.family, data, y, w):
        return False, 0.0, 0.0
    marginal = np.empty((2, 1, 1))
    indptr = np.zeros(2, np.int64)
    indptr[1] = indices.size
    log = (np.empty((0, 2, 1)), np.empty(0), np.empty(0, np.uint64))
    failed, _ = absorb_logit(
        cells, time, log, indptr, indices, data, np.full(1, y), np.full(1, w), LIMITS,
        indices.size, False, marginal[0], marginal[1],
    )  # fmt: skip
    return failed < 0, marginal[0, 0, 0], marginal[1, 0, 0]


@compiled
def learn_any(
    cells: np.ndarray, time: Time, indices: np.ndarray, data: np.ndarray, y: float, w: float, program: Program,
    form: Form,
) -> tuple[bool, float, float]:  # fmt: skip
    """As :func:`learn_logit` for any likelihood, rule, at and coupling."""
    if not _good(program.family, data, y, w):
        return False, 0.0, 0.0
    marginal, sites = np.empty((2, 1, 1)), np.empty((2, 1))
    indptr = np.zeros(2, np.int64)
    indptr[1] = indices.size
    log = (np.empty((0, 2, 1)), np.empty(0), np.empty(0, np.uint64))
    failed, _ = absorb_any(
        cells, time, log, indptr, indices, data, np.full(1, y), np.full(1, w), LIMITS,
        indices.size, marginal[0], marginal[1], program, form, sites[0], sites[1],
    )  # fmt: skip
    return failed < 0, marginal[0, 0, 0], marginal[1, 0, 0]


@compiled
def look_once(cells: np.ndarray, time: Time, indices: np.ndarray, data: np.ndarray) -> tuple[float, float]:  # fmt: skip
    """Mean and variance of x'θ; not finite where the row is not."""
    marginal = np.empty((2, 1, 1))
    indptr = np.zeros(2, np.int64)
    indptr[1] = indices.size
    seen, clock, kind, _, prior = time
    look(cells, seen, clock[0], kind, prior, indptr, indices, data, marginal[0], marginal[1])
    return marginal[0, 0, 0], marginal[1, 0, 0]


@compiled
def two_sides(family: Family, mean: float, variance: float) -> tuple[float, float]:
    """P(y = 0) and P(y = 1) with the latent, N(mean, variance), integrated out."""
    return math.exp(log_predictive(family, 0.0, mean, variance)), math.exp(log_predictive(family, 1.0, mean, variance))


_CELLS, _VECTOR = types.Array(types.float64, 3, "C"), types.Array(types.float64, 1, "C")
_TIME = Tuple((_VECTOR, _VECTOR, types.int64, types.float64, _CELLS))
_ROW = (_CELLS, _TIME, types.Array(types.int64, 1, "C"), _VECTOR)


class RowLoops(NamedTuple):
    """The machine code for one program and form: float64 cells of one component, int64 places, all in C order."""

    learn: Callable[..., tuple[bool, float, float]]
    look: Callable[..., tuple[float, float]]
    two_sides: Callable[..., tuple[float, float]]
    made_for: tuple[Program, Form]

    def __reduce__(self) -> tuple[Callable[..., RowLoops], tuple[Program, Form]]:
        """Machine code stays where it is: a copy is found, or compiled, by what it was made for."""
        return row_loops, self.made_for


_LOOPS: dict[tuple[type, type, bool], RowLoops] = {}


def row_loops(program: Program, form: Form) -> RowLoops:
    """Compile them, or find them."""
    fast = is_fast(program, form)
    key = (type(program.family), type(program.rule), fast)
    loops = _LOOPS.get(key)
    if loops is None:
        learn = (*_ROW, types.float64, types.float64, typeof(program), typeof(form))
        loops = _LOOPS[key] = RowLoops(
            entry_point(learn_logit if fast else learn_any, learn),
            entry_point(look_once, _ROW),
            entry_point(two_sides, (typeof(program.family), types.float64, types.float64)),
            (program, form),
        )
    return loops
