"""How a failing call is undone for a belief that may be too large to copy."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

from gaussfold.beliefs.lowrank.state import State
from gaussfold.types import Array

SNAPSHOT_BYTES = 1 << 26
"""A larger belief is kept safe on disk, not in memory, while a call makes more than one projection."""


@contextmanager
def kept_safe(state: State) -> Iterator[None]:
    """Put the state back as it was if what happens inside fails."""
    snapshot = _Snapshot(state)
    try:
        yield
    except BaseException:
        snapshot.restore(state)
        raise
    finally:
        snapshot.close()


class _Snapshot:
    """What is needed to undo a call: in memory if small, else in a temporary file."""

    def __init__(self, state: State) -> None:
        self._rest = (state.mean.copy(), state.psi.copy(), state.gram.copy(), state.due.copy(), state.rows)
        self._ledger, self._taken = None if state.ledger is None else state.ledger.copy(), state.taken
        self._W: Array | None = None
        self._file: IO[bytes] | None = None
        if state.W.nbytes <= SNAPSHOT_BYTES:
            self._W = state.W.copy()
        else:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the snapshot
            state.W.tofile(self._file)

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()

    def restore(self, state: State) -> None:
        """Put everything back."""
        state.mean, state.psi, state.gram, state.due, state.rows = self._rest
        state.ledger, state.taken = self._ledger, self._taken
        if self._W is not None:
            state.W = self._W
        elif self._file is not None:
            self._file.seek(0)
            state.W.reshape(-1)[:] = np.fromfile(self._file, dtype=state.W.dtype)
        state.view = None
