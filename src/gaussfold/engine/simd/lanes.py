"""Several doubles as one value: arithmetic on 4 or 8 lanes that is vector instructions by construction.

Left to itself LLVM vectorises loops whose arrays it can prove apart, which is hard to promise for gathered data. Here
a vector is a Numba type of its own. ``+ - * /`` and comparisons work between lanes and with plain numbers, and the
functions below take both, so that one formula (``sparse.logit_series``) serves a single number and a vector of them.
Loads and stores are in ``simd.lane_memory``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic

DOUBLE, I64, I32, I1 = ir.DoubleType(), ir.IntType(64), ir.IntType(32), ir.IntType(1)
_FUSED = ("contract",)


class Lanes(types.Type):
    """So many doubles side by side."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"lanes{width}")


class Mask(types.Type):
    """A truth value per lane."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"mask{width}")


@register_default(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(DOUBLE, fe_type.width))


@register_default(Mask)
class _MaskModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, ir.VectorType(I1, fe_type.width))


def indices_of(lanes: Any) -> ir.Constant:
    """Say which lanes a shuffle takes."""
    return ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))


def spread(builder: Any, value: Any, width: int) -> Any:
    """Put a scalar into every lane."""
    vector = ir.VectorType(value.type, width)
    nothing = ir.Constant(vector, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(nothing, value, I32(0)), nothing, indices_of([0] * width))


def _as_lanes(context: Any, builder: Any, value: Any, kind: Any, width: int) -> Any:
    if isinstance(kind, Lanes):
        return value
    number = context.cast(builder, value, kind, types.float64)
    return spread(builder, number, width) if width else number


def _width(*kinds: Any) -> int:
    """Number of lanes, 0 for plain numbers."""
    return max(getattr(kind, "width", 0) for kind in kinds)


def _like(width: int) -> Any:
    return Lanes(width) if width else types.float64


# Operators.


def _register(op: Any, emit: Callable[[Any, Any, Any], Any], result: Any) -> None:
    class Typer(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            wide = [kind for kind in args if isinstance(kind, Lanes)]
            if kws or len(args) != 2 or not wide or not all(isinstance(a, Lanes | types.Float) for a in args):
                return None
            return signature(result(wide[0].width), *args)

    infer_global(op)(Typer)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        width = _width(*sig.args)
        a, b = (_as_lanes(context, builder, v, t, width) for v, t in zip(args, sig.args, strict=True))
        return emit(builder, a, b)

    for pair in ((Lanes, Lanes), (Lanes, types.Float), (types.Float, Lanes)):
        lower_builtin(op, *pair)(lower)


def _arithmetic(name: str) -> Callable[[Any, Any, Any], Any]:
    return lambda builder, a, b: getattr(builder, name)(a, b, flags=_FUSED)


def _comparison(symbol: str) -> Callable[[Any, Any, Any], Any]:
    return lambda builder, a, b: builder.fcmp_ordered(symbol, a, b)


for _op, _name in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv")):
    _register(_op, _arithmetic(_name), Lanes)
for _op, _symbol in ((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">=")):
    _register(_op, _comparison(_symbol), Mask)


# Functions of lanes or plain numbers.


def call(builder: Any, name: str, args: Any, result: Any) -> Any:
    """Call a function of LLVM's."""
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), name)
    return builder.call(function, args)


