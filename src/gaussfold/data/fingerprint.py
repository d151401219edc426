"""Rows as a number: enough to notice that an input is not the one that was read before.

Made of what was read, not of the file: a path may change, standard input has none, and a copy that was packed is the
same input. Checksums go on where they stopped, so it is the same however the rows were cut into chunks. It guards
against mistakes, not against malice.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from gaussfold.data.chunks import Chunk

_SLOTS, _VALUES = 32, 64  # bits


class Fingerprint(NamedTuple):
    """Of some rows: checksums of labels and slots in their order, and the sum of the values' bits, which is quick."""

    labels: int = 0
    slots: int = 0
    values: int = 0

    def after(self, chunk: Chunk) -> Fingerprint:
        """The fingerprint of these rows and those of a chunk after them."""
        values = np.ascontiguousarray(chunk.data, np.float64).view(np.uint64).sum(dtype=np.uint64)
        return Fingerprint(
            zlib.crc32(chunk.label.tobytes(), self.labels),
            zlib.crc32(chunk.indices.tobytes(), self.slots),
            (self.values + int(values)) % (1 << _VALUES),
        )

    def to_number(self) -> int:
        """All of it in one whole number, as a model file keeps it."""
        return (self.labels << (_SLOTS + _VALUES)) | (self.slots << _VALUES) | self.values
