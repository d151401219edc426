"""Data: laws to draw from, and rows from files.

The way of a line: `sources` (bytes, unpacked) → `formats` (one file a format) → `text` (chunks of bytes through a
compiled parser) → `chunks` (CSR rows) → `readers.Stream`, which puts all of it together. `reading` says what the rows
mean, `columns` and `tables` what the columns of a table do. `files.read` is the way in for Python.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gaussfold.data.files import Batch, read
    from gaussfold.data.synthetic import Streams, TwoGaussians, streams, two_gaussians

__all__ = ["Batch", "Streams", "TwoGaussians", "read", "streams", "two_gaussians"]
_HOMES = {"Batch": "files", "read": "files"}
"""Where names are that are no laws."""


def __getattr__(name: str) -> object:
    """Import what is asked for: the command line needs the list of formats, and no NumPy for --help."""
    if name not in __all__:
        msg = f"module 'gaussfold.data' has no attribute {name!r}"
        raise AttributeError(msg)
    home = importlib.import_module(f"gaussfold.data.{_HOMES.get(name, 'synthetic')}")
    value: object = vars(home)[name]
    globals()[name] = value  # asked for once
    return value
