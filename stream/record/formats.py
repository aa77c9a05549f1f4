"""The formats that records come in, and what each needs before the one decoder serves it.

===========  ==========================================  ================================
format       files named                                 a record is
===========  ==========================================  ================================
``jsonl``    anything else                               a JSON object
``csv``      ``.csv``, ``.tsv`` (``.gz``)                a row under a header
``lines``    ``.log``, ``.txt`` (``.gz``)                a line of text: the field ``line``
``parquet``  ``.parquet``                                a row
``arrow``    ``.arrow``, ``.feather``, ``.arrows``       a row
``avro``     ``.avro``                                   a record; on a topic one datum each
``packed``   ``.f64``                                    d float64, little-endian, no more
===========  ==========================================  ================================
"""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from weald.stream.errors import SchemaError
from weald.stream.optional import optional_library
from weald.stream.settings import SchemaSettings, StreamSettings

from .record import Reason
from .refused import Refused
from .schema import Schema

__all__ = ["SUFFIXES", "Format", "format_of", "schema_for", "separator_of"]

Format = Literal["jsonl", "csv", "lines", "parquet", "arrow", "avro", "packed"]
Unwrap = Callable[[bytes], bytes]

SUFFIXES: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".log": "lines",
    ".txt": "lines",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".avro": "avro",
    ".f64": "packed",
}
# One byte of magic and four that name a schema in a registry, as Confluent's clients write them.
_REGISTRY_HEADER = 5


def format_of(settings: StreamSettings) -> Format:
    """Format of the records, by the settings or by the file's name."""
    if settings.format != "auto":
        return settings.format
    name = "" if settings.source == "kafka" else (settings.path or "").removesuffix(".gz")
    return SUFFIXES.get(Path(name).suffix.lower(), "jsonl")


def separator_of(name: str) -> str:
    """What parts the cells of a text table of this name: tabs in ``.tsv``, else commas."""
    return "\t" if name.removesuffix(".gz").lower().endswith(".tsv") else ","


def schema_for(stream: StreamSettings, declared: SchemaSettings) -> Schema:
    """Compile a schema for the format that the stream's records come in.

    Raises
    ------
    SchemaError
        When the schema cannot be had in that format.
    """
    form = format_of(stream)
    if form != "packed":
        return Schema.of(declared, text=form == "csv", unwrap=_unwrap_of(form, stream))
    schema = Schema.of(declared, packed=True)
    if declared.key or declared.time or any(kind != "number" for kind in schema.kinds):
        raise SchemaError(
            "packed records hold numbers alone: no key, no time and no other kind of field. The "
            "message's own key and timestamp take their place"
        )
    return schema


def _unwrap_of(form: Format, stream: StreamSettings) -> Unwrap | None:
    if form == "lines":
        return lambda value: msgspec.json.encode({"line": value.decode()})
    if form == "avro" and stream.source == "kafka":
        return _avro(stream.avro_schema)
    return None


def _avro(path: str | None) -> Unwrap:
    if path is None:
        raise SchemaError("Avro on a topic needs its writer's schema: stream.avro_schema = FILE")
    fastavro = optional_library("fastavro", "reading Avro", "avro")
    try:
        schema = fastavro.schema.load_schema(path)
    except Exception as error:
        raise SchemaError(f"{path} is no Avro schema: {error}") from error

    def whole(data: bytes) -> bytes:
        buffer = io.BytesIO(data)
        record: Any = fastavro.schemaless_reader(buffer, schema, None)
        if buffer.tell() != len(data):
            raise ValueError(f"it ends {len(data) - buffer.tell()} bytes early")
        return msgspec.json.encode(record)

    def unwrap(value: bytes) -> bytes:
        try:
            return whole(value)
        except Exception as error:  # noqa: BLE001 - a library's, which says nothing of its errors
            reason = f"not of the Avro schema: {type(error).__name__}: {error}"
        if value[:1] == b"\0":
            try:
                return whole(value[_REGISTRY_HEADER:])
            except Exception as error:  # noqa: BLE001 - as above
                reason = f"not of the Avro schema: {type(error).__name__}: {error}"
        raise Refused(Reason.WRONG_TYPE, reason)

    return unwrap
