"""Bytes from a path, several paths, a glob or standard input; plain or compressed, told apart by their first bytes."""

from __future__ import annotations

import contextlib
import glob
import io
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from gaussfold.data.messages import BrokenInputError, DataError
from gaussfold.data.unpacking import Unpacked, packing_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BOM = b"\xef\xbb\xbf"
_FIRST, _CAN_LOOK_BACK = 1 << 12, os.name != "nt"
_PATIENCE = 0.05
"""Seconds to wait for more bytes on a pipe before the rows that have come are handed on."""


class _Bytes(Protocol):
    """What bytes are read from: a file as Python opens it, or one that unpacks another."""

    def readinto(self, buffer: WriteableBuffer, /) -> int | None: ...


def expand(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """File names from paths and globs, in the order given (a glob's matches sorted); "-" is standard input."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    names = [name for path in given for name in _matches(os.fspath(path))]
    if not names:
        msg = "no input; give a path, a glob, or - for standard input"
        raise DataError(msg)
    for name in names:
        if name != "-" and Path(name).is_dir():
            msg = f"{name}: it is a directory; give its files, for example '{name}/*'"
            raise DataError(msg)
    if names.count("-") > 1:
        msg = "-: standard input was given more than once; it can be read only once"
        raise DataError(msg)
    return names


def _matches(name: str) -> list[str]:
    if name == "-" or Path(name).exists():
        return [name]
    found = sorted(glob.glob(name, recursive=True)) if glob.has_magic(name) else []
    if not found:
        what = "no file matches it" if glob.has_magic(name) else "there is no such file"
        msg = f"{name}: {what}; give a path, a glob, or - for standard input"
        raise DataError(msg)
    return found


class _Watched:
    """An open file, and whether it stayed as it was while it was read.

    Another file put in its place does no harm: the one that is open is read to its end. One that grows is read as far
    as it goes. One that is cut or written over is noticed at its end, by its size, its time and its first bytes.
    """

    def __init__(self, raw: io.FileIO, name: str) -> None:
        self._raw, self._name = raw, name
        self._left: int | None = None  # bytes, of a part
        self._before = os.fstat(raw.fileno())
        self.regular = stat.S_ISREG(self._before.st_mode)
        self._first = os.pread(raw.fileno(), _FIRST, 0) if self.regular and _CAN_LOOK_BACK else b""

    def limit(self, begin: int, end: int) -> None:
        """From here on only the lines that begin at bytes ``begin`` to ``end``, the second one left out, are read."""
        start = self._line_from(begin)
        self._left = self._line_from(end) - start
        self._raw.seek(start)

    def _line_from(self, place: int) -> int:
        """Where the first line begins that does so at this byte or after it; the end if none does."""
        at = min(max(place - 1, 0), self._before.st_size)
        self._raw.seek(at)
        while place > 0 and (block := self._raw.read(_FIRST)):
            found = block.find(b"\n")
            if found >= 0:
                return at + found + 1
            at += len(block)
        return at

    def read(self, size: int) -> bytes:
        found = self._raw.read(size if self._left is None else min(size, self._left)) or b""
        self._took(len(found))
        return found

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        room = memoryview(buffer)
        found = int(self._raw.readinto(room if self._left is None else room[: self._left]) or 0)
        self._took(found)
        return found

    def _took(self, count: int) -> None:
        if self._left is not None:
            self._left -= count
        if not count:
            self.check_unchanged()

    def fileno(self) -> int:
        return self._raw.fileno()

    def check_unchanged(self) -> None:
        """Raise if the file is not what it was when it was opened."""
        before, now = self._before, os.fstat(self._raw.fileno())
        if not self.regular or (now.st_size, now.st_mtime_ns) == (before.st_size, before.st_mtime_ns):
            return
        cut = now.st_size < before.st_size
        if cut or now.st_size == before.st_size or not self._begins_as_before():
            what = f"the file was {'cut' if cut else 'changed'} while it was read, and has {now.st_size} bytes now"
            msg = f"{self._name}: {what}; read it again when nobody writes to it"
            raise BrokenInputError(msg)

    def _begins_as_before(self) -> bool:
        return not _CAN_LOOK_BACK or os.pread(self._raw.fileno(), len(self._first), 0) == self._first


class Source:
    """An open input: ``fill`` reads plain bytes, whatever the file was wrapped in.

    Files are read without Python's buffering, which would hold a lock that a thread waiting for standard input
    cannot give back when the program ends. Of a file one can read a part: the lines that begin in a range of bytes,
    of plain text (``span``), or a group of rows of a table that has such (``group``).
    """

    def __init__(self, name: str, *, span: tuple[int, int] | None = None, group: int | None = None) -> None:
        self.path, self.group, self._span = name, group, span
        part = "" if group is None else f" [row group {group}]"
        part = part if span is None else f" [bytes {span[0]} to {span[1]}]"
        self.name = "<stdin>" if name == "-" else f"{name}{part}"
        self._stack = contextlib.ExitStack()
        self._pipe: int | None = None
        self._watched: _Watched | None = None
        self._ended = False
        with self._telling("cannot be read"):
            raw = self._open(name)
            self._head: bytes = raw.read(1 << 16)
            while 0 < len(self._head) < 4 and (more := raw.read(4)):
                self._head += more
        try:
            self._file = self._unwrap(raw)
        except DataError:
            self._stack.close()
            raise

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *details: object) -> None:
        self._stack.close()

    @property
    def seekable(self) -> bool:
        """Whether it is a file on a disk, in which one can go back."""
        return self._watched is not None and self._watched.regular

    @property
    def begins(self) -> bool:
        """Whether what is read begins where the file does, with its header if it has one."""
        return self._span is None or self._span[0] == 0

    def check_unchanged(self) -> None:
        """Raise if the file was cut or written over since it was opened; for those who read it by its name."""
        if self._watched is not None:
            self._watched.check_unchanged()

    def _open(self, name: str) -> _Watched | io.BufferedReader:
        if name != "-":
            raw = self._stack.enter_context(open(name, "rb", buffering=0))  # noqa: SIM115
        elif sys.stdin is None:
            msg = "<stdin>: standard input is closed; give a path, or something to read"
            raise DataError(msg)
        else:
            try:
                raw = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115 - not ours to close
            except (OSError, AttributeError):  # replaced by something that is no file
                return cast("io.BufferedReader", sys.stdin.buffer)
        self._watched = _Watched(raw, self.name)
        if self._span is not None:
            self._watched.limit(*self._span)
        if not self._watched.regular:
            self._pipe = raw.fileno()
        return self._watched

    def _unwrap(self, raw: _Watched | io.BufferedReader) -> _Bytes:
        packing = packing_of(self._head, self.name)
        if packing is None:
            return raw
        first, self._head, self._pipe = self._head, b"", None

        def read(size: int) -> bytes:
            nonlocal first
            packed, first = first or raw.read(size), b""
            return packed

        return Unpacked(read, packing, self.name)

    def peek(self, size: int, enough: Callable[[bytes], bool] = lambda _head: False) -> bytes:
        """Return the first bytes, which will be read again: so many, or what is enough, or all that there are.

        However long a pipe pauses: what is seen here depends on the bytes alone.
        """
        while len(self._head) < size and not self._ended and not enough(self._head):
            block = bytearray(min(size - len(self._head), max(len(self._head), 1 << 16)))
            with self._telling("cannot be read further"):
                read = self._file.readinto(block) or 0
            self._ended = not read
            self._head += block[:read]
        return self._head[:size]

    def take(self, size: int) -> bytes:
        """Read bytes that have been peeked at."""
        taken, self._head = self._head[:size], self._head[size:]
        return taken

    @property
    def all_peeked(self) -> bool:
        """Whether nothing comes after what has been peeked at."""
        return self._ended

    def fill(self, view: memoryview) -> tuple[int, bool]:
        """Read until the view is full, the input ends, or a pipe pauses; return bytes read and "it ended"."""
        head = self.take(len(view))
        filled = len(head)
        view[:filled] = head
        began = time.monotonic()
        with self._telling("cannot be read further"):
            while filled < len(view) and not self._ended:
                if filled and self._pipe is not None and self._pauses(began):
                    return filled, False
                read = self._file.readinto(view[filled:])
                self._ended = not read
                filled += read or 0
        return filled, self._ended and not self._head

    @contextlib.contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        """Say of which input the system complains."""
        try:
            yield
        except OSError as error:
            self._stack.close()
            msg = f"{self.name}: {what} ({error.strerror or error})"
            raise DataError(msg) from error

    def _pauses(self, began: float) -> bool:
        if os.name == "nt":
            return time.monotonic() - began > _PATIENCE
        assert self._pipe is not None
        return not select.select([self._pipe], [], [], _PATIENCE)[0]


def skip_mark(head: bytes | bytearray | memoryview) -> int:
    """Length of a UTF-8 byte-order mark at the beginning, or 0."""
    return 3 if bytes(head[:3]) == _BOM else 0
