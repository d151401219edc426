"""Vowpal Wabbit text, from bytes to rows.

First all positions where tokens end are listed, 64 bytes at a time (``words.find_token_ends``); then tokens are taken
from one position to the next, without a look at the bytes between. The buffer must end in a newline, with padding
after it; control characters are blanks. Reference twin: ``tests/reference/parsers.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.simd.lane_memory import offset, pointer
from gaussfold.engine.text.byte_scan import find_token_ends
from gaussfold.engine.text.csr_rows import (
    BAD,
    BASE,
    BINARY,
    COUNT,
    ENTRIES,
    EXPECTED_BAR,
    EXPECTED_LABEL,
    EXPECTED_NAME,
    EXPECTED_NO_BASE,
    EXPECTED_SCALE,
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
    add_duplicates,
    check_label,
    check_value,
    close_row,
    note_bad,
)
from gaussfold.engine.text.feature_hash import hash_name, is_digit, take_numbered
from gaussfold.engine.text.murmur import murmur, murmur_short
from gaussfold.engine.text.numbers import parse_number, scan_number

_NEWLINE, _BLANK, _COLON, _BAR, _QUOTE = 10, 32, 58, 124, 39
VW_ENDS = np.arange(256) <= _BLANK
VW_ENDS[[_COLON, _BAR]] = True


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
    weight[row], tag[2 * row], tag[2 * row + 1] = 1.0, 0, 0
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
            tag[2 * row], tag[2 * row + 1] = begin + 1, at
            continue
        if buffer[at] == _BAR:  # glued to the bar: a tag, as Vowpal Wabbit has it
            tag[2 * row], tag[2 * row + 1] = begin, at
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
    text: Any,
    ends: Any,
    t: Any,
    mask: np.uint32,
    digits: bool,
    keep_names: bool,
    plain: bool,
    of_byte: Any,
    indices: Any,
    data: Any,
    raw: Any,
    groups: Any,
    spans: Any,
) -> Any:
    """Namespaces and features from the first bar, at ``ends[t]``, to the end of the line.

    Returns the numbers of features and of namespaces, then 0; or what was expected, and where; and t at the end.
    """
    count = 0
    n_groups = 0
    at: Any = np.int64(ends[t])
    scale = 1.0
    seed: Any = np.uint32(0)
    opened = 0  # features before this namespace
    runs = digits and not keep_names
    while True:
        end: Any = np.int64(ends[t])
        c = text[end]
        if at == end:
            if c == _NEWLINE:
                return count, n_groups, 0, at, at, t
            if c == _BAR:
                begin = end + 1
                t += 1
                end = np.int64(ends[t])
                seed = of_byte[text[begin]] if end - begin == 1 else murmur(text, begin, end, np.uint32(0))
                if not plain:
                    groups[4 * n_groups] = count
                    groups[4 * n_groups + 1] = text[begin] if end > begin else _BLANK
                    groups[4 * n_groups + 2] = seed
                    groups[4 * n_groups + 3] = begin
                n_groups += 1
                opened = count
                scale = 1.0
                c = text[end]
                if c == _COLON:
                    begin = end + 1
                    scale, end, ok = scan_number(text, begin, VW_ENDS)
                    if not ok or not abs(scale) <= LARGEST:
                        return count, n_groups, EXPECTED_SCALE, begin, end, t
                    t += 1
                    c = text[end]
                at = end
                if c == _BLANK:
                    at += 1
                    t += 1
            elif c == _COLON:
                while text[at] > _BLANK:
                    at += 1
                return count, n_groups, EXPECTED_NAME, end, at, t
            else:
                at += 1
                t += 1
            continue
        if runs and is_digit(text[at]) and (count > opened or is_digit(text[end + 1])):  # one alone is not worth it
            many = take_numbered(
                text, ends, t, seed, mask, scale, offset(indices, count), offset(data, count), offset(raw, count)
            )
            if many:
                count += many
                t += many - 1
                at = np.int64(ends[t])
                if text[at] == _BLANK:
                    at += 1
                    t += 1
                continue
        h = hash_name(text, at, end, seed, digits)
        raw[count] = h
        indices[count] = np.int32(h & mask)
        if keep_names:
            spans[2 * count], spans[2 * count + 1] = at, end
        value = scale
        if c == _COLON:
            begin = end + 1
            value, end, ok = scan_number(text, begin, VW_ENDS)
            value *= scale
            wrong = check_value(value, ok)
            if wrong:
                return count, n_groups, wrong, begin, end, t
            t += 1
            c = text[end]
        data[count] = value
        count += 1
        at = end
        if c == _BLANK:
            at += 1
            t += 1


@compiled
def parse_vw(buffer: np.ndarray, stop: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray) -> None:
    """Parse lines from ``report[POSITION]`` to ``stop``; a bad one too many sets ``STOPPED``."""
    # Taken out of their tuples once, and as pointers: in a loop every look inside a tuple and every call with an array
    # counts references.
    text, indices, data = pointer(buffer), pointer(rows.indices), pointer(rows.data)
    label, weight, tag, line = pointer(rows.label), pointer(rows.weight), pointer(rows.tag), pointer(rows.line)
    indptr, table, stamps = pointer(rows.indptr), pointer(scratch.table), pointer(scratch.stamps)
    raw, groups, spans, ends = (
        pointer(scratch.raw), pointer(scratch.groups), pointer(scratch.spans), pointer(scratch.ends),
    )  # fmt: skip
    mask, constant, kind, keep_names = options.mask, options.constant, options.label_kind, options.keep_names
    digits, max_bad = options.digits, options.max_bad
    plain = not keep_names and options.interactions.shape[0] == 0
    at, lines, row, entries, base = report[POSITION], report[LINES], report[ROWS], report[ENTRIES], report[BASE]
    hashes = np.empty(256, np.uint32)
    for byte in range(256):
        hashes[byte] = murmur_short(np.uint64(byte), 1, np.uint32(0))
    of_byte = pointer(hashes)  # of names of one byte, as most namespaces have
    find_token_ends(buffer, at, stop, scratch.ends)
    t = 0  # ends[t] is the first end from ``at`` on, whenever a line begins
    while at < stop:
        begin = at
        while text[at] <= _BLANK and text[at] != _NEWLINE:
            at += 1
            t += 1
        if text[at] == _NEWLINE:
            lines += 1
            at += 1
            t += 1
            continue
        bar, wrong, found, found_stop = _head(text, at, row, kind, label, weight, tag)
        if bar >= 0:
            while ends[t] < bar:
                t += 1
            count, n_groups, wrong, found, found_stop, t = _features(
                text,
                ends,
                t,
                mask,
                digits,
                keep_names,
                plain,
                of_byte,
                offset(indices, entries),
                offset(data, entries),
                raw,
                groups,
                spans,
            )
        lines += 1
        if wrong:
            start = at
            at = found_stop
            has_bar = bar >= 0
            while text[at] != _NEWLINE:
                has_bar |= text[at] == _BAR
                at += 1
            if not has_bar:  # then whatever seemed wrong with label or weight is beside the point
                wrong, found, found_stop = EXPECTED_BAR, start, at
            note_bad(report, scratch, lines, wrong, found, found_stop)
            while ends[t] <= at:
                t += 1
            at += 1
            if report[BAD] > max_bad:
                report[STOPPED] = 1
                break
            continue
        line[row] = lines
        if plain:
            first = entries
            entries += count
            if constant >= 0:
                indices[entries] = constant
                data[entries] = 1.0
                entries += 1
            entries = add_duplicates(indices, data, first, entries, base, table, stamps)
            indptr[row + 1] = entries
            row += 1
        else:
            report[ROWS], report[ENTRIES] = row, entries
            if not close_row(count, n_groups, options, rows, scratch, report):
                report[FULL] = 1
                at = begin
                lines -= 1
                break
            row, entries = report[ROWS], report[ENTRIES]
        at = found + 1
        t += 1
    report[POSITION], report[LINES], report[ROWS], report[ENTRIES] = at, lines, row, entries
