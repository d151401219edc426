"""A low-rank belief as named arrays, and back."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from gaussfold.beliefs.lowrank.options import decode, encode
from gaussfold.beliefs.lowrank.state import State
from gaussfold.rows import is_sparse


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
    mean, W, psi, gram, due = (arrays[name].copy() for name in ("mean", "W", "psi", "gram", "due"))
    state = State(decode(arrays["options"]), mean, W, psi, gram, due)
    if "rows" in arrays:
        state.rows = arrays["rows"].copy()
    if "rows_data" in arrays:
        parts = tuple(arrays[f"rows_{part}"] for part in ("data", "indices", "indptr"))
        state.rows = sparse.csr_matrix(parts, shape=(parts[2].size - 1, state.psi.size))
    return state
