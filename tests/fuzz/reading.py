"""What the targets share that read files: all that a stream says, under other chunk sizes and pauses, and damage."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

from gaussfold.data import sources
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Column, Reading, Roles

MANY = 1000
"""Bad records: more than a text has."""


class Outcome(NamedTuple):
    """All that a stream says: rows as (label, weight, slots and values, line, tag), what was bad, how it ended."""

    rows: list[tuple[object, ...]]
    names: dict[int, str]
    bad: list[str]
    columns: tuple[Column, ...] | None
    error: str | None


def outcome(path: Path, reading: Reading, roles: Roles | None = None, **options: object) -> Outcome:
    """Read to the end or to the error that a user may meet; any other is a failure."""
    rows: list[tuple[object, ...]] = []
    names: dict[int, str] = {}
    bad: list[str] = []
    stream, error = None, None
    try:
        stream = Stream(path, reading, roles, background=False, tags=True, **options)
        for chunk in stream:
            assert chunk.indptr[0] == 0
            assert np.isfinite(chunk.data).all()
            for i in range(len(chunk)):
                label = None if math.isnan(chunk.label[i]) else float(chunk.label[i])
                tag = chunk.tags[i] if chunk.tags is not None else ""
                rows.append((label, float(chunk.weight[i]), tuple(chunk.entries(i)), int(chunk.line[i]), tag))
            bad += map(str, chunk.bad)
            names.update((named.slot, named.name) for named in chunk.names)
    except (ValueError, OSError) as found:
        error = f"{type(found).__name__}: {found}"
    assert error is None or str(path) in error, "an error names its file"
    return Outcome(rows, names, bad, stream.reading.columns if stream is not None else None, error)


@contextmanager
def pauses(rng: np.random.Generator, longest: int = 40) -> Iterator[None]:
    """Inside, bytes come in small pieces and every reader is told now and then that a pipe pauses."""
    fill, watched = sources.Source.fill, sources._Watched
    read, readinto = watched.read, watched.readinto

    def piece(size: int) -> int:
        return min(size, int(rng.integers(1, longest)))

    with (
        mock.patch.object(sources.Source, "fill", lambda self, view: fill(self, view[: piece(len(view))])),
        mock.patch.object(watched, "read", lambda self, size: read(self, piece(size))),
        mock.patch.object(watched, "readinto", lambda self, view: readinto(self, memoryview(view)[: piece(len(view))])),
    ):
        yield


def same_however_it_comes(
    rng: np.random.Generator, path: Path, reading: Reading, roles: Roles | None = None, *, few: int, **options: object
) -> Outcome:
    """The outcome, which must be the same in chunks of other sizes and through a pipe that pauses.

    If only ``few`` bad records are let pass, the stream ends at the next one, and until then says the same.
    """
    sizes = (int(rng.integers(1, 64)), int(rng.integers(64, 2000)))
    first = outcome(path, reading, roles, max_bad=MANY, chunk_bytes=1 << 14, **options)
    for chunk_bytes in sizes:
        other = outcome(path, reading, roles, max_bad=MANY, chunk_bytes=chunk_bytes, **options)
        assert other == first, f"in chunks of {chunk_bytes} bytes:\n{other}\nis not\n{first}"
    if rng.random() < 0.3:
        with pauses(rng):
            other = outcome(path, reading, roles, max_bad=MANY, chunk_bytes=1 << 10, **options)
        assert other == first, f"with pauses:\n{other}\nis not\n{first}"
    strict = outcome(path, reading, roles, max_bad=few, chunk_bytes=sizes[0], **options)
    if len(first.bad) <= few:
        assert strict == first, f"with max_bad={few}:\n{strict}\nis not\n{first}"
    else:
        assert strict.error is not None
        assert strict.rows == first.rows[: len(strict.rows)]
        assert strict.bad == first.bad[: len(strict.bad)]
        again = outcome(path, reading, roles, max_bad=few, chunk_bytes=1 << 14, **options)
        assert strict == again, f"with max_bad={few}, in chunks of {sizes[0]} bytes:\n{strict}\nis not\n{again}"
    return first


def assert_rows(found: Outcome, wanted: list[tuple[float, float, dict[int, float], int]]) -> None:
    """The rows are the twin's: (label, weight, slots and values, line)."""
    assert [row[3] for row in found.rows] == [row[3] for row in wanted]
    for ours, theirs in zip(found.rows, wanted, strict=True):
        assert ours[0] == (None if math.isnan(theirs[0]) else theirs[0]), (ours, theirs)
        assert ours[1] == theirs[1], (ours, theirs)
        entries = dict(ours[2])
        assert entries.keys() == theirs[2].keys(), (ours, theirs)
        for slot, value in entries.items():
            assert math.isclose(value, theirs[2][slot], rel_tol=1e-13, abs_tol=1e-300), (ours, theirs)


def is_plain(text: str) -> bool:
    """Whether a text means the same to Python's split as to the parsers: no odd blanks, no lone carriage return."""
    body = text.replace("\r\n", "\n")
    return all(c in " \t\n" or (c.isprintable() and not c.isspace()) for c in body)


def damaged(rng: np.random.Generator, raw: bytes) -> bytes:
    """The bytes with something done to them: flipped, cut, left out, doubled, overwritten, or with a tail."""
    found = bytearray(raw)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, max(len(found), 1)))
        size = int(rng.integers(1, 20))
        kind = int(rng.integers(0, 8))
        if kind == 0:
            del found[at:]
        elif kind == 1:
            del found[at : at + size]
        elif kind == 2:
            found[at:at] = found[at : at + size]
        elif kind == 3:
            found += rng.bytes(size)
        elif kind == 4:
            found[at : at + size] = bytes(min(size, len(found) - at))
        elif kind == 5:
            number = int(rng.choice([-1, 2**31 - 1, -(2**31), 2**24, 1]))
            found[at : at + 4] = number.to_bytes(4, "little", signed=True)[: len(found) - at]
        elif at < len(found):
            found[at] ^= int(rng.integers(1, 256))
    return bytes(found)
