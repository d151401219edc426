"""The one decorator of the engine: compile, cache on disk, and say so when it takes time.

Numba invalidates a cached function when *its own* file changes, not when a function it calls does.
A pull that touches one engine file would then leave stale machine code in the others, silently.
So the cache is keyed by the contents of all engine files instead.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from numba import njit
from numba.core import config, event
from numba.core.compiler_lock import global_compiler_lock

F = TypeVar("F", bound=Callable[..., Any])


@cache
def _engine_stamp() -> str:
    digest = hashlib.sha256()
    home = Path(__file__).parent
    for path in sorted(home.rglob("*.py")):
        digest.update(path.relative_to(home).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _compile(function: F, **options: Any) -> F:
    dispatcher = njit(cache=True, error_model="numpy", nogil=True, **options)(function)
    cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
    if cache_file is not None and hasattr(
        cache_file, "_source_stamp"
    ):  # a Numba without it falls back to per-file stamps
        cache_file._source_stamp = _engine_stamp()
    return dispatcher  # type: ignore[no-any-return]


def compiled(function: F) -> F:
    """Compile ``function`` with NumPy's error model (1/0 is inf), cached under the engine's stamp."""
    return _compile(function)


def compiled_reduction(function: F) -> F:
    """As :func:`compiled`, and sums may be reordered: strict order forbids vector instructions."""
    return _compile(function, fastmath={"reassoc", "contract"})


def compiled_inline(function: F) -> F:
    """As :func:`compiled`, copied into its callers: for the bodies of loops that must vectorise."""
    return _compile(function, inline="always")


def compiled_fused(function: F) -> F:
    """As :func:`compiled`, and a product may be fused with a sum; nothing is reordered."""
    return _compile(function, fastmath={"contract"})


def compiled_once(signature: str, *, inner: bool = False) -> Callable[[F], F]:
    """As :func:`compiled_fused`, for these types alone, and cheaply: for long functions over loops of a few rounds.

    Literal arguments would each get a version of their own, and vector instructions gain nothing in short loops: two
    thirds of the wait on first use. ``inner`` is for what Python never calls. Compiles where it is defined, so it
    belongs into modules that are imported when they are needed.
    """

    def decorate(function: F) -> F:
        wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True} if inner else {}
        dispatcher: Any = _compile(function, fastmath={"contract"}, **wrappers)
        with global_compiler_lock, _light_optimisation():
            dispatcher.compile(signature)
        dispatcher.disable_compile()
        return dispatcher  # type: ignore[no-any-return]

    return decorate


@contextmanager
def _light_optimisation() -> Iterator[None]:
    """LLVM's first level, no vectorisation; Numba's own setting is per process, so it is put back."""
    light = {"OPT": type(config.OPT)(1), "LOOP_VECTORIZE": 0, "SLP_VECTORIZE": 0}
    before = {name: getattr(config, name) for name in light}
    try:
        for name, value in light.items():
            setattr(config, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(config, name, value)


class _Announcer(event.Listener):  # type: ignore[misc]
    """Tells, once a process, that the wait is compilation and will not come back."""

    told = False

    def on_start(self, occurrence: Any) -> None:
        """Speak on the first compilation of an engine function; Numba fires this only on cache misses."""
        dispatcher = (occurrence.data or {}).get("dispatcher")
        module = getattr(getattr(dispatcher, "py_func", None), "__module__", "")
        if self.told or not module.startswith(__package__ or "gaussfold.engine"):
            return
        type(self).told = True
        if not os.environ.get("GAUSSFOLD_QUIET"):
            print(
                "gaussfold: compiling its inner loops (once per installation, about a minute; "
                "GAUSSFOLD_QUIET=1 silences this)",
                file=sys.stderr,
                flush=True,
            )

    def on_end(self, occurrence: Any) -> None:
        """Nothing to tell at the end."""


event.register("numba:compile", _Announcer())
