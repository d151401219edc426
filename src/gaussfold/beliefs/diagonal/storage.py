"""A diagonal belief as named arrays, and back: of its cells only those that were touched, if that is less."""

from __future__ import annotations

import numpy as np

from gaussfold.beliefs.diagonal import kept_rows
from gaussfold.beliefs.diagonal.coupling import coupling_from_form
from gaussfold.beliefs.diagonal.kept_rows import KeptRows
from gaussfold.beliefs.diagonal.state import State
from gaussfold.engine.sparse.cells import FORGETS, WALKS
from gaussfold.schema import Part, equal, refuse, together
from gaussfold.schema import check as check_parts

LARGE = 1 << 30
"""Bytes of cells from which on memory matters more than the size of a file."""

ROUNDING = 1e-6
"""How far the weights of a mixture may be from adding up to 1."""
MAX_DIM = 2**31 - 1
"""Features that an index can count."""
MAX_MEAN = 1e153
"""The square of a distance of two such is a number."""
HEAD = (
    Part("dim", (1,), "whole", low=1, high=MAX_DIM),
    Part("coupling", (3,), "whole", low=0, high=1),
    Part("cells", ("written", 2, "K")),
    Part("log_weights", ("K",), "double", high=ROUNDING),
    Part("blank", (1, 2, "K"), optional=True),
    Part("touched", ("written",), "whole", low=0, high="d", optional=True),
)
"""What a model file holds of any diagonal belief."""
CLOCK = (
    Part("kind", (1,), "whole", low=FORGETS, high=WALKS),
    Part("clock", (1,), "double", low=0.0),
    Part("seen", ("d",), "double", low=0.0),
)
"""And of one over which time passes."""
PRIOR = (Part("prior", ("pulled", 2, "K")),)
"""What it forgets towards, in a precision of its own."""


def to_arrays(state: State, *, copy: bool) -> dict[str, np.ndarray]:
    """Named arrays that hold everything; without ``copy`` views where that can be."""
    arrays = _cells(state) | {
        "dim": np.array([state.dim]),
        "coupling": np.array(state.coupling.form),
        "log_weights": state.log_weights,
    }
    if not state.still:
        arrays |= {"seen": state.seen, "clock": state.clock, "kind": np.array([state.kind]), "prior": state.prior}
    if copy:
        arrays = {name: array.copy() for name, array in arrays.items()}
    return arrays if state.kept is None else arrays | state.kept.arrays()


def _cells(state: State) -> dict[str, np.ndarray]:
    # Touched cells are copied, the whole is not: a large belief must not need half of its memory again.
    few = state.dim // (2 if state.cells.nbytes < LARGE else 4)
    if state.blank is not None:
        columns = state.touched(few)
        if columns.size < few:
            return {"cells": state.cells[columns], "touched": columns, "blank": state.blank}
    state.write()
    return {"cells": state.cells} if state.blank is None else {"cells": state.cells, "blank": state.blank}


def check(arrays: dict[str, np.ndarray]) -> None:
    """Refuse arrays that :func:`to_arrays` cannot have made; makes no room for what is only claimed."""
    check_parts(arrays, HEAD[:1])
    dim = int(arrays["dim"][0])
    sizes = check_parts(arrays | {"log_weights": _lowest(arrays)}, HEAD, {"d": dim})
    for name in ("cells", "blank"):
        _check_moments(arrays, name)
    weight = float(np.exp(arrays["log_weights"]).sum())
    if not abs(weight - 1.0) <= ROUNDING:
        refuse("log_weights", f"weights that add up to {weight!r}", "1 is needed")
    if together(arrays, ("touched",)):
        together(arrays, ("touched", "blank"))
    elif sizes["written"] != 1:
        equal("cells", sizes["written"], dim, "one for each feature that 'dim' counts, or a single one")
    if together(arrays, ("kind", "clock", "seen", "prior")):
        _check_clock(arrays, sizes)
    if kept_rows.there(arrays):
        kept_rows.check(arrays, sizes)
        if "kind" in arrays:
            refuse(kept_rows.MARK, "rows are kept", "no time passes then")


def _lowest(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Log weights with a number in place of minus infinity, which a component that is ruled out has."""
    if "log_weights" not in arrays or arrays["log_weights"].dtype != np.float64:
        refuse("log_weights", "missing or not float64", "a file of this kind has it")
    return np.asarray(np.maximum(arrays["log_weights"], np.finfo(float).min))


def _check_moments(arrays: dict[str, np.ndarray], name: str) -> None:
    if name in arrays:
        said = f"variances in {name}"
        check_parts({said: arrays[name][:, 1]}, (Part(said, ("d", "K"), positive=True),))
        if (
            arrays[name].shape[2] > 1 and arrays[name].dtype != np.float32
        ):  # whose largest is far below; of several components: how far their means are apart adds to the variance
            said = f"means in {name}"
            check_parts({said: arrays[name][:, 0]}, (Part(said, ("d", "K"), low=-MAX_MEAN, high=MAX_MEAN),))


def _check_clock(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> None:
    known = check_parts(arrays, CLOCK, sizes) | check_parts(arrays, PRIOR, sizes)
    if known["pulled"] != 1:
        equal("prior", known["pulled"], sizes["d"], "one for each feature, or a single one")
    if arrays["kind"][0] == FORGETS:
        _check_moments(arrays, "prior")
    latest = float(arrays["seen"].max())
    if latest > arrays["clock"][0]:
        refuse("seen", f"a feature seen at {latest!r}", f"none can be after the clock, {float(arrays['clock'][0])!r}")


def from_arrays(arrays: dict[str, np.ndarray], *, copy: bool) -> State:
    """Undo :func:`to_arrays`, bit for bit; without ``copy`` the arrays are taken over."""
    joint, mean, variance = (int(part) for part in arrays["coupling"])
    sparsely = "touched" in arrays
    cells = arrays["blank"] if sparsely else arrays["cells"]
    coupling = coupling_from_form((joint, mean, variance))
    state = State.start(cells.copy() if copy else np.ascontiguousarray(cells), int(arrays["dim"][0]), coupling)
    if sparsely:
        state.widen(arrays["touched"])
        state.cells[arrays["touched"]] = arrays["cells"]
    elif "blank" in arrays:
        state.blank = arrays["blank"].copy()
    state.log_weights[:] = arrays["log_weights"]
    if "kind" in arrays:
        state.kind, state.prior = int(arrays["kind"][0]), arrays["prior"].copy()
        state.seen, state.clock = arrays["seen"].copy(), arrays["clock"].copy()
    if kept_rows.there(arrays):
        state.kept = KeptRows.from_arrays(arrays)
        if len(state.kept):  # their pages are to be there, as they were
            state.widen(state.kept.room.indices)
    return state
