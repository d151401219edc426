"""A way into compiled code past Numba's look at every argument, which takes as long as one row does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from numba.core.dispatcher import Dispatcher
from numba.core.types import Type


def entry_point(function: Callable[..., Any], signature: tuple[Type, ...]) -> Callable[..., Any]:
    """The machine code of a compiled function for arguments of these types, and of no others.

    Nothing is looked at any more: who calls it makes sure that arrays have the type, the order and the number of
    dimensions that the signature names.
    """
    dispatcher = cast(Dispatcher, function)
    dispatcher.compile(signature)
    return cast("Callable[..., Any]", dispatcher.overloads[signature].entry_point)
