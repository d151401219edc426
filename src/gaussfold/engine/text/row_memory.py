"""What parsers are given: what is wanted, where rows go, and working memory; as arrays, and as pointers to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gaussfold.engine.compiled import compiled_inline
from gaussfold.engine.simd.pointers import pointer
from gaussfold.engine.simd.types import Pointer

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
    squares: bool  # a feature of value 1 is multiplied by itself where its namespace is
    spaces: np.ndarray  # int64 (n, 2): kind and key of namespaces to keep, or to leave out
    keeps: bool
    classes: np.ndarray  # uint8: texts that labels are among, one after the other; none: labels are as their kind says
    class_ends: np.ndarray  # int64: where each ends
    class_values: np.ndarray  # float64: what numbers they are, NaN for other texts


class RowSettings(NamedTuple):
    """What of `Options` every row needs: numbers only."""

    mask: np.uint32
    constant: int
    label_kind: int
    max_bad: int
    keep_names: bool
    digits: bool
    plain: bool  # no names to keep and no interactions: a row is done when its features are written


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
    byte_hashes: np.ndarray  # uint32, 256: hashes of names of one byte (Vowpal Wabbit text)
    table: np.ndarray  # int64: open-addressing table of the row's slots; entries of older rows count as empty
    stamps: np.ndarray  # int32, 4096: which row used a place last
    seen: np.ndarray  # uint8: one bit a slot, if names are kept
    named: (
        np.ndarray
    )  # int64 (n, 7): slot, then where namespace and name are, then those of the right side (-1 if no pair)
    bad: np.ndarray  # int64 (n, 4): line, what was expected, start and stop of what was found


class RowMemory(NamedTuple):
    """`Rows`, the working memory of a row and the report, by pointers (arrays of several columns are flattened).

    Whoever calls a function with arrays, or looks into a tuple of them, counts references, which costs as much as a
    short row does. A parser makes this record once, from tuples that its caller holds until it returns.
    """

    indptr: Pointer
    indices: Pointer
    data: Pointer
    label: Pointer
    weight: Pointer
    tag: Pointer
    line: Pointer
    raw: Pointer
    groups: Pointer
    spans: Pointer
    table: Pointer
    stamps: Pointer
    report: Pointer
    n_classes: int
    classes: Pointer
    class_ends: Pointer
    class_values: Pointer


@compiled_inline
def row_memory(rows: Rows, scratch: Scratch, report: np.ndarray, options: Options) -> RowMemory:
    """Where a parser writes a row."""
    return RowMemory(
        pointer(rows.indptr), pointer(rows.indices), pointer(rows.data), pointer(rows.label), pointer(rows.weight),
        pointer(rows.tag), pointer(rows.line), pointer(scratch.raw), pointer(scratch.groups), pointer(scratch.spans),
        pointer(scratch.table), pointer(scratch.stamps), pointer(report),
        options.class_ends.size, pointer(options.classes), pointer(options.class_ends), pointer(options.class_values),
    )  # fmt: skip


@compiled_inline
def row_settings(options: Options) -> RowSettings:
    """What a parser needs to know at a row."""
    plain = not options.keep_names and options.interactions.shape[0] == 0
    return RowSettings(
        options.mask, options.constant, options.label_kind, options.max_bad, options.keep_names, options.digits, plain
    )
