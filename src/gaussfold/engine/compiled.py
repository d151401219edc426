"""The one decorator of the engine: compile, cache on disk, and say so when it takes time.

Numba invalidates a cached function when *its own* file changes, not when a function it calls does.
A pull that touches one engine file would then leave the machine code of the others stale, silently.
So the cache is keyed by the contents of all files that hold compiled code: the engine's, and those of the families and
rules that hand it theirs (``engine.seam``). A family or rule from outside the package has a cache file of its own,
keyed by its source: nobody else's process must import it to read the cache.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar, cast

from numba import njit
from numba.core import config, event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.types.containers import BaseNamedTuple, BaseTuple

F = TypeVar("F", bound=Callable[..., object])
PACKAGE = Path(__file__).parent.parent
WITH_COMPILED_CODE = ("engine", "likelihoods", "rules")


@cache
def source_stamp() -> str:
    """A digest of every file of the package that holds compiled code, sub-folders included."""
    digest = hashlib.sha256()
    for folder in WITH_COMPILED_CODE:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            digest.update(path.relative_to(PACKAGE).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _records(signature: object) -> Iterator[type]:
    """Classes of the records among the argument types, nested ones included."""
    if isinstance(signature, BaseNamedTuple):
        yield signature.instance_class
    if isinstance(signature, BaseTuple | tuple):
        for part in signature:
            yield from _records(part)


def _outside_stamp(signature: object) -> str | None:
    """A digest of the files of records that are not ours; None where all are, "" where a file is not to be had."""
    home = (__package__ or "gaussfold").partition(".")[0]
    outside = [record for record in _records(signature) if record.__module__.partition(".")[0] != home]
    if not outside:
        return None
    digest = hashlib.sha256()
    for record in outside:
        file = inspect.getsourcefile(record) if record.__module__ != "__main__" else None
        if file is None:
            return ""
        digest.update(f"{record.__module__}.{record.__qualname__}".encode())
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()


class StampedCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, fresh as long as no file with compiled code has changed."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__(function)
        self._ours = self._file("")
        self._cache_file = self._ours

    def _file(self, suffix: str) -> IndexDataCacheFile:
        return IndexDataCacheFile(
            cache_path=self._cache_path, filename_base=self._impl.filename_base + suffix, source_stamp=source_stamp()
        )

    def _choose_file(self, signature: object) -> bool:
        stamp = _outside_stamp(signature)
        self._cache_file = self._ours if not stamp else self._file(f"-{stamp[:16]}")
        return stamp != ""

    def load_overload(self, sig: object, target_context: object) -> object:
        """What is on disk for these types, or None."""
        return super().load_overload(sig, target_context) if self._choose_file(sig) else None

    def save_overload(self, sig: object, data: object) -> None:
        """Keep what was compiled for these types."""
        if self._choose_file(sig):
            super().save_overload(sig, data)


def _compile(function: F, **options: object) -> F:
    dispatcher = njit(error_model="numpy", nogil=True, **options)(function)
    dispatcher._cache = StampedCache(function)  # where njit(cache=True) puts Numba's own
    return cast(F, dispatcher)


def compiled(function: F) -> F:
    """Compile ``function`` with NumPy's error model (1/0 is inf), cached under the engine's stamp."""
    return _compile(function)


class LightCompiler(Compiler):  # type: ignore[misc]
    """For functions that only other compiled functions call: what is inlined there is optimised there, once."""

    def compile_extra(self, func: object) -> object:
        """Compile with LLVM's first level of optimisation."""
        with _light_optimisation():
            return super().compile_extra(func)


PART = {
    "error_model": "numpy",
    "nogil": True,
    "pipeline_class": LightCompiler,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""How the parts of loops are compiled: no way in from Python, no file of their own."""


def part(function: F) -> F:
    """Compile a part of a loop, which only compiled code calls; tests reach it through a loop of their own."""
    return cast(F, njit(function, **PART))


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
        compiled_function = _compile(function, fastmath={"contract"}, **wrappers)
        dispatcher = cast(Dispatcher, compiled_function)
        with global_compiler_lock, _light_optimisation():
            dispatcher.compile(signature)
        dispatcher.disable_compile()
        return compiled_function

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

    def on_start(self, occurrence: event.Event) -> None:
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

    def on_end(self, occurrence: event.Event) -> None:
        """Nothing to tell at the end."""


event.register("numba:compile", _Announcer())
