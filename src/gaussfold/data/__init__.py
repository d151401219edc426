"""Data: laws to draw from, and rows from files.

The way of a line: `sources` (bytes, unpacked) → `formats` (one file a format) → `text` (chunks of bytes through a
compiled parser) → `chunks` (CSR rows) → `readers.Stream`, which puts all of it together. `reading` says what the rows
mean, `columns` and `tables` what the columns of a table do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaussfold.data.synthetic import Streams, TwoGaussians, streams, two_gaussians

__all__ = ["Streams", "TwoGaussians", "streams", "two_gaussians"]


def __getattr__(name: str) -> object:
    """Import the laws when they are asked for: the command line needs the list of formats, and no NumPy for --help."""
    if name not in __all__:
        msg = f"module 'gaussfold.data' has no attribute {name!r}"
        raise AttributeError(msg)
    from gaussfold.data import synthetic

    return vars(synthetic)[name]