def _function(name: str) -> Any:
    def typed(typingctx: Any, a: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
            width = _width(a)
            return call(builder, f"llvm.{name}.{f'v{width}f64' if width else 'f64'}", args, args[0].type)

        return a(a), codegen

    return typed


root = intrinsic(_function("sqrt"))
magnitude = intrinsic(_function("fabs"))


def _pick(symbol: str) -> Any:
    def typed(typingctx: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
        width = _width(a, b)

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            x, y = (_as_lanes(context, builder, v, t, width) for v, t in zip(args, sig.args, strict=True))
            return builder.select(builder.fcmp_ordered(symbol, x, y), x, y)

        return _like(width)(a, b), codegen

    return typed


larger = intrinsic(_pick(">"))
smaller = intrinsic(_pick("<"))


@intrinsic
def choose(typingctx: Any, condition: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    """Take a where the condition holds, b elsewhere."""
    width = _width(condition, a, b)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        x, y = (_as_lanes(context, builder, v, t, width) for v, t in zip(args[1:], sig.args[1:], strict=True))
        return builder.select(args[0], x, y)

    return _like(width)(condition, a, b), codegen


def _bits(builder: Any, value: Any, width: int) -> Any:
    return builder.bitcast(value, ir.VectorType(I64, width) if width else I64)


@intrinsic
def add_exponent(typingctx: Any, a: Any, rounded: Any) -> Any:  # noqa: ARG001
    """Multiply a by 2^n, where n is what is in the lowest bits of ``rounded`` = n + 1.5·2⁵²."""
    width = _width(a, rounded)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        shift = spread(builder, I64(52), width) if width else I64(52)
        n = builder.shl(_bits(builder, args[1], width), shift)
        return builder.bitcast(builder.add(_bits(builder, args[0], width), n), args[0].type)

    return a(a, rounded), codegen


@intrinsic
def split_exponent(typingctx: Any, a: Any) -> Any:  # noqa: ARG001
    """Write a > 0 as f·2ⁿ with f from √½ to √2; returns f and n (as a number)."""
    width = _width(a)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def constant(number: int) -> Any:
            return spread(builder, I64(number), width) if width else I64(number)

        half = 0x3FE6A09E667F3BCD  # the bits of √½
        away = builder.sub(_bits(builder, args[0], width), constant(half))
        exponent = builder.ashr(away, constant(52))
        f = builder.sub(_bits(builder, args[0], width), builder.shl(exponent, constant(52)))
        # n + 1.5·2⁵² as a double has n in its lowest bits: AVX2 has no conversion from 64-bit integers
        magic = builder.bitcast(builder.add(exponent, constant(0x4338000000000000)), args[0].type)
        one = ir.Constant(DOUBLE, 1.5 * 2.0**52)
        n = builder.fsub(magic, spread(builder, one, width) if width else one)
        return context.make_tuple(builder, sig.return_type, (builder.bitcast(f, args[0].type), n))

    return types.UniTuple(a, 2)(a), codegen  # type: ignore[attr-defined]


# Across lanes.


@intrinsic
def lanes4(typingctx: Any, x: Any) -> Any:  # noqa: ARG001
    """Put a number into four lanes."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        return _as_lanes(context, builder, args[0], x, 4)

    return Lanes(4)(x), codegen


@intrinsic
def lanes8(typingctx: Any, x: Any) -> Any:  # noqa: ARG001
    """Put a number into eight lanes."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        return _as_lanes(context, builder, args[0], x, 8)

    return Lanes(8)(x), codegen


@intrinsic
def bits_of(typingctx: Any, mask: Any) -> Any:  # noqa: ARG001
    """Return the mask as an integer: lane i is bit i."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.zext(builder.bitcast(args[0], ir.IntType(mask.width)), I64)

    return types.int64(mask), codegen


@intrinsic
def join(typingctx: Any, a: Any, b: Any) -> Any:  # noqa: ARG001
    """Put the lanes of two values side by side."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.shuffle_vector(args[0], args[1], indices_of(range(2 * a.width)))

    return Lanes(2 * a.width)(a, b), codegen


def _half(first: int) -> Any:
    def typed(typingctx: Any, a: Any) -> Any:  # noqa: ARG001
        width = a.width // 2

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
            return builder.shuffle_vector(args[0], args[0], indices_of(range(first * width, (first + 1) * width)))

        return Lanes(width)(a), codegen

    return typed


first_half = intrinsic(_half(0))
second_half = intrinsic(_half(1))


@intrinsic
def width_of(typingctx: Any, a: Any) -> Any:  # noqa: ARG001
    """Count the lanes."""
    return types.int64(a), lambda context, builder, sig, args: I64(a.width)  # noqa: ARG005


def _fold(combine: Callable[[Any, Any, Any], Any]) -> Any:
    """Halve the lanes until one is left: always in the same order."""

    def typed(typingctx: Any, a: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
            value, width = args[0], a.width
            while width > 1:
                width //= 2
                low = builder.shuffle_vector(value, value, indices_of(range(width)))
                high = builder.shuffle_vector(value, value, indices_of(range(width, 2 * width)))
                value = combine(builder, low, high)
            return builder.extract_element(value, I32(0))

        return types.float64(a), codegen

    return typed


def _greater(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


total = intrinsic(_fold(lambda builder, a, b: builder.fadd(a, b)))
peak = intrinsic(_fold(_greater))


@intrinsic
def first_lanes(typingctx: Any, n: Any, a: Any) -> Any:  # noqa: ARG001
    """Keep the first n lanes, zero in the others."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        number = context.cast(builder, args[0], n, types.int64)
        places = ir.Constant(ir.VectorType(I64, a.width), list(range(a.width)))
        kept = builder.icmp_signed("<", places, spread(builder, number, a.width))
        return builder.select(kept, args[1], ir.Constant(args[1].type, [0.0] * a.width))

    return a(n, a), codegen
