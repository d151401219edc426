"""What the parsers share: what may be learned, what went wrong, and the end of a row.

A parser walks over a byte buffer and writes rows in CSR form. At the end of a row, in this order: pairs of
features (interactions), the constant, duplicates added up. Everything is an array of fixed size that the caller
owns; a chunk of n bytes makes at most n entries and n/2 + 1 rows, so only interactions have to look at the room left.
"""

from __future__ import annotations

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.simd.types import Pointer
from gaussfold.engine.text import expected
from gaussfold.engine.text.murmur import combine
from gaussfold.engine.text.numbers import parse_number
from gaussfold.engine.text.report import BAD, BASE, ENTRIES, FULL, NAMED, ROWS, STOPPED
from gaussfold.engine.text.row_memory import (
    ANY,
    BINARY,
    COUNT,
    FIRST_BYTE,
    NAME_HASH,
    Options,
    RowMemory,
    Rows,
    Scratch,
    row_memory,
)

_GOLDEN = np.uint32(0x9E3779B1)
_STAMP_SHIFT = np.uint32(20)  # 4096 stamps
_FEW = 128

LARGEST = 1e30  # squares and fourth powers of it are still doubles


@compiled
def note_bad(line: int, what: int, start: int, stop: int, max_bad: int, bad: np.ndarray, report: np.ndarray) -> bool:
    """Remember a bad record: what was expected and what stands there. Returns whether it is one too many."""
    if report[BAD] < bad.shape[0]:
        row = bad[report[BAD]]
        row[0], row[1], row[2], row[3] = line, what, start, stop
    report[BAD] += 1
    report[STOPPED] = report[BAD] > max_bad
    return bool(report[BAD] > max_bad)


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
def class_of(text: Pointer, begin: int, end: int, to: RowMemory) -> int:
    """The place of a label among the classes: as a text, or else as a number; -1 if it is none of them."""
    start = 0
    for k in range(to.n_classes):
        stop = to.class_ends[k]
        if stop - start == end - begin:
            differ = 0
            for i in range(end - begin):
                differ |= text[begin + i] != to.classes[start + i]
            if differ == 0:
                return k
        start = stop
    value, ok = parse_number(text, begin, end)
    if ok:
        for k in range(to.n_classes):
            if to.class_values[k] == value:
                return k
    return -1


@compiled
def token_label(text: Pointer, begin: int, end: int, kind: int, to: RowMemory) -> tuple[float, int]:
    """The label that a token is, the place of a class among the classes, and 0 or what was expected."""
    if to.n_classes > 0:
        place = class_of(text, begin, end, to)
        return float(place), 0 if place >= 0 else expected.CLASS
    value, ok = parse_number(text, begin, end)
    value, ok = check_label(value, ok, kind)
    return value, 0 if ok else expected.LABEL


@compiled
def check_value(value: float, ok: bool) -> int:
    """0 if a feature's value may be used, else what was expected."""
    if not ok:
        return expected.VALUE
    return 0 if abs(value) <= LARGEST else expected.SMALLER


@compiled
def _is_named(kind: int, key: int, groups: np.ndarray, g: int) -> bool:
    """Whether one side of an interaction means namespace g."""
    return kind == ANY or (kind == FIRST_BYTE and groups[g, 1] == key) or (kind == NAME_HASH and groups[g, 2] == key)


@compiled
def is_wanted(interactions: np.ndarray, groups: np.ndarray, g: int, h: int) -> bool:
    """Whether namespaces g and h are to be multiplied."""
    for i in range(interactions.shape[0]):
        kind, key, kind2, key2 = interactions[i]
        if (_is_named(kind, key, groups, g) and _is_named(kind2, key2, groups, h)) or (
            _is_named(kind, key, groups, h) and _is_named(kind2, key2, groups, g)
        ):
            return True
    return False


@compiled
def _note_name(report: np.ndarray, scratch: Scratch, slot: int, g: int, i: int, h: int, j: int) -> None:
    """Note where the name of a slot stands, the first time the slot is used."""
    bit = np.uint8(1 << (slot & 7))
    if scratch.seen[slot >> 3] & bit or report[NAMED] >= scratch.named.shape[0]:
        return
    scratch.seen[slot >> 3] |= bit
    row = scratch.named[report[NAMED]]
    row[0] = slot
    row[1], row[2], row[3] = scratch.groups[g, 3], scratch.spans[i, 0], scratch.spans[i, 1]
    if h < 0:
        row[4], row[5], row[6] = -1, -1, -1
    else:
        row[4], row[5], row[6] = scratch.groups[h, 3], scratch.spans[j, 0], scratch.spans[j, 1]
    report[NAMED] += 1


