"""A low-rank belief as named arrays, and back."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gaussfold.beliefs.lowrank.options import check_rank, decode, encode
from gaussfold.beliefs.lowrank.state import State
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
)
"""What a model file holds of it."""
SPARSE_ROWS = (
    Part("rows_data", ("entries",), "stored"),
    Part("rows_indices", ("entries",), "whole", low=0, high="d"),
    Part("rows_indptr", ("waiting + 1",), "whole", pointers="entries"),
)
"""Rows that wait, if they are sparse."""


def to_arrays(state: State) -> dict[str, np.ndarray]:
    """Copies that hold everything, rows that wait included."""
    arrays = {"mean": state.mean, "W": state.W, "psi": state.psi, "gram": state.gram, "due": state.due}
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
    state = State(decode(arrays["options"]), mean, W, psi, gram, due)
    if "rows" in arrays:
        state.rows = arrays["rows"].copy()
    if "rows_data" in arrays:
        parts = tuple(arrays[f"rows_{part}"] for part in ("data", "indices", "indptr"))
        state.rows = sparse.csr_matrix(parts, shape=(parts[2].size - 1, state.psi.size))
    if state.pending >= state.options.block_size:
        refuse("options", f"{state.pending} rows wait", f"fewer than a block of {state.options.block_size} can")
    return state
