"""Numba without what it imports only to see whether it is there: a fifth of the time that a command takes to start.

While it is imported Numba tries ``scipy.linalg`` (may matrix products be compiled?), ``coverage`` (is it measuring?)
and ``yaml`` (for a file of settings), each of which brings a hundred modules along. Kept machine code needs none of
them; code that is compiled later and multiplies matrices asks for ``scipy.linalg`` again by itself.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

_SETTINGS = ".numba_config.yaml"


def load() -> None:
    """Import Numba; before that nothing else may be importing, so this is for programs, not for libraries."""
    if "numba" in sys.modules:
        return
    hidden = ["scipy.linalg.cython_blas", "coverage", *([] if Path(_SETTINGS).exists() else ["yaml"])]
    hidden = [name for name in hidden if name not in sys.modules]
    nothing: dict[str, Any] = dict.fromkeys(hidden)
    sys.modules.update(nothing)  # where there is None an import fails
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        for name in hidden:
            del sys.modules[name]
