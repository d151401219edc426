"""Several doubles as one value: arithmetic on 4 or 8 lanes that is vector instructions by construction.

Left to itself LLVM vectorises loops whose arrays it can prove apart, which is hard to promise for gathered data. Here
a vector is a Numba type of its own. ``+ - * /`` and comparisons work between lanes and with plain numbers, and the
functions below take both, so that one formula (``sparse.logit_series``) serves a single number and a vector of them.
Loads and stores are in ``simd.lane_memory``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TypeAlias

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import DataModelManager, models, register_default
from numba.core.imputils import lower_builtin
from numba.core.types.containers import UniTuple
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic

from gaussfold.engine.simd.types import BaseContext, Context, Intrinsic, IRBuilder, Signature, Type, Value

DOUBLE, I64, I32, I1 = ir.DoubleType(), ir.IntType(64), ir.IntType(32), ir.IntType(1)
_FUSED = ("contract",)


class LanesType(types.Type):
    """So many doubles side by side."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"lanes{width}")


class MaskType(types.Type):
    """A truth value per lane."""

    def __init__(self, width: int) -> None:
        self.width = width
        super().__init__(name=f"mask{width}")


class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]  # Numba has no types
    def __init__(self, manager: DataModelManager, kind: LanesType | MaskType) -> None:
        element = DOUBLE if isinstance(kind, LanesType) else I1
        super().__init__(manager, kind, ir.VectorType(element, kind.width))


register_default(LanesType)(_VectorModel)
register_default(MaskType)(_VectorModel)


def indices_of(lanes: Sequence[int]) -> ir.Constant:
    """Say which lanes a shuffle takes."""
    return ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))


def spread(builder: IRBuilder, value: Value, width: int) -> Value:
    """Put a scalar into every lane."""
    vector = ir.VectorType(value.type, width)
    nothing = ir.Constant(vector, ir.Undefined)
    return builder.shuffle_vector(builder.insert_element(nothing, value, I32(0)), nothing, indices_of([0] * width))


def _as_lanes(context: BaseContext, builder: IRBuilder, value: Value, kind: Type, width: int) -> Value:
    if isinstance(kind, LanesType):
        return value
    number = context.cast(builder, value, kind, types.float64)
    return spread(builder, number, width) if width else number


def _width(*kinds: Type) -> int:
    """Number of lanes, 0 for plain numbers."""
    return max(kind.width if isinstance(kind, LanesType | MaskType) else 0 for kind in kinds)


def _like(width: int) -> Type:
    return LanesType(width) if width else types.float64


# Operators.


Combine: TypeAlias = Callable[[IRBuilder, Value, Value], Value]


def _register(op: Callable[..., object], emit: Combine, result: type[LanesType | MaskType]) -> None:
    class Typer(AbstractTemplate):  # type: ignore[misc]  # as above
        def generic(self, args: Sequence[Type], kws: dict[str, Type]) -> Signature | None:
            wide = [kind for kind in args if isinstance(kind, LanesType)]
            if kws or len(args) != 2 or not wide or not all(isinstance(a, LanesType | types.Float) for a in args):
                return None
            return signature(result(wide[0].width), *args)

    infer_global(op)(Typer)

    def lower(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        width = _width(*sig.args)
        a, b = (_as_lanes(context, builder, v, t, width) for v, t in zip(args, sig.args, strict=True))
        return emit(builder, a, b)

    for pair in ((LanesType, LanesType), (LanesType, types.Float), (types.Float, LanesType)):
        lower_builtin(op, *pair)(lower)


def _arithmetic(instruction: Callable[..., Value]) -> Combine:
    return lambda builder, a, b: instruction(builder, a, b, flags=_FUSED)


def _comparison(symbol: str) -> Combine:
    return lambda builder, a, b: builder.fcmp_ordered(symbol, a, b)


for _op, _instruction in (
    (operator.add, IRBuilder.fadd),
    (operator.sub, IRBuilder.fsub),
    (operator.mul, IRBuilder.fmul),
    (operator.truediv, IRBuilder.fdiv),
):
    _register(_op, _arithmetic(_instruction), LanesType)
for _op, _symbol in ((operator.lt, "<"), (operator.le, "<="), (operator.gt, ">"), (operator.ge, ">=")):
    _register(_op, _comparison(_symbol), MaskType)


# Functions of lanes or plain numbers.


def call(builder: IRBuilder, name: str, args: Sequence[Value], result: ir.Type) -> Value:
    """Call a function of LLVM's."""
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [arg.type for arg in args]), name)
    return builder.call(function, args)


