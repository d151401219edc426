"""Parts of the engine, called from tests as machine code: only other compiled functions can call them otherwise."""

from __future__ import annotations

from functools import cache
from types import ModuleType

from numba import njit


@cache
def compiled(function):
    """A compiled function around a part, so that what is tested is what runs."""

    @njit(error_model="numpy")
    def call(*args):
        return function(*args)

    return call


class MachineCode:
    """A module of the engine, with every function in it callable."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str):
        value = getattr(self._module, name)
        return compiled(value) if callable(value) else value
