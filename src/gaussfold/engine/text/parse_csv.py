"""Comma- (or tab-, or anything-) separated values, from bytes to rows.

A field in double quotes may hold separators, newlines and doubled quotes (RFC 4180). What a column means is decided
by the caller, once: a number is one feature, named by its column; a category is the feature (column, text).
Reference twin: ``tests/reference/parsers.py``, on Python's ``csv``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.text.csr_rows import (
    BAD,
    ENTRIES,
    EXPECTED_COLUMNS,
    EXPECTED_LABEL,
    EXPECTED_QUOTE,
    EXPECTED_WEIGHT,
    FULL,
    LARGEST,
    LINES,
    POSITION,
    ROWS,
    STOPPED,
    TOKEN,
    Options,
    Rows,
    Scratch,
    check_label,
    check_value,
    close_plain,
    close_row,
    note_bad,
)
from gaussfold.engine.text.csv_fields import is_missing, next_field, trim
from gaussfold.engine.text.murmur import murmur
from gaussfold.engine.text.numbers import parse_number, scan_number

IGNORED, LABEL, WEIGHT, NUMBER, CATEGORY, TAG = range(6)  # what a column means
INCOMPLETE = 100  # the last record has no end yet


class TableColumns(NamedTuple):
    """The columns of a table, and what stands between them."""

    separator: int
    kinds: np.ndarray  # int64: what each means
    hashes: np.ndarray  # uint32: of their names
    initials: np.ndarray  # int64: first bytes of their names
    positive: np.ndarray  # uint8: the label that counts as 1


_NEWLINE, _RETURN = 10, 13
_FIELD_ENDS = np.array([not (chr(c).isalnum() or chr(c) in "+-.") or c > 127 for c in range(256)])


@compiled
def _equal(text: np.ndarray, begin: int, end: int, other: np.ndarray) -> bool:
    if end - begin != other.size:
        return False
    for i in range(other.size):  # noqa: SIM110 - compiled
        if text[begin + i] != other[i]:
            return False
    return True


@compiled
def _feature(source: np.ndarray, begin: int, end: int, kind: int, seed: np.uint32) -> tuple[np.uint32, float, int]:
    """Hash and value of a number or a category, and 0 or what was expected."""
    if kind == CATEGORY:
        return murmur(source, begin, end, seed), 1.0, 0
    begin, end = trim(source, begin, end)
    if is_missing(source, begin, end):
        return murmur(source, 0, 0, seed), 1.0, 0  # a missing number is the feature (column, "")
    value, after, ok = scan_number(source, begin, _FIELD_ENDS)
    if not ok or after != end:
        value, ok = parse_number(source, begin, end)
    return seed, value, check_value(value, ok)


@compiled
def _number(
    source: np.ndarray, begin: int, end: int, kind: int, label_kind: int, positive: np.ndarray
) -> tuple[float, int]:
    """Return a label (NaN if it is missing) or a weight, and 0 or what was expected."""
    if kind == LABEL and label_kind == TOKEN:
        if end == begin:
            return np.nan, 0
        return (1.0 if _equal(source, begin, end, positive) else 0.0), 0
    begin, end = trim(source, begin, end)
    if kind == LABEL:
        if is_missing(source, begin, end):
            return np.nan, 0
        value, ok = parse_number(source, begin, end)
        value, ok = check_label(value, ok, label_kind)
        return value, 0 if ok else EXPECTED_LABEL
    value, ok = parse_number(source, begin, end)
    return value, 0 if ok and 0.0 <= value <= LARGEST else EXPECTED_WEIGHT


@compiled
def _record(
    buffer: np.ndarray,
    start: int,
    stop: int,
    separators: np.uint64,
    kinds: np.ndarray,
    hashes: np.ndarray,
    initials: np.ndarray,
    positive: np.ndarray,
    text: np.ndarray,
    label_kind: int,
    mask: np.uint32,
    keep_names: bool,
    row: int,
    first: int,
    label: np.ndarray,
    weight: np.ndarray,
    tag: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    raw: np.ndarray,
    groups: np.ndarray,
    spans: np.ndarray,
) -> tuple[int, int, int, int]:
    """One record; returns the number of entries, then 0 and where it ends, or what was expected and where."""
    label[row], weight[row], tag[row, 0], tag[row, 1] = np.nan, 1.0, 0, 0
    at = start
    count = 0
    for column in range(kinds.size):
        begin, end, where, after = next_field(buffer, at, stop, separators, text)
        if after < 0:
            return count, INCOMPLETE if after == -1 else EXPECTED_QUOTE, at, end
        kind = kinds[column]
        wrong = 0
        if kind == NUMBER or kind == CATEGORY:  # noqa: SIM109 - compiled
            seed = hashes[column]
            if where:
                h, value, wrong = _feature(text, begin, end, kind, seed)
            else:
                h, value, wrong = _feature(buffer, begin, end, kind, seed)
            raw[count] = h
            indices[first + count] = h & mask
            data[first + count] = value
            groups[count, 0] = count
            groups[count, 1] = initials[column]
            groups[count, 2] = seed
            groups[count, 3] = -2 - column
            if keep_names:
                spans[count, 0] = at
                spans[count, 1] = at - 1 if kind == NUMBER and h == seed else after  # a number has no text
            count += 1
        elif kind == LABEL or kind == WEIGHT:  # noqa: SIM109 - compiled
            if where:
                value, wrong = _number(text, begin, end, kind, label_kind, positive)
            else:
                value, wrong = _number(buffer, begin, end, kind, label_kind, positive)
            if kind == LABEL:
                label[row] = value
            else:
                weight[row] = value
        elif kind == TAG:
            tag[row, 0], tag[row, 1] = at, after
        if wrong:
            return count, wrong, at, after
        last = column == kinds.size - 1
        if (buffer[after] == _NEWLINE) != last:
            return count, EXPECTED_COLUMNS, start, start
        if last:
            return count, 0, after, after
        at = after + 1
    return count, EXPECTED_COLUMNS, start, start


@compiled
def _count_lines(buffer: np.ndarray, start: int, stop: int) -> int:
    lines = 0
    for i in range(start, stop):
        lines += buffer[i] == _NEWLINE
    return lines


@compiled
def parse_csv(
    buffer: np.ndarray,
    stop: int,
    columns: TableColumns,
    unquoted: np.ndarray,
    options: Options,
    rows: Rows,
    scratch: Scratch,
    report: np.ndarray,
) -> None:
    """As ``parse_vw``; a record whose quote is open at ``stop`` waits for more bytes unless that is the end of all.

    ``unquoted`` is room for the text of a field without its quotes.
    """
    separator, kinds, hashes, initials, positive = columns
    text = unquoted
    label, weight, tag, line, indptr = rows.label, rows.weight, rows.tag, rows.line, rows.indptr
    indices, data, raw, groups, spans = rows.indices, rows.data, scratch.raw, scratch.groups, scratch.spans
    table, stamps = scratch.table, scratch.stamps
    mask, constant, label_kind, keep_names = (
        options.mask,
        options.constant,
        options.label_kind,
        options.keep_names,
    )
    plain = not keep_names and options.interactions.shape[0] == 0
    separators = np.uint64(separator) * np.uint64(0x0101010101010101)
    at = report[POSITION]
    while at < stop:
        begin = at
        if buffer[at] == _NEWLINE or (buffer[at] == _RETURN and buffer[at + 1] == _NEWLINE):
            at += 1 if buffer[at] == _NEWLINE else 2
            report[LINES] += 1
            continue
        row, first = report[ROWS], report[ENTRIES]
        count, wrong, found, found_stop = _record(
            buffer, at, stop, separators, kinds, hashes, initials, positive, text, label_kind, mask, keep_names,
            row, first, label, weight, tag, indices, data, raw, groups, spans,
        )  # fmt: skip
        if wrong == INCOMPLETE:
            if not options.final:
                break
            wrong, found_stop = EXPECTED_QUOTE, found
        if not wrong:
            line[row] = report[LINES] + 1
            if plain:
                close_plain(count, constant, indptr, indices, data, table, stamps, report)
            elif not close_row(count, count, options, rows, scratch, report):
                report[FULL] = 1
                break
            report[LINES] += _count_lines(buffer, begin, found + 1)
            at = found + 1
            continue
        note_bad(report, scratch, report[LINES] + 1, wrong, found, found_stop)
        while buffer[at] != _NEWLINE:  # resume on the next line, whatever quotes say: one may be missing
            at += 1
        at += 1
        report[LINES] += 1
        if report[BAD] > options.max_bad:
            report[STOPPED] = 1
            break
    report[POSITION] = at
