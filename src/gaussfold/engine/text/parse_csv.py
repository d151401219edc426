"""Comma- (or tab-, or anything-) separated values, from bytes to rows.

A field in double quotes may hold separators, newlines and doubled quotes (RFC 4180). What a column means is decided
by the caller, once: a number is one feature, named by its column; a category is the feature (column, text).
Reference twin: ``tests/reference/parsers.py``, on Python's ``csv``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.simd.pointers import pointer
from gaussfold.engine.simd.types import Pointer
from gaussfold.engine.text import expected
from gaussfold.engine.text.byte_scan import line_end
from gaussfold.engine.text.csr_rows import LARGEST, check_value, close_plain, close_row, note_bad, token_label
from gaussfold.engine.text.csv_fields import is_missing, next_field, trim
from gaussfold.engine.text.murmur import murmur
from gaussfold.engine.text.numbers import parse_number, scan_number, short_number
from gaussfold.engine.text.report import ENTRIES, LINES, POSITION, ROWS
from gaussfold.engine.text.row_memory import (
    TOKEN,
    Options,
    RowMemory,
    Rows,
    RowSettings,
    Scratch,
    row_memory,
    row_settings,
)

IGNORED, LABEL, WEIGHT, NUMBER, CATEGORY, TAG = range(6)  # what a column means
INCOMPLETE = 100  # the last record has no end yet


class TableColumns(NamedTuple):
    """The columns of a table, and what stands between them."""

    separator: int
    kinds: np.ndarray  # int64: what each means
    hashes: np.ndarray  # uint32: of their names
    initials: np.ndarray  # int64: first bytes of their names
    positive: np.ndarray  # uint8: the label that counts as 1


class _Columns(NamedTuple):
    """The same by pointers, see `RowMemory`, with room for the text of a field without its quotes."""

    n_columns: int
    separators: np.uint64  # eight of them, as a word
    kinds: Pointer
    hashes: Pointer
    initials: Pointer
    positive: Pointer
    positive_size: int
    unquoted: Pointer


_NEWLINE, _RETURN = 10, 13
_FIELD_ENDS = np.array([not (chr(c).isalnum() or chr(c) in "+-.") or c > 127 for c in range(256)])


@compiled
def _is_positive(text: Pointer, begin: int, end: int, columns: _Columns) -> bool:
    if end - begin != columns.positive_size:
        return False
    differ = 0
    for i in range(columns.positive_size):
        differ |= text[begin + i] != columns.positive[i]
    return differ == 0


@compiled
def _feature(source: Pointer, begin: int, end: int, kind: int, seed: np.uint32) -> tuple[np.uint32, float, int]:
    """Hash and value of a number or a category, and 0 or what was expected."""
    if kind == CATEGORY:
        return murmur(source, begin, end, seed), 1.0, 0
    begin, end = trim(source, begin, end)
    if is_missing(source, begin, end):
        return murmur(source, 0, 0, seed), 1.0, 0  # a missing number is the feature (column, "")
    value, ok = short_number(source, begin, end)
    if not ok:
        value, after, ok = scan_number(source, begin, _FIELD_ENDS)
        if not ok or after != end:
            value, ok = parse_number(source, begin, end)
    return seed, value, check_value(value, ok)


@compiled
def _label(
    source: Pointer, begin: int, end: int, label_kind: int, columns: _Columns, to: RowMemory
) -> tuple[float, int]:
    """Return a label (NaN if it is missing), and 0 or what was expected."""
    if label_kind == TOKEN:
        if end == begin:
            return np.nan, 0
        return (1.0 if _is_positive(source, begin, end, columns) else 0.0), 0
    begin, end = trim(source, begin, end)
    value, wrong = token_label(source, begin, end, label_kind, to)
    if wrong and is_missing(source, begin, end):  # which may also be the name of a class
        return np.nan, 0
    return value, wrong


@compiled
def _weight(source: Pointer, begin: int, end: int) -> tuple[float, int]:
    """Return a weight, and 0 or what was expected."""
    begin, end = trim(source, begin, end)
    value, ok = parse_number(source, begin, end)
    return value, 0 if ok and 0.0 <= value <= LARGEST else expected.WEIGHT


# Still more branches than ten: one per kind of column, and the count of features that goes through all of them.
@compiled
def _record(
    buffer: Pointer,
    start: int,
    stop: int,
    columns: _Columns,
    row: int,
    first: int,
    settings: RowSettings,
    to: RowMemory,
) -> tuple[int, int, int, int]:
    """One record; returns the number of entries, then 0 and where it ends, or what was expected and where."""
    to.label[row], to.weight[row], to.tag[2 * row], to.tag[2 * row + 1] = np.nan, 1.0, 0, 0
    at = start
    count = 0
    for column in range(columns.n_columns):
        begin, end, in_unquoted, after = next_field(buffer, at, stop, columns.separators, columns.unquoted)
        if after < 0:
            return count, INCOMPLETE if after == -1 else expected.QUOTE, at, end
        source = columns.unquoted if in_unquoted else buffer
        kind = columns.kinds[column]
        wrong = 0
        if NUMBER <= kind <= CATEGORY:  # they stand side by side
            seed = columns.hashes[column]
            h, value, wrong = _feature(source, begin, end, kind, seed)
            to.raw[count] = h
            to.indices[first + count] = h & settings.mask
            to.data[first + count] = value
            group = 4 * count
            to.groups[group], to.groups[group + 1] = count, columns.initials[column]
            to.groups[group + 2], to.groups[group + 3] = seed, -2 - column
            if settings.keep_names:
                to.spans[2 * count] = at
                to.spans[2 * count + 1] = at - 1 if kind == NUMBER and h == seed else after  # a number has no text
            count += 1
        elif kind == LABEL:
            to.label[row], wrong = _label(source, begin, end, settings.label_kind, columns, to)
        elif kind == WEIGHT:
            to.weight[row], wrong = _weight(source, begin, end)
        elif kind == TAG:
            to.tag[2 * row], to.tag[2 * row + 1] = at, after
        if wrong:
            return count, wrong, at, after
        last = column == columns.n_columns - 1
        if (buffer[after] == _NEWLINE) != last:
            return count, expected.COLUMNS, start, start
        if last:
            return count, 0, after, after
        at = after + 1
    return count, expected.COLUMNS, start, start


@compiled
def _count_lines(buffer: Pointer, start: int, stop: int) -> int:
    lines = 0
    for i in range(start, stop):
        lines += buffer[i] == _NEWLINE
    return lines


@compiled
def _empty_line(text: Pointer, at: int) -> int:
    """Length of the line that begins here, if there is nothing on it; else 0."""
    if text[at] == _NEWLINE:
        return 1
    return 2 if text[at] == _RETURN and text[at + 1] == _NEWLINE else 0


@compiled
def parse_csv(
    buffer: np.ndarray, stop: int, table: TableColumns, unquoted: np.ndarray, options: Options, rows: Rows,
    scratch: Scratch, report: np.ndarray,
) -> None:  # fmt: skip
    """As ``parse_vw``; a record whose quote is open at ``stop`` waits for more bytes unless that is the end of all.

    ``unquoted`` is room for the text of a field without its quotes.
    """
    text, to, settings = pointer(buffer), row_memory(rows, scratch, report, options), row_settings(options)
    columns = _Columns(
        table.kinds.size, np.uint64(table.separator) * np.uint64(0x0101010101010101), pointer(table.kinds),
        pointer(table.hashes), pointer(table.initials), pointer(table.positive), table.positive.size, pointer(unquoted),
    )  # fmt: skip
    at = report[POSITION]
    while at < stop:
        empty = _empty_line(text, at)
        if empty:
            at += empty
            to.report[LINES] += 1
            continue
        row, first, line = to.report[ROWS], to.report[ENTRIES], to.report[LINES] + 1
        count, wrong, found, found_stop = _record(text, at, stop, columns, row, first, settings, to)
        if wrong == INCOMPLETE:
            if not options.final:
                break
            wrong, found_stop = expected.QUOTE, found
        to.line[row] = line
        if wrong:
            stopped = note_bad(line, wrong, found, found_stop, settings.max_bad, scratch.bad, report)
            at = line_end(text, at) + 1  # resume there, whatever quotes say: one may be missing
            to.report[LINES] += 1
            if stopped:
                break
            continue
        if settings.plain:
            close_plain(count, settings.constant, to)
        elif not close_row(count, count, options, rows, scratch, report):
            break
        to.report[LINES] += _count_lines(text, at, found + 1)
        at = found + 1
    report[POSITION] = at
