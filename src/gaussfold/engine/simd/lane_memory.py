"""Lanes from and to memory, given by arrays or by pointers to them; nothing is checked, so positions must be right.

A cell is the pair (mean, variance) of one feature (``sparse.cells``, K = 1). ``..._last`` are for the end of a
row that does not fill its lanes: positions behind ``last`` mean ``last``, so the lanes too many repeat the last
feature, compute the same, and may be written back. float32 arrays are widened and narrowed on the way.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from gaussfold.engine.simd.lanes import DOUBLE, I32, I64, Lanes, call, indices_of

_Pointer = types.CPointer  # type: ignore[attr-defined]
_PAIR = types.UniTuple(Lanes(4), 2)  # type: ignore[attr-defined]


def data_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    """Pointer to the first element."""
    return array if isinstance(kind, _Pointer) else context.make_array(kind)(context, builder, array).data


@intrinsic
def pointer(typingctx: Any, array: Any) -> Any:  # noqa: ARG001
    """Where an array's numbers are: one word to pass on instead of ten, and no references to count.

    The array must be contiguous, and outlive it. ``pointer(a)[i]`` is element i of the flattened array.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return data_of(context, builder, sig.args[0], args[0])

    return _Pointer(array.dtype)(array), codegen


@intrinsic
def offset(typingctx: Any, start: Any, n: Any) -> Any:  # noqa: ARG001
    """Return the pointer to element n."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:  # noqa: ARG001
        return builder.gep(args[0], [args[1]])

    return start(start, types.int64), codegen


def _read(builder: Any, pointer: Any, width: int) -> Any:
    """Load doubles or floats, as doubles."""
    element = pointer.type.pointee
    vector = ir.VectorType(element, width)
    value = builder.load(builder.bitcast(pointer, vector.as_pointer()), align=_bytes(element))
    return value if element == DOUBLE else builder.fpext(value, ir.VectorType(DOUBLE, width))


def _write(builder: Any, pointer: Any, value: Any) -> None:
    element = pointer.type.pointee
    if element != DOUBLE:
        value = builder.fptrunc(value, ir.VectorType(element, value.type.count))
    builder.store(value, builder.bitcast(pointer, value.type.as_pointer()), align=_bytes(element))


def _bytes(element: Any) -> int:
    return 8 if element == DOUBLE else 4


def _load(width: int) -> Any:
    def typed(typingctx: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return _read(builder, builder.gep(data_of(context, builder, sig.args[0], args[0]), [args[1]]), width)

        return Lanes(width)(array, types.int64), codegen

    return typed


load4 = intrinsic(_load(4))
load8 = intrinsic(_load(8))


@intrinsic
def load_like(typingctx: Any, array: Any, at: Any, like: Any) -> Any:  # noqa: ARG001
    """As many lanes as another value has."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _read(builder, builder.gep(data_of(context, builder, sig.args[0], args[0]), [args[1]]), like.width)

    return like(array, types.int64, like), codegen


@intrinsic
def store(typingctx: Any, array: Any, at: Any, lanes: Any) -> Any:  # noqa: ARG001
    """Write lanes from position ``at`` on (counted in elements of the flat array)."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        _write(builder, builder.gep(data_of(context, builder, sig.args[0], args[0]), [args[1]]), args[2])
        return context.get_dummy_value()

    return types.none(array, types.int64, lanes), codegen


def _place(builder: Any, start: Any, lane: int, last: Any) -> Any:
    place = builder.add(start, I64(lane))
    return place if last is None else builder.select(builder.icmp_signed("<", place, last), place, last)


@intrinsic
def load4_last(typingctx: Any, array: Any, at: Any, last: Any) -> Any:  # noqa: ARG001
    """As ``load4``; lanes behind ``last`` repeat it."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = data_of(context, builder, sig.args[0], args[0])
        lanes = ir.Constant(ir.VectorType(DOUBLE, 4), ir.Undefined)
        for lane in range(4):
            value = builder.load(builder.gep(data, [_place(builder, args[1], lane, args[2])]))
            value = value if data.type.pointee == DOUBLE else builder.fpext(value, DOUBLE)
            lanes = builder.insert_element(lanes, value, I32(lane))
        return lanes

    return Lanes(4)(array, types.int64, types.int64), codegen


