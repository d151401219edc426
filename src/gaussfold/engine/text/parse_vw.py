"""Vowpal Wabbit text, from bytes to rows.

First all positions where tokens end are listed, 64 bytes at a time (``byte_scan.find_token_ends``); then tokens are
taken from one position to the next, without a look at the bytes between. The buffer must end in a newline, with padding
after it; control characters are blanks. Reference twin: ``tests/reference/parsers.py``.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.simd.pointers import offset, pointer
from gaussfold.engine.simd.types import Pointer
from gaussfold.engine.text import expected
from gaussfold.engine.text.byte_scan import find_token_ends, line_end, skip_blanks
from gaussfold.engine.text.csr_rows import LARGEST, check_value, close_plain, close_row, note_bad, token_label
from gaussfold.engine.text.feature_hash import hash_name, is_digit, take_numbered
from gaussfold.engine.text.murmur import murmur, murmur_short
from gaussfold.engine.text.numbers import parse_number, scan_number, short_number
from gaussfold.engine.text.report import ENTRIES, LINES, POSITION, ROWS
from gaussfold.engine.text.row_memory import (
    BINARY,
    COUNT,
    FIRST_BYTE,
    Options,
    RowMemory,
    Rows,
    Scratch,
    row_memory,
    row_settings,
)

_NEWLINE, _BLANK, _COLON, _BAR, _QUOTE = 10, 32, 58, 124, 39
VW_ENDS = np.arange(256) <= _BLANK
VW_ENDS[[_COLON, _BAR]] = True


@compiled
def _head(text: Pointer, start: int, row: int, kind: int, to: RowMemory) -> tuple[int, int, int, int]:
    """``[label [weight [base]]] [tag]`` up to the bar.

    Returns the bar's position; or -1, and what was expected where.
    """
    to.weight[row], to.tag[2 * row], to.tag[2 * row + 1] = 1.0, 0, 0
    at = start + (text[start] == 45)
    if kind != COUNT and (text[at] == 48 or text[at] == 49) and text[at + 1] == 32 and text[at + 2] == _BAR:
        value = float(text[at]) - 48.0  # nearly every line: one digit, a blank, the bar
        to.label[row] = value if at == start else 0.0 if kind == BINARY else -value
        return at + 2, 0, 0, 0
    return _any_head(text, start, row, kind, to)


@compiled
def _any_head(text: Pointer, start: int, row: int, kind: int, to: RowMemory) -> tuple[int, int, int, int]:
    """As `_head`, word by word."""
    to.label[row] = np.nan
    at = start
    n_numbers = 0
    while True:
        at = skip_blanks(text, at)
        if text[at] == _BAR:
            return at, 0, 0, 0
        begin = at
        while text[at] > 32 and text[at] != _BAR:
            at += 1
        if begin == at:
            return -1, expected.BAR, start, at
        if text[begin] == _QUOTE:
            to.tag[2 * row], to.tag[2 * row + 1] = begin + 1, at
        elif text[at] == _BAR:  # glued to the bar: a tag, as Vowpal Wabbit has it
            to.tag[2 * row], to.tag[2 * row + 1] = begin, at
        else:
            n_numbers += 1
            wrong = _head_number(text, begin, at, n_numbers, row, kind, to)
            if wrong:
                return -1, wrong, begin, at


@compiled
def _head_number(text: Pointer, begin: int, end: int, nth: int, row: int, kind: int, to: RowMemory) -> int:
    """The nth number of a line's head: label, weight, or an initial prediction of 0; 0 or what was expected."""
    if nth == 1:
        to.label[row], wrong = token_label(text, begin, end, kind, to)
        return wrong
    value, ok = parse_number(text, begin, end)
    if nth == 2:
        to.weight[row] = value
        return 0 if ok and 0.0 <= value <= LARGEST else expected.WEIGHT
    if nth == 3:
        return 0 if ok and value == 0.0 else expected.NO_BASE
    return expected.BAR


@compiled
def _is_out(text: Pointer, begin: int, end: int, name: np.uint32, spaces: Pointer, n_spaces: int, keeps: bool) -> bool:
    """Whether a namespace is to be left out: it is not among those to keep, or among those that are not."""
    found = False
    first_byte = text[begin] if end > begin else _BLANK
    for i in range(n_spaces):
        own = np.int64(first_byte) if spaces[2 * i] == FIRST_BYTE else np.int64(name)
        found |= own == spaces[2 * i + 1]
    return found != keeps


@compiled
def _value(text: Pointer, begin: int, end: int) -> tuple[float, int, bool]:
    """The value between a colon and the end of the token, where it ends, and whether it is one."""
    value, ok = short_number(text, begin, end)
    return (value, end, ok) if ok else scan_number(text, begin, VW_ENDS)


