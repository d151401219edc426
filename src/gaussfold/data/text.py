"""Chunks of rows from text, in bounded memory: bytes in, compiled parser, rows out.

A chunk of bytes ends anywhere; what follows its last complete record is carried over to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from gaussfold.data.chunks import Chunk, Parse
from gaussfold.data.classes import pack
from gaussfold.data.intake import Intake
from gaussfold.data.interactions import compile_interactions, compile_spaces
from gaussfold.data.messages import BadRecord, BadRecordError, DataError, NulBytesError
from gaussfold.data.naming import Named, name_slots
from gaussfold.data.sources import Source, skip_mark
from gaussfold.engine.text import expected
from gaussfold.engine.text.byte_scan import PADDING
from gaussfold.engine.text.report import BAD, BASE, ENTRIES, FULL, LINES, NAMED, POSITION, ROWS, STOPPED
from gaussfold.engine.text.row_memory import BINARY, COUNT, REAL, TOKEN, Options, Rows

LONGEST_RECORD = 1 << 26
_LABEL_KINDS = {"binary": BINARY, "real": REAL, "count": COUNT, "class": COUNT}
_NEWLINE = 10

_KEPT = 1000
"""Bad records of a stream that are told one by one; the rest is counted."""
_BEHIND = {expected.QUOTE: 2}
"""Bytes behind what was found that are what is wrong: here what follows the quote."""
_FOUND = 1000
"""Bytes that are kept of what stands where something else was expected."""

Begin = Callable[[Source], tuple[Parse, int]]
"""Peek at an input; return the parser, and how many of the bytes peeked at are a header."""


class TextReader:
    """Runs the parser of a text format over one source."""

    def __init__(self, intake: Intake) -> None:
        self._intake, self._space = intake, intake.workspace
        self._buffer, self._room, self._filled, self._lines = bytearray(), 0, 0, 0
        self._unseen: list[Named] = []  # names from a row that had to be parsed again
        self._interactions = compile_interactions(intake.reading.interact)
        self._squares = False
        self._classes = pack(intake.reading.classes)
        self._spaces = compile_spaces(intake.reading.keep or intake.reading.ignore)

    # Memory: ``room`` bytes of the buffer may be filled, what lies behind is padding. It grows alone; the arrays that
    # rows are parsed into follow when there is a record that needs them.

    def _make_room(self, n_bytes: int) -> None:
        buffer = bytearray(n_bytes + PADDING)
        buffer[: self._filled] = self._buffer[: self._filled]
        self._buffer, self._room = buffer, n_bytes

    def _fit_workspace(self) -> None:
        if self._room > self._space.n_bytes:
            self._space.resize(self._room, max(self._space.entries, self._room + 64))

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
            squares=self._squares,
            spaces=self._spaces,
            keeps=bool(reading.keep),
            classes=self._classes.texts,
            class_ends=self._classes.ends,
            class_values=self._classes.values,
        )

    # Reading.

    def read_lines(self, source: Source, name: str, parse: Parse, *, squares: bool = False) -> Iterator[Chunk]:
        """Yield the chunks of a format (of this name) whose records are lines without columns.

        ``squares``: a feature of value 1 is multiplied by itself where its namespace is.
        """
        self._squares = squares
        if self._intake.reading.columns is not None:
            msg = f"{source.name}: {name}, but the model was trained on a table with named columns"
            raise DataError(msg)
        return self.read(source, lambda _source: (parse, 0))

    def read(self, source: Source, begin: Begin) -> Iterator[Chunk]:
        """Yield the chunks of one source."""
        source.take(skip_mark(source.peek(3)))
        parse, header = begin(source)
        self._lines, self._filled = source.take(header).count(b"\n"), 0
        self._make_room(min(self._space.n_bytes, LONGEST_RECORD))
        ended = False
        while not ended:
            known = self._filled
            ended = self._fill(source)
            nul = self._buffer.find(b"\0", known, self._filled)
            if nul >= 0 and self._intake.refuse_nul:
                yield from self._before_nul(parse, nul, source.name)
            if ended and self._filled and self._buffer[self._filled - 1] != _NEWLINE:
                self._buffer[self._filled] = _NEWLINE
                self._filled += 1
            stop = self._buffer.rfind(b"\n", 0, self._filled) + 1
            yield from self._parse(parse, stop, ended, source.name)
            if not ended and self._filled >= self._room:
                if self._room < LONGEST_RECORD:
                    self._make_room(min(2 * self._room, LONGEST_RECORD))
                else:
                    yield from self._give_up_record(parse, source.name)

    def _before_nul(self, parse: Parse, nul: int, source: str) -> Iterator[Chunk]:
        """The rows before the line with a nul byte in it; then raise."""
        line = self._lines + self._buffer.count(b"\n", 0, nul) + 1
        yield from self._parse(parse, self._buffer.rfind(b"\n", 0, nul) + 1, False, source)
        raise NulBytesError(source, str(line))

    def _give_up_record(self, parse: Parse, source: str) -> Iterator[Chunk]:
        """The record that fills all the room is a bad one: the line that it begins with is taken as it is."""
        line = self._buffer.find(b"\n", 0, self._filled) + 1
        if not line:
            what = f"a line is longer than {LONGEST_RECORD >> 20} MB; is this a text file, with line ends?"
            msg = f"{source}:{self._lines + 1}: {what}"
            raise DataError(msg)
        yield from self._parse(parse, line, True, source)

    def _fill(self, source: Source) -> bool:
        with memoryview(self._buffer) as view:
            read, ended = source.fill(view[self._filled : self._room])
        self._filled += read
        return ended

    def _drop(self, n: int) -> None:
        """Forget the first n bytes."""
        if n:
            self._buffer[: self._filled - n] = self._buffer[n : self._filled]
            self._filled -= n

    def _parse(self, parse: Parse, stop: int, final: bool, source: str) -> Iterator[Chunk]:
        """Parse ``buffer[:stop]`` into one chunk (more if interactions need the room), then drop it."""
        if stop:
            self._fit_workspace()
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
            stopped = self._bad_record(int(report[BAD]) - 1, source) if report[STOPPED] else None
            self._lines += int(report[LINES])
            self._intake.n_bad += chunk.n_bad
            if len(chunk) or chunk.n_bad:
                self._unseen = []
                yield chunk
            else:
                self._unseen = chunk.names
            if stopped is not None:
                raise BadRecordError(stopped, self._intake.max_bad)
            if report[FULL] and not len(chunk) and not advanced:
                self._space.resize(self._space.n_bytes, 2 * self._space.entries)
            elif not report[FULL]:
                break  # all that is complete has been parsed
        self._drop(position)

    def _chunk(self, rows: Rows, source: str) -> Chunk:
        report, scratch = self._space.report, self._space.scratch
        reading, keep_names = self._intake.reading, self._intake.keep_names
        n, entries, n_bad = int(report[ROWS]), int(report[ENTRIES]), int(report[BAD])
        kept = min(n_bad, max(0, _KEPT - self._intake.n_bad))
        names = name_slots(scratch.named[: report[NAMED]], self._buffer, reading.columns) if keep_names else []
        return Chunk(
            indptr=rows.indptr[: n + 1],
            indices=rows.indices[:entries],
            data=rows.data[:entries],
            label=rows.label[:n],
            weight=rows.weight[:n],
            width=reading.width,
            source=source,
            line=rows.line[:n] + np.int64(self._lines),
            tags=[_text(self._buffer[a:b]) for a, b in rows.tag[:n].tolist()] if self._intake.tags else None,
            names=self._unseen + names,
            bad=[self._bad_record(k, source) for k in range(kept)],
            n_bad=n_bad,
        )

    def _bad_record(self, k: int, source: str) -> BadRecord:
        """The k-th bad record of what was just parsed."""
        line, wanted, begin, end = self._space.scratch.bad[k].tolist()
        end = min(end + _BEHIND.get(wanted, 0), self._filled)
        found = bytes(self._buffer[begin : min(end, begin + _FOUND)])
        return BadRecord(source, self._lines + line, wanted, found, self._intake.reading.labels)


def _text(raw: bytearray) -> str:
    return raw.rstrip(b"\r").decode("utf-8", "replace").strip('"')
