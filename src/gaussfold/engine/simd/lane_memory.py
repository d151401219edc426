"""Lanes from and to memory, given by arrays or by pointers to them (``simd.pointers``): positions must be right.

A cell is the pair (mean, variance) of one feature (``sparse.cells``, K = 1). ``..._last`` are for the end of a
row that does not fill its lanes: positions behind ``last`` mean ``last``, so the lanes too many repeat the last
feature, compute the same, and may be written back. float32 arrays are widened and narrowed on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir
from numba.core import types
from numba.core.types.containers import UniTuple
from numba.extending import intrinsic

from gaussfold.engine.simd.lanes import DOUBLE, I32, I64, LanesType, call, indices_of
from gaussfold.engine.simd.pointers import place
from gaussfold.engine.simd.types import BaseContext, Context, Intrinsic, IRBuilder, Signature, Type, Value

_PAIR = UniTuple(LanesType(4), 2)


def _read(builder: IRBuilder, pointer: Value, width: int) -> Value:
    """Load doubles or floats, as doubles."""
    element = pointer.type.pointee
    vector = ir.VectorType(element, width)
    value = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=_bytes(element))
    return value if element == DOUBLE else builder.fpext(value, ir.VectorType(DOUBLE, width))


def _write(builder: IRBuilder, pointer: Value, value: Value) -> None:
    element = pointer.type.pointee
    if element != DOUBLE:
        value = builder.fptrunc(value, ir.VectorType(element, value.type.count))
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=_bytes(element))


def _bytes(element: ir.Type) -> int:
    return 8 if element == DOUBLE else 4


def _load(width: int) -> Callable[[Context, Type, Type], Intrinsic]:
    def typed(_typing: Context, array: Type, at: Type) -> Intrinsic:
        def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
            return _read(builder, place(context, builder, sig.args[0], args[0], args[1], width), width)

        return LanesType(width)(array, types.int64), codegen

    return typed


load4 = intrinsic(_load(4))
load8 = intrinsic(_load(8))


@intrinsic
def load_like(_typing: Context, array: Type, at: Type, like: LanesType) -> Intrinsic:
    """As many lanes as another value has."""

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        return _read(builder, place(context, builder, sig.args[0], args[0], args[1], like.width), like.width)

    return like(array, types.int64, like), codegen


@intrinsic
def store(_typing: Context, array: Type, at: Type, lanes: Type) -> Intrinsic:
    """Write lanes from position ``at`` on (counted in elements of the flat array)."""

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        _write(builder, place(context, builder, sig.args[0], args[0], args[1], args[2].type.count), args[2])
        return context.get_dummy_value()

    return types.none(array, types.int64, lanes), codegen


@intrinsic
def store_first(_typing: Context, array: Type, at: Type, n: Type, lanes: LanesType) -> Intrinsic:
    """Write the first n lanes, n smaller than their number: the others have no place there."""

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        for lane in range(lanes.width - 1):
            with builder.if_then(builder.icmp_signed("<", I64(lane), args[2])):
                position = builder.add(args[1], I64(lane))
                address = place(context, builder, sig.args[0], args[0], position)
                builder.store(builder.extract_element(args[3], I32(lane)), address)
        return context.get_dummy_value()

    return types.none(array, types.int64, types.int64, lanes), codegen


def _not_behind(builder: IRBuilder, start: Value, lane: int, last: Value | None) -> Value:
    """Position of a lane; ``last`` for those behind it."""
    position = builder.add(start, I64(lane))
    return position if last is None else builder.select(builder.icmp_signed("<", position, last), position, last)


def _collect(context: BaseContext, builder: IRBuilder, kind: Type, array: Value, positions: Sequence[Value]) -> Value:
    """Load one element after the other into lanes, as doubles."""
    lanes = ir.Constant(ir.VectorType(DOUBLE, len(positions)), ir.Undefined)
    for lane, position in enumerate(positions):
        value = builder.load(place(context, builder, kind, array, position))
        value = value if value.type == DOUBLE else builder.fpext(value, DOUBLE)
        lanes = builder.insert_element(lanes, value, I32(lane))
    return lanes


@intrinsic
def load4_last(_typing: Context, array: Type, at: Type, last: Type) -> Intrinsic:
    """As ``load4``; lanes behind ``last`` repeat it."""

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        positions = [_not_behind(builder, args[1], lane, args[2]) for lane in range(4)]
        return _collect(context, builder, sig.args[0], args[0], positions)

    return LanesType(4)(array, types.int64, types.int64), codegen


def _position(context: BaseContext, builder: IRBuilder, kind: Type, places: Value, at: Value, lane: int) -> Value:
    """``places[at + lane]``."""
    return builder.load(place(context, builder, kind, places, builder.add(at, I64(lane))))


def _pick(width: int) -> Callable[[Context, Type, Type, Type], Intrinsic]:
    def typed(_typing: Context, array: Type, places: Type, at: Type) -> Intrinsic:
        def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
            found = [_position(context, builder, sig.args[1], args[1], args[2], lane) for lane in range(width)]
            return _collect(context, builder, sig.args[0], args[0], found)

        return LanesType(width)(array, places, types.int64), codegen

    return typed


pick4 = intrinsic(_pick(4))
"""``array[places[at:at + 4]]``, and so on."""
pick8 = intrinsic(_pick(8))


def _cell(
    context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value], lane: int, last: Value | None
) -> Value:
    """Pointer to the cell that ``indices[at + lane]`` names."""
    position = _not_behind(builder, args[2], lane, last)
    index = builder.load(place(context, builder, sig.args[1], args[1], position))
    index = index if index.type.width == 64 else builder.zext(index, I64)
    return place(context, builder, sig.args[0], args[0], builder.shl(index, I64(1)), 2)


def _gather(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
    last = args[3] if len(args) > 3 else None
    pairs = [_read(builder, _cell(context, builder, sig, args, lane, last), 2) for lane in range(4)]
    low = builder.shuffle_vector(pairs[0], pairs[1], indices_of(range(4)))
    high = builder.shuffle_vector(pairs[2], pairs[3], indices_of(range(4)))
    mean = builder.shuffle_vector(low, high, indices_of((0, 2, 4, 6)))
    variance = builder.shuffle_vector(low, high, indices_of((1, 3, 5, 7)))
    return context.make_tuple(builder, _PAIR, (mean, variance))


@intrinsic
def gather4(_typing: Context, cells: Type, indices: Type, at: Type) -> Intrinsic:
    """Means and variances of the features ``indices[at:at + 4]``."""
    return _PAIR(cells, indices, types.int64), _gather


@intrinsic
def gather4_last(_typing: Context, cells: Type, indices: Type, at: Type, last: Type) -> Intrinsic:
    """As ``gather4``; lanes behind ``last`` repeat it."""
    return _PAIR(cells, indices, types.int64, types.int64), _gather


def _scatter(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
    last = args[3] if len(args) > 5 else None
    mean, variance = args[-2:]
    for lane in range(4):
        pair = builder.shuffle_vector(mean, variance, indices_of((lane, 4 + lane)))
        _write(builder, _cell(context, builder, sig, args, lane, last), pair)
    return context.get_dummy_value()


@intrinsic
def scatter4(_typing: Context, cells: Type, indices: Type, at: Type, mean: Type, variance: Type) -> Intrinsic:
    """Undo ``gather4``."""
    return types.none(cells, indices, types.int64, mean, variance), _scatter


@intrinsic
def scatter4_last(
    _typing: Context, cells: Type, indices: Type, at: Type, last: Type, mean: Type, variance: Type
) -> Intrinsic:
    """Undo ``gather4_last``."""
    return types.none(cells, indices, types.int64, types.int64, mean, variance), _scatter


@intrinsic
def scatter8_at(
    _typing: Context, cells: Type, indices: Type, places: Type, at: Type, mean: Type, variance: Type
) -> Intrinsic:
    """Write the cells of the features ``indices[places[at:at + 8]]``."""

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        for lane in range(8):
            position = _position(context, builder, sig.args[2], args[2], args[3], lane)
            pair = builder.shuffle_vector(args[4], args[5], indices_of((lane, 8 + lane)))
            _write(builder, _cell(context, builder, sig, (args[0], args[1], position), 0, None), pair)
        return context.get_dummy_value()

    return types.none(cells, indices, places, types.int64, mean, variance), codegen


@intrinsic
def prefetch(_typing: Context, array: Type, at: Type) -> Intrinsic:
    """Ask for the cache line of element ``at``, to write it soon."""

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        address = place(context, builder, sig.args[0], args[0], args[1])
        line = builder.bitcast(address, ir.IntType(8).as_pointer())
        call(builder, "llvm.prefetch.p0i8", [line, I32(1), I32(3), I32(1)], ir.VoidType())
        return context.get_dummy_value()

    return types.none(array, types.int64), codegen
