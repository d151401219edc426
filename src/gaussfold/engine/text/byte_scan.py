"""Many bytes at a time: unaligned loads, and where the delimiters stand.

Buffers are arrays or pointers to them (``pointers.pointer``). Loads take more bytes than are meant: a buffer must have
`PADDING` bytes more than are looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from gaussfold.engine.compiled import compiled
from gaussfold.engine.simd.pointers import place, pointer
from gaussfold.engine.simd.types import BaseContext, Context, Intrinsic, IRBuilder, Pointer, Signature, Type, Value

PADDING = 80
LOOK_AHEAD = 8
"""Tokens that ``feature_hash`` takes at a time."""

_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(48 * 0x0101010101010101)
_NOT_DIGITS = np.uint64(118 * 0x0101010101010101)  # what makes 10 and more reach the top bit
_EVERY_FOURTH = np.uint64(0x000000FF000000FF)
_NEWLINES = np.uint64(10 * 0x0101010101010101)
_POINTS = np.uint64(46 * 0x0101010101010101)


def _load(bits: int, result: Type) -> Callable[[Context, Type, Type], Intrinsic]:
    def typed(_typing: Context, array: Type, at: Type) -> Intrinsic:
        def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
            start = place(context, builder, signature.args[0], args[0], args[1], bits // 8)
            return builder.load(builder.bitcast(start, ir.IntType(bits).as_pointer()), align=1)

        return result(array, types.int64), codegen

    return typed


load64 = intrinsic(_load(64, types.uint64))
load32 = intrinsic(_load(32, types.uint32))


@intrinsic
def trailing_zeros(_typing: Context, word: Type) -> Intrinsic:
    """Count the zero bits below the lowest one (64 if there is none)."""

    def codegen(_context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def count_ones(_typing: Context, word: Type) -> Intrinsic:
    """Count the bits that are set."""

    def codegen(_context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


@compiled
def _zeros(word: np.uint64) -> np.uint64:
    """The top bit of every zero byte, exact for the lowest one."""
    return (word - _ONES) & ~word & _TOPS


@intrinsic
def token_ends(_typing: Context, buffer: Type, at: Type) -> Intrinsic:
    """Mark the bytes among the next 64 that end a Vowpal Wabbit token: blanks and control characters, ':' and '|'."""

    def codegen(context: BaseContext, builder: IRBuilder, signature: Signature, args: Sequence[Value]) -> Value:
        block = ir.VectorType(ir.IntType(8), 64)
        start = place(context, builder, signature.args[0], args[0], args[1], 64)
        text = builder.load(builder.bitcast(start, block.as_pointer()), align=1)

        def all_of(byte: int) -> Value:
            return ir.Constant(block, [byte] * 64)

        found = builder.icmp_unsigned("<", text, all_of(33))
        for byte in (58, 124):
            found = builder.or_(found, builder.icmp_unsigned("==", text, all_of(byte)))
        return builder.bitcast(found, ir.IntType(64))

    return types.uint64(buffer, types.int64), codegen


@compiled
def find_token_ends(buffer: np.ndarray, start: int, stop: int, ends: np.ndarray) -> None:
    """List the positions where Vowpal Wabbit tokens end, in order; a few may lie behind ``stop``.

    `LOOK_AHEAD` times ``stop`` follow, so that a look at so many ends stays inside the buffer.
    """
    text, out = pointer(buffer), pointer(ends)
    n = 0
    for at in range(start, stop, 64):
        marks = token_ends(text, at)
        found = count_ones(marks)
        # Eight at a time, also where there are fewer: a branch after each would often be guessed wrong.
        for first in range(n, n + found, 8):
            for nth in range(first, first + 8):
                out[nth] = at + trailing_zeros(marks)
                marks &= marks - np.uint64(1)
        n += found
    for nth in range(n, n + LOOK_AHEAD):
        out[nth] = stop


@compiled
def skip_blanks(text: Pointer, at: int) -> int:
    """Where the next byte stands that is no blank (nor another control character), or the newline before it."""
    while text[at] <= 32 and text[at] != 10:
        at += 1
    return at


@compiled
def line_end(text: Pointer, at: int) -> int:
    """Where the next newline stands."""
    while text[at] != 10:
        at += 1
    return at


@compiled
def digits_value(word: np.uint64, length: int) -> tuple[np.uint32, bool]:
    """Read the lowest bytes of a word as a decimal number; whether they are 1 to 8 and digits all of them.

    All at once: the first digit, which is the lowest byte, goes to the top; then pairs, fours and all eight are joined.
    """
    x = (word ^ _ZEROS) << np.uint64((64 - 8 * length) & 63)
    ok = (((x + _NOT_DIGITS) | x) & _TOPS == np.uint64(0)) & (length >= 1) & (length <= 8)
    x = x * np.uint64(10) + (x >> np.uint64(8))
    high = (x & _EVERY_FOURTH) * np.uint64(0x000F424000000064)
    low = ((x >> np.uint64(16)) & _EVERY_FOURTH) * np.uint64(0x0000271000000001)
    return np.uint32((high + low) >> np.uint64(32)), ok


@compiled
def without_point(word: np.uint64, length: int) -> tuple[np.uint64, int, int]:
    """The lowest bytes of a word, 1 to 8, without a decimal point; how many are left, and how many followed it."""
    marks = _zeros(word ^ _POINTS)
    at = trailing_zeros(marks) >> 3  # 8 if there is none
    if at >= length:
        return word, length, 0
    before = (np.uint64(1) << np.uint64(8 * at)) - np.uint64(1)
    return (word & before) | ((word >> np.uint64(8)) & ~before), length - 1, length - 1 - at


@compiled
def field_stop(buffer: np.ndarray, start: int, separators: np.uint64) -> int:
    """Return where the next separator (eight copies in a word) or newline stands."""
    at = start
    while True:
        word = load64(buffer, at)
        marks = _zeros(word ^ separators) | _zeros(word ^ _NEWLINES)
        if marks:
            return int(at + (trailing_zeros(marks) >> 3))
        at += 8
