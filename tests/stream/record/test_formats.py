"""The same records in every format become the same observations."""

import csv
import gzip
import io
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from weald.stream.errors import SchemaError, SourceError
from weald.stream.record.decode import NUMBER_BYTES, decode
from weald.stream.record.formats import format_of, schema_for
from weald.stream.record.record import Message, TopicPartition
from weald.stream.settings import FieldSettings, SchemaSettings, StreamSettings
from weald.stream.source.file_source import FileSource

SCHEMA = SchemaSettings(fields=(FieldSettings("x"), FieldSettings("y")))
VALUES = np.array([[i / 4, -float(i)] for i in range(700)])
RECORDS: list[dict[str, Any]] = [{"x": x, "y": y, "name": f"n{x}"} for x, y in VALUES.tolist()]

AVRO: dict[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [{"name": name, "type": "double"} for name in "xy"]
    + [{"name": "name", "type": "string"}],
}


def write_jsonl(path: Path) -> None:
    path.write_bytes(b"\n".join(map(msgspec.json.encode, RECORDS)))


def write_csv(path: Path) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["x", "y", "name"])
        writer.writeheader()
        writer.writerows(RECORDS)


def write_parquet(path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(RECORDS), path, row_group_size=300)


def write_arrow(path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.Table.from_pylist(RECORDS)
    new = pyarrow.ipc.new_stream if path.suffix == ".arrows" else pyarrow.ipc.new_file
    with path.open("wb") as file, new(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=300)


def write_avro(path: Path) -> None:
    fastavro = pytest.importorskip("fastavro")
    with path.open("wb") as file:
        fastavro.writer(file, AVRO, RECORDS)


def write_packed(path: Path) -> None:
    path.write_bytes(VALUES.astype("<f8").tobytes())


WRITERS: dict[str, Callable[[Path], None]] = {
    "r.jsonl": write_jsonl,
    "r.csv": write_csv,
    "r.parquet": write_parquet,
    "r.arrow": write_arrow,
    "r.arrows": write_arrow,
    "r.avro": write_avro,
    "r.f64": write_packed,
}


def opened(path: Path, schema: SchemaSettings = SCHEMA, batch: int = 128) -> FileSource:
    stream = StreamSettings(source="file", path=str(path), batch_records=batch)
    return FileSource(stream, record_bytes=NUMBER_BYTES * schema_for(stream, schema).dimension)


def read(path: Path, source: FileSource) -> tuple[list[list[float]], list[int]]:
    schema = schema_for(StreamSettings(source="file", path=str(path)), SCHEMA)
    rows: list[list[float]] = []
    offsets: list[int] = []
    while not source.exhausted:
        batch, dead = decode(source.poll(0.1), schema)
        assert dead == []
        rows += batch.values.tolist()
        offsets += batch.offset.tolist()
    source.close()
    return rows, offsets


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_numbers(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    rows, offsets = read(path, opened(path))
    assert rows == VALUES.tolist()
    assert offsets == list(range(700))


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_goes_on_where_it_was(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    source = opened(path)
    source.seek({TopicPartition(name, 0): 450})
    assert read(path, source) == (VALUES[450:].tolist(), list(range(450, 700)))


@pytest.mark.parametrize("name", ["r.parquet", "r.arrow"])
def test_times_of_nanoseconds_are_read(name: str, tmp_path: Path) -> None:
    """As pandas writes them; Python's have microseconds."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    late = 1_767_225_600_000_001_999
    inner = pyarrow.struct([("at", pyarrow.timestamp("ns", "UTC"))])
    table = pyarrow.table(
        {
            "at": pyarrow.array([late], pyarrow.timestamp("ns", "UTC")),
            "took": pyarrow.array([1_500_000_000], pyarrow.duration("ns")),
            "clock": pyarrow.array([1_999], pyarrow.time64("ns")),
            "seen": pyarrow.array([[late]], pyarrow.list_(pyarrow.timestamp("ns"))),
            "inner": pyarrow.array([{"at": late}], inner),
            "day": pyarrow.array([0], pyarrow.date32()),
        }
    )
    path = tmp_path / name
    if name == "r.parquet":
        parquet.write_table(table, path)
    else:
        with path.open("wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    with closing(opened(path)) as source:
        (message,) = source.poll(0.0)
    assert msgspec.json.decode(message.value or b"") == {
        "at": "2026-01-01T00:00:00.000001Z",
        "took": "PT1.5S",
        "clock": "00:00:00.000001",
        "seen": ["2026-01-01T00:00:00.000001"],
        "inner": {"at": "2026-01-01T00:00:00.000001Z"},
        "day": "1970-01-01",
    }


@pytest.mark.parametrize("name", ["r.parquet", "r.arrow", "r.avro"])
def test_a_file_of_another_format_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("x,y\n1,2\n")
    with pytest.raises(SourceError, match=r"r\.\w+ (is no|cannot be read)"):
        opened(path)


def test_a_packed_file_cut_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.f64"
    path.write_bytes(VALUES[:3].tobytes()[:-2])
    source = opened(path)
    with pytest.raises(SourceError, match="ends within record 2"):
        read(path, source)
    source.close()


def test_lines_of_text_are_records(tmp_path: Path) -> None:
    lines = ["started in 5 s", "", 'said "no"', "started in 7 s"]
    path = tmp_path / "app.log.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    schema = SchemaSettings(fields=(FieldSettings("line", kind="text", size=16),))
    stream = StreamSettings(source="file", path=str(path))
    batch, dead = decode(opened(path, schema).poll(0.1), schema_for(stream, schema))
    assert dead == []
    assert batch.text == ["started in 5 s", 'said "no"', "started in 7 s"]
    assert batch.values[0].tolist() == batch.values[2].tolist()


def message(value: bytes | None) -> Message:
    return Message("t", 0, 0, 1_700_000_000_000, b"k", value)


def test_packed_messages_say_what_is_wrong() -> None:
    schema = schema_for(StreamSettings(format="packed"), SCHEMA)
    good, bad = np.array([1.5, 2.0]), np.array([1.0, np.nan])
    batch, dead = decode(
        [message(good.tobytes()), message(b"123"), message(None), message(bad.tobytes())], schema
    )
    assert batch.values.tolist() == [[1.5, 2.0]]
    assert batch.key == ["k"]
    assert batch.event_time.tolist() == [1_700_000_000.0]
    assert [letter.reason for letter in dead] == ["wrong_length", "tombstone", "not_finite"]
    assert "3 bytes, 2 numbers take 16" in dead[0].detail
    with pytest.raises(SchemaError, match="numbers alone"):
        schema_for(StreamSettings(format="packed"), msgspec.structs.replace(SCHEMA, key="id"))


def test_avro_messages_with_and_without_a_registrys_header(tmp_path: Path) -> None:
    fastavro = pytest.importorskip("fastavro")
    path = tmp_path / "r.avsc"
    path.write_bytes(msgspec.json.encode(AVRO))
    schema = schema_for(StreamSettings(format="avro", avro_schema=str(path)), SCHEMA)
    datum = io.BytesIO()
    fastavro.schemaless_writer(datum, AVRO, RECORDS[3])
    framed = b"\0\0\0\0\7" + datum.getvalue()
    batch, dead = decode([message(datum.getvalue()), message(framed), message(b"\1")], schema)
    assert batch.values.tolist() == [VALUES[3].tolist()] * 2
    assert dead[0].reason == "wrong_type"
    assert "not of the Avro schema" in dead[0].detail
    with pytest.raises(SchemaError, match=r"stream\.avro_schema"):
        schema_for(StreamSettings(format="avro"), SCHEMA)


def test_standard_input_is_text() -> None:
    with pytest.raises(SourceError, match="standard input cannot be read as parquet"):
        FileSource(StreamSettings(source="stdin", format="parquet"))


def test_formats_follow_from_names() -> None:
    def of(path: str) -> str:
        return format_of(StreamSettings(source="file", path=path))

    assert (of("a.CSV"), of("a.tsv.gz"), of("b.log"), of("b.json"), of("c.feather")) == (
        "csv",
        "csv",
        "lines",
        "jsonl",
        "arrow",
    )
    assert format_of(StreamSettings(path="a.csv")) == "jsonl"  # a topic's messages have no name
