"""Machine code on disk: one signed file for each function and signature, wherever one can be written.

Numba keeps an index beside numbered files. Two processes that compile different signatures of a function at once can
give one number to both, and a reader then runs code made for other types. Here the name is a digest of the signature
and the file says itself what it holds, so there is no index to disagree with; what was cut short or altered is not
believed. Where nothing can be written (a container, an executor of a cluster) the code lives in memory, and a warning
says so once. What lies in a place that can only be read, such as the package of an image, is used.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import ClassVar, Self

import numba
from numba.core import config
from numba.core.base import BaseContext
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.compiler import CompileResult
from numba.core.runtime import rtsys
from numba.core.serialize import dumps
from numba.core.types.containers import BaseNamedTuple, BaseTuple
from numba.misc.appdirs import AppDirs

from gaussfold.engine.sanitise import SUFFIX

PACKAGE = Path(__file__).absolute().parents[2]
HOME = __name__.partition(".")[0]
_SIZE = hashlib.sha256().digest_size


@cache
def folders(source: Path) -> tuple[Path, ...]:
    """Where the code of functions in a folder of sources may lie, the best place first: as Numba has it."""
    elsewhere = f"{source.name}_{hashlib.sha256(str(source).encode()).hexdigest()[:32]}"
    chosen = [Path(config.CACHE_DIR) / elsewhere] if config.CACHE_DIR else []
    return (*chosen, source / "__pycache__", Path(AppDirs(appname="numba", appauthor=False).user_cache_dir) / elsewhere)


def kept_in() -> Path | None:
    """Return the folder that new code of this process goes to; None if there is none that can be written."""
    for folder in folders(Path(__file__).absolute().parent):
        if _writable(folder):
            return PACKAGE if folder.name == "__pycache__" else folder.parent
    return None


@cache
def _to_read(places: tuple[Path, ...]) -> tuple[Path, ...]:
    """The place that new code goes to, and those that can only be read: an image may have been filled there."""
    can_write = [folder for folder in places if _writable(folder)]
    return tuple(folder for folder in places if folder in can_write[:1] or folder not in can_write)


def _writable(folder: Path) -> bool:
    there = next(place for place in (folder, *folder.parents) if place.exists())
    return there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def save(name: str, stamp: str, key: object, data: object, source: Path) -> None:
    """Write a file into the first folder that takes it; where none does, warn once and go on without."""
    body = dumps((key, data))
    content = _header(stamp) + hashlib.sha256(body).digest() + body
    reason = ""
    for folder in folders(source):
        new = folder / f"{name}.tmp.{os.getpid()}.{os.urandom(4).hex()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            new.write_bytes(content)
            new.replace(folder / name)
        except OSError as error:
            reason = reason or f"{folder}: {error.strerror}"
            _remove(new)
        else:
            return
    _warn(reason)


def load(name: str, stamp: str, key: object, source: Path) -> object | None:
    """Return what was saved under this name, if it is whole, fresh and made for this key."""
    for folder in _to_read(folders(source)):
        try:
            content = (folder / name).read_bytes()
        except OSError:
            continue
        body = memoryview(content)[2 * _SIZE :]
        if content[: 2 * _SIZE] == _header(stamp) + hashlib.sha256(body).digest():
            found, data = pickle.loads(body)
            if found == key:
                return data  # type: ignore[no-any-return]  # of Numba's own making, whatever it is
    return None


def _header(stamp: str) -> bytes:
    return hashlib.sha256(f"{numba.__version__} {stamp}".encode()).digest()


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # the folder is not even there
        return


class _Told:
    """Whether the warning was given: once a process is enough."""

    already = False


def _warn(reason: str) -> None:
    if _Told.already:
        return
    _Told.already = True
    warnings.warn(
        f"gaussfold found no folder to keep its compiled loops in ({reason}): they are compiled in memory, in every "
        "process again. Set NUMBA_CACHE_DIR to a folder that can be written, or run 'gaussfold compile' as a user "
        "who may write to the package, for example when an image is built.",
        RuntimeWarning,
        stacklevel=2,
    )


def _records(signature: object) -> Iterator[type]:
    """Classes of the records among the argument types, nested ones included."""
    if isinstance(signature, BaseNamedTuple):
        yield signature.instance_class
    if isinstance(signature, BaseTuple | tuple):
        for part in signature:
            yield from _records(part)


def _outside_stamp(records: list[type]) -> str | None:
    """A digest of the files of records that are not ours, "" where all are; None where a file is not to be had."""
    outside = [record for record in records if record.__module__.partition(".")[0] != HOME]
    digest = hashlib.sha256()
    for record in outside:
        file = inspect.getsourcefile(record) if record.__module__ != "__main__" else None
        if file is None:
            return None
        digest.update(Path(file).read_bytes())
    return digest.hexdigest() if outside else ""


class _Locator:
    """Where Numba is told that a function's code is kept: nowhere in particular, :func:`folders` knows."""

    def __init__(self, function: Callable[..., object], file: str) -> None:
        self._py_file = file  # Numba's name; its warnings look at it
        self._folder = Path(file).absolute().parent
        self._line = function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function: Callable[..., object], file: str) -> Self:
        return cls(function, file)

    def get_cache_path(self) -> str:
        return str(self._folder / "__pycache__")

    def get_source_stamp(self) -> str:
        return ""  # the cache brings its own

    def get_disambiguator(self) -> str:
        return str(self._line)


class _Impl(CompileResultCacheImpl):  # type: ignore[misc]  # Numba has no types
    _locator_classes: ClassVar = [_Locator]


class StampedCache(FunctionCache):  # type: ignore[misc]  # Numba has no types
    """The kept code of one function, fresh as long as its stamp is the same."""

    _impl_class = _Impl

    def __init__(self, function: Callable[..., object], stamp: str) -> None:
        super().__init__(function)
        self._stamp = stamp
        base = self._impl.filename_base
        self._cache_file = IndexDataCacheFile(cache_path=self._cache_path, filename_base=base, source_stamp=stamp)
        self._source = Path(inspect.getfile(function)).absolute().parent

    def load_overload(self, sig: object, target_context: BaseContext) -> object:
        """What is on disk for these types, or None.

        Code that is there needs Numba's runtime, and none of what it knows of types and operators, which takes .15 s to
        set up: who compiles does that first.
        """
        rtsys.initialize(target_context)
        key = self._index_key(sig, target_context.codegen())
        place = self._name_and_stamp(sig, key)
        data = None if place is None else load(*place, key, self._source)
        return None if data is None else self._impl.rebuild(target_context, data)

    def save_overload(self, sig: object, data: CompileResult) -> None:
        """Keep what was compiled for these types."""
        key = self._index_key(sig, data.codegen)
        place = self._name_and_stamp(sig, key)
        if place is not None and self._impl.check_cachable(data):
            save(*place, key, self._impl.reduce(data), self._source)

    def _name_and_stamp(self, sig: object, key: object) -> tuple[str, str] | None:
        """Name and stamp of the file for this signature; None if it has a record without a file (a notebook's)."""
        records = list(_records(sig))
        outside = _outside_stamp(records)
        if outside is None:
            return None
        told = "\n".join([repr(key), *(f"{record.__module__}.{record.__qualname__}" for record in records)])
        name = f"{self._impl.filename_base}{SUFFIX}.{hashlib.sha256(told.encode()).hexdigest()[:20]}.nbc"
        return name, self._stamp + outside
