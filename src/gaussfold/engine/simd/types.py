"""What lanes and pointers are called where functions are annotated.

Numba reads no annotations: it compiles a function for whatever it is called with. They are for people (and mypy), and
say what a value is *used as*. Lanes are used as a number is: the same formula serves one number and eight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from llvmlite.ir import IRBuilder, Value
from numba.core.base import BaseContext
from numba.core.types import Type
from numba.core.typing import Context, Signature

Lanes: TypeAlias = float
"""Four or eight doubles side by side (``lanes.LanesType``), or one plain number."""

LaneMask: TypeAlias = bool
"""A truth value per lane (``lanes.MaskType``), as a comparison of lanes gives; ``bits_of`` makes it an integer."""

Pointer: TypeAlias = np.ndarray
"""Where the numbers of an array begin (``pointers.pointer``): used as the flattened array is, except that it has no
size and does not keep the array alive. Whoever makes one holds the array as long as the pointer is used."""

Emit: TypeAlias = Callable[[BaseContext, IRBuilder, Signature, Sequence[Value]], Value]
"""What writes the instructions of an intrinsic function for given arguments."""

Intrinsic: TypeAlias = tuple[Signature, Emit]
"""What an intrinsic function is for some types of arguments: their signature, and how it is written out."""

__all__ = [
    "BaseContext",
    "Context",
    "Emit",
    "IRBuilder",
    "Intrinsic",
    "LaneMask",
    "Lanes",
    "Pointer",
    "Signature",
    "Type",
    "Value",
]
