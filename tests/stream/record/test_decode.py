"""The decoder: what it accepts, what it refuses and why, and that it never raises."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.stream.record.fuzz_decode import accounted, decode_one, fuzz, saved
from weald.stream.record.decode import decode
from weald.stream.record.explain import parse
from weald.stream.record.record import STORED_BYTES, DeadLetter, Message
from weald.stream.record.schema import Schema
from weald.stream.settings import FieldSettings, SchemaSettings

FLAT = SchemaSettings(
    fields=(FieldSettings("x"), FieldSettings("y")), key="id", time="time", max_bytes=2_000
)
NESTED = SchemaSettings(
    fields=(FieldSettings("mass", path="body.mass"), FieldSettings("first", path="reading.0")),
    key="body.name",
)
ARRAY = SchemaSettings(fields=(FieldSettings("v", size=3), FieldSettings("z")))
TEXT = Schema.of(FLAT, text=True)


def message(value: bytes | None, *, key: bytes | None = None, timestamp_ms: int = 1_500) -> Message:
    return Message("events", 2, 7, timestamp_ms, key, value)


def refusal(value: bytes | None, settings: SchemaSettings | Schema = FLAT) -> DeadLetter:
    schema = settings if isinstance(settings, Schema) else Schema.of(settings)
    batch, dead = decode([message(value)], schema, received_at=9.0)
    assert len(batch) == 0
    assert (dead[0].partition, dead[0].offset, dead[0].received_at) == (2, 7, 9.0)
    return dead[0]


def test_good_records_become_columns() -> None:
    records = [{"x": i, "y": i / 3, "id": f"k{i}", "time": 60.0 + i, "other": []} for i in range(4)]
    messages = [
        Message("events", 1, 10 + i, 0, None, json.dumps(record).encode())
        for i, record in enumerate(records)
    ]
    batch, dead = decode(messages, Schema.of(FLAT))
    assert not dead
    assert batch.topic == "events"
    assert batch.key == ["k0", "k1", "k2", "k3"]
    np.testing.assert_array_equal(batch.values, [[i, i / 3] for i in range(4)])
    np.testing.assert_array_equal(batch.offset, [10, 11, 12, 13])
    np.testing.assert_array_equal(batch.event_time, [60, 61, 62, 63])
    assert batch.partition.dtype == np.int32
    assert batch.without([1, 3]).key == ["k0", "k2"]


def test_paths_reach_into_objects_and_arrays() -> None:
    value = b'{"body": {"mass": 2, "name": 5}, "reading": [0.5, 1]}'
    batch, dead = decode([message(value)], Schema.of(NESTED))
    assert not dead
    assert batch.values.tolist() == [[2.0, 0.5]]
    assert batch.key == ["5"]
    assert batch.event_time.tolist() == [1.5]


@pytest.mark.parametrize("text", [False, True])
def test_names_may_have_what_json_escapes(*, text: bool) -> None:
    names = ['the "best"', "back\\slash", "two\nlines"]
    schema = Schema.of(SchemaSettings(tuple(map(FieldSettings, names))), text=text)
    record = {name: str(i) if text else i for i, name in enumerate(names)}
    batch, dead = decode([message(json.dumps(record).encode())], schema)
    assert (batch.values.tolist(), dead) == ([[0.0, 1.0, 2.0]], [])


def test_array_fields_fill_columns() -> None:
    schema = Schema.of(ARRAY)
    batch, _ = decode([message(b'{"z": 4, "v": [1, 2.5, -3]}', key=b"k")], schema)
    assert batch.values.tolist() == [[1, 2.5, -3, 4]]
    assert batch.key == ["k"]
    assert schema.features == ("v.0", "v.1", "v.2", "z")
    assert schema.dimension == 4


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        (None, "tombstone", "no value"),
        (b"", "empty", "empty"),
        (b" \n ", "empty", "empty"),
        (b" " * 3_000, "too_large", "max_bytes = 2000"),
        (b'{"x": 1, "y": "\xff"}', "bad_utf8", "byte 15"),
        (b"nonsense", "not_json", "nonsense"),
        (b'{"x": 1, "y": NaN, "id": 1}', "not_json", "invalid character"),
        (b'{"x": 1, "y": 2, "id": "a"', "not_json", "truncated"),
        (b"[1, 2]", "not_object", "[1, 2]"),
        (b"null", "not_object", "null"),
        (b'{"x": 1, "id": "a"}', "missing_field", "'y'"),
        (b'{"x": 1, "y": 2}', "missing_field", "'id'"),
        (b'{"x": 1, "y": null, "id": "a"}', "missing_value", "'y'"),
        (b'{"x": 1, "y": 2, "id": null}', "missing_value", "key"),
        (b'{"x": 1, "y": "2", "id": "a"}', "wrong_type", "'y'"),
        (b'{"x": true, "y": 2, "id": "a"}', "wrong_type", "'x'"),
        (b'{"x": [1], "y": 2, "id": "a"}', "wrong_type", "'x'"),
        (b'{"x": 1, "y": 2, "id": [1]}', "bad_key", "[1]"),
        (b'{"x": 1, "y": 2, "id": true}', "bad_key", "True"),
        (b'{"x": 1, "y": 2, "id": 1.5}', "bad_key", "1.5"),
        (b'{"x": 1, "y": 2, "id": "a\\u0000"}', "bad_key", "NUL"),
        (b'{"x": 1, "y": 2, "id": "' + b"k" * 513 + b'"}', "bad_key", "longer"),
        (b'{"x": 1e999, "y": 2, "id": "a"}', "out_of_range", "'x'"),
        (b'{"x": 1, "y": -2e30, "id": "a"}', "out_of_range", "'y' is -2e+30"),
        (b'{"x": 1, "y": ' + b"9" * 400 + b', "id": "a"}', "out_of_range", "'y'"),
        (b'{"x": 1, "y": 2, "id": "a", "time": "soon"}', "bad_time", "soon"),
        (b'{"x": 1, "y": 2, "id": "a", "time": true}', "bad_time", "True"),
        (b'{"x": 1, "y": 2, "id": "a", "time": 1e30}', "bad_time", "1e+30"),
        (b'{"x": 1, "y": 2, "id": "a", "time": ' + b"9" * 1_000 + b"}", "bad_time", "999"),
        (b'{"x": ' + b"[" * 900 + b"]" * 900 + b"}", "too_deep", "max_depth"),
    ],
)
def test_bad_records_say_why(value: bytes | None, reason: str, detail: str) -> None:
    dead = refusal(value)
    assert (dead.reason, detail in dead.detail) == (reason, True), dead


def test_array_refusals() -> None:
    assert refusal(b'{"z": 1, "v": [1, 2]}', ARRAY).reason == "wrong_length"
    assert refusal(b'{"z": 1, "v": [1, 2, "3"]}', ARRAY).detail.startswith("field 'v.2'")
    assert refusal(b'{"z": 1, "v": 3}', ARRAY).reason == "wrong_type"
    assert refusal(b'{"z": 1, "v": null}', ARRAY).reason == "missing_value"


def test_nested_refusals() -> None:
    assert refusal(b'{"body": 3, "reading": [1]}', NESTED).detail == "field 'mass' is missing"
    value = b'{"body": {"mass": 1, "name": "a"}, "reading": []}'
    assert refusal(value, NESTED).detail == "field 'first' is missing"


def test_unknown_fields_may_be_forbidden() -> None:
    strict = msgspec.structs.replace(FLAT, forbid_unknown=True)
    dead = refusal(b'{"x": 1, "y": 2, "id": "a", "w": 3}', strict)
    assert (dead.reason, dead.detail) == ("unknown_field", "field 'w' is not in the schema")


def test_brackets_inside_text_are_not_depth() -> None:
    value = json.dumps({"x": 1, "y": 2, "id": "a", "note": '[{"' * 200}).encode()
    batch, _ = decode([message(value)], Schema.of(FLAT))
    assert len(batch) == 1


@pytest.mark.timeout(20)
def test_hostile_quotes_are_read_in_linear_time() -> None:
    generous = Schema.of(msgspec.structs.replace(FLAT, max_bytes=2_000_000))
    value = b'"' + b'\\"' * 400_000 + b"[" * 100
    assert refusal(value, generous).reason in {"not_json", "not_object"}


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (b"1700000000", 1.7e9),
        (b"1700000000123", 1_700_000_000.123),
        (b"-5.5", -5.5),
        (b'"2023-11-14T22:13:20Z"', 1.7e9),
        (b'"2023-11-14T22:13:20"', 1.7e9),
        (b'"2023-11-15T00:13:20+02:00"', 1.7e9),
        (b'"1970-01-02"', 86_400.0),
        (b"null", 1.5),
    ],
)
def test_times(time: bytes, seconds: float) -> None:
    value = b'{"x": 1, "y": 2, "id": "a", "time": ' + time + b"}"
    batch, _ = decode([message(value)], Schema.of(FLAT))
    assert batch.event_time.tolist() == [seconds]


def test_broker_timestamps() -> None:
    value = b'{"x": 1, "y": 2, "id": "a"}'
    cases = [message(value, timestamp_ms=ms) for ms in (-1, 2_500, 2**62)]
    batch, dead = decode(cases, Schema.of(FLAT), received_at=77.0)
    assert batch.event_time.tolist() == [77.0, 2.5]
    assert dead[0].reason == "bad_time"


def test_broker_keys_that_are_not_text_are_escaped() -> None:
    schema = Schema.of(SchemaSettings(fields=(FieldSettings("x"),)))
    batch, _ = decode([message(b'{"x": 1}', key=b"\xff\x00a")], schema)
    assert batch.key == ["\\xff\\x00a"]


def test_text_numbers_of_csv_rows() -> None:
    value = b'{"x": "1.5", "y": "-2e3", "id": "007", "time": "1700000000"}'
    batch, dead = decode([message(value)], TEXT)
    assert not dead
    assert batch.values.tolist() == [[1.5, -2000.0]]
    assert batch.key == ["007"]
    assert batch.event_time.tolist() == [1.7e9]
    assert refusal(b'{"x": "", "y": "1", "id": "a"}', TEXT).reason == "missing_value"
    assert refusal(b'{"x": "NA", "y": "1", "id": "a"}', TEXT).reason == "wrong_type"
    assert refusal(b'{"x": "nan", "y": "1", "id": "a"}', TEXT).reason == "not_finite"
    assert refusal(b'{"x": "inf", "y": "1", "id": "a"}', TEXT).reason == "not_finite"


@pytest.mark.parametrize(
    ("cell", "number"),
    [(".165", 0.165), ("-.5e-3", -0.0005), ("5.", 5.0), ("+1", 1.0), (" 3", 3.0), ("007", 7.0)],
)
def test_numbers_that_json_has_not_are_read_in_cells(cell: str, number: float) -> None:
    value = json.dumps({"x": cell, "y": "1", "id": "a"}).encode()
    batch, dead = decode([message(value)], TEXT)
    assert (batch.values.tolist(), dead) == ([[number, 1.0]], [])
    # In JSON a text is no number, however it is written.
    assert refusal(value).reason == "wrong_type"


def test_stored_value_is_cut() -> None:
    schema = Schema.of(SchemaSettings(fields=(FieldSettings("x"),)))
    dead = refusal(b"[" + b"1," * 100_000 + b"1]", schema)
    assert len(dead.value) == STORED_BYTES
    assert len(dead.detail) <= 240


json_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=6),
)
json_values = st.recursive(
    json_scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=4,
)
members = st.dictionaries(
    st.sampled_from(["x", "y", "id", "time", "v", "z", "body", "reading", "w"]), json_values
)
SCHEMAS = [Schema.of(FLAT), Schema.of(NESTED), Schema.of(ARRAY), TEXT]


@pytest.mark.slow
@settings(max_examples=1_000)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=40)), max_size=3), st.sampled_from(SCHEMAS))
def test_arbitrary_bytes_never_raise(values: list[bytes | None], schema: Schema) -> None:
    accounted([message(value, key=value) for value in values], schema)


@pytest.mark.slow
@settings(max_examples=1_000)
@given(members, st.sampled_from(SCHEMAS))
def test_arbitrary_json_never_raises(record: dict[str, object], schema: Schema) -> None:
    accounted([message(json.dumps(record, ensure_ascii=False).encode())], schema)


def test_damaged_records_never_raise(seed: int) -> None:
    assert sum(fuzz(seed, n_inputs=20_000).values()) == 20_000


def test_what_the_guided_fuzzer_found_is_accounted_for() -> None:
    verdicts = [verdict for data in saved() for verdict in decode_one(data)]
    assert len(set(verdicts)) > 10


def test_the_guided_fuzzer_runs(tmp_path: Path) -> None:
    """Briefly; `python -m tests.stream.record.fuzz_guided` says how to do it at length."""
    pytest.importorskip("atheris", reason="needs atheris, which not every platform has")
    argv = [sys.executable, "-m", "tests.stream.record.fuzz_guided", "--runs", "3000"]
    done = subprocess.run(
        [*argv, "--folder", str(tmp_path / "corpus")], capture_output=True, text=True, check=False
    )
    assert "records of 3000 inputs, each accounted for" in done.stdout, done.stderr


@pytest.mark.slow
@settings(max_examples=1_000)
@given(members)
def test_both_paths_agree(record: dict[str, object]) -> None:
    schema = Schema.of(FLAT)
    assert schema.compiled is not None
    value = json.dumps({"x": 1.25, "y": -3, "id": "k", **record}).encode()
    batch, dead = decode([message(value)], schema)
    if len(batch):
        slow = parse(value, None, schema)
        assert list(slow.numbers) == batch.values[0].tolist()
        assert slow.key == batch.key[0]
    else:
        assert dead[0].detail
