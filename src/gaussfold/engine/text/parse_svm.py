"""LIBSVM/SVMlight, from bytes to rows.

The buffer must end in a newline, with padding after it; control characters are blanks. Numbers and names end at the
bytes marked in ``SVM_ENDS``. Reference twin: ``tests/reference/parsers.py``.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.simd.pointers import pointer
from gaussfold.engine.simd.types import Pointer
from gaussfold.engine.text import expected
from gaussfold.engine.text.byte_scan import line_end, skip_blanks
from gaussfold.engine.text.csr_rows import check_label, check_value, close_plain, close_row, note_bad, token_label
from gaussfold.engine.text.murmur import murmur
from gaussfold.engine.text.numbers import scan_number
from gaussfold.engine.text.report import ENTRIES, LINES, POSITION, ROWS
from gaussfold.engine.text.row_memory import Options, RowMemory, Rows, RowSettings, Scratch, row_memory, row_settings

_NEWLINE, _COLON, _HASH = 10, 58, 35
SVM_ENDS = np.arange(256) <= 32
SVM_ENDS[[_COLON, _HASH]] = True
_QID = -1


@compiled
def _index(text: Pointer, begin: int) -> tuple[int, int, int]:
    """The index before a colon (`_QID` for "qid", of ranking files), where the colon is, 0 or what was expected."""
    at = begin
    index = 0
    digit = np.uint8(text[at] - 48)  # wraps: whatever comes before the digits is large, not small
    while digit <= 9:
        index = index * 10 + int(np.int64(digit))
        at += 1
        digit = np.uint8(text[at] - 48)
    if text[at] == _COLON and at > begin and at - begin <= 18:
        return index, at, 0
    while not SVM_ENDS[text[at]]:
        at += 1
    if text[at] != _COLON:
        return index, at, expected.COLON
    is_qid = at - begin == 3 and text[begin] == 113 and text[begin + 1] == 105 and text[begin + 2] == 100
    return _QID, at, 0 if is_qid else expected.INDEX


@compiled
def _label(text: Pointer, start: int, row: int, settings: RowSettings, to: RowMemory) -> tuple[int, int]:
    """A line's first word; where it ends, and 0 or what was expected."""
    if to.n_classes > 0:
        at = start
        while not SVM_ENDS[text[at]]:
            at += 1
        to.label[row], wrong = token_label(text, start, at, settings.label_kind, to)
        return at, wrong if text[at] != _COLON else expected.CLASS
    value, at, ok = scan_number(text, start, SVM_ENDS)
    to.label[row], ok = check_label(value, ok, settings.label_kind)
    return at, 0 if ok and text[at] != _COLON else expected.LABEL


# A few branches more than ten: one feature after the other, and whatever is wrong with one ends the line.
@compiled
def _line(
    text: Pointer, start: int, row: int, first: int, settings: RowSettings, to: RowMemory
) -> tuple[int, int, int, int]:
    """``label index:value ...`` up to the end of the line or a comment.

    Returns the number of features, 0 and where that is; or what was expected, and where.
    """
    to.weight[row], to.tag[2 * row], to.tag[2 * row + 1] = 1.0, 0, 0
    at, wrong = _label(text, start, row, settings, to)
    if wrong:
        return 0, wrong, start, at
    count = 0
    while True:
        at = skip_blanks(text, at)
        if text[at] == _NEWLINE or text[at] == _HASH:
            return count, 0, at, at
        begin = at
        index, colon, wrong = _index(text, begin)
        if wrong:
            return count, wrong, begin, colon
        value, at, ok = scan_number(text, colon + 1, SVM_ENDS)
        wrong = check_value(value, ok and text[at] != _COLON)
        if wrong:
            return count, wrong, colon + 1, at
        if index == _QID:
            continue
        # An index that fits is its own slot; only larger ones are hashed (by their decimal digits).
        h = np.uint32(index) if index <= np.int64(settings.mask) else murmur(text, begin, colon, np.uint32(0))
        to.raw[count] = h
        if settings.keep_names:
            to.spans[2 * count], to.spans[2 * count + 1] = begin, colon
        to.indices[first + count] = h & settings.mask
        to.data[first + count] = value
        count += 1


@compiled
def parse_svmlight(
    buffer: np.ndarray, stop: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray
) -> None:
    """As `parse_vw`, for lines ``label index:value ... # comment``."""
    text, to, settings = pointer(buffer), row_memory(rows, scratch, report, options), row_settings(options)
    at = report[POSITION]
    scratch.groups[0, :] = 0
    scratch.groups[0, 1], scratch.groups[0, 3] = 32, -1  # one namespace without a name
    while at < stop:
        begin = at
        stopped = False
        at = skip_blanks(text, at)
        if text[at] != _NEWLINE and text[at] != _HASH:
            row, first = to.report[ROWS], to.report[ENTRIES]
            count, wrong, found, at = _line(text, at, row, first, settings, to)
            to.line[row] = to.report[LINES] + 1
            if wrong:
                stopped = note_bad(to.report[LINES] + 1, wrong, found, at, settings.max_bad, scratch.bad, report)
            elif settings.plain:
                close_plain(count, settings.constant, to)
            elif not close_row(count, 1, options, rows, scratch, report):
                at = begin
                break
        at = line_end(text, at) + 1
        to.report[LINES] += 1
        if stopped:
            break
    report[POSITION] = at
