"""A diagonal belief as named arrays, and back: of its cells only those that were touched, if that is less."""

from __future__ import annotations

import numpy as np

from gaussfold.beliefs.diagonal.coupling import coupling_from_form
from gaussfold.beliefs.diagonal.state import State
from gaussfold.engine.sparse.cells import STILL

LARGE = 1 << 30
"""Bytes of cells from which on memory matters more than the size of a file."""


def to_arrays(state: State, *, copy: bool) -> dict[str, np.ndarray]:
    """Named arrays that hold everything; without ``copy`` views where that can be."""
    arrays = _cells(state) | {
        "dim": np.array([state.dim]),
        "coupling": np.array(state.coupling.form),
        "log_weights": state.log_weights,
    }
    if state.kind != STILL:
        arrays |= {"seen": state.seen, "clock": state.clock, "kind": np.array([state.kind]), "prior": state.prior}
    return {name: array.copy() for name, array in arrays.items()} if copy else arrays


def _cells(state: State) -> dict[str, np.ndarray]:
    # Touched cells are copied, the whole is not: a large belief must not need half of its memory again.
    few = state.dim // (2 if state.cells.nbytes < LARGE else 4)
    if state.blank is not None:
        columns = state.touched(few)
        if columns.size < few:
            return {"cells": state.cells[columns], "touched": columns, "blank": state.blank}
    state.write()
    return {"cells": state.cells} if state.blank is None else {"cells": state.cells, "blank": state.blank}


def from_arrays(arrays: dict[str, np.ndarray], *, copy: bool) -> State:
    """Undo :func:`to_arrays`, bit for bit; without ``copy`` the arrays are taken over."""
    joint, mean, variance = (int(part) for part in arrays["coupling"])
    sparsely = "touched" in arrays
    cells = arrays["blank"] if sparsely else arrays["cells"]
    coupling = coupling_from_form((joint, mean, variance))
    state = State.start(cells.copy() if copy else cells, int(arrays["dim"][0]), coupling)
    if sparsely:
        state.widen(arrays["touched"])
        state.cells[arrays["touched"]] = arrays["cells"]
    elif "blank" in arrays:
        state.blank = arrays["blank"].copy()
    state.log_weights[:] = arrays["log_weights"]
    if "kind" in arrays:
        state.kind, state.prior = int(arrays["kind"][0]), arrays["prior"].copy()
        state.seen, state.clock = arrays["seen"].copy(), arrays["clock"].copy()
    return state
