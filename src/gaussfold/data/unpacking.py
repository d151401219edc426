"""gzip, zstd, bzip2 and xz undone piece by piece: memory stays bounded whatever the data claim, and the end is seen.

What a truncated file lacks is its end, so the end is asked for: of every member of a gzip file, every frame of zstd and
every stream of bzip2 and xz, checksum included. The libraries' own file objects differ in this (one of them takes any
end for a good one).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, final

from gaussfold.data.formats.base import PACKED
from gaussfold.data.messages import BrokenInputError, DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_READ, _STEP = 1 << 16, 1 << 20
_XZ_MEMORY = 1 << 28
"""What a dictionary of xz may need: four times that of its highest level."""
_BZIP2_BLOCK = b"1AY&SY"
"""What follows the four bytes that a bzip2 stream begins with, if there is anything in it."""
_GZIP_WBITS = 31  # a gzip header, and a window of any size


class _Member(Protocol):
    """What undoes one member, frame or stream: bytes in, bytes out, until its end."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: memoryview, /) -> bytes: ...


class _Patient(Protocol):
    """One that can be told how much to make of its input at a time."""

    @property
    def eof(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    @property
    def needs_input(self) -> bool: ...

    def decompress(self, data: memoryview, max_length: int = -1) -> bytes: ...


@final
class _Slowly:
    """A patient one as a member: what a piece makes is made in steps of `_STEP` bytes, and handed out in one."""

    def __init__(self, inner: _Patient) -> None:
        self._inner = inner

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def full(self) -> bool:
        """Whether there is more to come without more input."""
        return not self._inner.eof and not self._inner.needs_input

    def decompress(self, data: memoryview, /) -> bytes:
        return self._inner.decompress(data, _STEP)


@dataclass(frozen=True)
class Packing:
    """A kind of compression: how a member is begun, what it raises, how much it is given at a time.

    A byte of deflate makes 1032 at most, one of zstd some 32 thousand: a piece never makes more than 130 MB.
    """

    begin: Callable[[], _Member]
    error: type[Exception]
    piece: int
    padding: bool  # whether zeros may follow the last member, as on a tape


def packing_of(head: bytes, name: str) -> Packing | None:
    """Tell the compression of an input by its first bytes; None if there is none.

    What by its name should be compressed and has not even the bytes that tell so was cut.
    """
    if (len(head) < 4 and name.lower().endswith(PACKED)) or head == b"\x1f":
        msg = f"{name}: compressed data have more than {len(head)} bytes, so they were cut; copy or make the file again"
        raise BrokenInputError(msg)
    if head[:2] == b"\x1f\x8b":
        return Packing(lambda: zlib.decompressobj(_GZIP_WBITS), zlib.error, 1 << 14, padding=True)
    if head[:4] == b"\x28\xb5\x2f\xfd" or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):  # or a frame to skip
        return _zstd(name)
    if _is_bzip2(head):
        return _bzip2()
    return _xz() if head[:4] == b"\xfd7zX" else None


def _is_bzip2(head: bytes) -> bool:
    """By four bytes, and then a block; a text that begins with the four goes on as text, to the end of a line."""
    rest = head[4:64]
    goes_on_as_text = (b"\n" in rest or len(head) > 64) and all(31 < byte < 127 or byte in b"\t\r\n" for byte in rest)
    return head[:3] == b"BZh" and (rest[:6] == _BZIP2_BLOCK or not goes_on_as_text)


def _bzip2() -> Packing:
    import bz2

    return Packing(lambda: _Slowly(bz2.BZ2Decompressor()), OSError, 1 << 14, padding=False)


def _xz() -> Packing:
    import lzma

    def begin() -> _Member:
        return _Slowly(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY))

    return Packing(begin, lzma.LZMAError, 1 << 14, padding=True)


def _zstd(name: str) -> Packing:
    """From the standard library (3.14) or the package zstandard."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        try:
            import zstandard
        except ImportError as error:
            msg = f"{name}: reading zstd needs the package zstandard; pip install 'gaussfold[zstd]'"
            raise DataError(msg) from error
        return Packing(
            lambda: zstandard.ZstdDecompressor().decompressobj(), zstandard.ZstdError, 1 << 12, padding=False
        )
    return Packing(zstd.ZstdDecompressor, zstd.ZstdError, 1 << 12, padding=False)


class Unpacked:
    """The plain bytes of a compressed input."""

    def __init__(self, read: Callable[[int], bytes], packing: Packing, name: str) -> None:
        self._read, self._packing, self._name = read, packing, name
        self._member: _Member | None = None
        self._packed, self._ready = memoryview(b""), memoryview(b"")
        self._taken = 0

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Write plain bytes into the buffer; 0 at the end, if it is a good one."""
        view = memoryview(buffer)
        while not self._ready:
            full = isinstance(self._member, _Slowly) and self._member.full
            if not self._packed and not full:
                self._packed = memoryview(self._read(_READ))
            if not self._packed and not full:
                if self._member is not None:
                    raise self._broken(EOFError("they end early"))
                return 0
            self._unpack()
        size = min(len(self._ready), len(view))
        view[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _unpack(self) -> None:
        """Undo the next piece."""
        if self._member is None:
            self._skip_padding()
            if not self._packed:
                return
            self._member = self._packing.begin()
        full = isinstance(self._member, _Slowly) and self._member.full
        piece = self._packed[: 0 if full else self._packing.piece]
        try:
            self._ready = memoryview(self._member.decompress(piece))
        except (self._packing.error, MemoryError) as error:  # lzma raises both, of a dictionary that is too large
            raise self._broken(error) from error
        left = 0
        if self._member.eof:
            left = len(self._member.unused_data)
            self._member = None
        self._take(len(piece) - left)

    def _skip_padding(self) -> None:
        if self._packing.padding and self._taken:
            self._take(len(self._packed) - len(bytes(self._packed).lstrip(b"\0")))

    def _take(self, n: int) -> None:
        self._taken += n
        self._packed = self._packed[n:]

    def _broken(self, why: Exception) -> BrokenInputError:
        place = f"near byte {self._taken} of the file"
        return BrokenInputError(
            f"{self._name}: the compressed data are truncated or damaged {place} ({why}); copy or make the file again"
        )
