"""Asking for a row before it is needed, so that memory answers while something else is computed.

A tree of a million leaves lies in no cache: an insertion that reads one row after the other waits
for memory most of its time.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

__all__ = ["prefetch_entry", "prefetch_row"]

# Numbers of float64 in a line of the processor's cache.
_LINE = 8
# To be read, near the processor, data: the last arguments of LLVM's intrinsic.
_HOW = (0, 3, 1)

_item_pointer: Any = cgutils.get_item_pointer  # which has no types


def prefetch_row(rows: Any, i: int) -> None:
    """Bring ``rows[i]`` near the processor where rows are dense; interpreted, do nothing."""


def prefetch_entry(entries: Any, i: int) -> None:
    """Bring ``entries[i]``, of one dimension, near the processor; interpreted, do nothing."""


def _typed_prefetch(_typing: Any, array: Any, *indices: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        array = context.make_array(array_type)(context, builder, arguments[0])
        place = _item_pointer(context, builder, array_type, array, arguments[1:])
        byte, number = cgutils.voidptr_t, ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        ask = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        builder.call(ask, [builder.bitcast(place, byte), *(number(each) for each in _HOW)])
        return context.get_dummy_value()

    return types.void(array, *(types.intp for _ in indices)), generate


def _typed_of_one(typing: Any, array: Any, index: Any) -> Any:
    return _typed_prefetch(typing, array, index)


def _typed_of_two(typing: Any, array: Any, row: Any, column: Any) -> Any:
    return _typed_prefetch(typing, array, row, column)


_prefetch_one: Any = intrinsic(_typed_of_one)
_prefetch: Any = intrinsic(_typed_of_two)


@overload(prefetch_row)
def _prefetch_row(rows: Any, i: Any) -> Any:  # noqa: ARG001 - numba asks by the types of all
    def dense(rows: Any, i: Any) -> None:
        for column in range(0, rows.shape[1], _LINE):
            _prefetch(rows, i, column)

    def otherwise(rows: Any, i: Any) -> None:
        pass

    return dense if isinstance(rows, types.Array) else otherwise


@overload(prefetch_entry)
def _prefetch_entry(entries: Any, i: Any) -> Any:  # noqa: ARG001 - as above
    def of_one(entries: Any, i: Any) -> None:
        _prefetch_one(entries, i)

    return of_one
