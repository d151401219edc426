"""The sanitising mode of the engine, ``GAUSSFOLD_SANITISE=1``: the same loops, with every look at memory checked.

Compiled code trusts its positions; that is what makes it fast, and what turns a mistake into another array's numbers
or a signal. In this mode the same sources are compiled so that a mistake is an exception which names the loop:

- bounds: an index into an array, and any number of elements at once through a pointer, lie inside that array;
- lifetimes: a pointer is only made of an array that the caller holds. What only the function itself holds is freed
  after its last visible use, and a pointer is no such use;
- lengths: lanes and words that are loaded at once end where the array does; arrays behind pointers are contiguous.

Several times slower, hence a switch, read once when the engine is imported. What is compiled is kept apart from what
is compiled without it (`SUFFIX`). The checks themselves are in ``simd.pointers``.
"""

from __future__ import annotations

import os
from typing import TypeVar

from numba.core import config
from numba.core.registry import CPUDispatcher

D = TypeVar("D")

SANITISING = os.environ.get("GAUSSFOLD_SANITISE", "0") not in ("", "0")
SUFFIX = "-sanitised" if SANITISING else ""
"""Of the names of cache files."""
OPTIONS: dict[str, bool] = {"boundscheck": True} if SANITISING else {}
"""For Numba, in every loop."""

if SANITISING:
    # Whether the caller holds an array too is read from the count of its references, which is only right as long as
    # counting is not optimised away across branches.
    config.LLVM_REFPRUNE_FLAGS = "per_bb"


class SanitiserError(Exception):
    """A loop left the memory it was given: a bug of ours, found by the sanitising mode."""


class _Watched(CPUDispatcher):  # type: ignore[misc]  # Numba has no types
    """A compiled function that says its name when an index is out of bounds; Numba itself does not."""

    def __call__(self, *args: object) -> object:
        try:
            return super().__call__(*args)
        except IndexError as error:
            msg = f"{self.py_func.__module__}.{self.py_func.__qualname__}: {error}"
            raise SanitiserError(msg) from error


def watch(dispatcher: D) -> D:
    """Let a compiled function name itself in the sanitising mode; as it is otherwise."""
    if SANITISING:
        dispatcher.__class__ = _Watched  # of the same layout, with another call
    return dispatcher
