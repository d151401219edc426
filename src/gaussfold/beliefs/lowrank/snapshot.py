"""How a failing call is undone for a belief that may be too large to copy."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

from gaussfold.types import Array

if TYPE_CHECKING:
    from gaussfold.beliefs.lowrank.belief import LowRankGaussian

SNAPSHOT_BYTES = 1 << 26
"""A larger belief is kept safe on disk, not in memory, while a call makes more than one projection."""


class Snapshot:
    """What is needed to undo a call: in memory if small, else in a temporary file."""

    def __init__(self, belief: LowRankGaussian) -> None:
        self._rest = (belief._mean.copy(), belief._psi.copy(), belief._gram.copy(), belief._due.copy(), belief._rows)
        self._W: Array | None = None
        self._file: Any = None
        if belief._W.nbytes <= SNAPSHOT_BYTES:
            self._W = belief._W.copy()
        else:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the snapshot
            belief._W.tofile(self._file)

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            self._file.close()

    def restore(self, belief: LowRankGaussian) -> None:
        """Put everything back."""
        belief._mean, belief._psi, belief._gram, belief._due, belief._rows = self._rest
        if self._W is not None:
            belief._W = self._W
        else:
            self._file.seek(0)
            belief._W.reshape(-1)[:] = np.fromfile(self._file, dtype=belief._W.dtype)
        belief._view = None
