"""Chunks of rows from text, in bounded memory: bytes in, compiled parser, rows out.

A chunk of bytes ends anywhere; what follows its last complete record is carried over to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gaussfold.data.chunks import Chunk, Parse
from gaussfold.data.intake import Intake
from gaussfold.data.interactions import compile_interactions
from gaussfold.data.messages import BadRecord, BadRecordError, DataError
from gaussfold.data.naming import name_slots
from gaussfold.data.sources import Source, skip_mark
from gaussfold.engine.text.byte_scan import PADDING
from gaussfold.engine.text.report import BAD, BASE, ENTRIES, FULL, LINES, NAMED, POSITION, ROWS, STOPPED
from gaussfold.engine.text.row_memory import BINARY, COUNT, REAL, TOKEN, Options, Rows

LONGEST_RECORD = 1 << 26
_LABEL_KINDS = {"binary": BINARY, "real": REAL, "count": COUNT}
_NEWLINE = 10

Begin = Callable[[memoryview, bool], tuple[Parse, int]]
"""Look at the first bytes of an input (one line at least) and whether they are all of it; return the parser, and how
many of the bytes are a header."""


class TextReader:
    """Runs the parser of a text format over one source."""

    def __init__(self, intake: Intake) -> None:
        self._intake, self._space = intake, intake.workspace
        self._buffer, self._filled, self._lines = bytearray(), 0, 0
        self._interactions = compile_interactions(intake.reading.interact)

    # Memory.

    def _grow_buffer(self, source: str) -> None:
        n_bytes = 2 * self._space.n_bytes
        if n_bytes > LONGEST_RECORD:
            msg = f"{source}: a record is longer than {LONGEST_RECORD >> 20} MB; is this a text file?"
            raise DataError(msg)
        self._space.resize(n_bytes, max(self._space.entries, n_bytes + 64))
        buffer = bytearray(n_bytes + PADDING)
        buffer[: self._filled] = self._buffer[: self._filled]
        self._buffer = buffer

    def _options(self, final: bool) -> Options:
        reading = self._intake.reading
        kind = TOKEN if reading.positive is not None else _LABEL_KINDS[reading.labels]
        return Options(
            mask=np.uint32((1 << reading.bits) - 1),
            constant=1 << reading.bits if reading.constant else -1,
            label_kind=kind,
            max_bad=self._intake.max_bad - self._intake.n_bad,
            keep_names=self._intake.keep_names,
            final=final,
            digits=reading.hash == "strings",
            interactions=self._interactions,
        )

    # Reading.

    def read_lines(self, source: Source, name: str, parse: Parse) -> Iterator[Chunk]:
        """Yield the chunks of a format (of this name) whose records are lines without columns."""
        if self._intake.reading.columns is not None:
            msg = f"{source.name}: {name}, but the model was trained on a table with named columns"
            raise DataError(msg)
        return self.read(source, lambda _head, _whole: (parse, 0))

    def read(self, source: Source, begin: Begin) -> Iterator[Chunk]:
        """Yield the chunks of one source."""
        self._buffer = bytearray(self._space.n_bytes + PADDING)
        self._filled, self._lines = 0, 0
        ended = self._fill(source)
        while not ended and self._buffer.rfind(b"\n", 0, self._filled) < 0:
            if self._filled == self._space.n_bytes:
                self._grow_buffer(source.name)
            ended = self._fill(source)
        start = skip_mark(self._buffer)
        with memoryview(self._buffer) as view, view[start : self._filled] as head:
            parse, header = begin(head, ended)
        self._lines += self._buffer.count(b"\n", start, start + header)
        self._drop(start + header)
        while True:
            if ended and self._filled and self._buffer[self._filled - 1] != _NEWLINE:
                self._buffer[self._filled] = _NEWLINE
                self._filled += 1
            stop = self._buffer.rfind(b"\n", 0, self._filled) + 1
            final = ended or self._space.n_bytes >= LONGEST_RECORD
            yield from self._parse(parse, stop, final, source.name)
            if ended:
                return
            if self._filled >= self._space.n_bytes:
                self._grow_buffer(source.name)
            ended = self._fill(source)

    def _fill(self, source: Source) -> bool:
        with memoryview(self._buffer) as view:
            read, ended = source.fill(view[self._filled : self._space.n_bytes])
        self._filled += read
        return ended

    def _drop(self, n: int) -> None:
        """Forget the first n bytes."""
        if n:
            self._buffer[: self._filled - n] = self._buffer[n : self._filled]
            self._filled -= n

    def _parse(self, parse: Parse, stop: int, final: bool, source: str) -> Iterator[Chunk]:
        """Parse ``buffer[:stop]`` into one chunk (more if interactions need the room), then drop it."""
        position = 0
        while position < stop:
            report = self._space.report
            base = report[BASE] + report[ENTRIES]
            report[:] = 0
            report[BASE], report[POSITION], report[LINES] = base, position, 0
            rows = self._space.next_rows()
            array = np.frombuffer(self._buffer, np.uint8)
            parse(array, stop, self._options(final), rows, self._space.scratch, report)
            advanced = int(report[POSITION]) > position
            position = int(report[POSITION])
            chunk = self._chunk(rows, source)
            self._lines += int(report[LINES])
            self._intake.n_bad += chunk.n_bad
            if len(chunk) or chunk.n_bad:
                yield chunk
            if report[STOPPED]:
                raise BadRecordError(chunk.bad[-1], self._intake.max_bad)
            if report[FULL] and not len(chunk) and not advanced:
                self._space.resize(self._space.n_bytes, 2 * self._space.entries)
            elif not report[FULL]:
                break  # all that is complete has been parsed
        self._drop(position)

    def _chunk(self, rows: Rows, source: str) -> Chunk:
        report, scratch = self._space.report, self._space.scratch
        reading, keep_names = self._intake.reading, self._intake.keep_names
        n, entries, n_bad = int(report[ROWS]), int(report[ENTRIES]), int(report[BAD])
        bad = [
            BadRecord(
                source,
                self._lines + int(line),
                int(code),
                bytes(self._buffer[begin:end]),
                reading.labels,
            )
            for line, code, begin, end in scratch.bad[: min(n_bad, len(scratch.bad))]
        ]
        if report[STOPPED] and n_bad > len(bad):
            bad.append(bad[-1])
        return Chunk(
            indptr=rows.indptr[: n + 1],
            indices=rows.indices[:entries],
            data=rows.data[:entries],
            label=rows.label[:n],
            weight=rows.weight[:n],
            width=reading.width,
            source=source,
            line=rows.line[:n] + np.int32(self._lines),
            tags=[_text(self._buffer[a:b]) for a, b in rows.tag[:n].tolist()] if self._intake.tags else None,
            names=name_slots(scratch.named[: report[NAMED]], self._buffer, reading.columns) if keep_names else [],
            bad=bad,
            n_bad=n_bad,
        )


def _text(raw: bytearray) -> str:
    return raw.rstrip(b"\r").decode("utf-8", "replace").strip('"')
