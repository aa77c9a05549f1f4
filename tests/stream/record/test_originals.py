"""Observations go back to the values that they came of."""

import json

import msgspec
import numpy as np
import pytest
from numpy.random import Generator

from weald.stream.record.fields.originals import (
    moments_of,
    original_names,
    original_summaries,
    originals_of,
    phase_text,
)
from weald.stream.record.schema import Schema
from weald.stream.settings import SchemaSettings
from weald.stream.warm_up.family_choice import choose_family
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import totals_of_groups

SCHEMA = Schema.of(
    msgspec.convert(
        {
            "fields": [
                {"name": "price", "scale": "log", "center": 2.0, "spread": 0.5},
                {"name": "place", "size": 2},
                {"name": "items", "kind": "count"},
                {"name": "express", "kind": "flag"},
                {"name": "country", "kind": "category", "values": ["NO", "US"]},
                {"name": "ordered", "kind": "time", "periods": ["day", "week"]},
                {"name": "note", "kind": "text", "size": 4},
            ]
        },
        SchemaSettings,
    )
)
RECORD = {
    "price": 24.5,
    "place": [1.0, -2.0],
    "items": 3,
    "express": True,
    "country": "US",
    "ordered": "2026-11-24T14:05:00Z",
    "note": "leave it at the door",
}
NAMES = ("price", "place.0", "place.1", "items", "express", "country", "ordered (day)",
         "ordered (week)")  # fmt: skip


def row(record: dict[str, object]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The numbers of one record, by the decoder's own readers."""
    numbers: list[float] = []
    for field in SCHEMA.fields:
        value = record[field.name]
        if field.read is not None:
            numbers += field.read(value)
        else:
            numbers += value if isinstance(value, list) else [value]  # type: ignore[list-item]
    values = np.array([numbers])
    return values if SCHEMA.scaling is None else SCHEMA.scaling(values)


def test_every_value_comes_back() -> None:
    columns = originals_of(SCHEMA, row(RECORD))
    told = {each.name: each.plain()[0] for each in columns}
    assert tuple(told) == original_names(SCHEMA) == NAMES
    assert told.pop("price") == pytest.approx(24.5)
    assert list(told.values()) == [1.0, -2.0, 3.0, "yes", "US", "14:05", "Tue 14:05"]
    assert json.loads(json.dumps(told)) == told


def test_a_category_beyond_the_list_and_a_gap_are_told_as_such() -> None:
    other = row(RECORD | {"country": "SE"})
    column = originals_of(SCHEMA, other)[5]
    assert column.plain() == ["(other)"]
    other[:] = np.nan
    assert [each.plain() for each in originals_of(SCHEMA, other)] == [[None]] * len(NAMES)


def test_a_clusters_summaries_are_in_the_values_that_came_in(rng: Generator) -> None:
    prices = rng.normal(100.0, 3.0, 200)
    rows = np.concatenate([row(RECORD | {"price": each}) for each in prices])
    name, params = choose_family(SCHEMA)
    spec = FAMILIES[name]
    family = spec.build(params, rows)
    statistics = totals_of_groups(family, rows, np.zeros(len(rows), dtype=np.int64), 1)[0]
    told = original_summaries(SCHEMA, spec.describe(family, statistics, SCHEMA.features))
    by_name = {each.name: each for each in told}
    assert tuple(by_name) == NAMES
    assert by_name["price"].centre == pytest.approx(prices.mean(), rel=0.01)
    assert by_name["price"].spread == pytest.approx(3.0, rel=0.25)
    assert by_name["country"].centre == "US"
    assert by_name["ordered (day)"].centre in ("14:04", "14:05", "14:06")
    assert float(by_name["express"].centre) > 0.9


@pytest.mark.parametrize(
    ("period", "seconds", "text"),
    [
        ("hour", 125.0, "02:05"),
        ("day", 86_399.9, "00:00"),
        ("week", 0.0, "Mon 00:00"),
        ("year", 31 * 86_400.0, "Feb 1"),
    ],
)
def test_moments_read_as_people_write_them(period: str, seconds: float, text: str) -> None:
    assert phase_text(period, seconds) == text


def test_dates_are_told_as_days_of_the_week() -> None:
    """Every midnight of a week comes back from its sine and cosine as that of the same day."""
    settings = {"fields": [{"name": "due", "kind": "time", "periods": ["week"]}]}
    schema = Schema.of(msgspec.convert(settings, SchemaSettings))
    read = schema.fields[0].read
    assert read is not None
    rows = np.array([read(f"2026-03-{day:02d}") for day in range(2, 9)])
    (dates,) = originals_of(schema, rows)
    assert dates.plain() == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    # Of two Wednesdays and three Thursdays the middle is in Wednesday's afternoon.
    assert originals_of(schema, rows[[2, 2, 3, 3, 3]])[0].typical() == ("Thu", None)
    (moments,) = originals_of(schema, np.array([*rows, read("2026-03-02T00:01:00")]))
    assert moments.plain()[::7] == ["Mon 00:00", "Mon 00:01"]


def test_a_cluster_of_dates_has_a_day_in_the_middle(rng: Generator) -> None:
    settings = {"fields": [{"name": "due", "kind": "time", "periods": ["week"]}]}
    schema = Schema.of(msgspec.convert(settings, SchemaSettings))
    read = schema.fields[0].read
    assert read is not None
    rows = np.array([read(f"2026-03-{day:02d}") for day in rng.choice([6, 7, 8], 99)])
    name, params = choose_family(schema)
    spec = FAMILIES[name]
    family = spec.build(params, rows)
    statistics = totals_of_groups(family, rows, np.zeros(len(rows), dtype=np.int64), 1)[0]
    (told,) = original_summaries(schema, spec.describe(family, statistics, schema.features))
    assert told.centre == "Sat"


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (["2026-03-02", "", "1969-12-31"], ["2026-03-02", None, "1969-12-31"]),
        (["2026-03-02T14:05", None, "soon"], ["2026-03-02 14:05", None, None]),
        (["2026-03-02 14:05:09", "2026-03-02"], ["2026-03-02 14:05:09", "2026-03-02 00:00:00"]),
        (["2026-03-02T00:30+02:00"], ["2026-03-01 22:30"]),
    ],
)
def test_moments_are_told_as_they_came_in(
    written: list[str | None], told: list[str | None]
) -> None:
    moments = moments_of("due", written)
    assert moments.plain() == told
    assert moments.typical()[0] in told or len(written) > 1


def test_a_logarithm_leaves_no_digits_of_its_own() -> None:
    schema = Schema.of(msgspec.convert({"fields": [{"name": "n", "scale": "log"}]}, SchemaSettings))
    written = np.array([[0.0], [0.1], [4.0], [19.99], [12_345_678.0], [3e15], [np.nan]])
    told = originals_of(schema, np.log1p(written))[0].values
    np.testing.assert_array_equal(told[:-2], written[:-2, 0])
    assert told[-2] == pytest.approx(3e15, rel=1e-12)
    assert np.isnan(told[-1])
