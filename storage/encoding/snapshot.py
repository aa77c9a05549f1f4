"""Snapshots as bytes: named arrays in, named arrays out, and nothing that could run.

Layout, little-endian throughout::

    magic      8 bytes   b"WEALDSNP"
    version    uint16    of this layout
    reserved   uint16    0
    table      uint32    length of the table in bytes
    sha256     32 bytes  of everything after it
    table      for each array: name length uint16, name (UTF-8), dtype code uint8, packing uint8,
               dimensions uint8, reserved uint8, shape uint64 each, stored length uint64
    data       the arrays' bytes in the table's order

The checksum is verified before anything is interpreted, so the table that is read is one that
was written, and each length is checked against the bytes that are there all the same.
"""

from __future__ import annotations

import hashlib
import math
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.storage.errors import SnapshotCorrupt

__all__ = ["VERSION", "decode", "encode"]

MAGIC = b"WEALDSNP"
VERSION = 1

_HEADER = struct.Struct("<8sHHI32s")
_NAME = struct.Struct("<H")
_ARRAY = struct.Struct("<BBBB")
_PLAIN, _ZLIB = 0, 1

# The whole list of what a snapshot may hold; the code of a type is never given to another.
_DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype("|b1"),
    2: np.dtype("|i1"),
    3: np.dtype("<i2"),
    4: np.dtype("<i4"),
    5: np.dtype("<i8"),
    6: np.dtype("|u1"),
    7: np.dtype("<u2"),
    8: np.dtype("<u4"),
    9: np.dtype("<u8"),
    10: np.dtype("<f4"),
    11: np.dtype("<f8"),
}
_CODES: dict[np.dtype[Any], int] = {dtype: code for code, dtype in _DTYPES.items()}

# Below this size packing saves nothing that matters.
_WORTH_PACKING = 1024


class _Entry(NamedTuple):
    name: str
    dtype: np.dtype[Any]
    packing: int
    shape: tuple[int, ...]
    n_stored: int


def encode(arrays: Mapping[str, NDArray[Any]], *, compress: bool = True) -> bytes:
    """Return the arrays as one self-describing, checksummed block of bytes.

    Parameters
    ----------
    arrays
        Booleans, integers and floats of any shape. Order is kept.
    compress
        Pack arrays of integers and booleans with zlib. Floats go plain: random mantissas do not
        shrink, and packing them would cost more than writing them.

    Raises
    ------
    TypeError
        If an array's dtype is not on the list.
    """
    table: list[bytes] = []
    data: list[bytes] = []
    for name, array in arrays.items():
        # ascontiguousarray would turn a scalar into a vector; C order is all that is needed.
        plain = np.asarray(array, order="C")
        dtype = plain.dtype.newbyteorder("<")
        if dtype not in _CODES:
            raise TypeError(f"array {name!r}: a snapshot cannot hold dtype {plain.dtype}")
        stored = plain.astype(dtype, copy=False).tobytes()
        packing = _PLAIN
        if compress and dtype.kind != "f" and len(stored) >= _WORTH_PACKING:
            stored, packing = zlib.compress(stored, level=1), _ZLIB
        encoded = name.encode()
        table += [
            _NAME.pack(len(encoded)),
            encoded,
            _ARRAY.pack(_CODES[dtype], packing, plain.ndim, 0),
            struct.pack(f"<{plain.ndim + 1}Q", *plain.shape, len(stored)),
        ]
        data.append(stored)
    head = b"".join(table)
    # The length of the table counts too: it decides where the table ends and the data begin.
    digest = hashlib.sha256(struct.pack("<Q", len(head)))
    digest.update(head)
    for stored in data:
        digest.update(stored)
    header = _HEADER.pack(MAGIC, VERSION, 0, len(head), digest.digest())
    return b"".join([header, head, *data])


def decode(payload: bytes) -> dict[str, NDArray[Any]]:
    """Return the arrays that ``encode`` was given, as new writable arrays of native byte order.

    Raises
    ------
    SnapshotCorrupt
        Saying whether the bytes are foreign, of another version, cut short or damaged.
    """
    view = memoryview(payload)
    if len(view) < _HEADER.size or view[: len(MAGIC)] != MAGIC:
        raise SnapshotCorrupt("these bytes are not a Weald snapshot")
    _, version, reserved, n_table, checksum = _HEADER.unpack_from(view)
    if version != VERSION or reserved:
        raise SnapshotCorrupt(
            f"the snapshot has layout version {version}, this program reads {VERSION}"
        )
    body = view[_HEADER.size :]
    digest = hashlib.sha256(struct.pack("<Q", n_table))
    digest.update(body)
    if digest.digest() != checksum:
        raise SnapshotCorrupt("the snapshot is damaged or cut short: its checksum does not match")
    try:
        return _unpack(_entries(body[:n_table]), body[n_table:])
    except (KeyError, ValueError, OverflowError, struct.error, zlib.error) as error:
        raise SnapshotCorrupt(f"the snapshot's table of arrays is wrong: {error}") from error


def _entries(table: memoryview) -> list[_Entry]:
    entries = []
    at = 0
    while at < len(table):
        (n_name,) = _NAME.unpack_from(table, at)
        at += _NAME.size
        name = bytes(table[at : at + n_name]).decode()
        at += n_name
        code, packing, n_dims, _ = _ARRAY.unpack_from(table, at)
        at += _ARRAY.size
        *shape, n_stored = struct.unpack_from(f"<{n_dims + 1}Q", table, at)
        at += 8 * (n_dims + 1)
        entries.append(_Entry(name, _DTYPES[code], packing, tuple(shape), n_stored))
    return entries


def _unpack(entries: list[_Entry], data: memoryview) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    at = 0
    for entry in entries:
        stored = data[at : at + entry.n_stored]
        at += entry.n_stored
        n_bytes = math.prod(entry.shape) * entry.dtype.itemsize
        if len(stored) != entry.n_stored or entry.name in arrays:
            raise ValueError(f"array {entry.name!r} is incomplete or appears twice")
        if entry.packing == _ZLIB:
            # Never more than the table promises, whatever the packed bytes would unfold to.
            unfolding = zlib.decompressobj()
            plain: bytes | memoryview = unfolding.decompress(stored, n_bytes + 1)
        elif entry.packing == _PLAIN:
            plain = stored
        else:
            raise ValueError(f"array {entry.name!r} is packed in an unknown way")
        if len(plain) != n_bytes:
            raise ValueError(f"array {entry.name!r} does not have the size of its shape")
        flat = np.frombuffer(plain, dtype=entry.dtype).astype(entry.dtype.newbyteorder("="))
        arrays[entry.name] = flat.reshape(entry.shape)
    if at != len(data):
        raise ValueError("bytes are left over")
    return arrays
