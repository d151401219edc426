"""Vowpal Wabbit text and LIBSVM/SVMlight, from bytes to rows.

The buffer must end in a newline, with padding after it; control characters are blanks. Numbers and names end at the
bytes marked in ``VW_ENDS`` and ``SVM_ENDS``.
Reference twin: ``tests/reference/parsers.py``.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.murmur import murmur, murmur_short
from gaussfold.engine.numbers import parse_number, scan_number
from gaussfold.engine.records import (
    BAD,
    BINARY,
    COUNT,
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
    close_plain,
    close_row,
    note_bad,
)
from gaussfold.engine.words import load64, token_marks, token_stop, trailing_zeros

_NEWLINE, _COLON, _BAR, _QUOTE, _HASH = 10, 58, 124, 39, 35
VW_ENDS = np.arange(256) <= 32
VW_ENDS[[_COLON, _BAR]] = True
SVM_ENDS = np.arange(256) <= 32
SVM_ENDS[[_COLON, _HASH]] = True


@compiled
def check_label(value: float, ok: bool, kind: int) -> tuple[float, bool]:
    """Return a label as the likelihood wants it (0 or 1 if binary), and whether it is allowed."""
    if not ok or not abs(value) <= LARGEST:
        return value, False
    if kind == COUNT:
        return value, value >= 0.0 and value == np.floor(value)
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
def _head(
    buffer: np.ndarray,
    start: int,
    row: int,
    kind: int,
    label: np.ndarray,
    weight: np.ndarray,
    tag: np.ndarray,
) -> tuple[int, int, int, int]:
    """``[label [weight [base]]] [tag]`` up to the bar.

    Returns the bar's position; or -1, and what was expected where.
    """
    weight[row], tag[row, 0], tag[row, 1] = 1.0, 0, 0
    at = start + (buffer[start] == 45)
    if kind != COUNT and (buffer[at] == 48 or buffer[at] == 49) and buffer[at + 1] == 32 and buffer[at + 2] == _BAR:
        value = float(buffer[at]) - 48.0  # nearly every line: one digit, a blank, the bar
        label[row] = value if at == start else 0.0 if kind == BINARY else -value
        return at + 2, 0, 0, 0
    label[row] = np.nan
    at = start
    words = 0
    while True:
        while buffer[at] <= 32 and buffer[at] != _NEWLINE:
            at += 1
        if buffer[at] == _BAR:
            return at, 0, 0, 0
        begin = at
        while buffer[at] > 32 and buffer[at] != _BAR:
            at += 1
        if begin == at:
            return -1, EXPECTED_BAR, start, at
        if buffer[begin] == _QUOTE:
            tag[row, 0], tag[row, 1] = begin + 1, at
            continue
        if buffer[at] == _BAR:  # glued to the bar: a tag, as Vowpal Wabbit has it
            tag[row, 0], tag[row, 1] = begin, at
            continue
        value, ok = parse_number(buffer, begin, at)
        words += 1
        if words == 1:
            label[row], ok = check_label(value, ok, kind)
            if not ok:
                return -1, EXPECTED_LABEL, begin, at
        elif words == 2:
            if not (ok and 0.0 <= value <= LARGEST):
                return -1, EXPECTED_WEIGHT, begin, at
            weight[row] = value
        elif words > 3 or not ok or value != 0.0:
            return -1, EXPECTED_NO_BASE if words == 3 else EXPECTED_BAR, begin, at


@compiled
def _features(
    buffer: np.ndarray,
    bar: int,
    first: int,
    mask: np.uint32,
    keep_names: bool,
    indices: np.ndarray,
    data: np.ndarray,
    raw: np.ndarray,
    groups: np.ndarray,
    spans: np.ndarray,
) -> tuple[int, int, int, int, int]:
    """Namespaces and features from the first bar to the end of the line.

    Returns the numbers of features and of namespaces, then 0; or what was expected, and where.
    """
    count = 0
    n_groups = 0
    at = bar
    scale = 1.0
    seed = np.uint32(0)
    while True:
        begin = at
        word = load64(buffer, at)
        marks = token_marks(word)
        length = trailing_zeros(marks) >> 3
        if length == 0:
            c = buffer[at]
            if c == _NEWLINE:
                return count, n_groups, 0, at, at
            if c == _BAR:
                begin = at + 1
                word = load64(buffer, begin)
                length = trailing_zeros(token_marks(word)) >> 3
                if length < 8:
                    at = begin + length
                    seed = murmur_short(word, length, np.uint32(0))
                else:
                    at = token_stop(buffer, begin)
                    seed = murmur(buffer, begin, at, np.uint32(0))
                groups[n_groups, 0] = count
                groups[n_groups, 1] = buffer[begin] if at > begin else 32
                groups[n_groups, 2] = seed
                groups[n_groups, 3] = begin
                n_groups += 1
                scale = 1.0
                if buffer[at] == _COLON:
                    begin = at + 1
                    scale, at, ok = scan_number(buffer, begin, VW_ENDS)
                    if not ok or not abs(scale) <= LARGEST:
                        return count, n_groups, EXPECTED_SCALE, begin, at
                at += buffer[at] == 32
            elif c == _COLON:
                while buffer[at] > 32:
                    at += 1
                return count, n_groups, EXPECTED_NAME, begin, at
            else:
                at += 1
            continue
        if length < 8:
            at += length
            h = murmur_short(word, length, seed)
        else:
            at = token_stop(buffer, at + 8)
            h = murmur(buffer, begin, at, seed)
        raw[count] = h
        indices[first + count] = h & mask
        if keep_names:
            spans[count, 0], spans[count, 1] = begin, at
        value = scale
        c = buffer[at]
        if c == _COLON:
            begin = at + 1
            value, at, ok = scan_number(buffer, begin, VW_ENDS)
            value *= scale
            wrong = check_value(value, ok)
            if wrong:
                return count, n_groups, wrong, begin, at
            c = buffer[at]
        data[first + count] = value
        count += 1
        at += c == 32


@compiled
def parse_vw(buffer: np.ndarray, stop: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray) -> None:
    """Parse lines from ``report[POSITION]`` to ``stop``; a bad one too many sets ``STOPPED``."""
    # taken out of their tuples once: in a loop every look inside would count references
    indices, data, raw, groups, spans = rows.indices, rows.data, scratch.raw, scratch.groups, scratch.spans
    label, weight, tag, line = rows.label, rows.weight, rows.tag, rows.line
    indptr, table, stamps = rows.indptr, scratch.table, scratch.stamps
    mask, constant, kind, keep_names = options.mask, options.constant, options.label_kind, options.keep_names
    plain = not keep_names and options.interactions.shape[0] == 0
    at = report[POSITION]
    while at < stop:
        begin = at
        while buffer[at] <= 32 and buffer[at] != _NEWLINE:
            at += 1
        if buffer[at] == _NEWLINE:
            report[LINES] += 1
            at += 1
            continue
        row, first = report[ROWS], report[ENTRIES]
        bar, wrong, found, found_stop = _head(buffer, at, row, kind, label, weight, tag)
        if bar >= 0:
            count, n_groups, wrong, found, found_stop = _features(
                buffer, bar, first, mask, keep_names, indices, data, raw, groups, spans
            )
        if wrong:
            report[LINES] += 1
            start = at
            at = found_stop
            has_bar = bar >= 0
            while buffer[at] != _NEWLINE:
                has_bar |= buffer[at] == _BAR
                at += 1
            if not has_bar:  # then whatever seemed wrong with label or weight is beside the point
                wrong, found, found_stop = EXPECTED_BAR, start, at
            note_bad(report, scratch, report[LINES], wrong, found, found_stop)
            at += 1
            if report[BAD] > options.max_bad:
                report[STOPPED] = 1
                break
            continue
        line[row] = report[LINES] + 1
        if plain:
            close_plain(count, constant, indptr, indices, data, table, stamps, report)
        elif not close_row(count, n_groups, options, rows, scratch, report):
            report[FULL] = 1
            at = begin
            break
        report[LINES] += 1
        at = found + 1
    report[POSITION] = at


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
        c = buffer[at]
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
