"""`weald init` proposes a schema from a sample, and says why."""

import json
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from weald.cli.commands.init import Choices, configuration
from weald.cli.errors import UsageError
from weald.cli.files.sample import propose
from weald.cli.fit.columns import Columns
from weald.cli.fit.reading import read
from weald.cli.look.rows import read_rows
from weald.mcmc.offline.transformation import wants_components
from weald.mcmc.settings import MOST_COLUMNS, FeatureSettings, FitSettings
from weald.stream.record.decode import decode
from weald.stream.record.inference.proposal import SchemaProposal
from weald.stream.record.schema import Schema
from weald.stream.settings import FieldSettings, SchemaSettings, StreamSettings
from weald.stream.source.file_source import FileSource


def write_jsonl(path: Path, records: list[object]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_a_nested_field_is_not_called_as_one_beside_it(tmp_path: Path) -> None:
    drawn = np.random.default_rng(0).normal(size=(40, 4))
    records: list[object] = [
        {"geo": {"lat": lat, "lon": lon}, "geo_lat": plain, "a": {"b_c": x}, "a_b": {"c": x * x}}
        for lat, lon, plain, x in drawn.tolist()
    ]
    schema = propose(write_jsonl(tmp_path / "x.jsonl", records))
    text = configuration(
        Choices(
            schema, {"name": "s", "source": "file"}, {"bootstrap_servers": "k:9092", "topic": "t"}
        )
    )
    fields = tomllib.loads(text)["schema"]["fields"]
    assert fields == [
        {"name": "geo.lat", "path": "geo.lat"},
        {"name": "geo_lon", "path": "geo.lon"},
        {"name": "geo_lat"},
        {"name": "a.b_c", "path": "a.b_c"},
        {"name": "a_b.c", "path": "a_b.c"},
    ]


def test_numbers_become_fields_and_the_rest_is_explained(tmp_path: Path) -> None:
    records: list[object] = [
        {
            "id": f"r{i}",
            "time": 1_700_000_000 + i,
            "reading": {"celsius": i * 0.5, "unit": "C"},
            "flag": True,
            "level": 7,
            "gap": None if i % 3 else 1.5 * i,
        }
        for i in range(30)
    ]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.fields == ["reading.celsius"]
    assert (proposal.key, proposal.time) == ("id", "time")
    assert proposal.reasons == {
        "id": "key, by its name and values",
        "time": "time, by its name and values",
        "reading.celsius": "a number in every record",
        "reading.unit": "left out: the same in every record",
        "flag": "left out: the same in every record",
        "level": "left out: the same in every record",
        "gap": "left out: empty in 20 of 30 records",
    }
    # As they stand in the records.
    names = ("id", "time", "reading.celsius", "reading.unit", "flag", "level", "gap")
    assert tuple(proposal.reasons) == names


def test_a_stream_s_tabs_commas_and_broken_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A schema is proposed for what the stream will read, and for that only."""
    tabs = tmp_path / "x.tsv"
    tabs.write_text("a\tb\n1.5\t2\n2.5\t3\n3.1\t1\n")
    assert propose(tabs).fields == ["a", "b"]
    tabs.write_text("a\tb\n1,5\t2\n2,5\t3\n")
    with pytest.raises(UsageError, match="numbers of a seem to have decimal commas, and a stream"):
        propose(tabs)
    lines = tmp_path / "x.jsonl"
    lines.write_text('{"a": 1.5}\n{"a": 2.\n{"a": 3.5}\n')
    assert propose(lines).fields == ["a"]
    told = capsys.readouterr().err
    assert "1 of 3 rows has a gap or cannot be read: a stream sets such records aside" in told
    assert "line 2: is not JSON" in told
    lines.write_text("oops\n")
    with pytest.raises(UsageError, match="no line is a record: line 1 is not JSON"):
        propose(lines)


def test_what_only_a_look_reads_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes("Größe,y\n1,2\n".encode("cp1252"))
    with pytest.raises(UsageError, match="its text is not UTF-8, and a stream reads UTF-8"):
        propose(path)
    path.write_text("x|y\n1|2\n")
    with pytest.raises(UsageError, match="parted by bars"):
        propose(path)
    path = tmp_path / "x.jsonl"
    path.write_text('{"x": 1.5}\n{"x": 2.5}\n', encoding="utf-16")
    with pytest.raises(UsageError, match="its text is UTF-16, and a stream reads UTF-8"):
        propose(path)
    path.write_bytes(b"PK\x03\x04\x14\0\x06")
    with pytest.raises(UsageError, match="it is a workbook or another archive, not text"):
        propose(path)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("x.csv", "{i}.5,caf\xe9"),
        ("x.jsonl", '{{"x":{i}.5,"y":"caf\xe9"}}'),
        ("x.log", "{i} orders of caf\xe9"),
    ],
)
def test_single_lines_of_other_bytes_are_told(
    name: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A program among many that writes Windows-1252 keeps no stream from beginning."""
    path = tmp_path / name
    lines = [line.format(i=i).encode("cp1252" if i in (7, 11) else "utf-8") for i in range(40)]
    header = [b"x,y"] * (name == "x.csv")
    path.write_bytes(b"\n".join([*header, *lines]))
    assert propose(path).fields
    told = capsys.readouterr().err
    assert "2 of 40 rows have a gap or cannot be read: a stream sets such records aside" in told
    assert f"  line {8 + len(header)}: is not UTF-8\n" in told


def test_numbers_that_no_stream_reads_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("x,price\n" + "".join(f"{i % 7}.5,${i % 11}\n" for i in range(30)))
    proposal = propose(path)
    assert proposal.fields == ["x"]
    told = "left out: numbers, but not plain ones, as a stream reads them"
    assert proposal.reasons["price"] == told


def test_numbers_in_quotes_are_left_out_of_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stream would set every record aside; counts and names of things it reads in quotes, too."""
    records: list[object] = [
        {
            "x": f"{i * 7 % 11}.5",
            "y": "NA" if i == 3 else i * 7 % 13 + 0.5,
            "n_hits": f"{i * 5 % 9}",
            "shop_id": f"{i % 4}",
        }
        for i in range(60)
    ]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert [each if isinstance(each, str) else each["path"] for each in proposal.fields] == [
        "y",
        "n_hits",
        "shop_id",
    ]
    told = "left out: numbers, but not plain ones, as a stream reads them"
    assert proposal.reasons["x"] == told
    told = "1 of 60 rows has a gap or cannot be read: a stream sets such records aside"
    assert told in capsys.readouterr().err


def test_numbers_with_zeros_in_front_are_codes_where_they_repeat(tmp_path: Path) -> None:
    """A table has no quotes by which to tell; measurements have no such zeros."""
    path = tmp_path / "x.csv"
    rows = (f"{i % 3:03},{i:05},{i % 7 + 10},{i * 7 % 13 + 0.5}" for i in range(1, 181))
    path.write_text("\n".join(["shop,at,hour,x", *rows]) + "\n")
    proposal = propose(path)
    assert proposal.reasons["shop"] == (
        "a category: 3 values that repeat, whole numbers with zeros in front"
    )
    assert proposal.fields == [
        {"path": "shop", "kind": "category", "values": ["001", "002", "000"]},
        "hour",
        "x",
    ]
    assert "at" in proposal.identifiers
    fitted = read(path, FitSettings(family="auto"), Columns([], []), None).schema
    assert fitted is not None
    assert [each.kind for each in fitted.settings.fields] == ["category", "number", "number"]


def test_codes_in_quotes_are_a_category_to_all_who_read_them(tmp_path: Path) -> None:
    """Of JSON that says they are texts; numbers in quotes that do not repeat a look can read."""
    records: list[object] = [
        {
            "code": ("5411", "5812", "04111")[i % 3] if i else "",
            "age": f"{i * 37 % 90}",
            "x": i * 7 % 13 + 0.5,
        }
        for i in range(180)
    ]
    path = write_jsonl(tmp_path / "x.jsonl", records)
    proposal = propose(path)
    assert proposal.reasons["code"] == (
        "a category: 3 values that repeat, whole numbers in quotes; empty in 1 of 180 records"
    )
    assert "not plain" in proposal.reasons["age"]
    looked_at = read_rows(str(path), 0).schema
    assert [(each.name, each.kind) for each in looked_at.settings.fields] == [
        ("code", "category"),
        ("age", "number"),
        ("x", "number"),
    ]
    fitted = read(path, FitSettings(family="auto"), Columns([], []), None).schema
    assert fitted is not None
    assert fitted.settings.fields == looked_at.settings.fields


def test_columns_are_called_as_their_stream_calls_them(tmp_path: Path) -> None:
    """In a table nothing is nested: what has no name of its own there is left out."""
    path = tmp_path / "x.csv"
    rows = "".join(f"{i % 7}.5,{i % 3}.1,{i % 5}.2,{i % 4}.3\n" for i in range(30))
    path.write_text(f"Min.Price,Closed.,,Closed.\n{rows}")
    proposal = propose(path)
    assert proposal.fields == [{"name": "Min.Price"}, {"name": "Closed."}]
    unnamed = "left out: it has no name of its own in the file"
    assert [proposal.reasons[name] for name in ("Closed. (2)", "column 3")] == [unnamed] * 2
    named = [each for each in proposal.fields if isinstance(each, dict)]
    declared = SchemaSettings(fields=tuple(FieldSettings(**each) for each in named))
    one = FileSource(StreamSettings(source="file", path=str(path)))
    batch, refused = decode(one.poll(0.0), Schema.of(declared, text=True))
    one.close()
    assert (len(batch.values), refused) == (30, [])
    assert batch.values[1].tolist() == [1.5, 1.3]


def test_blanks_around_names_and_cells_are_no_part_of_them(tmp_path: Path) -> None:
    """As in the stream, whose records would all lack the field else."""
    path = tmp_path / "x.csv"
    path.write_text(
        "a, b, c\n"
        + "".join(f'{i % 7}.5 , {"no" if i % 3 else "yes"}, "y, {i % 2}"\n' for i in range(30))
    )
    assert propose(path).fields == [
        "a",
        {"path": "b", "kind": "flag"},
        {"path": "c", "kind": "category", "values": ["y, 0", "y, 1"]},
    ]


def test_fields_that_the_first_record_is_without_are_looked_at(tmp_path: Path) -> None:
    records: list[object] = [
        {
            "x": i % 7 + 0.5,
            **({"cart": {"total": i % 9 + 0.1}} if i else {}),
            **({"note": i % 5} if i % 2 else {}),
            f"user{i}": 1,
        }
        for i in range(40)
    ]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.fields == ["x", "cart.total"]
    assert dict([*proposal.reasons.items()][1:]) == {
        "user0": "left out: empty in 39 of 40 records",
        "cart.total": "a number; empty in 1 of 40 records",
        "note": "left out: empty in 20 of 40 records",
    }


def test_what_some_records_have_alike_is_not_said_of_all(tmp_path: Path) -> None:
    records: list[object] = [{"x": i % 7, "code": "E42" if i % 30 else None} for i in range(60)]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.reasons["code"] == "left out: the same in the 58 records that have it"


def test_an_id_that_repeats_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,x\n1,0.5\n1,0.7\n2,0.9\n")
    proposal = propose(path)
    assert proposal.key is None
    assert proposal.fields == ["id", "x"]


def test_nothing_usable_is_a_usage_error(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("name\na\nb\n")
    with pytest.raises(UsageError, match="no field holds anything"):
        propose(path)


def test_the_configuration_is_toml_whatever_the_names() -> None:
    odd = 'we"ird\\name\x7f\n'
    choices = Choices(
        SchemaProposal([odd, "a.b"], odd, None),
        stream={"name": "s", "source": "file", "path": 'C:\\x"y.csv'},
        kafka={"bootstrap_servers": "h:1", "topic": "t"},
        model={"params.psi": [[1.0, 0.0], [0.0, 2.5]]},
        redis=False,
    )
    document = tomllib.loads(configuration(choices))
    assert document["model"]["params"]["psi"] == [[1.0, 0.0], [0.0, 2.5]]
    assert document["schema"]["fields"] == [{"name": odd}, {"name": "a_b", "path": "a.b"}]
    assert document["schema"]["key"] == odd
    assert "time" not in document["schema"]
    assert document["stream"]["path"] == 'C:\\x"y.csv'
    assert document["redis"]["enabled"] is False


def test_every_kind_is_proposed_with_its_reason(tmp_path: Path) -> None:
    records: list[object] = [
        {
            "bytes": 10 ** (i % 6),
            "n_hits": i % 9,
            "ok": i % 3 == 0,
            "origin": ("JFK", "LGA", "EWR")[i % 3],
            "made": f"2026-01-01T{i % 24:02}:00:00Z",
            "due": f"2026-01-{1 + i % 28:02}T10:00:00",
            "message": f"worker {i} has done its part of round {i % 7}",
            "user": f"user{i}",
            "tags": ["a"],
        }
        for i in range(60)
    ]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.fields == [
        {"path": "bytes", "scale": "log"},
        {"path": "n_hits", "kind": "count"},
        {"path": "ok", "kind": "flag"},
        {"path": "origin", "kind": "category", "values": ["JFK", "LGA", "EWR"]},
        {"path": "message", "kind": "text"},
    ]
    # One of the times is the record's; rows of an hour are no kind.
    assert proposal.reasons["due"] == (
        "left out, as hours and days seldom tell kinds apart "
        '(`kind = "time"` would take its place in the day and in the week)'
    )
    assert proposal.time == "made"
    assert proposal.reasons["made"] == "time, by its values"
    reasons = "\n".join(proposal.reasons.values())
    for words in ("by its logarithm", "3 values that repeat", "9 words a record", "names, 60"):
        assert words in reasons
    choices = Choices(
        proposal,
        stream={"name": "s", "source": "file", "path": "x.jsonl"},
        kafka={"bootstrap_servers": "h:1", "topic": "t"},
    )
    text = configuration(choices)
    fields = tomllib.loads(text)["schema"]["fields"]
    assert fields[3] == {"name": "origin", "kind": "category", "values": ["JFK", "LGA", "EWR"]}
    assert "mixed of gaussian, poisson, bernoulli, categorical, multinomial" in text


@pytest.mark.parametrize(
    ("largest", "told"), [(6e4, "30000 times"), (1e300, "5e+299 times"), (1.7e308, "far above")]
)
def test_a_ratio_has_no_more_digits_than_it_needs(
    largest: float, told: str, tmp_path: Path
) -> None:
    middle = 0.1 if told == "far above" else 2.0
    records: list[object] = [{"x": largest if i == 7 else middle} for i in range(60)]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert f"the largest is {told} the median" in proposal.reasons["x"]


@pytest.mark.parametrize(
    ("name", "days", "clock", "time"),
    [
        # Called so, or in order.
        ("Datum", [17 * i % 60 for i in range(60)], False, "Datum"),
        ("visit", range(60), False, "visit"),
        ("visit", range(60, 0, -1), False, "visit"),
        # Neither, as dates of births are.
        ("born", [17 * i % 60 for i in range(60)], False, None),
        ("visit", [i // 20 for i in range(60)], False, None),
        # A clock says more than order.
        ("visit", range(60), True, "made"),
    ],
)
def test_dates_of_records_are_their_time(
    name: str, days: Sequence[int], clock: bool, time: str | None, tmp_path: Path
) -> None:
    first = datetime(2025, 3, 31, tzinfo=UTC)
    records: list[object] = [
        {
            name: f"{first + timedelta(days=days[i]):%Y-%m-%d}",
            **({"made": f"2026-01-{1 + i * 7 % 28:02}T10:00:00"} if clock else {}),
            "x": i * 7 % 11,
        }
        for i in range(60)
    ]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.time == time
    assert proposal.fields == ["x"]


def test_dates_that_some_records_lack_are_not_their_time(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    days = [f"2025-03-{1 + i:02}" if i != 4 else "" for i in range(30)]
    path.write_text("visit,x\n" + "".join(f"{day},{i * 7 % 11}\n" for i, day in enumerate(days)))
    proposal = propose(path)
    assert proposal.time is None
    assert "its place in the week; empty in 1 of 30 records" in proposal.reasons["visit"]


def test_lines_of_a_log_are_a_text(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("".join(f"worker {i} has started in {i} s\n" for i in range(30)))
    proposal = propose(path)
    assert proposal.fields == [{"path": "line", "kind": "text"}]


def test_prose_is_words(tmp_path: Path) -> None:
    said = "we like this box but the lid is loose and it came late again"
    words = said.split()
    texts = [" ".join(words[i % 11 :] + words[: 3 + i % 7]) for i in range(30)]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", [{"review": text} for text in texts]))
    assert proposal.fields == [{"path": "review", "kind": "text", "tokens": "words"}]


def test_a_time_that_no_run_could_read_is_not_proposed(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    rows = "".join(f"081109 2036{i:02},{1_700_000_000 + i},{i * 7 % 11}\n" for i in range(20))
    path.write_text(f"timestamp,ts,x\n{rows}")
    proposal = propose(path)
    assert proposal.time == "ts"
    assert proposal.fields == ["x"]
    assert "'081109 203600' is no ISO 8601 time" in proposal.reasons["timestamp"]


def test_the_number_of_a_record_is_no_feature(tmp_path: Path) -> None:
    records: list[object] = [{"line": i, "x": i * 7 % 11} for i in range(1, 30)]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.fields == ["x"]
    assert proposal.reasons["line"] == "left out: numbers the records one by one"
    assert proposal.identifiers == {"line": "by number"}


def test_numbers_of_records_that_begin_anew_in_each_part_are_no_feature(tmp_path: Path) -> None:
    records: list[object] = [
        {"sample": 1 + i % 60, "hour": i % 24, "x": i * 7 % 11} for i in range(150)
    ]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.fields == ["hour", "x"]
    assert proposal.reasons["sample"] == "left out: numbers the records one by one, in 3 runs"


def test_two_numbers_that_stand_for_two_things_are_categories(tmp_path: Path) -> None:
    records: list[object] = [
        {
            "sex": i % 2,
            "side": 1.0 + i % 2,
            "smokes": None if i == 7 else i % 2,
            "errors seldom": int(i % 40 == 0),
            "rooms": 1 + i % 3,
            "age": 20 + 7 * i % 60 / 10,
        }
        for i in range(120)
    ]
    path = tmp_path / "x.jsonl"
    proposal = propose(write_jsonl(path, records))
    told = "a category: two numbers that repeat"
    assert proposal.reasons == {
        "sex": told,
        "side": told,
        "smokes": f"{told}; empty in 1 of 120 records",
        "errors seldom": "a number in every record",
        "rooms": "a number in every record",
        "age": "a number in every record",
    }
    assert {"path": "side", "kind": "category", "values": ["1.0", "2.0"]} in proposal.fields
    # Fewer may be small counts.
    assert propose(write_jsonl(path, records[:45])).reasons["sex"] == "a number in every record"
    # Of a picture in black and white components tell more than points.
    for n_points in (MOST_COLUMNS, MOST_COLUMNS + 1):
        picture: list[object] = [{f"p{j}": (i + j) % 2 for j in range(n_points)} for i in range(60)]
        reasons = set(propose(write_jsonl(path, picture)).reasons.values())
        components = wants_components(FeatureSettings(), "auto", n_points)
        assert reasons == {"a number in every record" if components else told}


def test_gaps_are_counted_and_what_is_not_finite_is_one(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    cells = ["nan", "", "-inf", *(f"{i * 7 % 11}.5" for i in range(57))]
    path.write_text("x,y\n" + "".join(f"{cell},{i % 4}\n" for i, cell in enumerate(cells)))
    assert propose(path).reasons == {
        "x": "a number; empty in 3 of 60 records",
        "y": "a number in every record",
    }


def test_what_a_stream_of_the_schema_sets_aside_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gaps and slips of several fields lose more records than each of them does."""
    path = tmp_path / "x.csv"
    rows = [[f"{i * 7 % 11}.5", f'"of\n{i % 3}"', f"{i % 4}"] for i in range(60)]
    rows[3][0], rows[5][2], rows[9][0] = "?", "", "NA"
    path.write_text("x,z,y\n\n" + "".join(",".join(row) + "\n" for row in rows))
    proposal = propose(path)
    assert proposal.reasons["x"] == "a number; no number in 2 of 60 records, as '?'"
    assert capsys.readouterr().err.splitlines()[-4:] == [
        f"{path}: 3 of 60 rows have a gap or cannot be read: a stream sets such records aside",
        "  line 10: field 'x' should be a number, is '\"?\"'",
        "  line 14: field 'y' should be a number, is '\"\"'",
        "  line 22: field 'x' should be a number, is '\"NA\"'",
    ]


def test_copies_of_records_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rng: np.random.Generator
) -> None:
    """To a stream each of them is an observation."""
    path = tmp_path / "x.csv"
    rows = [",".join(f"{each:.2f}" for each in row) + "\n" for row in rng.normal(size=(200, 4))]
    path.write_text("a,b,c,d\n" + "".join(rows))
    propose(path)
    assert "copies" not in capsys.readouterr().err
    path.write_text("a,b,c,d\n" + "".join(rows + rows[:30]))
    propose(path)
    assert "30 of 230 records are exact copies of others: to a stream" in capsys.readouterr().err


