"""The one decorator of the engine: compile, keep on disk (``compilation.kept``), say so (``compilation.waiting``).

Numba invalidates a cached function when *its own* file changes, not when a function it calls does.
A pull that touches one engine file would then leave the machine code of the others stale, silently.
So the cache is keyed by the contents of all files that hold compiled code: the engine's, and those of the families and
rules that hand it theirs (``engine.seam``). A family or rule from outside the package has cache files of its own,
keyed by its source: nobody else's process must import it to read the cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar, cast

from numba import njit
from numba.core import config
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.typing import Signature

from gaussfold.engine import sanitise
from gaussfold.engine.compilation import waiting  # noqa: F401 - listens to Numba from here on
from gaussfold.engine.compilation.kept import PACKAGE, StampedCache

F = TypeVar("F", bound=Callable[..., object])
WITH_COMPILED_CODE = ("engine", "likelihoods", "rules")


@cache
def source_stamp() -> str:
    """A digest of every file of the package that holds compiled code, sub-folders included."""
    digest = hashlib.sha256()
    if not PACKAGE.is_dir():  # inside a zip file, of which every byte counts
        digest.update(next(place for place in PACKAGE.parents if place.is_file()).read_bytes())
    for folder in WITH_COMPILED_CODE:
        for path in sorted((PACKAGE / folder).rglob("*.py")):
            digest.update(path.relative_to(PACKAGE).as_posix().encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _compile(function: F, **options: object) -> F:
    dispatcher = sanitise.watch(njit(error_model="numpy", nogil=True, **sanitise.OPTIONS, **options)(function))
    dispatcher._cache = StampedCache(function, source_stamp())  # where njit(cache=True) puts Numba's own
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
    **sanitise.OPTIONS,
    "pipeline_class": LightCompiler,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""How the parts of loops are compiled: no way in from Python, no file of their own."""


def part(function: F) -> F:
    """Compile a part of a loop, which only compiled code calls; tests reach it through a loop of their own."""
    return cast(F, njit(function, **PART))


def compiled_reduction(function: F) -> F:
    """As :func:`compiled`, and sums may be reordered: strict order forbids vector instructions.

    A loop that adds up must not write to an array. Where it does, the vectoriser asks at run time whether arrays may
    overlap, takes two that lie side by side in memory for such, and falls back to another order of the sum: the last
    bit would depend on where the allocator happens to put things.
    """
    return _compile(function, fastmath={"reassoc", "contract"})


def compiled_inline(function: F) -> F:
    """As :func:`compiled`, copied into its callers: for the bodies of loops that must vectorise."""
    return _compile(function, inline="always")


def compiled_fused(function: F) -> F:
    """As :func:`compiled`, and a product may be fused with a sum; nothing is reordered."""
    return _compile(function, fastmath={"contract"})


def compiled_once(signature: Signature, *, inner: bool = False) -> Callable[[F], F]:
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
