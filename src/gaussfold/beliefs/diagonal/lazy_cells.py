"""Room for a cell per feature that takes memory only where rows have been.

A cell is the means and variances of one feature. Before any data every feature's cell is the prior's (``blank``). A
belief over a billion features of which a stream shows a million should cost a million cells: the array is mapped from
the system, which hands out memory when it is written to, and it is written in pages of a few hundred cells. Before
rows are looked at, the pages that their features fall into are filled with blank cells, unless that was done. The loops
that learn know nothing of it.
"""

from __future__ import annotations

import math
import mmap

import numpy as np

from gaussfold.engine.sparse.cells import write_pages
from gaussfold.engine.sparse.deltas import mark_pages

PAGE = 4096
"""Bytes that the system hands out at a time; only speed and memory depend on it."""
SMALL = 1 << 30
"""Cells of fewer bytes are written at once: the system then maps them in large pages, which are faster to look up."""
MARKED = 1 << 26
"""Cells of so many bytes take a while to look through: pages that rows have met are marked while they are few."""


class LazyCells:
    """One cell for each of dim features; ``written`` pages of 2^``shift`` cells are filled, ``left`` are not yet.

    ``met`` are the pages on which a cell may differ from a blank one, None where that is not kept. ``sparingly``: no
    page is written before it is met, however small the belief: for few features, one time.
    """

    def __init__(self, blank: np.ndarray, dim: int, *, sparingly: bool = False) -> None:
        self.cells = _mapped((dim, *blank.shape[1:]), blank.dtype, SMALL if not sparingly else MARKED)
        self.shift = int(math.log2(max(1, PAGE // blank.nbytes)))
        self.written = np.zeros(-(-dim >> self.shift), bool)
        self.left = self.written.size
        self.met: np.ndarray | None = np.zeros(self.written.size, bool) if self.cells.nbytes >= MARKED else None
        self._blank = blank
        self._unchecked = 0
        if self.cells.nbytes < (SMALL if not sparingly else MARKED):
            self.write(None)

    def mark(self, columns: np.ndarray | None) -> None:
        """Note that the cells of these features may change; no longer when most pages are marked."""
        if self.met is None:
            return
        if columns is None:
            self.met = None
            return
        columns = self._positions(columns)
        mark_pages(self.met, self.shift, columns)
        self._unchecked += columns.size
        if self._unchecked > self.met.size:
            self._unchecked = 0
            if 2 * int(self.met.sum()) > self.met.size:
                self.met = None

    def write(self, columns: np.ndarray | None) -> None:
        """Make sure that the cells of these features (None: of all) are written."""
        if columns is None:
            columns = np.flatnonzero(~self.written) << self.shift
        columns = self._positions(columns)
        self.left -= int(write_pages(self.cells, self._blank, self.written, self.shift, columns))
        if 0 < self.left < self.written.size // 2:  # most of the memory is taken; no more looking is worth more
            self.write(None)

    def _positions(self, columns: np.ndarray) -> np.ndarray:
        """Columns as one of the two types that the loops are compiled for, counted from the beginning."""
        if columns.dtype == bool:
            columns = np.flatnonzero(columns)
        elif columns.dtype != np.int32:
            columns = columns.ravel().astype(np.int64, copy=False)
        if columns.min(initial=0) < 0:  # counted from the end, as NumPy does
            columns = np.where(columns < 0, columns + self.cells.shape[0], columns)
        return columns


def _mapped(shape: tuple[int, ...], dtype: np.dtype[np.float64], small: int) -> np.ndarray:
    """Zeros that take no memory yet. NumPy's own would ask for pages of two megabytes: one feature fills one."""
    size = math.prod(shape) * dtype.itemsize
    if size < small or not hasattr(mmap, "MAP_ANONYMOUS"):  # which Windows has not
        return np.zeros(shape, dtype)
    try:
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        msg = f"{size / 2**30:.1f} GB for {shape[0]:,} features are not to be had"
        raise MemoryError(msg) from error
    return np.frombuffer(memory, dtype).reshape(shape)
