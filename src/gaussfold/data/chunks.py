"""Chunks of rows, and the arrays they are parsed into."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy

from gaussfold.data.fingerprint import Fingerprint
from gaussfold.data.messages import BadRecord, DataError
from gaussfold.data.naming import Named
from gaussfold.engine.text.byte_scan import PADDING
from gaussfold.engine.text.report import N_REPORT
from gaussfold.engine.text.row_memory import Options, Rows, Scratch

_MOST_ENTRIES = 1 << 28  # of one record: 3 GB


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive rows of a stream."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    label: np.ndarray  # NaN: none
    weight: np.ndarray
    width: int
    source: str
    line: np.ndarray  # of each row in its source, from 1
    tags: list[str] | None = None
    names: list[Named] = field(default_factory=list)  # slots seen for the first time, if names are kept
    bad: list[BadRecord] = field(default_factory=list)  # records left out, the first thousand of a stream
    n_bad: int = 0
    seen: Fingerprint | None = None  # of all rows of the stream up to the end of this chunk, if asked for

    def __len__(self) -> int:
        return len(self.label)

    @property
    def X(self) -> scipy.sparse.csr_matrix:
        """The rows as a sparse matrix that shares their memory."""
        matrix = scipy.sparse.csr_matrix((len(self.label), self.width))
        # assigned, not passed: the constructor would look at every index again
        matrix.data, matrix.indices, matrix.indptr = self.data, self.indices, self.indptr
        return matrix

    def rows(self, start: int, stop: int | None = None) -> Chunk:
        """Some of the rows."""
        stop = len(self) if stop is None else stop
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        return dataclasses.replace(
            self,
            indptr=self.indptr[start : stop + 1] - np.int32(a),
            indices=self.indices[a:b],
            data=self.data[a:b],
            label=self.label[start:stop],
            weight=self.weight[start:stop],
            line=self.line[start:stop],
            tags=None if self.tags is None else self.tags[start:stop],
            seen=self.seen if stop == len(self) else None,
        )

    def entries(self, row: int) -> list[tuple[int, float]]:
        """Slots and values of one row."""
        a, b = int(self.indptr[row]), int(self.indptr[row + 1])
        return list(zip(self.indices[a:b].tolist(), self.data[a:b].tolist(), strict=True))

    def copied(self) -> Chunk:
        """Return the same rows in memory of their own (the rest is never used again)."""
        return dataclasses.replace(
            self,
            indptr=self.indptr.copy(),
            indices=self.indices.copy(),
            data=self.data.copy(),
            label=self.label.copy(),
            weight=self.weight.copy(),
        )


class Workspace:
    """Arrays for chunks of so many bytes, a ring of them, so that a chunk lives while the next ones are parsed.

    ``slots``: how many there are, if names are to be kept, else 0.
    """

    def __init__(self, n_bytes: int, entries: int, slots: int, ring: int) -> None:
        self._slots, self._size_of_ring = slots, ring
        self._allocate(n_bytes, entries)

    def _allocate(self, n_bytes: int, entries: int) -> None:
        if entries > _MOST_ENTRIES:
            msg = "a record has more than 2^28 features with its interactions; ask for fewer of them"
            raise DataError(msg)
        self.n_bytes, self.entries = n_bytes, entries
        self._ring = [_rows(n_bytes, entries) for _ in range(self._size_of_ring)]
        self._turn = 0
        self.scratch = _scratch(n_bytes, entries, self._slots)
        self.report = np.zeros(N_REPORT, np.int64)

    def resize(self, n_bytes: int, entries: int) -> None:
        """Make room for longer records; which slots were named is remembered."""
        seen = self.scratch.seen
        self._allocate(n_bytes, entries)
        self.scratch.seen[:] = seen

    def forget_names(self) -> None:
        """No slot was named yet."""
        self.scratch.seen[:] = 0

    def next_rows(self) -> Rows:
        """Return the arrays of the chunk used longest ago."""
        self._turn = (self._turn + 1) % len(self._ring)
        rows = self._ring[self._turn]
        rows.indptr[0] = 0
        return rows


def _rows(n_bytes: int, entries: int) -> Rows:
    n_rows = n_bytes // 2 + 2
    return Rows(
        indptr=np.empty(n_rows + 1, np.int32),
        indices=np.empty(entries, np.int32),
        data=np.empty(entries),
        label=np.empty(n_rows),
        weight=np.empty(n_rows),
        tag=np.empty((n_rows, 2), np.int32),
        line=np.empty(n_rows, np.int32),
    )


def _scratch(n_bytes: int, entries: int, keep_names: int) -> Scratch:
    table = 4
    while table < 2 * entries:
        table *= 2
    return Scratch(
        raw=np.empty(n_bytes + 2, np.uint32),
        groups=np.empty((n_bytes + 2, 4), np.int64),
        ends=np.empty(n_bytes + PADDING, np.int32),
        spans=np.empty((n_bytes + 2 if keep_names else 1, 2), np.int64),
        byte_hashes=np.empty(256, np.uint32),
        table=np.zeros(table, np.int64),
        stamps=np.full(4096, -1, np.int32),
        seen=np.zeros((keep_names + 7) // 8 + 1, np.uint8),
        named=np.empty((entries if keep_names else 1, 7), np.int64),
        bad=np.empty((n_bytes // 2 + 2, 4), np.int64),  # as many as rows: the last one must be told
    )


Parse = Callable[[np.ndarray, int, Options, Rows, Scratch, np.ndarray], None]
"""A parser of one format: buffer, where to stop, what is wanted, where rows go, working memory, and the report."""
