"""Fields of every kind become columns; what cannot is refused by name; the same on both paths."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weald.stream.errors import SchemaError
from weald.stream.record.decode import decode
from weald.stream.record.record import Message
from weald.stream.record.schema import Schema
from weald.stream.settings import SchemaSettings
from weald.stream.warm_up.family_choice import choose_family
from weald.treecore.family import FAMILIES


def schema_of(*fields: dict[str, Any], text: bool = False, **more: Any) -> Schema:
    settings = {"fields": list(fields), **more}
    return Schema.of(msgspec.convert(settings, SchemaSettings), text=text)


def decoded(schema: Schema, *records: Any) -> tuple[list[list[float]], list[tuple[str, str]]]:
    messages = [
        Message("t", 0, i, -1, None, msgspec.json.encode(record))
        for i, record in enumerate(records)
    ]
    batch, dead = decode(messages, schema)
    return batch.values.tolist(), [(letter.reason, letter.detail) for letter in dead]


MIXED = (
    {"name": "size", "scale": "log"},
    {"name": "heat", "center": 20.0, "spread": 5.0},
    {"name": "hits", "kind": "count"},
    {"name": "ok", "kind": "flag"},
    {"name": "from", "kind": "category", "values": ["JFK", "LGA"]},
    {"name": "at", "kind": "time", "periods": ["day"]},
)
RECORD = {
    "size": math.e - 1,
    "heat": 30,
    "hits": 3,
    "ok": True,
    "from": "LGA",
    "at": "2026-01-01T06:00:00Z",
}


def test_every_kind_becomes_its_columns() -> None:
    schema = schema_of(*MIXED)
    assert schema.features == ("size", "heat", "hits", "ok", "from", "at.day.sin", "at.day.cos")
    assert schema.compiled is not None
    values, dead = decoded(schema, RECORD)
    assert dead == []
    assert values[0] == pytest.approx([1.0, 2.0, 3.0, 1.0, 1.0, 1.0, 0.0], abs=1e-9)


def test_the_slow_path_gives_the_same_numbers() -> None:
    nested = [{**field, "path": f"deep.{field['name']}"} for field in MIXED]
    schema = schema_of(*nested)
    assert schema.compiled is None
    assert decoded(schema, {"deep": RECORD}) == decoded(schema_of(*MIXED), RECORD)


def test_cells_of_text_give_the_same_numbers() -> None:
    cells = {name: str(value) for name, value in RECORD.items()}
    assert decoded(schema_of(*MIXED, text=True), cells) == decoded(schema_of(*MIXED), RECORD)


@pytest.mark.parametrize(
    ("field", "value", "reason", "words"),
    [
        ("size", -2, "out_of_range", "has no log"),
        ("hits", 1.5, "out_of_range", "a count is whole"),
        ("hits", "many", "wrong_type", "a count"),
        ("hits", msgspec.Raw(b"1" + b"0" * 400), "wrong_type", "a count"),
        ("ok", "perhaps", "wrong_type", "'ok' should be a flag"),
        ("ok", None, "missing_value", "'ok'"),
        ("from", ["x"], "wrong_type", "'from'"),
        ("at", "noon", "bad_time", "noon"),
        ("at", None, "missing_value", "'at' should be a time"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(
    field: str, value: Any, reason: str, words: str
) -> None:
    values, dead = decoded(schema_of(*MIXED), RECORD, {**RECORD, field: value}, RECORD)
    assert len(values) == 2
    ((found, detail),) = dead
    assert found == reason
    assert words in detail


def test_values_that_are_not_listed_share_a_level() -> None:
    schema = schema_of({"name": "c", "kind": "category", "values": ["a", "b"]})
    values, _ = decoded(schema, *({"c": value} for value in ("b", "z", "a", "y", 7)))
    assert [row[0] for row in values] == [1.0, 2.0, 0.0, 2.0, 2.0]


def test_unlisted_categories_are_hashed_into_so_many_levels() -> None:
    schema = schema_of({"name": "c", "kind": "category", "size": 5})
    values, _ = decoded(schema, *({"c": f"v{i}"} for i in range(100)))
    assert {row[0] for row in values} == {0.0, 1.0, 2.0, 3.0, 4.0}


def test_a_text_is_kept_for_people() -> None:
    schema = schema_of({"name": "line", "kind": "text", "size": 64})
    message = Message("t", 0, 0, -1, None, msgspec.json.encode({"line": "started\0 in 5 s"}))
    batch, _ = decode([message, message], schema)
    assert batch.text == ["started\\0 in 5 s"] * 2
    assert batch.values.shape == (2, 64)
    assert batch.without([0]).text == ["started\\0 in 5 s"]
    assert decode([], schema_of({"name": "x"}))[0].text is None


@pytest.mark.parametrize(
    "field",
    [
        {"name": "x", "kind": "flag", "size": 3},
        {"name": "x", "kind": "text", "scale": "log"},
        {"name": "x", "kind": "number", "values": ["a"]},
        {"name": "x", "kind": "category", "values": ["a"], "size": 3},
    ],
)
def test_settings_that_contradict_their_kind_are_refused(field: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match="field 'x'"):
        schema_of(field)


@given(st.lists(st.text(), max_size=5))
def test_any_text_becomes_whole_counts(texts: list[str]) -> None:
    for tokens in ("line", "words"):
        schema = schema_of({"name": "t", "kind": "text", "size": 16, "tokens": tokens})
        records = [{"t": text.encode("utf-8", "replace").decode()} for text in texts]
        values, dead = decoded(schema, *records)
        assert dead == []
        assert all(number >= 0 and number == int(number) for row in values for number in row)


def test_the_family_follows_from_the_kinds() -> None:
    assert choose_family(schema_of({"name": "x"}, {"name": "y"})) == ("gaussian", {})
    assert choose_family(schema_of({"name": "x", "size": 30}))[0] == "diagonal"
    assert choose_family(schema_of({"name": "n", "kind": "count"})) == ("poisson", {})
    text = choose_family(schema_of({"name": "t", "kind": "text"}))
    assert text == ("multinomial", {"beta": 0.01})
    name, params = choose_family(schema_of(*MIXED, {"name": "t", "kind": "text", "size": 8}))
    assert name == "mixed"
    families = {part["family"]: part["columns"] for part in params["parts"]}
    assert families == {
        "gaussian": [0, 1, 5, 6],
        "poisson": [2],
        "bernoulli": [3],
        "categorical": [4],
        "multinomial": list(range(7, 15)),
    }
    built = FAMILIES[name].build(params, np.zeros((1, 15)))
    assert FAMILIES[name].validate(built, np.array([[0.5] * 2 + [1.0] * 13])) is None


def test_kinds_have_one_order_whatever_that_of_the_fields_is() -> None:
    """Another order would be another family, for which everything is compiled anew."""
    texts = ({"name": "t", "kind": "text", "size": 8}, {"name": "s", "kind": "text", "size": 4})
    fields = (texts[0], *MIXED[::-1], texts[1])
    _, params = choose_family(schema_of(*fields))
    assert [(part["family"], part["columns"]) for part in params["parts"]] == [
        ("gaussian", [8, 9, 13, 14]),
        ("poisson", [12]),
        ("bernoulli", [11]),
        ("categorical", [10]),
        ("multinomial", list(range(8))),
        ("multinomial", list(range(15, 19))),
    ]
