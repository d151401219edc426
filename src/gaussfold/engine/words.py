"""Eight bytes at a time: unaligned loads, and where in a word the first delimiter stands.

Loads do not check bounds: a buffer must have `PADDING` bytes more than are looked at.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from gaussfold.engine.compiled import compiled

PADDING = 16

_ONES = np.uint64(0x0101010101010101)
_TOPS = np.uint64(0x8080808080808080)
_BELOW_33 = np.uint64(33 * 0x0101010101010101)
_COLONS = np.uint64(58 * 0x0101010101010101)
_BARS = np.uint64(124 * 0x0101010101010101)
_NEWLINES = np.uint64(10 * 0x0101010101010101)


def _load(bits: int, result: Any) -> Any:
    def typed(typingctx: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(bits).as_pointer())
            return builder.load(pointer, align=1)

        return result(array, types.int64), codegen

    return typed


load64 = intrinsic(_load(64, types.uint64))
load32 = intrinsic(_load(32, types.uint32))


@intrinsic
def trailing_zeros(typingctx: Any, word: Any) -> Any:  # noqa: ARG001
    """Count the zero bits below the lowest one (64 if there is none)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@compiled
def _zeros(word: np.uint64) -> np.uint64:
    """The top bit of every zero byte, exact for the lowest one."""
    return (word - _ONES) & ~word & _TOPS


@compiled
def token_marks(word: np.uint64) -> np.uint64:
    """Mark bytes that end a Vowpal Wabbit token: blanks and control characters, ':' and '|'."""
    return ((word - _BELOW_33) & ~word & _TOPS) | _zeros(word ^ _COLONS) | _zeros(word ^ _BARS)


@compiled
def token_stop(buffer: np.ndarray, start: int) -> int:
    """Return where the token that begins at ``start`` ends; a newline must follow somewhere."""
    at = start
    while True:
        marks = token_marks(load64(buffer, at))
        if marks:
            return int(at + (trailing_zeros(marks) >> 3))
        at += 8


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
