"""Bytes from a path, several paths, a glob or standard input; plain, gzip or zstd, told apart by their first bytes."""

from __future__ import annotations

import contextlib
import glob
import gzip
import io
import os
import select
import stat
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from gaussfold.data.messages import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_GZIP, _ZSTD, _BOM = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xef\xbb\xbf"
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


class _Rest(io.RawIOBase):
    """Bytes already read, then the rest of a file."""

    def __init__(self, head: bytes, raw: _Bytes) -> None:
        self._head, self._raw = head, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        if not self._head:
            return int(self._raw.readinto(view) or 0)
        size = min(len(self._head), len(view))
        view[:size] = self._head[:size]
        self._head = self._head[size:]
        return size


class Source:
    """An open input: ``fill`` reads plain bytes, whatever the file was wrapped in.

    Files are read without Python's buffering, which would hold a lock that a thread waiting for standard input
    cannot give back when the program ends.
    """

    def __init__(self, name: str) -> None:
        self.name = "<stdin>" if name == "-" else name
        self._stack = contextlib.ExitStack()
        self._pipe: int | None = None
        try:
            raw = self._open(name)
            self._head: bytes = raw.read(1 << 16)
            while 0 < len(self._head) < 4 and (more := raw.read(4)):
                self._head += more
        except OSError as error:
            self._stack.close()
            msg = f"{self.name}: cannot be read ({error.strerror or error})"
            raise DataError(msg) from error
        self._file = self._unwrap(raw)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *details: object) -> None:
        self._stack.close()

    def _open(self, name: str) -> io.FileIO | io.BufferedReader:
        if name != "-":
            raw = self._stack.enter_context(open(name, "rb", buffering=0))  # noqa: SIM115
        else:
            try:
                raw = open(sys.stdin.fileno(), "rb", buffering=0, closefd=False)  # noqa: SIM115 - not ours to close
            except (OSError, AttributeError):  # replaced by something that is no file
                return cast("io.BufferedReader", sys.stdin.buffer)
        if not stat.S_ISREG(os.fstat(raw.fileno()).st_mode):
            self._pipe = raw.fileno()
        return raw

    def _unwrap(self, raw: io.FileIO | io.BufferedReader) -> _Bytes:
        if self._head[:2] != _GZIP and self._head[:4] != _ZSTD:
            return raw
        packed = io.BufferedReader(_Rest(self._head, raw))
        kind, self._head, self._pipe = self._head[:2], b"", None
        if kind == _GZIP:
            return self._stack.enter_context(gzip.GzipFile(fileobj=packed))
        return self._stack.enter_context(_zstd(packed, self.name))

    def peek(self, size: int = 1 << 16) -> bytes:
        """Return the first bytes; they will be read again."""
        view = memoryview(bytearray(size))
        filled, _ = self.fill(view)
        head = bytes(view[:filled]) + self._head
        self._head = head
        return head

    def fill(self, view: memoryview) -> tuple[int, bool]:
        """Read until the view is full, the input ends, or a pipe pauses; return bytes read and "it ended"."""
        filled = min(len(self._head), len(view))
        view[:filled] = self._head[:filled]
        self._head = self._head[filled:]
        began = time.monotonic()
        try:
            while filled < len(view):
                if filled and self._pipe is not None and self._pauses(began):
                    return filled, False
                read = self._file.readinto(view[filled:])
                if not read:
                    return filled, True
                filled += read
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            msg = f"{self.name}: the compressed data are truncated or damaged ({error})"
            raise DataError(msg) from error
        except OSError as error:
            msg = f"{self.name}: cannot be read further ({error.strerror or error})"
            raise DataError(msg) from error
        except Exception as error:  # every zstd package has an error class of its own
            if "zstd" not in type(error).__module__.lower():
                raise
            msg = f"{self.name}: the compressed data are truncated or damaged ({error})"
            raise DataError(msg) from error
        return filled, False

    def _pauses(self, began: float) -> bool:
        if os.name == "nt":
            return time.monotonic() - began > _PATIENCE
        assert self._pipe is not None
        return not select.select([self._pipe], [], [], _PATIENCE)[0]


def skip_mark(head: bytes | bytearray | memoryview) -> int:
    """Length of a UTF-8 byte-order mark at the beginning, or 0."""
    return 3 if bytes(head[:3]) == _BOM else 0


def _zstd(raw: io.BufferedReader[_Rest], name: str) -> contextlib.AbstractContextManager[_Bytes]:
    """Return a reader of zstd data, from the standard library (3.14) or the package zstandard."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            import zstandard
        except ImportError as error:
            msg = f"{name}: reading zstd needs the package zstandard; pip install 'gaussfold[zstd]'"
            raise DataError(msg) from error
        unpacked: contextlib.AbstractContextManager[_Bytes] = zstandard.ZstdDecompressor().stream_reader(
            raw, read_across_frames=True, closefd=False
        )
        return unpacked
    return zstd.ZstdFile(raw)  # type: ignore[no-any-return,unused-ignore]
