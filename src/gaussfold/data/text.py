"""Chunks of rows from text, in bounded memory: bytes in, compiled parser, rows out.

A chunk of bytes ends anywhere; what follows its last complete record is carried over to the next one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from gaussfold.data import tables
from gaussfold.data.chunks import Chunk, Parse, Workspace
from gaussfold.data.interactions import compile_interactions
from gaussfold.data.messages import BadRecord, BadRecordError, DataError
from gaussfold.data.naming import name_slots
from gaussfold.data.reading import KINDS, Reading, Roles
from gaussfold.data.sources import Source, skip_mark
from gaussfold.data.strings import murmur_of
from gaussfold.engine.text.byte_scan import PADDING
from gaussfold.engine.text.csr_rows import (
    BAD,
    BASE,
    BINARY,
    COUNT,
    ENTRIES,
    FULL,
    LINES,
    NAMED,
    POSITION,
    REAL,
    ROWS,
    STOPPED,
    TOKEN,
    Options,
    Rows,
)
from gaussfold.engine.text.parse_csv import parse_csv
from gaussfold.engine.text.parse_svm import parse_svmlight
from gaussfold.engine.text.parse_vw import parse_vw

LONGEST_RECORD = 1 << 26
_TABLES = {"csv": ",", "tsv": "\t"}
_LABEL_KINDS = {"binary": BINARY, "real": REAL, "count": COUNT}


class TextReader:
    """Parser of one kind of text, with its memory; one source after the other."""

    def __init__(
        self,
        reading: Reading,
        roles: Roles | None = None,
        *,
        max_bad: int = 0,
        keep_names: bool = False,
        tags: bool = False,
        ring: int = 1,
        chunk_bytes: int = 1 << 20,
    ) -> None:
        self.reading, self.roles = reading, roles or Roles()
        self.max_bad, self.n_bad = max_bad, 0
        self.keep_names, self.tags, self._ring = keep_names, tags, ring
        self._buffer, self._filled, self._lines = bytearray(), 0, 0
        self._interactions = compile_interactions(reading.interact)
        self._resize(chunk_bytes, chunk_bytes * (4 if reading.interact else 1) + 64)

    # Memory.

    def _resize(self, n_bytes: int, entries: int) -> None:
        old = getattr(self, "_space", None)
        if entries >= 1 << 31:
            msg = "a record has more than 2^31 features with its interactions; ask for fewer of them"
            raise DataError(msg)
        slots = 1 << self.reading.bits if self.keep_names else 0
        self._space = Workspace(n_bytes, entries, slots, self._ring)
        if old is not None:
            self._space.scratch.seen[:] = old.scratch.seen

    def _grow_buffer(self, source: str) -> None:
        n_bytes = 2 * self._space.n_bytes
        if n_bytes > LONGEST_RECORD:
            msg = f"{source}: a record is longer than {LONGEST_RECORD >> 20} MB; is this a text file?"
            raise DataError(msg)
        self._resize(n_bytes, max(self._space.entries, n_bytes + 64))
        buffer = bytearray(n_bytes + PADDING)
        buffer[: self._filled] = self._buffer[: self._filled]
        self._buffer = buffer

    def _options(self) -> Options:
        reading = self.reading
        kind = TOKEN if reading.positive is not None else _LABEL_KINDS[reading.labels]
        return Options(
            mask=np.uint32((1 << reading.bits) - 1),
            constant=1 << reading.bits if reading.constant else -1,
            label_kind=kind,
            max_bad=self.max_bad - self.n_bad,
            keep_names=self.keep_names,
            digits=reading.hash == "strings",
            interactions=self._interactions,
        )

    # Reading.

    def read(self, source: Source, kind: str) -> Iterator[Chunk]:
        """Yield the chunks of one source of a given format."""
        self._buffer = bytearray(self._space.n_bytes + PADDING)
        self._filled, self._lines = 0, 0
        ended = self._fill(source)
        start = skip_mark(self._buffer)
        if kind in _TABLES:
            while not ended and self._buffer.rfind(b"\n", 0, self._filled) < 0:
                if self._filled == self._space.n_bytes:
                    self._grow_buffer(source.name)
                ended = self._fill(source)
            parse, skipped = self._table(kind, start, ended, source.name)
            start += skipped
        else:
            if self.reading.columns is not None:
                msg = f"{source.name}: {kind}, but the model was trained on a table with named columns"
                raise DataError(msg)
            parse = _VW if kind == "vw" else _SVMLIGHT
        self._drop(start)
        while True:
            if ended and self._filled and self._buffer[self._filled - 1] != 10:
                self._buffer[self._filled] = 10
                self._filled += 1
            stop = self._buffer.rfind(b"\n", 0, self._filled) + 1
            last = ended or self._space.n_bytes >= LONGEST_RECORD
            yield from self._parse(parse, stop, last, source.name)
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

    def _parse(self, parse: Parse, stop: int, last: bool, source: str) -> Iterator[Chunk]:
        """Parse ``buffer[:stop]`` into one chunk (more if interactions need the room), then drop it."""
        position = 0
        while position < stop:
            report = self._space.report
            base = report[BASE] + report[ENTRIES]
            report[:] = 0
            report[BASE], report[POSITION], report[LINES] = base, position, 0
            rows = self._space.next_rows()
            array = np.frombuffer(self._buffer, np.uint8)
            parse(array, stop, last, self._options(), rows, self._space.scratch, report)
            advanced = int(report[POSITION]) > position
            position = int(report[POSITION])
            chunk = self._chunk(rows, source)
            self._lines += int(report[LINES])
            self.n_bad += chunk.n_bad
            if len(chunk) or chunk.n_bad:
                yield chunk
            if report[STOPPED]:
                raise BadRecordError(chunk.bad[-1], self.max_bad)
            if report[FULL] and not len(chunk) and not advanced:
                self._resize(self._space.n_bytes, 2 * self._space.entries)
            elif not report[FULL]:
                break  # all that is complete has been parsed
        self._drop(position)

    def _chunk(self, rows: Rows, source: str) -> Chunk:
        report, scratch = self._space.report, self._space.scratch
        n, entries, n_bad = int(report[ROWS]), int(report[ENTRIES]), int(report[BAD])
        bad = [
            BadRecord(
                source,
                self._lines + int(line),
                int(code),
                bytes(self._buffer[begin:end]),
                self.reading.labels,
            )
            for line, code, begin, end in scratch.bad[: min(n_bad, len(scratch.bad))]
        ]
        if report[STOPPED] and n_bad > len(bad):
            bad.append(bad[-1])
        columns = self.reading.columns
        return Chunk(
            indptr=rows.indptr[: n + 1],
            indices=rows.indices[:entries],
            data=rows.data[:entries],
            label=rows.label[:n],
            weight=rows.weight[:n],
            width=self.reading.width,
            source=source,
            line=rows.line[:n] + np.int32(self._lines),
            tags=[_text(self._buffer[a:b]) for a, b in rows.tag[:n].tolist()] if self.tags else None,
            names=name_slots(scratch.named[: report[NAMED]], self._buffer, columns) if self.keep_names else [],
            bad=bad,
            n_bad=n_bad,
        )

    # Tables.

    def _table(self, kind: str, start: int, ended: bool, source: str) -> tuple[Parse, int]:
        """Look at the first records; return the parser and the length of the header."""
        separator = self.reading.separator or _TABLES[kind]
        text = bytes(self._buffer[start : self._filled]).decode("utf-8", "replace")
        records = tables.sample_records(text, separator, whole=ended)
        if not records and self.reading.columns is not None:
            return _nothing, 0
        columns, header = tables.describe(records, self._roles_for(records), source)
        if self.reading.columns is not None:
            columns = tables.match(self.reading.columns, [column.name for column in columns], source)
        else:
            self.reading = dataclasses.replace(self.reading, columns=columns)
        length = _header_length(self._buffer, start, self._filled) if header else 0
        self._lines += self._buffer.count(b"\n", start, start + length)
        return _table_parser(separator, columns, self.reading.positive or "", self._space.n_bytes), length

    def _roles_for(self, records: list[list[str]]) -> Roles:
        """With known columns a header is told by their names, not by the looks of the values."""
        known = self.reading.columns
        if known is None or self.roles.header is not None:
            return self.roles if known is None else Roles(header=self.roles.header)
        return Roles(header=records[0][0] in {column.name for column in known})


def _vw(buffer: Any, stop: int, last: bool, options: Any, rows: Any, scratch: Any, report: Any) -> None:  # noqa: ARG001
    parse_vw(buffer, stop, options, rows, scratch, report)


def _svmlight(buffer: Any, stop: int, last: bool, options: Any, rows: Any, scratch: Any, report: Any) -> None:  # noqa: ARG001
    parse_svmlight(buffer, stop, options, rows, scratch, report)


def _nothing(buffer: Any, stop: int, last: bool, options: Any, rows: Any, scratch: Any, report: Any) -> None:  # noqa: ARG001
    report[POSITION] = stop


_VW: Parse = _vw
_SVMLIGHT: Parse = _svmlight


def _table_parser(separator: str, columns: Any, positive: str, n_bytes: int) -> Parse:
    kinds = np.array([KINDS.index(column.kind) for column in columns], np.int64)
    hashes = np.array([murmur_of(column.name) for column in columns], np.uint32)
    initials = np.array([(column.name.encode() or b" ")[0] for column in columns], np.int64)
    token = np.frombuffer(bytearray(positive.encode()) or bytearray(1), np.uint8)[: len(positive.encode())]
    text = [np.empty(n_bytes + PADDING, np.uint8)]

    def parse(buffer: Any, stop: int, last: bool, options: Any, rows: Any, scratch: Any, report: Any) -> None:
        if text[0].size < buffer.size:
            text[0] = np.empty(buffer.size, np.uint8)
        table = (ord(separator), kinds, hashes, initials, token, text[0])
        parse_csv(buffer, stop, last, *table, options, rows, scratch, report)

    return parse


def _header_length(buffer: bytearray, start: int, filled: int) -> int:
    """Bytes up to the end of the first record that is not empty; newlines inside quotes do not end it."""
    quoted, seen = False, False
    for at in range(start, filled):
        c = buffer[at]
        if c == 34:
            quoted = not quoted
        seen = seen or c not in b"\r\n"
        if c == 10 and not quoted and seen:
            return at + 1 - start
    return filled - start


def _text(raw: bytearray) -> str:
    return raw.rstrip(b"\r").decode("utf-8", "replace").strip('"')