def test_a_slip_in_a_column_of_numbers_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    cells = ["oops", *(f"{i * 7 % 11}.5" for i in range(59))]
    path.write_text("x,y\n" + "".join(f"{cell},{i + i // 40}\n" for i, cell in enumerate(cells)))
    assert propose(path).reasons == {
        "x": "a number; no number in 1 of 60 records, as 'oops'",
        "y": "left out: numbers the records one by one",
    }


def test_an_identifier_is_no_number(tmp_path: Path) -> None:
    records: list[object] = [
        {
            "customer_id": 7919 * i % 10007,
            "orderId": 31 * i % 997,
            "paid": i * 7 % 11,
            "grid": 3 * i,
        }
        for i in range(1, 40)
    ]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.fields == ["paid", "grid"]
    told = "left out: an identifier, by its name, different in every record"
    assert [proposal.reasons[name] for name in ("customer_id", "orderId")] == [told] * 2
    assert proposal.identifiers == {"customer_id": "by name", "orderId": "by name"}


def test_identifiers_that_repeat_and_numbers_in_another_order(tmp_path: Path) -> None:
    records: list[object] = [
        {
            "": (7 * i) % 101 * 5,
            "patientID": 7919 * (i // 2 if i < 8 else i) % 10007,
            "shop_id": (3, 17, 99)[i % 3],
            "street id": 613 * (i // 2) % 997,
            "rank": (7 * i) % 101,
            "price": 613 * i % 997,
            "age": 20 + 7 * i % 60,
        }
        for i in range(1, 101)
    ]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    told = "an identifier by its name"
    assert proposal.reasons == {
        "": "left out: an index, different in every record",
        "patientID": "left out: an identifier, by its name, different in nearly every record",
        "shop_id": f"a category: 3 values that repeat, {told}",
        "street id": "left out: an identifier, by its name, 51 different in 100 records",
        # As many as there are records, and each once: but nothing calls it their number.
        "rank": "a number in every record",
        "price": "a number in every record",
        "age": "a number in every record",
    }


@pytest.mark.parametrize(
    "write",
    [
        "%m/%d/%Y",
        "%d.%m.%Y %H:%M",
        "%d-%m-%y",
        "%d %b %Y",
        "%B %d, %Y",
        "%b-%d-%Y",
        "%d/%b/%Y",
        "%Y/%m/%d %I:%M %p",
        "%H:%M",
    ],
)
def test_dates_of_other_forms_are_no_categories(write: str, tmp_path: Path) -> None:
    start = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
    records: list[object] = [
        {"due": (start + timedelta(days=i // 9, minutes=i // 9)).strftime(write), "x": i % 5}
        for i in range(90)
    ]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.fields == ["x"]
    told = "left out: dates or times, not as ISO 8601 has them (2026-03-31)"
    assert proposal.reasons["due"] == told


@pytest.mark.parametrize("values", [["1.2.10", "1.3.0"], ["20-29", "30-39"], ["5/6", "7/8"]])
def test_versions_and_ranges_are_categories(values: list[str], tmp_path: Path) -> None:
    records: list[object] = [{"part": values[i % 2], "x": i % 5} for i in range(20)]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.fields[0] == {"path": "part", "kind": "category", "values": values}


def test_dates_are_clustered_by_their_place_in_the_week_where_there_is_nothing_else(
    tmp_path: Path,
) -> None:
    records: list[object] = [{"due": f"2026-01-{1 + i * 11 % 28:02}"} for i in range(30)]
    proposal = propose(write_jsonl(tmp_path / "x.jsonl", records))
    assert proposal.fields == [{"path": "due", "kind": "time", "periods": ["week"]}]
    assert proposal.reasons == {"due": "a date: its place in the week"}


def test_small_numbers_that_are_called_time_are_numbers(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("time,ts\n" + "".join(f"{i * 7 % 31},2026010{1 + i % 9}\n" for i in range(30)))
    proposal = propose(path)
    assert (proposal.time, proposal.fields) == ("ts", ["time"])
    assert "its numbers are no seconds since the epoch" in proposal.reasons["time"]


def test_a_number_of_hundreds_of_digits_is_a_slip(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records: list[object] = [{"x": i * 7 % 31 / 2, "hits": i * i % 17} for i in range(40)]
    records[5] = {"x": 10**400, "hits": 3}
    records[6] = {"x": 1.5, "hits": 10**400}
    path = write_jsonl(tmp_path / "x.jsonl", records)
    proposal = propose(path)
    assert proposal.fields == ["x", {"path": "hits", "kind": "count"}]
    assert "no number in 1 of 40 records, as '1000" in proposal.reasons["x"]
    told = capsys.readouterr().err
    assert "2 of 40 rows have a gap or cannot be read" in told
    table = read_rows(str(path), 0)
    assert np.isnan(table.values).sum() == 2


def test_lines_are_told_where_a_quote_stands_in_a_cell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f'{i * 7 % 31},{i},{"ab"[i % 2]} 5"' for i in range(40)]
    rows[20] = 'no,20,"a\n5"'
    (tmp_path / "x.csv").write_text("\n".join(["x,n,note", *rows]) + "\n")
    propose(tmp_path / "x.csv")
    told = capsys.readouterr().err
    assert "1 of 40 rows has a gap or cannot be read" in told
    assert "line 23: field 'x' should be a number" in told


def test_settings_are_written_where_nobody_reads_what_is_said(tmp_path: Path) -> None:
    """As after ``2>&1 | head``: the first notes come before the file."""
    (tmp_path / "s.csv").write_text("x,y\n" + "1.5,2.5\n3.25,4.75\n" * 20)
    command = "import os, weald.cli.main as m; os.read(0, 1); m.main(['init', '--sample', 's.csv'])"
    with subprocess.Popen(
        [sys.executable, "-c", command],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stderr is not None
        running.stderr.close()
        running.communicate(b"x")
    assert running.returncode == 0
    assert "[schema]" in (tmp_path / "weald.toml").read_text()
