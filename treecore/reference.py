"""Passing a state of many arrays by reference inside compiled code.

A ``NamedTuple`` of arrays goes into a compiled function field by field, hundreds of machine words at
every call, and most of the time that a kernel takes to compile is spent on them. :func:`by_reference`
puts the fields into one heap record and passes its address. Only compiled code sees such records:
Python keeps its tuples, and with compilation switched off the function returns its argument.
"""

from typing import Any, TypeVar

from numba.core import cgutils, types
from numba.experimental import structref
from numba.experimental.jitclass.base import imp_dtor
from numba.extending import intrinsic, overload

from .compile import OPTIONS

__all__ = ["by_reference"]

T = TypeVar("T")


@structref.register
class _Record(types.StructRef):
    """Type of the heap record of a tuple with these fields."""


def by_reference(state: T) -> T:
    """The same state (a ``NamedTuple`` of arrays and further such tuples), held by reference.

    To be called once, where compiled code is entered from Python.
    """
    return state


def _is_state(numba_type: Any) -> bool:
    """Families are small and dispatched on by type, so they stay tuples; states hold labelled arrays."""
    return isinstance(numba_type, types.BaseNamedTuple) and getattr(
        numba_type.instance_class, "held_by_reference", False
    )


def _record_type(numba_type: Any) -> Any:
    if not _is_state(numba_type):
        return numba_type
    fields = zip(numba_type.fields, numba_type.types, strict=True)
    return _Record([(name, _record_type(field)) for name, field in fields])


def _build(context: Any, builder: Any, tuple_type: Any, value: Any) -> Any:
    record = _record_type(tuple_type)
    payload = context.data_model_manager[record.get_data_type()].get_value_type()
    meminfo = context.nrt.meminfo_alloc_dtor(
        builder,
        context.get_constant(types.uintp, context.get_abi_sizeof(payload)),
        imp_dtor(context, builder.module, record),
    )
    pointer = builder.bitcast(context.nrt.meminfo_data(builder, meminfo), payload.as_pointer())
    builder.store(cgutils.get_null_value(payload), pointer)
    data = cgutils.create_struct_proxy(record.get_data_type())(context, builder, ref=pointer)
    for at, (name, field_type) in enumerate(
        zip(tuple_type.fields, tuple_type.types, strict=True)
    ):
        field = builder.extract_value(value, at)
        if _is_state(field_type):
            field = _build(context, builder, field_type, field)
        else:
            context.nrt.incref(builder, field_type, field)
        setattr(data, name, field)
    reference = context.make_helper(builder, record)
    reference.meminfo = meminfo
    return reference._getvalue()


@intrinsic
def _reference(typing_context: Any, state: Any) -> Any:  # noqa: ARG001  (numba's signature)
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _build(context, builder, signature.args[0], arguments[0])

    return _record_type(state)(state), generate


@overload(by_reference, jit_options=dict(OPTIONS), strict=False)
def _by_reference(state: Any) -> Any:
    if not _is_state(state):
        return None
    return lambda state: _reference(state)
