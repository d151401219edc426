"""Vowpal Wabbit text and LIBSVM/SVMlight, from bytes to rows.

The buffer must end in a newline; carriage returns are blanks. Tokens end at a byte with a class other than 0.
Reference twin: ``tests/reference/parsers.py``.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.murmur import murmur
from gaussfold.engine.numbers import parse_integer, parse_number
from gaussfold.engine.records import (
    BAD,
    BINARY,
    ENTRIES,
    EXPECTED_BAR,
    EXPECTED_COLON,
    EXPECTED_INDEX,
    EXPECTED_LABEL,
    EXPECTED_NAME,
    EXPECTED_NO_BASE,
    EXPECTED_SCALE,
    EXPECTED_SMALLER,
    EXPECTED_VALUE,
    EXPECTED_WEIGHT,
    FULL,
    LARGEST,
    LINES,
    POSITION,
    ROWS,
    STOPPED,
    Options,
    Rows,
    Scratch,
    close_row,
    note_bad,
)

_NEWLINE, _COLON, _BAR, _QUOTE, _HASH = 10, 58, 124, 39, 35
_BLANK, _END, _MARK = 1, 2, 4
_VW_CLASS = np.zeros(256, np.uint8)
_VW_CLASS[[32, 9, 13]] = _BLANK
_VW_CLASS[_NEWLINE] = _END
_VW_CLASS[[_COLON, _BAR]] = _MARK
_SVM_CLASS = np.zeros(256, np.uint8)
_SVM_CLASS[[32, 9, 13]] = _BLANK
_SVM_CLASS[[_NEWLINE, _HASH]] = _END
_SVM_CLASS[_COLON] = _MARK


@compiled
def check_label(value: float, ok: bool, kind: int) -> tuple[float, bool]:
    """Return a label as the likelihood wants it (0 or 1 if binary), and whether it is allowed."""
    if not ok or not abs(value) <= LARGEST:
        return value, False
    if kind != BINARY:
        return value, True
    return (1.0 if value == 1.0 else 0.0), value == 1.0 or value == 0.0 or value == -1.0


@compiled
def check_value(value: float, ok: bool) -> int:
    """0 if a feature's value may be used, else what was expected."""
    if not ok:
        return EXPECTED_VALUE
    return 0 if abs(value) <= LARGEST else EXPECTED_SMALLER


@compiled
def _head(buffer: np.ndarray, start: int, row: int, kind: int, rows: Rows) -> tuple[int, int, int, int]:
    """``[label [weight [base]]] [tag]`` up to the bar.

    Returns the bar's position; or 0, and what was expected where.
    """
    rows.label[row], rows.weight[row] = np.nan, 1.0
    rows.tag[row, 0], rows.tag[row, 1] = 0, 0
    at = start
    words = 0
    while True:
        while _VW_CLASS[buffer[at]] == _BLANK:
            at += 1
        if buffer[at] == _BAR:
            return at, 0, 0, 0
        begin = at
        while buffer[at] != _BAR and (_VW_CLASS[buffer[at]] == 0 or buffer[at] == _COLON):
            at += 1
        if begin == at:
            return 0, EXPECTED_BAR, start, at
        if buffer[begin] == _QUOTE:
            rows.tag[row, 0], rows.tag[row, 1] = begin + 1, at
            continue
        if buffer[at] == _BAR:  # glued to the bar: a tag, as Vowpal Wabbit has it
            rows.tag[row, 0], rows.tag[row, 1] = begin, at
            continue
        value, ok = parse_number(buffer, begin, at)
        words += 1
        if words == 1:
            rows.label[row], ok = check_label(value, ok, kind)
            if not ok:
                return 0, EXPECTED_LABEL, begin, at
        elif words == 2:
            if not (ok and 0.0 <= value <= LARGEST):
                return 0, EXPECTED_WEIGHT, begin, at
            rows.weight[row] = value
        elif words > 3 or not ok or value != 0.0:
            return 0, EXPECTED_NO_BASE if words == 3 else EXPECTED_BAR, begin, at


@compiled
def _features(
    buffer: np.ndarray, bar: int, options: Options, rows: Rows, scratch: Scratch, first: int
) -> tuple[int, int, int, int, int]:
    """Namespaces and features from the first bar to the end of the line.

    Returns the numbers of features and of namespaces, then 0; or what was expected, and where.
    """
    count = 0
    n_groups = 0
    at = bar
    scale = 1.0
    seed = np.uint32(0)
    mask = options.mask
    while True:
        c = buffer[at]
        kind = _VW_CLASS[c]
        if kind == 0:
            begin = at
            at += 1
            while _VW_CLASS[buffer[at]] == 0:
                at += 1
            h = murmur(buffer, begin, at, seed)
            scratch.raw[count] = h
            rows.indices[first + count] = h & mask
            if options.keep_names:
                scratch.spans[count, 0], scratch.spans[count, 1] = begin, at
            value = scale
            if buffer[at] == _COLON:
                at += 1
                begin = at
                while _VW_CLASS[buffer[at]] == 0:
                    at += 1
                value, ok = parse_number(buffer, begin, at)
                value *= scale
                wrong = check_value(value, ok)
                if wrong:
                    return count, n_groups, wrong, begin, at
            rows.data[first + count] = value
            count += 1
        elif kind == _BLANK:
            at += 1
        elif kind == _END:
            return count, n_groups, 0, at, at
        elif c == _COLON:
            begin = at
            while _VW_CLASS[buffer[at]] & (_BLANK | _END) == 0:
                at += 1
            return count, n_groups, EXPECTED_NAME, begin, at
        else:
            at += 1
            begin = at
            while _VW_CLASS[buffer[at]] == 0:
                at += 1
            seed = murmur(buffer, begin, at, np.uint32(0))
            group = scratch.groups[n_groups]
            group[0], group[1], group[2], group[3] = count, buffer[begin] if at > begin else 32, seed, begin
            n_groups += 1
            scale = 1.0
            if buffer[at] == _COLON:
                at += 1
                begin = at
                while _VW_CLASS[buffer[at]] == 0:
                    at += 1
                scale, ok = parse_number(buffer, begin, at)
                if not ok or not abs(scale) <= LARGEST:
                    return count, n_groups, EXPECTED_SCALE, begin, at


