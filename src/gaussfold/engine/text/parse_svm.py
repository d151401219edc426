"""LIBSVM/SVMlight, from bytes to rows.

The buffer must end in a newline, with padding after it; control characters are blanks. Numbers and names end at the
bytes marked in ``SVM_ENDS``. Reference twin: ``tests/reference/parsers.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.text.csr_rows import (
    BAD,
    ENTRIES,
    EXPECTED_COLON,
    EXPECTED_INDEX,
    EXPECTED_LABEL,
    FULL,
    LINES,
    POSITION,
    ROWS,
    STOPPED,
    Options,
    Rows,
    Scratch,
    check_label,
    check_value,
    close_plain,
    close_row,
    note_bad,
)
from gaussfold.engine.text.murmur import murmur
from gaussfold.engine.text.numbers import scan_number

_NEWLINE, _COLON, _HASH = 10, 58, 35
SVM_ENDS = np.arange(256) <= 32
SVM_ENDS[[_COLON, _HASH]] = True


@compiled
def _svm_line(
    buffer: np.ndarray,
    start: int,
    row: int,
    first: int,
    mask: np.uint32,
    label_kind: int,
    keep_names: bool,
    label: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    raw: np.ndarray,
    spans: np.ndarray,
) -> tuple[int, int, int, int]:
    """``label index:value ...`` up to the end of the line or a comment; as `_features` without namespaces."""
    value, at, ok = scan_number(buffer, start, SVM_ENDS)
    label[row], ok = check_label(value, ok, label_kind)
    if not ok or buffer[at] == _COLON:
        return 0, EXPECTED_LABEL, start, at
    count = 0
    while True:
        c: Any = buffer[at]
        if c <= 32 or c == _HASH:
            if c == _NEWLINE or c == _HASH:  # noqa: SIM109 - compiled
                return count, 0, at, at
            at += 1
            continue
        begin = at
        index = 0
        c = int(np.uint8(c - 48))  # wraps: whatever comes before the digits is large, not small
        while c <= 9:
            index = index * 10 + c
            at += 1
            c = np.uint8(buffer[at] - 48)
        if buffer[at] != _COLON or at == begin or at - begin > 18:
            while not SVM_ENDS[buffer[at]]:
                at += 1
            if buffer[at] != _COLON:
                return count, EXPECTED_COLON, begin, at
            if not (at - begin == 3 and buffer[begin] == 113 and buffer[begin + 1] == 105 and buffer[begin + 2] == 100):
                return count, EXPECTED_INDEX, begin, at
            index = -1  # qid: of ranking files
        colon = at
        value, at, ok = scan_number(buffer, colon + 1, SVM_ENDS)
        wrong = check_value(value, ok and buffer[at] != _COLON)
        if wrong:
            return count, wrong, colon + 1, at
        if index < 0:
            continue
        # An index that fits is its own slot; only larger ones are hashed (by their decimal digits).
        h = np.uint32(index) if index <= np.int64(mask) else murmur(buffer, begin, colon, np.uint32(0))
        raw[count] = h
        if keep_names:
            spans[count, 0], spans[count, 1] = begin, colon
        indices[first + count] = h & mask
        data[first + count] = value
        count += 1
        at += buffer[at] == 32


@compiled
def parse_svmlight(
    buffer: np.ndarray, stop: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray
) -> None:
    """As `parse_vw`, for lines ``label index:value ... # comment``."""
    indices, data, raw, spans = rows.indices, rows.data, scratch.raw, scratch.spans
    label, weight, tag, line = rows.label, rows.weight, rows.tag, rows.line
    indptr, table, stamps = rows.indptr, scratch.table, scratch.stamps
    mask, constant, kind, keep_names = options.mask, options.constant, options.label_kind, options.keep_names
    plain = not keep_names and options.interactions.shape[0] == 0
    at = report[POSITION]
    scratch.groups[0, :] = 0
    scratch.groups[0, 1], scratch.groups[0, 3] = 32, -1
    while at < stop:
        begin = at
        while buffer[at] <= 32 and buffer[at] != _NEWLINE:
            at += 1
        if buffer[at] != _NEWLINE and buffer[at] != _HASH:
            row, first = report[ROWS], report[ENTRIES]
            weight[row], tag[row, 0], tag[row, 1] = 1.0, 0, 0
            count, wrong, found, found_stop = _svm_line(
                buffer, at, row, first, mask, kind, keep_names, label, indices, data, raw, spans
            )
            at = found_stop
            if wrong:
                note_bad(report, scratch, report[LINES] + 1, wrong, found, found_stop)
            else:
                line[row] = report[LINES] + 1
                if plain:
                    close_plain(count, constant, indptr, indices, data, table, stamps, report)
                elif not close_row(count, 1, options, rows, scratch, report):
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
