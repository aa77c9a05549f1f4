"""Snapshots as bytes: what goes in comes out, and nothing else is ever taken for one."""

import hashlib
import struct

import hypothesis.extra.numpy as npst
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from weald.storage.encoding.snapshot import VERSION, decode, encode
from weald.storage.errors import SnapshotCorrupt

Arrays = dict[str, NDArray[np.generic]]

DTYPES = st.sampled_from(["?", "i1", "<i2", "<i4", "<i8", "u1", "<u2", "<u4", "<u8", "<f4", "<f8"])
ARRAYS = DTYPES.flatmap(
    lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=4, min_side=0))
)
SNAPSHOTS = st.dictionaries(st.text(max_size=12), ARRAYS, max_size=6)


def same(a: Arrays, b: Arrays) -> bool:
    """Whether names, order, types, shapes and every bit agree."""
    return list(a) == list(b) and all(
        a[name].dtype == b[name].dtype
        and a[name].shape == b[name].shape
        and a[name].tobytes() == b[name].tobytes()
        for name in a
    )


@given(arrays=SNAPSHOTS, compress=st.booleans())
def test_round_trip(arrays: Arrays, compress: bool) -> None:
    assert same(decode(encode(arrays, compress=compress)), arrays)


@given(arrays=SNAPSHOTS, data=st.data())
def test_any_change_of_any_bit_is_noticed(arrays: Arrays, data: st.DataObject) -> None:
    payload = bytearray(encode(arrays))
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(SnapshotCorrupt):
        decode(bytes(payload))


@given(arrays=SNAPSHOTS, data=st.data())
def test_any_cut_is_noticed(arrays: Arrays, data: st.DataObject) -> None:
    payload = encode(arrays)
    with pytest.raises(SnapshotCorrupt):
        decode(payload[: data.draw(st.integers(0, len(payload) - 1))])
    with pytest.raises(SnapshotCorrupt):
        decode(payload + data.draw(st.binary(min_size=1)))


@given(foreign=st.binary(max_size=300))
def test_foreign_bytes_are_refused(foreign: bytes) -> None:
    with pytest.raises(SnapshotCorrupt):
        decode(foreign)


@given(table=st.binary(max_size=200), data=st.binary(max_size=50))
def test_a_forged_table_is_refused(table: bytes, data: bytes) -> None:
    """A right checksum over nonsense: no crash, no array out of nothing."""
    digest = hashlib.sha256(table + data).digest()
    header = struct.pack("<8sHHI32s", b"WEALDSNP", VERSION, 0, len(table), digest)
    try:
        arrays = decode(header + table + data)
    except SnapshotCorrupt:
        return
    assert sum(array.nbytes for array in arrays.values()) <= 1000 * (len(data) + 1)


def test_a_later_layout_says_so() -> None:
    payload = bytearray(encode({}))
    struct.pack_into("<H", payload, 8, VERSION + 1)
    with pytest.raises(SnapshotCorrupt, match=f"version {VERSION + 1}"):
        decode(bytes(payload))


def test_order_and_strides_do_not_matter() -> None:
    grid = np.arange(12.0).reshape(3, 4)
    views: Arrays = {
        "fortran": np.asfortranarray(grid),
        "transposed": grid.T,
        "strided": grid[::2, ::-1],
        "big_endian": grid.astype(">f8"),
    }
    for name, array in decode(encode(views)).items():
        np.testing.assert_array_equal(array, views[name])
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.dtype == np.float64


def test_labels_shrink_and_floats_stay_as_they_are(rng: np.random.Generator) -> None:
    labels = {"labels": rng.integers(0, 13, 100_000, dtype=np.int32)}
    assert len(encode(labels)) < 0.25 * len(encode(labels, compress=False))
    values = {"values": rng.normal(size=10_000)}
    assert encode(values) == encode(values, compress=False)


@pytest.mark.parametrize("array", [np.array([object()]), np.array(["text"]), np.array([1j])])
def test_other_types_are_refused(array: NDArray[np.generic]) -> None:
    with pytest.raises(TypeError, match="'it'"):
        encode({"it": array})
