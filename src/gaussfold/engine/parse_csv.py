"""Comma- (or tab-, or anything-) separated values, from bytes to rows.

A field in double quotes may hold separators, newlines and doubled quotes (RFC 4180). What a column means is decided
by the caller, once: a number is one feature, named by its column; a category is the feature (column, text).
Reference twin: ``tests/reference/parsers.py``, on Python's ``csv``.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.murmur import murmur
from gaussfold.engine.numbers import parse_number
from gaussfold.engine.parse import check_label, check_value
from gaussfold.engine.records import (
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
    close_row,
    note_bad,
)

IGNORED, LABEL, WEIGHT, NUMBER, CATEGORY, TAG = range(6)  # what a column means
INCOMPLETE = 100  # the last record has no end yet

_NEWLINE, _RETURN, _QUOTE = 10, 13, 34


@compiled
def _is_word(text: np.ndarray, start: int, stop: int, word: np.ndarray) -> bool:
    """Whether the text is a (lower-case) word, in any case."""
    if stop - start != word.size:
        return False
    for i in range(word.size):
        c = text[start + i]
        if (c | 32 if 65 <= c <= 90 else c) != word[i]:
            return False
    return True


_WORDS = tuple(np.frombuffer(word, np.uint8) for word in (b"na", b"nan", b"null", b"none", b"n/a", b"?"))
_NA, _NAN, _NULL, _NONE, _NSA, _ASK = _WORDS


@compiled
def is_missing(text: np.ndarray, start: int, stop: int) -> bool:
    """Whether a numeric field has no number: empty, NA, N/A, NaN, null, none or a question mark."""
    if start == stop:
        return True
    if stop - start > 4:
        return False
    return (
        _is_word(text, start, stop, _NA)
        or _is_word(text, start, stop, _NAN)
        or _is_word(text, start, stop, _NULL)
        or _is_word(text, start, stop, _NONE)
        or _is_word(text, start, stop, _NSA)
        or _is_word(text, start, stop, _ASK)
    )


@compiled
def next_field(
    buffer: np.ndarray, at: int, stop: int, separator: int, text: np.ndarray
) -> tuple[int, int, int, int]:
    """Read one field.

    Returns where it begins and ends, 1 if that is in ``text`` (doubled quotes undone) rather than in the buffer,
    and the position of the separator or newline after it; that is -1 if the quote is not closed yet, -2 if
    something follows a closing quote.
    """
    if buffer[at] != _QUOTE:
        begin = at
        while buffer[at] != separator and buffer[at] != _NEWLINE:
            at += 1
        end = at
        if buffer[at] == _NEWLINE and end > begin and buffer[end - 1] == _RETURN:
            end -= 1
        return begin, end, 0, at
    at += 1
    begin = at
    doubled = False
    while True:
        if at >= stop:
            return begin, at, 0, -1
        if buffer[at] == _QUOTE:
            if buffer[at + 1] != _QUOTE:
                break
            doubled = True
            at += 1
        at += 1
    end = at
    at += 1
    if buffer[at] == _RETURN and buffer[at + 1] == _NEWLINE:
        at += 1
    if buffer[at] != separator and buffer[at] != _NEWLINE:
        return begin, end, 0, -2
    if not doubled:
        return begin, end, 0, at
    size = 0
    k = begin
    while k < end:
        text[size] = buffer[k]
        k += 2 if buffer[k] == _QUOTE else 1
        size += 1
    return 0, size, 1, at


@compiled
def _trim(text: np.ndarray, begin: int, end: int) -> tuple[int, int]:
    while begin < end and (text[begin] == 32 or text[begin] == 9):
        begin += 1
    while end > begin and (text[end - 1] == 32 or text[end - 1] == 9):
        end -= 1
    return begin, end


@compiled
def _equal(text: np.ndarray, begin: int, end: int, other: np.ndarray) -> bool:
    if end - begin != other.size:
        return False
    for i in range(other.size):  # noqa: SIM110 - compiled
        if text[begin + i] != other[i]:
            return False
    return True


@compiled
def _feature(
    source: np.ndarray,
    begin: int,
    end: int,
    kind: int,
    column_hash: np.uint32,
    options: Options,
    rows: Rows,
    scratch: Scratch,
    first: int,
    count: int,
) -> int:
    """Write the entry of a number or a category; return 0 or what was expected."""
    value = 1.0
    if kind == NUMBER:
        begin, end = _trim(source, begin, end)
        if is_missing(source, begin, end):
            h = murmur(source, 0, 0, column_hash)  # a missing number is the feature (column, "")
        else:
            value, ok = parse_number(source, begin, end)
            wrong = check_value(value, ok)
            if wrong:
                return wrong
            h = column_hash
    else:
        h = murmur(source, begin, end, column_hash)
    scratch.raw[count] = h
    rows.indices[first + count] = h & options.mask
    rows.data[first + count] = value
    return 0


@compiled
def _record(
    buffer: np.ndarray,
    start: int,
    stop: int,
    separator: int,
    kinds: np.ndarray,
    hashes: np.ndarray,
    initials: np.ndarray,
    positive: np.ndarray,
    text: np.ndarray,
    options: Options,
    rows: Rows,
    scratch: Scratch,
    row: int,
    first: int,
) -> tuple[int, int, int, int]:
    """One record; returns the number of entries, then 0 and where it ends, or what was expected and where."""
    rows.label[row], rows.weight[row] = np.nan, 1.0
    rows.tag[row, 0], rows.tag[row, 1] = 0, 0
    at = start
    count = 0
    column = 0
    while True:
        begin, end, where, after = next_field(buffer, at, stop, separator, text)
        if after < 0:
            return count, INCOMPLETE if after == -1 else EXPECTED_QUOTE, at, end
        source = text if where else buffer
        if column >= kinds.size:
            return count, EXPECTED_COLUMNS, start, start
        kind = kinds[column]
        wrong = 0
        if kind == NUMBER or kind == CATEGORY:
            wrong = _feature(
                source, begin, end, kind, hashes[column], options, rows, scratch, first, count
            )
            group = scratch.groups[count]
            group[0], group[1], group[2], group[3] = count, initials[column], hashes[column], -2 - column
            if options.keep_names:
                is_number = kind == NUMBER and not wrong and scratch.raw[count] == hashes[column]
                scratch.spans[count, 0] = at
                scratch.spans[count, 1] = at - 1 if is_number else after  # a number is named by its column alone
            count += 1
        elif kind == LABEL:
            if options.label_kind == TOKEN:
                if end > begin:
                    rows.label[row] = 1.0 if _equal(source, begin, end, positive) else 0.0
            else:
                begin, end = _trim(source, begin, end)
                if not is_missing(source, begin, end):
                    value, ok = parse_number(source, begin, end)
                    rows.label[row], ok = check_label(value, ok, options.label_kind)
                    wrong = 0 if ok else EXPECTED_LABEL
        elif kind == WEIGHT:
            begin, end = _trim(source, begin, end)
            value, ok = parse_number(source, begin, end)
            rows.weight[row] = value
            wrong = 0 if ok and 0.0 <= value <= LARGEST else EXPECTED_WEIGHT
        elif kind == TAG:
            rows.tag[row, 0], rows.tag[row, 1] = at, after
        if wrong:
            return count, wrong, at, after
        column += 1
        if buffer[after] == _NEWLINE:
            if column != kinds.size:
                return count, EXPECTED_COLUMNS, start, start
            return count, 0, after, after
        at = after + 1


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
    final: bool,
    separator: int,
    kinds: np.ndarray,
    hashes: np.ndarray,
    initials: np.ndarray,
    positive: np.ndarray,
    text: np.ndarray,
    options: Options,
    rows: Rows,
    scratch: Scratch,
    report: np.ndarray,
) -> None:
    """As ``parse_vw``; a record whose quote is open at ``stop`` waits for more bytes unless ``final``."""
    at = report[POSITION]
    while at < stop:
        begin = at
        if buffer[at] == _NEWLINE or (buffer[at] == _RETURN and buffer[at + 1] == _NEWLINE):
            at += 1 if buffer[at] == _NEWLINE else 2
            report[LINES] += 1
            continue
        row, first = report[ROWS], report[ENTRIES]
        count, wrong, found, found_stop = _record(
            buffer, at, stop, separator, kinds, hashes, initials, positive, text, options, rows, scratch, row, first
        )
        if wrong == INCOMPLETE:
            if not final:
                break
            wrong, found_stop = EXPECTED_QUOTE, found
        if not wrong:
            rows.line[row] = report[LINES] + 1
            if not close_row(count, count, options, rows, scratch, report):
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
