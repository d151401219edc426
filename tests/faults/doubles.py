"""A double of the system calls and allocations that the package makes: the n-th of a kind fails."""

from __future__ import annotations

import builtins
import contextlib
import errno
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from gaussfold.store import layout

CALLS = {"open": "open", "write": "write", "fsync": "fsync", "replace": "replace", "close": "close", "dup": "open"}
"""Functions of `os`, and the kind of fault that each is."""
ALLOCATIONS = ("empty", "zeros", "full", "ones", "concatenate")
KINDS = ("open", "read", "write", "fsync", "replace", "close", "allocation")
ERRORS: dict[str, Callable[[], BaseException]] = {
    "open": lambda: OSError(errno.EMFILE, os.strerror(errno.EMFILE)),
    "read": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "write": lambda: OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
    "fsync": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "replace": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "close": lambda: OSError(errno.EIO, os.strerror(errno.EIO)),
    "allocation": MemoryError,
}


class Fault:
    """Counts the calls of some kinds and does something at the n-th."""

    def __init__(self, kinds: tuple[str, ...], n: int, *, kill: bool = False) -> None:
        self.kinds, self.n, self.kill = kinds, n, kill
        self.seen = 0
        self.kind = ""
        self._lock = threading.Lock()

    @property
    def fired(self) -> bool:
        """Whether there was an n-th call."""
        return self.seen >= self.n

    def meet(self, kind: str) -> None:
        """Count a call; the n-th raises the error of its kind, or is the last thing that the process does."""
        if kind not in self.kinds:
            return
        with self._lock:
            self.seen += 1
            here = self.seen == self.n
        if here and self.kill:
            os._exit(137)
        if here:
            self.kind = kind
            raise ERRORS[kind]()


class File:
    """An open file whose reads, writes and close are counted."""

    def __init__(self, file: Any, fault: Fault) -> None:
        self._file, self._fault = file, fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def read(self, *args: Any) -> Any:
        self._fault.meet("read")
        return self._file.read(*args)

    def readinto(self, *args: Any) -> Any:
        self._fault.meet("read")
        return self._file.readinto(*args)

    def write(self, *args: Any) -> Any:
        self._fault.meet("write")
        return self._file.write(*args)

    def close(self) -> None:
        if not self._file.closed:
            self._file.close()  # whatever close says, the file is closed
            self._fault.meet("close")


class Tensors:
    """A safetensors file whose opening and reads are counted."""

    def __init__(self, fault: Fault, *args: Any, **options: Any) -> None:
        fault.meet("open")
        self._fault, self._file = fault, _safe_open(*args, **options)

    def __enter__(self) -> Tensors:
        self._file = self._file.__enter__()
        return self

    def __exit__(self, *details: object) -> None:
        self._file.__exit__(*details)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def get_tensor(self, name: str) -> np.ndarray:
        self._fault.meet("read")
        self._fault.meet("allocation")
        return self._file.get_tensor(name)


_safe_open = layout.safe_open
_REAL = {name: getattr(os, name) for name in CALLS}
_ALLOCATE = {name: getattr(np, name) for name in ALLOCATIONS}
_open = builtins.open


def _ours(depth: int) -> bool:
    """Whether the package makes this call, itself or through ``pathlib``."""
    for level in range(2, 2 + depth):
        name = sys._getframe(level).f_globals.get("__name__", "")
        if name.startswith("gaussfold"):
            return True
    return False


@contextlib.contextmanager
def doubled(fault: Fault) -> Iterator[Fault]:
    """While inside, the calls that the package makes meet the fault."""

    def call(name: str) -> Callable[..., Any]:
        def doubled_call(*args: Any, **options: Any) -> Any:
            if _ours(1):
                if name == "write" and fault.kill and "write" in fault.kinds and fault.seen + 1 == fault.n:
                    _REAL["write"](args[0], memoryview(args[1])[: len(args[1]) // 2])  # killed in the middle of it
                if name == "close":
                    _REAL[name](*args, **options)  # whatever close says, the file is closed
                    return fault.meet("close")
                fault.meet(CALLS[name])
            return _REAL[name](*args, **options)

        return doubled_call

    def allocate(name: str) -> Callable[..., Any]:
        def doubled_allocation(*args: Any, **options: Any) -> Any:
            if _ours(1):
                fault.meet("allocation")
            return _ALLOCATE[name](*args, **options)

        return doubled_allocation

    def open_file(*args: Any, **options: Any) -> Any:
        if not _ours(2):
            return _open(*args, **options)
        fault.meet("open")
        return File(_open(*args, **options), fault)

    with contextlib.ExitStack() as stack:
        for name in CALLS:
            stack.enter_context(mock.patch.object(os, name, call(name)))
        for name in ALLOCATIONS:
            stack.enter_context(mock.patch.object(np, name, allocate(name)))
        stack.enter_context(mock.patch.object(builtins, "open", open_file))
        stack.enter_context(mock.patch.object(io, "open", open_file))
        stack.enter_context(mock.patch.object(layout, "safe_open", lambda *a, **o: Tensors(fault, *a, **o)))
        yield fault