@compiled
def _interact(
    n_groups: int, count: int, first: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray
) -> int:
    """Append the products of all wanted pairs; return how many entries the row has, or -1 if there is no room."""
    groups = scratch.groups
    groups[n_groups, 0] = count  # where the last namespace ends
    total = count
    for g in range(n_groups):
        for h in range(g, n_groups):
            if not is_wanted(options.interactions, groups, g, h):
                continue
            swap = h != g and np.uint32(groups[g, 2]) > np.uint32(groups[h, 2])  # order in the line is no matter
            a, b = (h, g) if swap else (g, h)
            most = (groups[a + 1, 0] - groups[a, 0]) * (groups[b + 1, 0] - groups[b, 0])
            if first + total + most >= rows.data.size:
                return -1
            total = _multiply(a, b, first, total, options, rows, scratch, report)
    return total


@compiled
def _multiply(
    a: int, b: int, first: int, total: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray
) -> int:
    """Append the products of namespaces a and b; return how many entries the row has now."""
    groups, raw, indices, data = scratch.groups, scratch.raw, rows.indices, rows.data
    for i in range(groups[a, 0], groups[a + 1, 0]):
        for j in range(i if a == b else groups[b, 0], groups[b + 1, 0]):
            if i == j and data[first + i] == 1.0 and not options.squares:
                continue  # 1 times itself says nothing new
            left, right = raw[i], raw[j]
            if a == b and left > right:
                left, right = right, left
            slot = np.int64(combine(left, right) & options.mask)
            indices[first + total] = slot
            data[first + total] = data[first + i] * data[first + j]
            total += 1
            if options.keep_names:
                _note_name(report, scratch, int(slot), a, i, b, j)
    return total


@compiled
def _add_duplicates(indices: np.ndarray, data: np.ndarray, first: int, stop: int, base: int, table: np.ndarray) -> int:
    """As `add_duplicates`, for rows that may have some."""
    shift = np.uint32(31)
    size = 2
    while size < 2 * (stop - first):
        size *= 2
        shift -= np.uint32(1)
    last = size - 1
    write = first
    for k in range(first, stop):
        slot = indices[k]
        at = np.int64(np.uint32(np.uint32(slot) * _GOLDEN) >> shift)
        while True:
            found = table[at] - 1 - base
            if found < first:
                table[at] = base + write + 1
                indices[write] = slot
                data[write] = data[k]
                write += 1
                break
            if indices[found] == slot:
                data[found] += data[k]
                break
            at = (at + 1) & last
    return write


@compiled
def add_duplicates(
    indices: np.ndarray,
    data: np.ndarray,
    first: int,
    stop: int,
    base: int,
    table: np.ndarray,
    stamps: np.ndarray,
) -> int:
    """Add up entries ``first:stop`` that share a slot; return where the row ends now.

    ``table`` holds one plus the position of an entry, counted from the beginning of the stream (``base`` is where
    this chunk begins), so entries of earlier rows are recognised by being too small and need no clearing. Most rows
    have no duplicates: slots that rise have none; else a row first stamps a small table, and only if a stamp of its own
    is there already the other one is asked.
    """
    not_rising = 0
    for k in range(first + 1, stop):
        not_rising |= indices[k] <= indices[k - 1]
    if not_rising == 0:
        return stop
    if stop - first <= _FEW:
        stamp = np.int32((base + first) & 0x7FFFFFFF)
        shared = 0
        for k in range(first, stop):
            at = np.int64(np.uint32(np.uint32(indices[k]) * _GOLDEN) >> _STAMP_SHIFT)
            shared |= stamps[at] == stamp
            stamps[at] = stamp
        if shared == 0:
            return stop
    return _add_duplicates(indices, data, first, stop, base, table)


@compiled
def close_plain(count: int, constant: int, to: RowMemory) -> None:
    """Finish a row without names and interactions."""
    first = to.report[ENTRIES]
    if constant >= 0:
        to.indices[first + count] = constant
        to.data[first + count] = 1.0
        count += 1
    end = add_duplicates(to.indices, to.data, first, first + count, to.report[BASE], to.table, to.stamps)
    to.report[ENTRIES] = end
    row = to.report[ROWS] + 1
    to.report[ROWS] = row
    to.indptr[row] = end


@compiled
def close_row(count: int, n_groups: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray) -> bool:
    """Finish the row whose ``count`` entries stand after the last one; False if there is no room for its pairs."""
    first = report[ENTRIES]
    if options.keep_names:
        for g in range(n_groups):
            stop = scratch.groups[g + 1, 0] if g + 1 < n_groups else count
            for i in range(scratch.groups[g, 0], stop):
                _note_name(report, scratch, int(rows.indices[first + i]), g, i, -1, -1)
    if options.interactions.shape[0]:
        count = _interact(n_groups, count, first, options, rows, scratch, report)
        if count < 0:
            report[FULL] = 1
            return False
    close_plain(count, options.constant, row_memory(rows, scratch, report, options))
    return True