@intrinsic
def pick8(typingctx: Any, array: Any, places: Any, at: Any) -> Any:  # noqa: ARG001
    """``array[places[at:at + 8]]``."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = data_of(context, builder, sig.args[0], args[0])
        lanes = ir.Constant(ir.VectorType(DOUBLE, 8), ir.Undefined)
        for lane in range(8):
            place = builder.load(builder.gep(args[1], [builder.add(args[2], I64(lane))]))
            lanes = builder.insert_element(lanes, builder.load(builder.gep(data, [place])), I32(lane))
        return lanes

    return Lanes(8)(array, places, types.int64), codegen


def _cell(context: Any, builder: Any, sig: Any, args: Any, lane: int, last: Any) -> Any:
    """Pointer to the cell that ``indices[at + lane]`` names."""
    cells = data_of(context, builder, sig.args[0], args[0])
    place = _place(builder, args[2], lane, last)
    index = builder.load(builder.gep(data_of(context, builder, sig.args[1], args[1]), [place]))
    index = index if index.type.width == 64 else builder.zext(index, I64)
    return builder.gep(cells, [builder.shl(index, I64(1))])


def _gather(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    last = args[3] if len(args) > 3 else None
    pairs = [_read(builder, _cell(context, builder, sig, args, lane, last), 2) for lane in range(4)]
    low = builder.shuffle_vector(pairs[0], pairs[1], indices_of(range(4)))
    high = builder.shuffle_vector(pairs[2], pairs[3], indices_of(range(4)))
    mean = builder.shuffle_vector(low, high, indices_of((0, 2, 4, 6)))
    variance = builder.shuffle_vector(low, high, indices_of((1, 3, 5, 7)))
    return context.make_tuple(builder, _PAIR, (mean, variance))


@intrinsic
def gather4(typingctx: Any, cells: Any, indices: Any, at: Any) -> Any:  # noqa: ARG001
    """Means and variances of the features ``indices[at:at + 4]``."""
    return _PAIR(cells, indices, types.int64), _gather


@intrinsic
def gather4_last(typingctx: Any, cells: Any, indices: Any, at: Any, last: Any) -> Any:  # noqa: ARG001
    """As ``gather4``; lanes behind ``last`` repeat it."""
    return _PAIR(cells, indices, types.int64, types.int64), _gather


def _scatter(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    last = args[3] if len(args) > 5 else None
    mean, variance = args[-2:]
    for lane in range(4):
        pair = builder.shuffle_vector(mean, variance, indices_of((lane, 4 + lane)))
        _write(builder, _cell(context, builder, sig, args, lane, last), pair)
    return context.get_dummy_value()


@intrinsic
def scatter4(typingctx: Any, cells: Any, indices: Any, at: Any, mean: Any, variance: Any) -> Any:  # noqa: ARG001
    """Undo ``gather4``."""
    return types.none(cells, indices, types.int64, mean, variance), _scatter


@intrinsic
def scatter4_last(typingctx: Any, cells: Any, indices: Any, at: Any, last: Any, mean: Any, variance: Any) -> Any:  # noqa: ARG001
    """Undo ``gather4_last``."""
    return types.none(cells, indices, types.int64, types.int64, mean, variance), _scatter


@intrinsic
def scatter8_at(typingctx: Any, cells: Any, indices: Any, places: Any, at: Any, mean: Any, variance: Any) -> Any:  # noqa: ARG001
    """Write the cells of the features ``indices[places[at:at + 8]]``."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        for lane in range(8):
            place = builder.load(builder.gep(args[2], [builder.add(args[3], I64(lane))]))
            pair = builder.shuffle_vector(args[4], args[5], indices_of((lane, 8 + lane)))
            _write(builder, _cell(context, builder, sig, (args[0], args[1], place), 0, None), pair)
        return context.get_dummy_value()

    return types.none(cells, indices, places, types.int64, mean, variance), codegen


@intrinsic
def prefetch(typingctx: Any, array: Any, at: Any) -> Any:  # noqa: ARG001
    """Ask for the cache line of element ``at``, to write it soon; any address is allowed."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = data_of(context, builder, sig.args[0], args[0])
        pointer = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        call(builder, "llvm.prefetch.p0i8", [pointer, I32(1), I32(3), I32(1)], ir.VoidType())
        return context.get_dummy_value()

    return types.none(array, types.int64), codegen
