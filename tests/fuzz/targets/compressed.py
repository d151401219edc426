"""gzip, zstd, bzip2 and xz: whole files give the bytes that were packed, damaged ones never less without a word."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import numpy as np
import zstandard

from gaussfold.data.messages import BrokenInputError
from gaussfold.data.sources import Source
from tests.fuzz.reading import damaged, pauses


def _plain(rng: np.random.Generator) -> bytes:
    n = int(rng.integers(0, 400))
    lines = [b"%d |a f%d\n" % (k % 2, int(rng.integers(0, 30))) for k in range(n)]
    return b"".join(lines) + rng.bytes(int(rng.integers(0, 30)))


def _pack(rng: np.random.Generator, raw: bytes, kind: str) -> bytes:
    level = int(rng.integers(1, 9))
    if kind == "gzip":
        return gzip.compress(raw, level, mtime=0)
    if kind == "bzip2":
        return bz2.compress(raw, level)
    if kind == "xz":
        return lzma.compress(raw, check=lzma.CHECK_CRC64 if level % 2 else lzma.CHECK_CRC32, preset=level % 4)
    sized = bool(rng.random() < 0.5)
    packer = zstandard.ZstdCompressor(level=level, write_checksum=True, write_content_size=sized)
    return packer.compress(raw)


def _read(path: Path, size: int) -> bytes:
    """All bytes of a source, asked for in pieces of a size."""
    found, ended = b"", False
    view = memoryview(bytearray(size))
    with Source(str(path)) as source:
        while not ended:
            read, ended = source.fill(view)
            found += bytes(view[:read])
    return found


def case(rng: np.random.Generator, folder: Path) -> None:
    """One or several members, whole or damaged; checksums are written, so damage is found or does no harm."""
    kind = ("gzip", "zstd", "bzip2", "xz")[int(rng.integers(4))]
    pieces = [_plain(rng) for _ in range(int(rng.integers(1, 4)))]
    packed = [_pack(rng, piece, kind) for piece in pieces]
    if kind == "zstd" and rng.random() < 0.2:
        packed.insert(int(rng.integers(len(packed) + 1)), b"\x50\x2a\x4d\x18\x03\0\0\0abc")  # a frame to skip
    if kind == "gzip" and rng.random() < 0.1:
        packed.append(bytes(int(rng.integers(1, 600))))  # as tapes have it
    if kind == "xz" and rng.random() < 0.1:
        packed.insert(int(rng.integers(1, len(packed) + 1)), bytes(4 * int(rng.integers(1, 100))))
    whole = b"".join(packed)
    path = folder / "input.packed"
    size = int(rng.integers(1, 5000))
    path.write_bytes(whole)
    if rng.random() < 0.3:
        assert _read(path, size) == b"".join(pieces)
        with pauses(rng, 2000):
            assert _read(path, size) == b"".join(pieces)
        return
    cut = rng.random() < 0.4
    broken = whole[: int(rng.integers(4, len(whole)))] if cut else damaged(rng, whole)
    path.write_bytes(broken)
    try:
        found = _read(path, size)
    except BrokenInputError:
        return
    if broken[:4] == whole[:4]:
        assert found == _twin(broken, kind)


def _twin(raw: bytes, kind: str) -> bytes:
    """The plain bytes by a library's own way of undoing all members at once; raises where the end is missing."""
    if kind == "gzip":
        return gzip.decompress(raw)
    if kind in ("bzip2", "xz"):
        return _streams(raw, kind)
    found = b""
    while raw:
        member = zstandard.ZstdDecompressor().decompressobj()
        found += member.decompress(raw)
        assert member.eof, "an end that is missing was taken for one"
        raw = member.unused_data
    return found


def _streams(raw: bytes, kind: str) -> bytes:
    """All streams of bzip2 or xz, zeros between those of xz left out."""
    found = b""
    while raw:
        member = bz2.BZ2Decompressor() if kind == "bzip2" else lzma.LZMADecompressor(lzma.FORMAT_XZ)
        found += member.decompress(raw)
        assert member.eof, "an end that is missing was taken for one"
        raw = member.unused_data if kind == "bzip2" else member.unused_data.lstrip(b"\0")
    return found
