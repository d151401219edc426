"""Pointers into arrays: where they come from, and the one way from a position to a place in memory.

Normally a pointer is an address and nothing is checked. In the sanitising mode (``engine.sanitise``) it also knows
where its array begins and ends, and `place` looks before anything is read or written.

The rule that must not be broken: `pointer` is asked for an *argument* of the function only (or a part of one). The
caller holds it until the call returns; an array made in the same function is freed after its last visible use, and a
pointer into it is no visible use. ``tests/engine/test_pointers.py`` reads the sources for it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.datamodel import DataModelManager, models, register_default
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin
from numba.core.types.misc import CPointer
from numba.core.types.npytypes import Array
from numba.core.typing.builtins import normalize_1d_index
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic

from gaussfold.engine.sanitise import SANITISING, SanitiserError
from gaussfold.engine.simd.types import BaseContext, Context, Intrinsic, IRBuilder, Signature, Type, Value

I64 = ir.IntType(64)


class CheckedPointer(types.Type):
    """An address, and where the array begins and ends that it points into."""

    def __init__(self, dtype: Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"checked_pointer({dtype})")


@register_default(CheckedPointer)
class _CheckedModel(models.StructModel):  # type: ignore[misc]  # Numba has no types
    def __init__(self, manager: DataModelManager, kind: CheckedPointer) -> None:
        address = CPointer(kind.dtype)
        super().__init__(manager, kind, [("at", address), ("low", address), ("high", address)])


def pointer_to(dtype: Type) -> Type:
    """The type of pointers to elements of a type."""
    return CheckedPointer(dtype) if SANITISING else CPointer(dtype)


class _Span(NamedTuple):
    """An address and the ends of the memory around it."""

    at: Value
    low: Value
    high: Value


def _span(context: BaseContext, builder: IRBuilder, kind: Type, value: Value) -> _Span:
    if isinstance(kind, CheckedPointer):
        return _Span(*(builder.extract_value(value, i) for i in range(3)))
    array = context.make_array(kind)(context, builder, value)
    return _Span(array.data, array.data, builder.gep(array.data, [array.nitems]))


def _data_of(context: BaseContext, builder: IRBuilder, kind: Type, value: Value) -> Value:
    """Where an array or a pointer begins."""
    return value if isinstance(kind, CPointer) else context.make_array(kind)(context, builder, value).data


def _check_contiguous(kind: Type) -> None:
    if isinstance(kind, Array) and kind.layout != "C":
        msg = f"{kind}: only the elements of a contiguous array stand one after the other"
        raise TypingError(msg)


def fail(context: BaseContext, builder: IRBuilder, condition: Value, what: str) -> None:
    """Leave the function with an error if the condition holds."""
    with cgutils.if_unlikely(builder, condition):
        loop = f"{context.fndesc.modname}.{context.fndesc.qualname}"
        context.call_conv.return_user_exc(builder, SanitiserError, (f"{loop}: {what}",))


def place(context: BaseContext, builder: IRBuilder, kind: Type, value: Value, at: Value, count: int = 1) -> Value:
    """Address of element ``at`` of an array or behind a pointer, from which ``count`` elements are used."""
    _check_contiguous(kind)
    if not SANITISING:
        return builder.gep(_data_of(context, builder, kind, value), [at])
    span = _span(context, builder, kind, value)
    address = builder.gep(span.at, [at])
    low, high, here = (builder.ptrtoint(end, I64) for end in (span.low, span.high, address))
    need = I64(count * context.get_abi_sizeof(address.type.pointee))
    room = builder.sub(high, low)
    # One comparison for both ends: an address below the array is far above it as an unsigned number.
    outside = builder.icmp_unsigned(">", builder.sub(here, low), builder.sub(room, need))
    outside = builder.or_(builder.icmp_signed("<", room, need), outside)
    fail(context, builder, outside, f"{count} of type {address.type.pointee} outside of their array")
    return address


@intrinsic
def pointer(_typing: Context, array: Array) -> Intrinsic:
    """Where an array's numbers are: one word to pass on instead of ten, and no references to count.

    The array must be contiguous, and an argument of the function; ``pointer(a)[i]`` is element i of the flat array.
    """
    _check_contiguous(array)

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        if not SANITISING:
            return _data_of(context, builder, sig.args[0], args[0])
        _check_held(context, builder, sig.args[0], args[0])
        return _made(context, builder, sig.return_type, _span(context, builder, sig.args[0], args[0]))

    return pointer_to(array.dtype)(array), codegen


def _made(context: BaseContext, builder: IRBuilder, kind: CheckedPointer, span: _Span) -> Value:
    made = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for i, address in enumerate(span):
        made = builder.insert_value(made, address, i)
    return made


def _check_held(context: BaseContext, builder: IRBuilder, kind: Array, value: Value) -> None:
    """Fail if nobody but this function holds an array: its own reference is then the only one (a constant has none)."""
    owner = context.make_array(kind)(context, builder, value).meminfo
    with cgutils.if_likely(builder, cgutils.is_not_null(builder, owner)):
        references = builder.load(builder.bitcast(owner, I64.as_pointer()))  # the first word of Numba's record of it
        alone = builder.icmp_unsigned("<", references, I64(2))
        fail(context, builder, alone, "a pointer into an array of the function's own, which is freed while it is used")


@intrinsic
def offset(_typing: Context, start: Type, n: Type) -> Intrinsic:
    """Return the pointer to element n."""

    def codegen(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
        if not SANITISING:
            return builder.gep(args[0], [args[1]])
        span = _span(context, builder, sig.args[0], args[0])
        return _made(context, builder, sig.return_type, span._replace(at=builder.gep(span.at, [args[1]])))

    return start(start, types.int64), codegen


# ``p[i]``, as Numba has it for addresses.


class _Item(AbstractTemplate):  # type: ignore[misc]  # as above
    def generic(self, args: Sequence[Type], kws: dict[str, Type]) -> Signature | None:
        if kws or not isinstance(args[0], CheckedPointer) or not isinstance(args[1], types.Integer):
            return None
        index = normalize_1d_index(args[1])
        element = args[0].dtype
        return signature(element, args[0], index) if len(args) == 2 else signature(types.none, args[0], index, element)


infer_global(operator.getitem)(_Item)
infer_global(operator.setitem)(_Item)


@lower_builtin(operator.getitem, CheckedPointer, types.Integer)
def _get(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
    return builder.load(place(context, builder, sig.args[0], args[0], args[1]))


@lower_builtin(operator.setitem, CheckedPointer, types.Integer, types.Any)
def _set(context: BaseContext, builder: IRBuilder, sig: Signature, args: Sequence[Value]) -> Value:
    builder.store(args[2], place(context, builder, sig.args[0], args[0], args[1]))
    return context.get_dummy_value()
