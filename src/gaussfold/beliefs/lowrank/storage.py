"""A low-rank belief as named arrays, and back."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gaussfold.beliefs.lowrank.options import CALIBRATED, check_rank, decode, encode
from gaussfold.beliefs.lowrank.state import State
from gaussfold.factors.calibrated import Account, Ledger
from gaussfold.rows import is_sparse
from gaussfold.schema import Part, check, refuse, together

PARTS = (
    Part("mean", ("d",)),
    Part("W", ("d", "p")),
    Part("psi", ("d",), positive=True),
    Part("gram", ("p", "p"), "double", symmetric=True),
    Part("due", (2,), "double", low=0.0),
    Part("options", (4,), "double", low=0.0, high=2.0**53),
    Part("rows", ("waiting", "d"), optional=True),
    Part("taken", (1,), "whole", low=0, optional=True),
)
"""What a model file holds of it."""
LEDGER = (Part("base", ("d",), positive=True), Part("ledger", (6,), "double"))
"""What a calibrated belief keeps besides."""
SPARSE_ROWS = (
    Part("rows_data", ("entries",), "stored"),
    Part("rows_indices", ("entries",), "whole", low=0, high="d"),
    Part("rows_indptr", ("waiting + 1",), "whole", pointers="entries"),
)
"""Rows that wait, if they are sparse."""


def to_arrays(state: State) -> dict[str, np.ndarray]:
    """Copies that hold everything, rows that wait included."""
    arrays = {"mean": state.mean, "W": state.W, "psi": state.psi, "gram": state.gram, "due": state.due}
    if state.ledger is not None:
        arrays |= {"base": state.ledger.base, "ledger": state.ledger.numbers}
    if state.options.automatic:
        arrays["taken"] = np.array([state.taken])
    rows = state.rows
    if is_sparse(rows):
        arrays |= {"rows_data": rows.data, "rows_indices": rows.indices, "rows_indptr": rows.indptr}
    elif rows is not None:
        arrays["rows"] = rows
    return {name: array.copy() for name, array in arrays.items()} | {"options": encode(state.options)}


def from_arrays(arrays: dict[str, np.ndarray]) -> State:
    """Undo :func:`to_arrays`, bit for bit."""
    sizes = check(arrays, PARTS)
    check_rank(sizes["p"], sizes["d"])
    if together(arrays, [part.name for part in SPARSE_ROWS]):
        check(arrays, SPARSE_ROWS, sizes)
    mean, W, psi, gram, due = (arrays[name].copy() for name in ("mean", "W", "psi", "gram", "due"))
    state = State(decode(arrays["options"]), mean, W, psi, gram, due, _ledger(arrays, sizes))
    if "taken" in arrays:
        state.taken = int(arrays["taken"][0])
    elif state.options.automatic:
        msg = "taken: a belief with block_size=None has it, to go on with the blocks that suit"
        raise ValueError(msg)
    if "rows" in arrays:
        state.rows = arrays["rows"].copy()
    if "rows_data" in arrays:
        parts = tuple(arrays[f"rows_{part}"] for part in ("data", "indices", "indptr"))
        state.rows = sparse.csr_matrix(parts, shape=(parts[2].size - 1, state.psi.size))
    if state.full:
        refuse("options", f"{state.pending} rows wait", f"fewer than a block of {state.block} can")
    return state


def _ledger(arrays: dict[str, np.ndarray], sizes: dict[str, int]) -> Ledger | None:
    """Of a calibrated belief, which cannot go on without."""
    expected = decode(arrays["options"]).calibrated
    if together(arrays, [part.name for part in LEDGER]) != expected:
        msg = f"base, ledger: a belief with projection='{CALIBRATED}' has both, another has none"
        raise ValueError(msg)
    if not expected:
        return None
    check(arrays, LEDGER, sizes)
    numbers = Account(*arrays["ledger"].tolist())
    if min(numbers.information, numbers.uncertainty, numbers.room) < 0.0 or not 0.0 < numbers.free <= 1.0:
        msg = f"ledger: {numbers}; information, uncertainty and room cannot be negative, free is above 0 and at most 1"
        raise ValueError(msg)
    return Ledger(arrays["base"].copy(), arrays["ledger"].copy())
