"""Functions that say the same are one function: what was compiled for one of them serves the next.

JAX keeps what it has compiled by the function object, so that a lambda written in a loop, or a cell run again, is
compiled again although nothing changed. :func:`canonical` returns the first function it has met whose code, defaults,
closure and globals are the same, and the function itself where that cannot be known: whoever closes over something
that can change (an array, a list, an object) gets his own compilation, as before.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType
from typing import TypeVar, cast

import jax
from jax.experimental.compilation_cache import compilation_cache

FunctionT = TypeVar("FunctionT", bound=Callable[..., object])
KEPT = 128
"""Functions that are remembered."""
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_BY_NAME = (ModuleType, BuiltinFunctionType, type, type(jax.jit(lambda: None)))
"""Taken to be what they were: modules, classes, functions of C or compiled ones."""
_known: OrderedDict[Hashable, Callable[..., object]] = OrderedDict()


class _Unknown(Exception):  # noqa: N818 - no error: it ends a search
    """Something whose sameness cannot be told."""


class _Same:
    """An object known by itself; it is held, so that no other can come to lie where it lay."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def canonical(function: FunctionT) -> FunctionT:
    """The first function met that does the same, or this one.

    Examples
    --------
    >>> first, second = (canonical(lambda x: x + 1) for _ in range(2))
    >>> first is second
    True
    >>> weights = [1.0]
    >>> first, second = (canonical(lambda x: x + weights[0]) for _ in range(2))
    >>> first is second
    False
    """
    if not isinstance(function, FunctionType):
        return function
    try:
        key = _of_function(function, ())
    except _Unknown:
        return function
    found = _known.setdefault(key, function)
    _known.move_to_end(key)
    if len(_known) > KEPT:
        _known.popitem(last=False)
    return cast("FunctionT", found)


def _of_function(function: FunctionType, above: tuple[FunctionType, ...]) -> Hashable:
    """Code, defaults, and whatever its names mean; ``above`` are the functions that are being looked at."""
    if function in above:
        return ("recursion", above.index(function))
    above = (*above, function)
    closure = tuple(_of_value(_content(cell), above) for cell in function.__closure__ or ())
    defaults = _of_value(function.__defaults__, above), _of_value(tuple((function.__kwdefaults__ or {}).items()), above)
    module = function.__globals__
    names = tuple((name, _of_value(module[name], above)) for name in _names(function.__code__) if name in module)
    return _of_code(function.__code__), defaults, closure, names


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        raise _Unknown from None


def _of_value(value: object, above: tuple[FunctionType, ...]) -> Hashable:
    """By what a value is known; the type beside it, since 1 == 1.0 == True."""
    if isinstance(value, _PLAIN):
        return type(value), repr(value)
    if isinstance(value, _BY_NAME):
        return _Same(value)
    if isinstance(value, tuple):
        return tuple(_of_value(part, above) for part in value)
    if isinstance(value, FunctionType):
        return _of_function(value, above)
    raise _Unknown


def _of_code(code: CodeType) -> Hashable:
    """What code does, not where it stands."""
    constants = tuple(
        _of_code(part) if isinstance(part, CodeType) else (type(part), repr(part)) for part in code.co_consts
    )
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, counts


def _names(code: CodeType) -> Iterator[str]:
    """Names that code, and code inside of it, may look up among the globals."""
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)


def keep_compiled(folder: str | os.PathLike[str]) -> None:
    """Keep what JAX compiles in a folder, so that later processes need not compile it again.

    It is JAX's own cache, switched on for everything this process compiles from now on, small functions too.
    """
    jax.config.update("jax_compilation_cache_dir", os.fspath(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    compilation_cache.reset_cache()  # it may have looked, and found no folder