# One function, and pointers one by one, though that makes many parameters and branches: with the namespace in a
# function of its own and the pointers as `RowMemory`, lines of 30 to 80 bytes took a fifth to a third longer.
@compiled
def _features(
    text: Pointer, ends: Pointer, t: int, mask: np.uint32, digits: bool, keep_names: bool, plain: bool, hashes: Pointer,
    indices: Pointer, data: Pointer, raw: Pointer, groups: Pointer, spans: Pointer, spaces: Pointer, n_spaces: int,
    keeps: bool,
) -> tuple[int, int, int, int, int, int]:  # fmt: skip
    """Namespaces and features from the first bar, at ``ends[t]``, to the end of the line.

    Features of value 0 are left out, and those of namespaces that are; those without a name are numbered within
    their namespace. Returns the numbers of features and of namespaces, then 0; or what was expected, and where; and t
    at the end.
    """
    count = 0
    n_groups = 0
    at = int(np.int64(ends[t]))
    scale = 1.0
    seed = np.uint32(0)
    opened = 0  # features before this namespace
    nameless = np.uint32(0)
    out = False
    many_at_once = digits and not keep_names
    while True:
        end = int(np.int64(ends[t]))
        c = text[end]
        if at == end:
            if out & ((c == _NEWLINE) | (c == _BAR)):  # as if the namespace had not been there
                count = opened
                n_groups -= 1
                out = False
            if c == _NEWLINE:
                return count, n_groups, 0, at, at, t
            if c == _BAR:
                begin = end + 1
                t += 1
                end = int(np.int64(ends[t]))
                seed = hashes[text[begin]] if end - begin == 1 else murmur(text, begin, end, np.uint32(0))
                if not plain:
                    groups[4 * n_groups] = count
                    groups[4 * n_groups + 1] = text[begin] if end > begin else _BLANK
                    groups[4 * n_groups + 2] = seed
                    groups[4 * n_groups + 3] = begin
                n_groups += 1
                opened = count
                nameless = np.uint32(0)
                scale = 1.0
                out = _is_out(text, begin, end, seed, spaces, n_spaces, keeps)
                c = text[end]
                if c == _COLON:
                    begin = end + 1
                    scale, end, ok = scan_number(text, begin, VW_ENDS)
                    if not ok or not abs(scale) <= LARGEST:
                        return count, n_groups, expected.SCALE, begin, end, t
                    out |= scale == 0.0
                    t += 1
                    c = text[end]
                at = end
                if c == _BLANK:
                    at += 1
                    t += 1
                continue
            if (c == _COLON) & (text[end - 1] > _BLANK):
                while text[at] > _BLANK:
                    at += 1
                return count, n_groups, expected.NAME, end, at, t
            if c != _COLON:
                at += 1
                t += 1
                continue
        # a single number is not worth it
        if many_at_once and is_digit(text[at]) and (count > opened or is_digit(text[end + 1])):
            many = take_numbered(
                text, ends, t, seed, mask, scale, offset(indices, count), offset(data, count), offset(raw, count)
            )
            if many:
                count += many
                t += many - 1
                at = int(np.int64(ends[t]))
                if text[at] == _BLANK:
                    at += 1
                    t += 1
                continue
        h = hash_name(text, at, end, seed, digits) if end > at else np.uint32(seed + nameless)
        nameless += np.uint32(at == end)
        raw[count] = h
        indices[count] = np.int32(h & mask)
        if keep_names:
            spans[2 * count], spans[2 * count + 1] = at, end
        value = scale
        if c == _COLON:
            begin = end + 1
            value, end, ok = _value(text, begin, int(np.int64(ends[t + 1])))
            value *= scale
            wrong = check_value(value, ok)
            if wrong:
                return count, n_groups, wrong, begin, end, t
            t += 1
            c = text[end]
        data[count] = value
        count += value != 0.0
        at = end
        if c == _BLANK:
            at += 1
            t += 1


@compiled
def _without_bar(text: Pointer, at: int) -> int:
    """Where a line ends that has no bar from ``at`` on; -1 if it has one."""
    while text[at] != _NEWLINE and text[at] != _BAR:
        at += 1
    return at if text[at] == _NEWLINE else -1


# A few branches more than ten: what is wrong with a line must be told before the next one is begun.
@compiled
def parse_vw(buffer: np.ndarray, stop: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray) -> None:
    """Parse lines from ``report[POSITION]`` to ``stop``; a bad one too many sets ``STOPPED``."""
    text, to, settings = pointer(buffer), row_memory(rows, scratch, report, options), row_settings(options)
    ends, hashes, spaces = pointer(scratch.ends), pointer(scratch.byte_hashes), pointer(options.spaces)
    n_spaces = options.spaces.shape[0]
    for byte in range(256):  # most namespaces have names of one byte
        hashes[byte] = murmur_short(np.uint64(byte), 1, np.uint32(0))
    at = report[POSITION]
    find_token_ends(buffer, at, stop, scratch.ends)
    t = 0  # ends[t] is the first end from ``at`` on, whenever a line begins
    while at < stop:
        begin = at
        at = skip_blanks(text, at)
        t += at - begin  # a blank is an end
        if text[at] != _NEWLINE:
            row, first, line = to.report[ROWS], to.report[ENTRIES], to.report[LINES] + 1
            count, n_groups = 0, 0
            bar, wrong, found, found_stop = _head(text, at, row, settings.label_kind, to)
            if bar >= 0:
                while ends[t] < bar:
                    t += 1
                count, n_groups, wrong, found, found_stop, t = _features(
                    text, ends, t, settings.mask, settings.digits, settings.keep_names, settings.plain, hashes,
                    offset(to.indices, first), offset(to.data, first), to.raw, to.groups, to.spans, spaces, n_spaces,
                    options.keeps,
                )  # fmt: skip
            to.line[row] = line
            if wrong:
                end = _without_bar(text, found_stop) if bar < 0 else -1
                if end >= 0:  # then whatever seemed wrong with label or weight is beside the point
                    wrong, found, found_stop = expected.BAR, at, end
                stopped = note_bad(line, wrong, found, found_stop, settings.max_bad, scratch.bad, report)
                found_stop = line_end(text, found_stop)
                while ends[t] < found_stop:
                    t += 1
                if stopped:
                    to.report[LINES] += 1
                    at = found_stop + 1
                    break
            elif settings.plain:
                close_plain(count, settings.constant, to)
            elif not close_row(count, n_groups, options, rows, scratch, report):
                at = begin
                break
            at = found_stop
        to.report[LINES] += 1
        at += 1
        t += 1
    report[POSITION] = at
