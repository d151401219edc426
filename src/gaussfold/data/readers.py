"""One stream of rows out of files, globs and standard input, in any of the formats, in bounded memory."""

from __future__ import annotations

import dataclasses
import os
import queue
import threading
from collections.abc import Generator, Iterator, Sequence

from gaussfold.data import formats
from gaussfold.data.chunks import Chunk
from gaussfold.data.fingerprint import Fingerprint
from gaussfold.data.formats.base import Format
from gaussfold.data.intake import Intake
from gaussfold.data.messages import DataError
from gaussfold.data.reading import Reading, Roles
from gaussfold.data.refusals import PositiveLabel, refuse_unused
from gaussfold.data.sources import Source, expand, skip_mark

_LOOK = 1 << 16  # bytes to tell a format by
_AHEAD = 4
_RING = _AHEAD + 3  # chunks that may be alive: waiting, being parsed, in use, and one to look back at


class Stream:
    r"""Rows of one or more inputs, chunk by chunk.

    The next chunk is parsed in a thread of its own while the current one is used (the compiled parsers do not hold
    Python's lock). A chunk's arrays are reused later: they are valid until the next chunk is asked for; ``copy=True``
    lifts that.

    Parameters
    ----------
    paths
        A path, a glob, "-" for standard input, or several of these. gzip, zstd, bzip2 and xz are undone on the way.
    reading
        What the rows mean; see `Reading`.
    roles
        For tables: which column is the label, and so on.
    max_bad
        So many bad records are left out (and reported in ``Chunk.bad``); one more raises `BadRecordError`.
    keep_names
        Whether chunks tell the names of slots seen for the first time.
    tags
        Whether chunks tell the rows' tags.
    background
        Whether to parse ahead.
    copy
        Whether every chunk has memory of its own.
    fingerprint
        Whether chunks tell the fingerprint of the rows up to their end.
    chunk_bytes
        How much text makes a chunk. It changes the speed, not the rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "clicks.vw"
    >>> _ = path.write_text("1 |user ann |ad shoes:2\n-1 |user bob\n")
    >>> for chunk in Stream(path, Reading(bits=10, constant=False)):
    ...     print(chunk.label, chunk.X.sum(axis=1).ravel())
    [1. 0.] [[3. 1.]]
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        reading: Reading | None = None,
        roles: Roles | None = None,
        *,
        max_bad: int = 0,
        keep_names: bool = False,
        tags: bool = False,
        background: bool = True,
        copy: bool = False,
        fingerprint: bool = False,
        chunk_bytes: int = 1 << 21,
    ) -> None:
        self.names = expand(paths)
        self.reading = reading or Reading()
        self.n_bad = 0
        self._stopping = threading.Event()
        self._background, self._copy, self._fingerprint = background, copy, fingerprint
        ring = _RING if background else _RING - _AHEAD
        self._wanted = Intake(
            self.reading, roles or Roles(), max_bad, keep_names, tags, ring, chunk_bytes, refuse_nul=True
        )

    def __iter__(self) -> Generator[Chunk]:
        chunks = self._chunks()
        found = _ahead(chunks, self._stopping) if self._background else chunks
        if not self._copy:
            return found
        return (chunk.copied() for chunk in found)

    def stop(self) -> None:
        """End the iteration before the next chunk, even if an input is silent; safe to call from a signal handler."""
        self._stopping.set()

    def _chunks(self) -> Generator[Chunk]:
        intake = dataclasses.replace(self._wanted, reading=self.reading)
        seen = Fingerprint()
        occurs = PositiveLabel(self.reading.positive if self.reading.columns is None else None)  # else: a later day
        for name in self.names:
            with Source(name) as source:
                found = format_of(name, self.reading, source)
                refuse_unused(found, intake, source.name)
                for chunk in found.read(source, intake):
                    self.reading, self.n_bad = intake.reading, intake.n_bad
                    occurs.look(chunk)
                    if self._fingerprint:
                        seen = seen.after(chunk)
                    yield dataclasses.replace(chunk, seen=seen) if self._fingerprint else chunk
                self.reading = intake.reading  # also of a table without rows
        occurs.refuse_unmatched(self.names)


def format_of(name: str, reading: Reading, source: Source) -> Format:
    """Tell a format: what the user says, else by the name, else by the first bytes."""
    kind = reading.format or formats.format_of_name(name)
    if kind is None:
        head = source.peek(_LOOK, formats.is_telling)
        kind = formats.format_of_bytes(head[skip_mark(head) :], source.name) if head else formats.OF_NOTHING
    found = formats.find(kind)
    if not (source.seekable and name != "-") and not found.from_pipe:
        msg = f"{source.name}: {kind} cannot be read from a pipe; give the path of a file"
        raise DataError(msg)
    return found


def _ahead(chunks: Iterator[Chunk], stopping: threading.Event) -> Generator[Chunk]:
    """The same chunks, made in another thread, a few ahead; errors arrive after the chunks before them."""
    waiting: queue.Queue[Chunk | BaseException | None] = queue.Queue(_AHEAD)
    given_up = threading.Event()
    work = threading.Thread(target=_hand_over, args=(chunks, waiting, given_up), name="gaussfold-reader", daemon=True)
    work.start()
    try:
        while not stopping.is_set():
            try:
                item = waiting.get(timeout=0.1)  # in steps, so that `stop` is seen while an input is silent
            except queue.Empty:
                continue
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        given_up.set()


def _hand_over(
    chunks: Iterator[Chunk], waiting: queue.Queue[Chunk | BaseException | None], given_up: threading.Event
) -> None:
    """Put all chunks into the queue, then None, or the error that ended them; until nobody wants them."""

    def put(item: Chunk | BaseException | None) -> bool:
        while not given_up.is_set():
            try:
                waiting.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    try:
        for chunk in chunks:
            if not put(chunk):
                return
        put(None)
    except BaseException as error:
        put(error)