@compiled
def parse_vw(
    buffer: np.ndarray, stop: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray
) -> None:
    """Parse lines from ``report[POSITION]`` to ``stop``; a bad one too many sets ``STOPPED``."""
    at = report[POSITION]
    while at < stop:
        begin = at
        while _VW_CLASS[buffer[at]] == _BLANK:
            at += 1
        if buffer[at] == _NEWLINE:
            report[LINES] += 1
            at += 1
            continue
        row, first = report[ROWS], report[ENTRIES]
        bar, wrong, found, found_stop = _head(buffer, at, row, options.label_kind, rows)
        if bar:
            count, n_groups, wrong, found, found_stop = _features(buffer, bar, options, rows, scratch, first)
        if wrong:
            report[LINES] += 1
            note_bad(report, scratch, report[LINES], wrong, found, found_stop)
            at = found_stop
            while buffer[at] != _NEWLINE:
                at += 1
            at += 1
            if report[BAD] > options.max_bad:
                report[STOPPED] = 1
                break
            continue
        rows.line[row] = report[LINES] + 1
        if not close_row(count, n_groups, options, rows, scratch, report):
            report[FULL] = 1
            at = begin
            break
        report[LINES] += 1
        at = found + 1
    report[POSITION] = at


@compiled
def _svm_line(
    buffer: np.ndarray, start: int, options: Options, rows: Rows, scratch: Scratch, row: int, first: int
) -> tuple[int, int, int, int]:
    """``label index:value ...`` up to the end of the line or a comment; as `_features` without namespaces."""
    at = start
    while _SVM_CLASS[buffer[at]] == 0:
        at += 1
    value, ok = parse_number(buffer, start, at)
    rows.label[row], ok = check_label(value, ok, options.label_kind)
    if not ok or buffer[at] == _COLON:
        return 0, EXPECTED_LABEL, start, at
    rows.weight[row] = 1.0
    rows.tag[row, 0], rows.tag[row, 1] = 0, 0
    count = 0
    mask = options.mask
    while True:
        kind = _SVM_CLASS[buffer[at]]
        if kind == _BLANK:
            at += 1
            continue
        if kind == _END:
            return count, 0, at, at
        begin = at
        while _SVM_CLASS[buffer[at]] == 0:
            at += 1
        colon = at
        if buffer[at] != _COLON:
            return count, EXPECTED_COLON, begin, at
        at += 1
        while _SVM_CLASS[buffer[at]] == 0:
            at += 1
        if _SVM_CLASS[buffer[at]] == _MARK:
            return count, EXPECTED_VALUE, colon + 1, at
        index = parse_integer(buffer, begin, colon)
        if index < 0:
            if colon - begin == 3 and buffer[begin] == 113 and buffer[begin + 1] == 105 and buffer[begin + 2] == 100:
                continue  # qid: of ranking files
            return count, EXPECTED_INDEX, begin, colon
        value, ok = parse_number(buffer, colon + 1, at)
        wrong = check_value(value, ok)
        if wrong:
            return count, wrong, colon + 1, at
        # An index that fits is its own slot; only larger ones are hashed (by their decimal digits).
        h = np.uint32(index) if index <= np.int64(mask) else murmur(buffer, begin, colon, np.uint32(0))
        scratch.raw[count] = h
        if options.keep_names:
            scratch.spans[count, 0], scratch.spans[count, 1] = begin, colon
        rows.indices[first + count] = h & mask
        rows.data[first + count] = value
        count += 1


@compiled
def parse_svmlight(
    buffer: np.ndarray, stop: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray
) -> None:
    """As `parse_vw`, for lines ``label index:value ... # comment``."""
    at = report[POSITION]
    scratch.groups[0, :] = 0
    scratch.groups[0, 1], scratch.groups[0, 3] = 32, -1
    while at < stop:
        begin = at
        while _SVM_CLASS[buffer[at]] == _BLANK:
            at += 1
        if _SVM_CLASS[buffer[at]] != _END:
            row, first = report[ROWS], report[ENTRIES]
            count, wrong, found, found_stop = _svm_line(buffer, at, options, rows, scratch, row, first)
            at = found_stop
            if wrong:
                note_bad(report, scratch, report[LINES] + 1, wrong, found, found_stop)
            else:
                rows.line[row] = report[LINES] + 1
                if not close_row(count, 1, options, rows, scratch, report):
                    report[FULL] = 1
                    at = begin
                    break
        while buffer[at] != _NEWLINE:
            at += 1
        at += 1
        report[LINES] += 1
        if report[BAD] > options.max_bad:
            report[STOPPED] = 1
            break
    report[POSITION] = at