def _function(name: str) -> Callable[[Context, Type], Intrinsic]:
    def typed(_typing: Context, a: Type) -> Intrinsic:
        def codegen(_context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
            width = _width(a)
            return call(builder, f"llvm.{name}.{f'v{width}f64' if width else 'f64'}", args, args[0].type)

        return a(a), codegen

    return typed


root = intrinsic(_function("sqrt"))
magnitude = intrinsic(_function("fabs"))


def _pick(symbol: str) -> Callable[[Context, Type, Type], Intrinsic]:
    def typed(_typing: Context, a: Type, b: Type) -> Intrinsic:
        width = _width(a, b)

        def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
            x, y = (_as_lanes(context, builder, v, t, width) for v, t in zip(args, sig.args, strict=True))
            return builder.select(builder.fcmp_ordered(symbol, x, y), x, y)

        return _like(width)(a, b), codegen

    return typed


larger = intrinsic(_pick(">"))
smaller = intrinsic(_pick("<"))


@intrinsic
def choose(_typing: Context, condition: Type, a: Type, b: Type) -> Intrinsic:
    """Take a where the condition holds, b elsewhere."""
    width = _width(condition, a, b)

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        x, y = (_as_lanes(context, builder, v, t, width) for v, t in zip(args[1:], sig.args[1:], strict=True))
        return builder.select(args[0], x, y)

    return _like(width)(condition, a, b), codegen


def _bits(builder: IRBuilder, value: Value, width: int) -> Value:
    return builder.bitcast(value, ir.VectorType(I64, width) if width else I64)


@intrinsic
def add_exponent(_typing: Context, a: Type, rounded: Type) -> Intrinsic:
    """Multiply a by 2^n, where n is what is in the lowest bits of ``rounded`` = n + 1.5·2⁵²."""
    width = _width(a, rounded)

    def codegen(_context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
        shift = spread(builder, I64(52), width) if width else I64(52)
        n = builder.shl(_bits(builder, args[1], width), shift)
        return builder.bitcast(builder.add(_bits(builder, args[0], width), n), args[0].type)

    return a(a, rounded), codegen


@intrinsic
def split_exponent(_typing: Context, a: Type) -> Intrinsic:
    """Write a > 0 as f·2ⁿ with f from √½ to √2; returns f and n (as a number)."""
    width = _width(a)

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        def constant(number: int) -> Value:
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

    return UniTuple(a, 2)(a), codegen


# Across lanes.


@intrinsic
def lanes4(_typing: Context, x: Type) -> Intrinsic:
    """Put a number into four lanes."""

    def codegen(context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
        return _as_lanes(context, builder, args[0], x, 4)

    return LanesType(4)(x), codegen


@intrinsic
def lanes8(_typing: Context, x: Type) -> Intrinsic:
    """Put a number into eight lanes."""

    def codegen(context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
        return _as_lanes(context, builder, args[0], x, 8)

    return LanesType(8)(x), codegen


@intrinsic
def bits_of(_typing: Context, mask: MaskType) -> Intrinsic:
    """Return the mask as an integer: lane i is bit i."""

    def codegen(_context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
        return builder.zext(builder.bitcast(args[0], ir.IntType(mask.width)), I64)

    return types.int64(mask), codegen


@intrinsic
def join(_typing: Context, a: LanesType, b: LanesType) -> Intrinsic:
    """Put the lanes of two values side by side."""

    def codegen(_context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
        return builder.shuffle_vector(args[0], args[1], indices_of(range(2 * a.width)))

    return LanesType(2 * a.width)(a, b), codegen


def _half(first: int) -> Callable[[Context, LanesType], Intrinsic]:
    def typed(_typing: Context, a: LanesType) -> Intrinsic:
        width = a.width // 2

        def codegen(_context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
            return builder.shuffle_vector(args[0], args[0], indices_of(range(first * width, (first + 1) * width)))

        return LanesType(width)(a), codegen

    return typed


first_half = intrinsic(_half(0))
second_half = intrinsic(_half(1))


@intrinsic
def width_of(_typing: Context, a: LanesType) -> Intrinsic:
    """Count the lanes."""
    return types.int64(a), lambda _context, _builder, _sig, _args: I64(a.width)


def _fold(combine: Combine) -> Callable[[Context, LanesType], Intrinsic]:
    """Halve the lanes until one is left: always in the same order."""

    def typed(_typing: Context, a: LanesType) -> Intrinsic:
        def codegen(_context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
            value, width = args[0], a.width
            while width > 1:
                width //= 2
                low = builder.shuffle_vector(value, value, indices_of(range(width)))
                high = builder.shuffle_vector(value, value, indices_of(range(width, 2 * width)))
                value = combine(builder, low, high)
            return builder.extract_element(value, I32(0))

        return types.float64(a), codegen

    return typed


def _greater(builder: IRBuilder, a: Value, b: Value) -> Value:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


total = intrinsic(_fold(lambda builder, a, b: builder.fadd(a, b)))
peak = intrinsic(_fold(_greater))


@intrinsic
def first_lanes(_typing: Context, n: Type, a: LanesType) -> Intrinsic:
    """Keep the first n lanes, zero in the others."""

    def codegen(context: BaseContext, builder: IRBuilder, _sig: Signature, args: Sequence[Value]) -> Value:
        number = context.cast(builder, args[0], n, types.int64)
        places = ir.Constant(ir.VectorType(I64, a.width), list(range(a.width)))
        kept = builder.icmp_signed("<", places, spread(builder, number, a.width))
        return builder.select(kept, args[1], ir.Constant(args[1].type, [0.0] * a.width))

    return a(n, a), codegen
