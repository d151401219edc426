"""Cells that take memory when they are first met: a billion features of which a stream shows a million cost a million.

The array is mapped from the system, which hands out memory when it is written to. It is written in pages: those that
the features of a chunk fall into are filled with the prior's cell before the chunk is looked at. The loops that learn
know nothing of it.
"""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np

from gaussfold.engine.sparse.cells import write_pages

PAGE = 4096
"""Bytes that the system hands out at a time; only speed and memory depend on it."""
SMALL = 1 << 30
"""Cells of fewer bytes are written at once: the system then maps them in large pages, which are faster to look up."""


class Pages:
    """One cell for each of dim features, blank where nothing was written; ``left`` pages are not written yet."""

    def __init__(self, blank: np.ndarray, dim: int) -> None:
        self.cells = _mapped((dim, *blank.shape[1:]), blank.dtype)
        self._blank = blank
        self._shift = int(math.log2(max(1, PAGE // blank.nbytes)))
        self._written = np.zeros(-(-dim >> self._shift), bool)
        self.left = self._written.size
        if self.cells.nbytes < SMALL:
            self.write(None)

    def write(self, columns: np.ndarray | None) -> None:
        """Make sure that the cells of these features (None: of all) are written."""
        if columns is None:
            columns = np.flatnonzero(~self._written) << self._shift
        elif columns.dtype == bool:
            columns = np.flatnonzero(columns)
        elif columns.dtype != np.int32:  # one of the two types that the loop is compiled for
            columns = columns.ravel().astype(np.int64, copy=False)
        if columns.min(initial=0) < 0:  # counted from the end, as NumPy does
            columns = np.where(columns < 0, columns + self.cells.shape[0], columns)
        self.left -= int(write_pages(self.cells, self._blank, self._written, self._shift, columns))
        if 0 < self.left < self._written.size // 2:  # most of the memory is taken; no more looking is worth more
            self.write(None)

    @staticmethod
    def of(pages: Pages | None) -> tuple[np.ndarray, int]:
        """Which pages are written, and the logarithm of their size; everything is one page where there are none."""
        return (np.ones(1, bool), 62) if pages is None else (pages._written, pages._shift)


def _mapped(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Zeros that take no memory yet. NumPy's own would ask for pages of two megabytes: one feature fills one."""
    size = math.prod(shape) * dtype.itemsize
    if size < SMALL or not hasattr(mmap, "MAP_ANONYMOUS"):
        return np.zeros(shape, dtype)
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        msg = f"{size / 2**30:.1f} GB for {shape[0]:,} features are not to be had"
        raise MemoryError(msg) from error
    return np.frombuffer(memory, dtype).reshape(shape)
