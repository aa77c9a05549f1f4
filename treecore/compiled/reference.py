"""Passing a state of many arrays by reference inside compiled code.

A ``NamedTuple`` of arrays goes into a compiled function field by field, hundreds of machine words
at every call, and most of the time that a kernel takes to compile is spent on them.
:func:`by_reference` puts the fields into one record and passes its address. Only compiled code sees
such records: Python keeps its tuples, and with compilation switched off the function returns its
argument.
"""

from typing import Any, TypeVar

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_global,
    signature,
)
from numba.extending import (
    infer_getattr,
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
)

__all__ = ["by_reference", "held_by_reference"]

T = TypeVar("T")

_STATES: set[type] = set()


def held_by_reference(state: type[T]) -> type[T]:
    """Mark a ``NamedTuple`` of arrays as one that :func:`by_reference` puts into a record.

    Families are not marked: they are small, and compiled code chooses implementations by their
    type.
    """
    _STATES.add(state)
    return state


def by_reference(state: T) -> T:
    """The same state (a ``NamedTuple`` of arrays and further such tuples), held by reference.

    To be called once, where compiled code is entered from Python: the record lives in that
    function's frame and borrows the arrays of its argument.
    """
    return state


class _Record(types.Type):
    """Type of the address of a record with these (name, type) fields.

    ``instance_class`` is the ``NamedTuple`` that it stands for: generic functions choose by it.
    """

    def __init__(self, instance_class: type, fields: tuple[tuple[str, Any], ...]) -> None:
        self.instance_class = instance_class
        self.fields = fields
        listed = ", ".join(f"{name}: {field}" for name, field in fields)
        super().__init__(name=f"Record({instance_class.__qualname__}: {listed})")

    def payload(self, context: Any) -> Any:
        """Layout of the record itself."""
        return ir.LiteralStructType([context.get_value_type(field) for _, field in self.fields])


register_model(_Record)(models.OpaqueModel)


@infer_getattr
class _RecordAttributes(AttributeTemplate):
    key = _Record

    def generic_resolve(self, record: _Record, name: str) -> Any:  # type: ignore[override]  # numba declares it absent
        return dict(record.fields).get(name)


@lower_getattr_generic(_Record)
def _load(context: Any, builder: Any, record: _Record, address: Any, name: str) -> Any:
    at = [field for field, _ in record.fields].index(name)
    pointer = builder.bitcast(address, record.payload(context).as_pointer())
    value = builder.load(cgutils.gep_inbounds(builder, pointer, 0, at))
    return impl_ret_borrowed(context, builder, record.fields[at][1], value)


def _is_state(numba_type: Any) -> bool:
    if not isinstance(numba_type, types.BaseNamedTuple):
        return False
    return numba_type.instance_class in _STATES  # type: ignore[attr-defined]  # in its subclasses


def _record_type(numba_type: Any) -> Any:
    if not _is_state(numba_type):
        return numba_type
    fields = zip(numba_type.fields, numba_type.types, strict=True)
    held = tuple((name, _record_type(field)) for name, field in fields)
    return _Record(numba_type.instance_class, held)


def _build(context: Any, builder: Any, tuple_type: Any, value: Any) -> Any:
    payload = _record_type(tuple_type).payload(context)
    pointer = cgutils.alloca_once(builder, payload)
    for at, field_type in enumerate(tuple_type.types):
        field = builder.extract_value(value, at)
        if _is_state(field_type):
            field = _build(context, builder, field_type, field)
        builder.store(field, cgutils.gep_inbounds(builder, pointer, 0, at))
    return builder.bitcast(pointer, cgutils.voidptr_t)


@infer_global(by_reference)
class _ByReference(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:  # noqa: ARG002 - numba's signature
        return signature(_record_type(arguments[0]), arguments[0])


@lower_builtin(by_reference, types.BaseNamedTuple)
def _lower_by_reference(context: Any, builder: Any, called: Any, arguments: Any) -> Any:
    return _build(context, builder, called.args[0], arguments[0])


@lower_builtin(by_reference, _Record)
def _lower_again(context: Any, builder: Any, called: Any, arguments: Any) -> Any:  # noqa: ARG001 - numba's signature
    return arguments[0]
