"""Compressed batches stop growing at a limit, whatever their codec, and are whole below it."""

import gzip
import tracemalloc

import lz4.frame
import pytest
import zstandard
from kafka.errors import CorruptRecordError
from kafka.record import default_records, legacy_records

from weald.stream.source.inflation import OversizedBatchError, limit_batches

LIMIT = 100_000
CODECS = {
    "gzip_decode": gzip.compress,
    "lz4_decode": lz4.frame.compress,
    "zstd_decode": lambda data: zstandard.ZstdCompressor().compress(data),
}


MODULES = (default_records, legacy_records)


@pytest.fixture(autouse=True)
def limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small limit, for this test only."""
    for module in MODULES:
        for name in CODECS:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, getattr(module, name))
    limit_batches(LIMIT)


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("n", [0, 1, LIMIT])
def test_what_is_small_enough_is_whole(name: str, n: int) -> None:
    data = bytes(range(256)) * (n // 256) + b"x" * (n % 256)
    for module in MODULES:
        if hasattr(module, name):
            assert getattr(module, name)(memoryview(CODECS[name](data))) == data


@pytest.mark.parametrize("name", CODECS)
def test_what_is_larger_is_never_held(name: str) -> None:
    bomb = CODECS[name](bytes(50_000_000))
    assert len(bomb) < 300_000
    tracemalloc.start()
    for data in (bomb, CODECS[name](bytes(LIMIT + 1))):
        with pytest.raises(OversizedBatchError, match=r"kafka\.batch_max_bytes"):
            getattr(default_records, name)(data)
    # The codecs' own windows included; zstd's is 8 MB at this level.
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_several_members_and_a_torn_one() -> None:
    decode = default_records.gzip_decode
    assert decode(gzip.compress(b"one") + gzip.compress(b"two")) == b"onetwo"
    with pytest.raises(OversizedBatchError):
        decode(gzip.compress(bytes(60_000)) + gzip.compress(bytes(60_000)))
    with pytest.raises(CorruptRecordError):
        decode(gzip.compress(b"some text that is long enough")[:-12])
    frames = b"".join(CODECS["zstd_decode"](each) for each in (b"one", b"two"))
    assert default_records.zstd_decode(frames) == b"onetwo"
