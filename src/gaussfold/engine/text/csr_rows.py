"""What the parsers share: where rows go, what went wrong, and the end of a row.

A parser walks over a byte buffer and writes rows in CSR form. At the end of a row, in this order: pairs of
features (interactions), the constant, duplicates added up. Everything is an array of fixed size that the caller
owns; a chunk of n bytes makes at most n entries and n/2 + 1 rows, so only interactions have to look at the room left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.engine.compiled import compiled
from gaussfold.engine.text.murmur import combine

# Where the numbers of `Report` stand.
POSITION, LINES, ROWS, ENTRIES, BAD, NAMED, FULL, STOPPED, BASE = range(9)
N_REPORT = 9

# What was expected where a record is bad; the words are in gaussfold.data.messages.
(
    EXPECTED_BAR, EXPECTED_LABEL, EXPECTED_WEIGHT, EXPECTED_NO_BASE, EXPECTED_VALUE, EXPECTED_NAME,
    EXPECTED_SMALLER, EXPECTED_SCALE, EXPECTED_INDEX, EXPECTED_COLON, EXPECTED_COLUMNS, EXPECTED_QUOTE,
) = range(1, 13)  # fmt: skip

_GOLDEN = np.uint32(0x9E3779B1)
_STAMP_SHIFT = np.uint32(20)  # 4096 stamps
_FEW = 128

LARGEST = 1e30  # squares and fourth powers of it are still doubles

ANY, FIRST_BYTE, NAME_HASH = 0, 1, 2  # how a side of an interaction names its namespaces
BINARY, REAL, TOKEN, COUNT = range(4)  # labels: -1, 0, 1; any number; equal to a given text or not; 0, 1, 2, ...


class Options(NamedTuple):
    """Settings of a parser."""

    mask: np.uint32  # 2^bits - 1
    constant: int  # slot of the constant feature, -1 for none
    label_kind: int
    max_bad: int  # records to skip before giving up
    keep_names: bool
    final: bool  # the input ends where the buffer does: what is not complete by then never will be
    digits: bool  # a name of digits is the namespace's hash plus its number, not a hash of its own
    interactions: np.ndarray  # int64 (n, 4): kind and key of the left namespace, of the right one


class Rows(NamedTuple):
    """The rows of a chunk."""

    indptr: np.ndarray  # int32
    indices: np.ndarray  # int32
    data: np.ndarray  # float64
    label: np.ndarray  # float64, NaN if there is none
    weight: np.ndarray  # float64
    tag: np.ndarray  # int32 (rows, 2): where a row's name is in the buffer
    line: np.ndarray  # int32: line of the chunk, from 1


class Scratch(NamedTuple):
    """Working memory of a parser."""

    raw: np.ndarray  # uint32: full hashes of the row's features
    groups: np.ndarray  # int64 (n, 4): the row's namespaces: first feature, first byte, hash, where the name is
    # (or -1: no name, -2 - k: name of column k)
    ends: np.ndarray  # int32: where the tokens of the buffer end (Vowpal Wabbit text)
    spans: np.ndarray  # int64 (n, 2): where the features' names are in the buffer, if names are kept
    table: np.ndarray  # int64: open-addressing table of the row's slots; entries of older rows count as empty
    stamps: np.ndarray  # int32, 4096: which row used a place last
    seen: np.ndarray  # uint8: one bit a slot, if names are kept
    named: (
        np.ndarray
    )  # int64 (n, 7): slot, then where namespace and name are, then those of the right side (-1 if no pair)
    bad: np.ndarray  # int64 (n, 4): line, what was expected, start and stop of what was found


@compiled
def note_bad(report: np.ndarray, scratch: Scratch, line: int, expected: int, start: int, stop: int) -> None:
    """Remember a bad record, as far as there is room for it."""
    if report[BAD] < scratch.bad.shape[0]:
        row = scratch.bad[report[BAD]]
        row[0], row[1], row[2], row[3] = line, expected, start, stop
    report[BAD] += 1


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
def _is(kind: int, key: int, groups: np.ndarray, g: int) -> bool:
    return kind == ANY or (kind == FIRST_BYTE and groups[g, 1] == key) or (kind == NAME_HASH and groups[g, 2] == key)


@compiled
def _wanted(interactions: np.ndarray, groups: np.ndarray, g: int, h: int) -> bool:
    for i in range(interactions.shape[0]):
        kind, key, kind2, key2 = interactions[i]
        if (_is(kind, key, groups, g) and _is(kind2, key2, groups, h)) or (
            _is(kind, key, groups, h) and _is(kind2, key2, groups, g)
        ):
            return True
    return False


@compiled
def _name(report: np.ndarray, scratch: Scratch, slot: int, g: int, i: int, h: int, j: int) -> None:
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
    groups, raw, indices, data = scratch.groups, scratch.raw, rows.indices, rows.data
    interactions = options.interactions
    total = count
    for g in range(n_groups):
        for h in range(g, n_groups):
            if not _wanted(interactions, groups, g, h):
                continue
            swap = h != g and np.uint32(groups[g, 2]) > np.uint32(groups[h, 2])  # order in the line is no matter
            a, b = (h, g) if swap else (g, h)
            a_stop = groups[a + 1, 0] if a + 1 < n_groups else count
            b_stop = groups[b + 1, 0] if b + 1 < n_groups else count
            if first + total + (a_stop - groups[a, 0]) * (b_stop - groups[b, 0]) >= data.size:
                return -1
            for i in range(groups[a, 0], a_stop):
                for j in range(i if a == b else groups[b, 0], b_stop):
                    if i == j and data[first + i] == 1.0:
                        continue  # 1 times itself says nothing new
                    left, right = raw[i], raw[j]
                    if a == b and left > right:
                        left, right = right, left
                    slot = np.int64(combine(left, right) & options.mask)
                    indices[first + total] = slot
                    data[first + total] = data[first + i] * data[first + j]
                    total += 1
                    if options.keep_names:
                        _name(report, scratch, int(slot), a, i, b, j)
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
    falls = 0
    for k in range(first + 1, stop):
        falls |= indices[k] <= indices[k - 1]
    if not falls:
        return stop
    if stop - first <= _FEW:
        stamp = np.int32((base + first) & 0x7FFFFFFF)
        met = 0
        for k in range(first, stop):
            at = np.int64(np.uint32(np.uint32(indices[k]) * _GOLDEN) >> _STAMP_SHIFT)
            met |= stamps[at] == stamp
            stamps[at] = stamp
        if not met:
            return stop
    return _add_duplicates(indices, data, first, stop, base, table)


@compiled
def close_plain(
    count: int,
    constant: int,
    indptr: np.ndarray,
    indices: np.ndarray,
    data: np.ndarray,
    table: np.ndarray,
    stamps: np.ndarray,
    report: np.ndarray,
) -> None:
    """Finish a row without names and interactions."""
    first = report[ENTRIES]
    if constant >= 0:
        indices[first + count] = constant
        data[first + count] = 1.0
        count += 1
    end = add_duplicates(indices, data, first, first + count, report[BASE], table, stamps)
    report[ENTRIES] = end
    row = report[ROWS] + 1
    report[ROWS] = row
    indptr[row] = end


@compiled
def close_row(count: int, n_groups: int, options: Options, rows: Rows, scratch: Scratch, report: np.ndarray) -> bool:
    """Finish the row whose ``count`` entries stand after the last one; False if there is no room for its pairs."""
    first = report[ENTRIES]
    if options.keep_names:
        for g in range(n_groups):
            stop = scratch.groups[g + 1, 0] if g + 1 < n_groups else count
            for i in range(scratch.groups[g, 0], stop):
                _name(report, scratch, int(rows.indices[first + i]), g, i, -1, -1)
    if options.interactions.shape[0]:
        count = _interact(n_groups, count, first, options, rows, scratch, report)
        if count < 0:
            return False
    close_plain(count, options.constant, rows.indptr, rows.indices, rows.data, scratch.table, scratch.stamps, report)
    return True
