"""A ceiling on what one compressed batch of a topic may grow to.

A megabyte of zstd can stand for gigabytes, and kafka-python, which decompresses a batch as a whole
before anybody sees a record of it, knows no limit. So its decoders are replaced by those here,
which stop at one. Snappy needs none: its format grows at most 22-fold.
"""

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

from kafka.errors import CorruptRecordError
from kafka.record import default_records, legacy_records

__all__ = ["OversizedBatchError", "limit_batches"]

Decoder = Callable[[int, Any], bytes]
# A gzip header, and nothing else, is expected.
_GZIP = 31


class OversizedBatchError(Exception):
    """A compressed batch would have grown beyond the limit."""


def limit_batches(limit: int) -> None:
    """Let no compressed batch grow beyond so many bytes, in this whole process.

    A batch that would makes the consumer's poll raise OversizedBatchError.
    """
    decoders: dict[str, Decoder] = {"gzip_decode": _gzip, "lz4_decode": _lz4, "zstd_decode": _zstd}
    for module in (default_records, legacy_records):
        for name, decode in decoders.items():
            # One that is None stands for a codec that is not installed.
            if getattr(module, name, None) is not None:
                setattr(module, name, partial(_bounded, decode, limit))


def _bounded(decode: Decoder, limit: int, payload: Any) -> bytes:
    grown = decode(limit + 1, payload)
    if len(grown) > limit:
        raise OversizedBatchError(
            f"a compressed batch of {len(payload)} bytes holds more than kafka.batch_max_bytes, "
            f"{limit} bytes"
        )
    return grown


def _gzip(at_most: int, payload: Any) -> bytes:
    left, grown = bytes(payload), b""
    while left and len(grown) < at_most:
        member = zlib.decompressobj(_GZIP)
        grown += member.decompress(left, at_most - len(grown))
        if not member.eof and len(grown) < at_most:
            raise CorruptRecordError("a compressed batch ends too early")
        left = member.unused_data
    return grown


def _lz4(at_most: int, payload: Any) -> bytes:
    from lz4.frame import LZ4FrameDecompressor

    return bytes(LZ4FrameDecompressor().decompress(bytes(payload), max_length=at_most))


def _zstd(at_most: int, payload: Any) -> bytes:
    from zstandard import ZstdDecompressor

    with ZstdDecompressor().stream_reader(bytes(payload), read_across_frames=True) as reader:
        return reader.read(at_most)
