"""From names of features to hashes, one at a time or eight side by side.

A name of digits may be a number that is added to the hash of its namespace (numbered features are most of what is
stored as text). Of those, eight tokens that follow each other are taken in vector instructions, without a branch among
them; how many of them were what they were taken for is told afterwards. Plain equivalent: ``hash_name`` for one name
after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from gaussfold.engine.compiled import compiled
from gaussfold.engine.simd.lanes import I32, I64, spread
from gaussfold.engine.simd.pointers import place
from gaussfold.engine.simd.types import BaseContext, Context, Intrinsic, IRBuilder, Pointer, Signature, Type, Value
from gaussfold.engine.text.byte_scan import LOOK_AHEAD, digits_value, load64, trailing_zeros
from gaussfold.engine.text.murmur import murmur, murmur_short

LONGEST = 7
"""Bytes of a name, so that it and what ends it fit into one word."""
_NEWLINE, _BLANK = 10, 32
_WORDS = ir.VectorType(I64, LOOK_AHEAD)
_HALVES = ir.VectorType(ir.IntType(32), LOOK_AHEAD)


@compiled
def is_digit(byte: int) -> bool:
    """Whether a byte is one of 0 to 9."""
    return bool(np.uint8(byte - 48) <= 9)


@compiled
def hash_name(text: Pointer, start: int, stop: int, seed: np.uint32, digits: bool) -> np.uint32:
    """Hash the name of a feature; ``digits``: a name of digits is a number to add to the hash of the namespace."""
    length = stop - start
    word = load64(text, start)
    if length <= 8:
        if digits:
            number, ok = digits_value(word, length)
            if ok:
                return np.uint32(seed + number)
        return murmur_short(word, length, seed) if length < 8 else murmur(text, start, stop, seed)
    if digits:
        number = np.uint32(0)
        at = start
        while at < stop and is_digit(text[at]):
            number = np.uint32(number * np.uint32(10) + np.uint32(text[at] - 48))
            at += 1
        if at == stop:
            return np.uint32(seed + number)
    return murmur(text, start, stop, seed)


def _repeated(byte: int) -> int:
    return int.from_bytes(bytes([byte]) * 8, "little")


@intrinsic
def _take_eight(
    _typing: Context,
    text: Type,
    ends: Type,
    t: Type,
    seed: Type,
    mask: Type,
    scale: Type,
    indices: Type,
    data: Type,
    raw: Type,
) -> Intrinsic:
    """Hash the tokens that end at ``ends[t:t + 8]``; bits 0 to 7: which are numbers, bits 8 to 15: which end a line."""

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        def at(argument: int, position: Value, count: int) -> Value:
            return place(context, builder, sig.args[argument], args[argument], position, count)

        def everywhere(number: int) -> Value:
            return ir.Constant(_WORDS, [number] * LOOK_AHEAD)

        # The token before the first one ended just before it.
        before, until = (
            builder.load(builder.bitcast(at(1, first, LOOK_AHEAD), _HALVES.as_pointer()), align=4)
            for first in (builder.sub(args[2], I64(1)), args[2])
        )
        begins = builder.add(builder.zext(before, _WORDS), everywhere(1))
        word = ir.Constant(_WORDS, ir.Undefined)
        for lane in range(LOOK_AHEAD):
            start = builder.bitcast(at(0, builder.extract_element(begins, I32(lane)), 8), I64.as_pointer())
            word = builder.insert_element(word, builder.load(start, align=1), I32(lane))
        length = builder.sub(builder.zext(until, _WORDS), begins)
        fits = builder.icmp_unsigned("<", builder.sub(length, everywhere(1)), everywhere(LONGEST))
        bits = builder.select(fits, builder.shl(length, everywhere(3)), everywhere(8))
        end = builder.and_(builder.lshr(word, bits), everywhere(255))
        closes = builder.icmp_unsigned("==", end, everywhere(_NEWLINE))
        ends_well = builder.or_(closes, builder.icmp_unsigned("==", end, everywhere(_BLANK)))
        # As in `byte_scan.digits_value`: the first digit to the top, then pairs, fours and all eight are joined.
        x = builder.shl(builder.xor(word, everywhere(_repeated(48))), builder.sub(everywhere(64), bits))
        carried = builder.or_(builder.add(x, everywhere(_repeated(118))), x)
        digits = builder.icmp_unsigned("==", builder.and_(carried, everywhere(_repeated(128))), everywhere(0))
        x = builder.add(builder.mul(x, everywhere(10)), builder.lshr(x, everywhere(8)))
        every_fourth = everywhere(0x000000FF000000FF)
        high = builder.mul(builder.and_(x, every_fourth), everywhere(0x000F424000000064))
        low = builder.mul(builder.and_(builder.lshr(x, everywhere(16)), every_fourth), everywhere(0x0000271000000001))
        number = builder.trunc(builder.lshr(builder.add(high, low), everywhere(32)), _HALVES)
        hashes = builder.add(number, spread(builder, args[3], LOOK_AHEAD))
        slots = builder.and_(hashes, spread(builder, args[4], LOOK_AHEAD))
        values = spread(builder, args[5], LOOK_AHEAD)
        for argument, row, align in ((8, hashes, 4), (6, slots, 4), (7, values, 8)):
            start = builder.bitcast(at(argument, I64(0), LOOK_AHEAD), row.type.as_pointer())
            builder.store(row, start, align=align)
        good, closed = (
            builder.zext(builder.bitcast(found, ir.IntType(LOOK_AHEAD)), I64)
            for found in (builder.and_(builder.and_(fits, ends_well), digits), closes)
        )
        return builder.or_(good, builder.shl(closed, I64(LOOK_AHEAD)))

    return types.uint64(text, ends, t, seed, mask, scale, indices, data, raw), codegen


@compiled
def take_numbered(
    text: Pointer,
    ends: Pointer,
    t: int,
    seed: np.uint32,
    mask: np.uint32,
    scale: float,
    indices: Pointer,
    data: Pointer,
    raw: Pointer,
) -> int:
    """Take up to eight names of digits without values, the first of which ends at ``ends[t]``; returns how many.

    Their slots, hashes and the value of each (the namespace's) are written; what is behind those that count means
    nothing.
    """
    found = _take_eight(
        text, ends, np.int64(t), np.uint32(seed), np.uint32(mask), np.float64(scale), indices, data, raw
    )
    return int(min(trailing_zeros(~found), trailing_zeros(found >> np.uint64(LOOK_AHEAD)) + 1))
