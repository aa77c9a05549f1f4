"""Commands and answers as bytes: MessagePack, arrays as their numbers behind type and shape."""

import math
from typing import Any

import msgspec
import numpy as np

__all__ = ["decoded", "encoded"]

_ARRAY = 1
# What may come out of bytes: numbers of fixed width, nothing that is code.
_TYPES = frozenset(["<f8", "<i8", "<u8", "<i4", "|i1", "|b1"])


def encoded(message: Any) -> bytes:
    """The bytes of numbers, texts, arrays, and lists of these; named tuples become lists."""
    return msgspec.msgpack.encode(message, enc_hook=_of_array)


def _of_array(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray) or value.dtype.str not in _TYPES:
        raise TypeError(f"{type(value).__name__} does not travel")
    head = msgspec.msgpack.encode((value.dtype.str, value.shape))
    return msgspec.msgpack.Ext(_ARRAY, bytes([len(head)]) + head + value.tobytes())


def decoded(data: bytes) -> Any:
    """What was encoded; arrays are contiguous, and of whoever gets them."""
    return msgspec.msgpack.decode(data, ext_hook=_to_array)


def _to_array(code: int, data: memoryview) -> Any:
    size = data[0] + 1
    kind, shape = msgspec.msgpack.decode(data[1:size], type=tuple[str, tuple[int, ...]])
    if code != _ARRAY or kind not in _TYPES:
        raise ValueError(f"an array of {kind!r} was not expected")
    flat = np.frombuffer(data[size:], dtype=np.dtype(kind), count=math.prod(shape))
    return flat.reshape(shape).copy()
