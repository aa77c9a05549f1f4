"""``weald look``: planted kinds in every format, what is said of them, and the page."""

import base64
import csv
import gzip
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Command
from tests.servers.chromium import Browser
from tests.servers.devtools import driven
from weald.answers.description.texts import Templates, Vocabulary
from weald.cli.errors import ExitCode
from weald.cli.files.folder import form_of
from weald.cli.look.command import afterwards_of
from weald.cli.look.rows import read_rows
from weald.cli.look.seen import seen_of
from weald.stream.record.inference import field_inference

pytestmark = pytest.mark.usefixtures("clean")

N = 240
CENTRES = np.array([[0.0, 0.0], [30.0, -20.0], [-25.0, 40.0]])


def planted(rng: np.random.Generator) -> tuple[list[dict[str, Any]], np.ndarray[Any, Any]]:
    """Records of three kinds in two columns of numbers, and the kinds."""
    kind = rng.integers(0, 3, N)
    places = CENTRES[kind] + rng.normal(size=(N, 2))
    return [{"no": i, "x": x, "y": y} for i, (x, y) in enumerate(places.tolist())], kind


def write(path: Path, records: list[dict[str, Any]], delimiter: str = ",") -> None:
    """Write records as a table of text."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, records[0], delimiter=delimiter)
        writer.writeheader()
        writer.writerows(records)


def looked(weald: Command, *arguments: str) -> dict[str, Any]:
    """What a look of two seconds says, as JSON."""
    result = weald("look", *arguments, "--seconds", "2", "--output", "json")
    assert result.code == 0, result.err
    found: dict[str, Any] = json.loads(result.out)
    return found


def write_as(form: str, path: Path, records: list[dict[str, Any]]) -> None:
    """Write records as a file of this form."""
    if form == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(records), path)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(each) + "\n" for each in records))
    else:
        write(path, records, "\t" if form == "tsv" else ",")


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_planted_kinds_are_found_in_every_format(
    form: str, weald: Command, rng: np.random.Generator
) -> None:
    records, kind = planted(rng)
    path = Path(f"kinds.{form}")
    write_as(form, path, records)
    found = looked(weald, str(path), "--no-page")
    assert found["rows"] == found["rows_looked_at"] == N
    assert [row["size"] for row in found["groups"]] == sorted(np.bincount(kind))[::-1]
    assert found["verdict"]["status"] == "ok"
    assert not Path("weald-look.html").exists()


@pytest.mark.parametrize("form", ["lines", "array", "array in UTF-16"])
def test_a_look_needs_no_file(
    form: str, weald: Command, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, _ = planted(rng)
    text = "\n".join(map(json.dumps, records))
    if form != "lines":
        text = json.dumps(records, indent=2)
    content = text.encode("utf-16" if "UTF-16" in form else "utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert looked(weald, "-", "--no-page")["n_groups"] == 3


@pytest.fixture
def orders(clean: Path, rng: np.random.Generator) -> tuple[Path, np.ndarray[Any, Any]]:
    """A table with a category, a flag, a time, a semicolon and gaps; two kinds."""
    kind = rng.integers(0, 2, N)
    rows = [
        {
            "order_id": 1000 + i,
            "ordered_at": f"2026-10-{1 + i % 28:02d}T{(8, 20)[k]:02d}:{i % 60:02d}:00",
            "country": rng.choice(["Norway", "Chile"], p=[(0.9, 0.1)[k], (0.1, 0.9)[k]]),
            "price": "NA" if rng.random() < 0.15 else round(rng.normal((20.0, 60.0)[k], 3.0), 2),
            "express": ("yes", "no")[int(rng.random() < (0.2, 0.8)[k])],
        }
        for i, k in enumerate(kind.tolist())
    ]
    path = clean / "orders.csv"
    write(path, rows, ";")
    return path, kind


def test_mixed_columns_with_gaps_are_told_in_their_own_values(
    orders: tuple[Path, np.ndarray[Any, Any]], weald: Command
) -> None:
    path, _ = orders
    result = weald("look", str(path), "--seconds", "3", "--no-page")
    assert result.code == 0, result.err
    assert "country: a category: 2 values that repeat" in result.err
    assert "order_id: left out: numbers the records one by one" in result.err
    assert "not clustered by, only told: ordered_at" in result.err
    for word in ("how sure", "what sets it apart", "verdict"):
        assert word in result.out

    found = looked(weald, str(path), "--no-page")
    assert found["n_groups"] == 2
    rows = list(csv.DictReader(io.StringIO(path.read_text()), delimiter=";"))
    kinds = [row for row in found["groups"] if row["size"] > N / 4]
    assert len(kinds) == 2
    for row in kinds:
        for sentence in row["description"].split("; "):
            # Each share is that of the rows of the file: in all, what is inside and elsewhere.
            what, inside, elsewhere = re.fullmatch(  # type: ignore[union-attr]
                r"(.+): [<>]?(\d+) %, elsewhere [<>]?(\d+) %", sentence
            ).groups()
            if what.startswith("ordered_at"):
                continue  # told by its place in the day
            held = sum(holds(what, each) for each in rows)
            told = row["size"] * int(inside) / 100 + (N - row["size"]) * int(elsewhere) / 100
            assert held == pytest.approx(told, abs=0.011 * N)


def test_the_page_shows_the_values_that_came_in(
    orders: tuple[Path, np.ndarray[Any, Any]], weald: Command, clean: Path, chromium: Browser
) -> None:
    path, _ = orders
    result = weald("look", str(path), "--seconds", "2", "--out", "page.html", "--output", "json")
    assert result.code == 0, result.err
    told = json.loads(result.out)
    lines = list(csv.DictReader(io.StringIO(path.read_text()), delimiter=";"))
    with driven(chromium.program) as page:
        page.open((clean / "page.html").as_uri())
        page.until("document.documentElement.dataset.ready")
        assert page.ask("document.querySelector('.subtitle').textContent") == "a look at orders.csv"
        parts = page.ask("[...document.querySelectorAll('.part .size')].map((e) => e.textContent)")
        for group in told["groups"]:
            assert any(each.startswith(f"{group['size']} rows") for each in parts)
        shown = page.ask(
            "[...document.querySelectorAll('#members tr')].map((r) =>"
            " [...r.cells].map((c) => c.textContent.trim()))"
        )
        spread = page.ask(
            "[...document.querySelectorAll('h4')].map((e) => e.firstChild.textContent.trim())"
        )
        assert page.console == []
    places = {name.rstrip(" ▲"): at for at, name in enumerate(shown[0])}
    assert places["order_id"] == 0
    for row in shown[1:]:
        line = lines[int(row[0]) - 1000]
        assert line["order_id"] == row[0]
        assert row[places["country"]] == line["country"]
        assert row[places["express"]] == line["express"]
        if line["price"] != "NA":
            assert float(row[places["price"]]) == float(line["price"])
        assert row[places["ordered_at"]] == line["ordered_at"].replace("T", " ")[:16]
    assert "ordered_at (day)" not in places
    assert "ordered_at (day)" in spread


def holds(what: str, row: dict[str, str]) -> bool:
    """Whether a rule, in its words, is true of a row of the file."""
    if what.startswith("no "):
        return row[what[3:]] == "NA"
    name, _, words = what.partition(" ")
    value = row[name]
    if name in ("country", "express"):
        return value in words.split(" or ")
    if value == "NA":
        return False
    low, high = -np.inf, np.inf
    if words.startswith("at most "):
        high = float(words[8:])
    elif words.startswith("at least "):
        low = float(words[9:])
    else:
        low, high = map(float, words.split(",")[0].split(" to "))
    return bool(low <= float(value) <= high)


def test_what_cannot_be_looked_at_is_said(weald: Command, clean: Path) -> None:
    assert weald("look", "nothing.csv").code == ExitCode.NOT_FOUND
    (clean / "same.csv").write_text("a,b\n1,x\n1,x\n1,x\n")
    result = weald("look", "same.csv")
    assert result.code == ExitCode.USAGE
    assert "no field holds anything to cluster by" in result.err


def test_of_many_rows_some_are_looked_at_and_that_is_said(
    weald: Command, clean: Path, rng: np.random.Generator
) -> None:
    kind = rng.integers(0, 3, 10_500)
    places = CENTRES[kind] + rng.normal(size=(kind.size, 2))
    write(clean / "many.csv", [{"no": i, "x": x, "y": y} for i, (x, y) in enumerate(places)])
    result = weald("look", "many.csv", "--no-page", "--seconds", "2", "--output", "json")
    assert result.code == 0, result.err
    assert "10500 rows, of which 10000 drawn at random are looked at" in result.err
    found = json.loads(result.out)
    assert (found["rows"], found["rows_looked_at"], found["n_groups"]) == (10_500, 10_000, 3)
    # Numbers that follow each other say nothing, also where some of them are drawn.
    assert not any("no " in row["description"] for row in found["groups"])


WORDS = (("refund", "money"), ("login", "password"), ("parcel", "courier"))


def embedded(rng: np.random.Generator, d: int = 40) -> tuple[list[dict[str, Any]], Any]:
    """Texts with embeddings of unit length, of three kinds; one has none."""
    kind = rng.integers(0, 3, N)
    vectors = rng.normal(size=(3, d))[kind] + 0.5 * rng.normal(size=(N, d))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    records: list[dict[str, Any]] = [
        {"title": f"about {rng.choice(WORDS[k])} {at}", "told": {"vector": vector}}
        for at, (k, vector) in enumerate(zip(kind.tolist(), vectors.tolist(), strict=True))
    ]
    records[7]["told"]["vector"] = None
    return records, kind


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_embeddings_are_one_vector_and_are_told_by_their_texts(
    form: str, weald: Command, rng: np.random.Generator
) -> None:
    records, kind = embedded(rng)
    path = Path(f"embeddings.{form}")
    write_as(form, path, records)
    result = weald("look", str(path), "--seconds", "2", "--no-page", "--output", "json")
    assert result.code == 0, result.err
    assert "told.vector: a vector of 40 numbers" in result.err
    assert re.search(r"told\.vector: seen as \d+ components of 40 columns", result.err)
    assert "only told: title" in result.err
    found = json.loads(result.out)
    large = [row for row in found["groups"] if row["size"] > 20]
    # The one without a vector may be with any.
    sizes = np.sort(np.bincount(np.delete(kind, 7)))[::-1]
    beyond = [row["size"] - size for row, size in zip(large, sizes, strict=True)]
    assert sorted(beyond) in ([0, 0, 0], [0, 0, 1])
    for row in large:
        said = re.findall(r"says (\w+): (\d+) %, elsewhere (?:0|<1|1) %", row["description"])
        assert {word for word, _ in said} in (set(each) for each in WORDS)
        assert abs(sum(int(share) for _, share in said) - 100) <= 1


@pytest.fixture
def logs(clean: Path) -> Path:
    """A folder of logs, one of them rotated and packed, one with a byte of no text."""
    folder = clean / "logs"
    folder.mkdir()
    lines = [f"user {at} logged in from 10.0.0.{at}" for at in range(60)]
    (folder / "b.log").write_text("\n\n".join(lines) + "\n")
    packed = [f"cannot open file number {at} : permission denied" for at in range(40)]
    (folder / "a.log.1.gz").write_bytes(gzip.compress("\n".join(packed).encode()))
    (folder / "c.log").write_bytes(b"session of user 1 closed \xff\n" * 30)
    (folder / ".hidden").write_bytes(b"\0")
    return folder


def test_a_folder_of_logs_is_one_set_of_lines(weald: Command, logs: Path, clean: Path) -> None:
    found = looked(weald, str(logs), "--out", "page.html")
    assert found["rows"] == 130
    told = {row["size"]: row["description"] for row in found["groups"]}
    assert told[40].startswith("cannot open file number <*>")
    assert told[60].startswith("user <*> logged in from <*>")
    packed = (clean / "page.html").read_text().partition('id="data">')[2].partition("<")[0]
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert data["keys"][:2] == ["a.log.1.gz:1", "a.log.1.gz:2"]
    # Every second line is empty, and line numbers are those of an editor.
    assert data["keys"][40:42] == ["b.log:1", "b.log:3"]
    assert data["keys"][-1] == "c.log:30"
    file = next(each for each in data["columns"] if each["name"] == "file")
    assert [file["names"][code] for code in file["values"]] == (
        ["a.log.1.gz"] * 40 + ["b.log"] * 60 + ["c.log"] * 30
    )


def test_reviews_are_told_apart_by_their_words(
    weald: Command, clean: Path, rng: np.random.Generator
) -> None:
    """Prose shares no templates: as lines each of these texts would be a kind of its own."""
    said = (
        "parcel late courier delivery box damaged shipping driver arrived refund",
        "screen battery phone charger app crashes update camera software restart",
        "the a was very and it is not with my for this when so but",
    )
    words = [each.split() for each in said]
    kind = rng.integers(0, 2, N)
    texts = [
        " ".join(
            rng.choice(words[2 if rng.random() < 0.5 else k]) for _ in range(rng.integers(8, 31))
        )
        for k in kind.tolist()
    ]
    write(clean / "reviews.csv", [{"review": text} for text in texts])
    found = looked(weald, "reviews.csv", "--no-page")
    sizes = [row["size"] for row in found["groups"] if row["size"] > 10]
    assert sizes == pytest.approx(sorted(np.bincount(kind))[::-1], abs=3)
    assert all(row["description"].startswith("says ") for row in found["groups"][:2])


def test_a_broken_line_is_left_out_of_a_look(weald: Command, clean: Path) -> None:
    values = [0.1 * (at % 7) + 9.0 * (at % 2) for at in range(60)]
    lines = [json.dumps({"x": each, "y": each % 1.3}) for each in values]
    lines[7] = lines[7][:5]
    (clean / "t.jsonl").write_text("\n".join(lines))
    result = weald("look", "t.jsonl", "--seconds", "5", "--output", "json", "--no-page")
    assert result.code == 0, result.err
    assert json.loads(result.out)["rows"] == 59
    assert "1 of 60 rows cannot be read, and are left out" in result.err
    assert "line 8: is not JSON" in result.err
    # Numbers of rows are those that a fit writes: from 0, and the broken one has its own.
    assert read_rows("t.jsonl", 0).keys[5:9] == ["row 5", "row 6", "row 8", "row 9"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_is_read_in_the_encodings_that_people_have(
    encoding: str, clean: Path, rng: np.random.Generator
) -> None:
    """Spreadsheets write a byte order mark, or bytes of Windows, and semicolons."""
    sizes = np.round(rng.normal(size=N), 2)
    lines = [f"{size};{'Tromsø' if size > 0 else 'Bodø'}" for size in sizes]
    text = "\r\n".join(["Größe (€);Ort", *lines])
    (clean / "t.csv").write_bytes(text.replace(".", ",").encode(encoding))
    rows = read_rows("t.csv", 0)
    assert rows.schema.features == ("Größe (€)", "Ort")
    np.testing.assert_array_equal(rows.values[:, 0], sizes)
    assert set(rows.columns[1].values) == {"Tromsø", "Bodø"}


@pytest.mark.parametrize(
    "form", ["array", "in an object", "deep in it", "on a line", "as jq prints", "a line each"]
)
def test_one_json_value_of_many_records_is_read(
    form: str, clean: Path, weald: Command, rng: np.random.Generator
) -> None:
    records, kind = planted(rng)
    text = {
        "array": json.dumps(records),
        "in an object": json.dumps({"meta": {"page": 1}, "data": records}, indent=1),
        "deep in it": json.dumps({"meta": 1, "results": {"n": N, "items": records}}, indent=1),
        "as jq prints": "\n".join(json.dumps(each, indent=2) for each in records),
        "on a line": json.dumps({"meta": {"page": 1}, "data": records}),
        "a line each": "\n".join(map(json.dumps, records)),
    }[form]
    (clean / "t.json").write_text(text)
    found = looked(weald, "t.json", "--no-page")
    assert [row["size"] for row in found["groups"]] == sorted(np.bincount(kind))[::-1]
    fitted = weald("fit", "t.json", "--iterations", "20", "--chains", "1", "--output", "json")
    assert fitted.code == 0, fitted.err
    assert json.loads(fitted.out)["n_observations"] == N
    proposed = weald("init", "new", "--from-sample", "t.json")
    assert (proposed.code == 0) == (form == "a line each")
    assert (
        form == "a line each"
        or "its records are not each on a line, and a stream reads" in proposed.err
    )


def test_numbers_in_json_are_read_as_people_write_them(
    clean: Path, rng: np.random.Generator
) -> None:
    humid = rng.uniform(10.0, 90.0, N).round(1).tolist()
    records = [
        {"humid": f"{each}%", "paid": "None" if i % 9 == 0 else i / 4}
        for i, each in enumerate(humid)
    ]
    (clean / "t.jsonl").write_text("\n".join(map(json.dumps, records)))
    rows = read_rows("t.jsonl", 0)
    assert rows.values[:, 0].tolist() == humid
    assert np.isnan(rows.values[:, 1]).sum() == len(range(0, N, 9))


def test_cells_between_bars_and_blanks(clean: Path, rng: np.random.Generator) -> None:
    records, _ = planted(rng)
    for separator in ("|", ", "):
        lines = [separator.join(map(str, each.values())) for each in records]
        (clean / "t.csv").write_text("\n".join([separator.join(records[0]), *lines]))
        rows = read_rows("t.csv", 0)
        assert rows.schema.features == ("x", "y")
        np.testing.assert_array_equal(rows.values, [[each["x"], each["y"]] for each in records])


def test_columns_without_a_name_of_their_own(clean: Path, rng: np.random.Generator) -> None:
    values = np.round(rng.normal(size=(N, 4)), 3)
    rows = "\n".join(",".join(map(str, row)) for row in values.tolist())
    (clean / "t.csv").write_text(f"Closed.,,a.b,a.b\n{rows}\n")
    found = read_rows("t.csv", 0)
    assert found.schema.features == ("Closed.", "column 2", "a.b (2)", "a.b")
    np.testing.assert_array_equal(found.values, values)


def test_a_file_without_columns_to_cluster_by_is_told_what_they_are(
    clean: Path, weald: Command
) -> None:
    (clean / "t.csv").write_text("name,same\n" + "".join(f"n{i},1\n" for i in range(30)))
    refused = weald("look", "t.csv")
    assert refused.code == ExitCode.USAGE
    assert "name: left out: names, 30 different in 30 records; same: left out" in refused.err
    assert "weald.toml" not in refused.err


def test_a_folder_of_several_kinds_is_refused(weald: Command, logs: Path) -> None:
    (logs / "table.csv").write_text("a,b\n1,2\n")
    result = weald("look", str(logs))
    assert result.code == ExitCode.USAGE
    assert "more than one kind: table.csv (csv), a.log.1.gz (lines);" in result.err


def test_tables_of_a_folder_have_the_same_columns(weald: Command, clean: Path) -> None:
    folder = clean / "tables"
    folder.mkdir()
    assert weald("look", str(folder)).code == ExitCode.NOT_FOUND
    (folder / "1.csv").write_text("a,b\n1,2\n")
    (folder / "2.csv").write_text("a;c\n1;2\n")
    result = weald("look", str(folder))
    assert result.code == ExitCode.USAGE
    assert "2.csv: other columns (a, c) than the files before it (a, b)" in result.err


@pytest.mark.parametrize(
    ("name", "content", "form"),
    [
        ("app.log.1", b"a line", "lines"),
        ("app.log-20260101.gz", gzip.compress(b"a line", mtime=0), "lines"),
        ("syslog", b"Jan 1 a line", "lines"),
        ("events", b' {"a": 1}', "jsonl"),
        ("events.json", b"[1]", "jsonl"),
        ("t.CSV", b"a,b", "csv"),
    ],
)
def test_what_a_file_is_follows_from_its_name_or_first_bytes(
    name: str, content: bytes, form: str, clean: Path
) -> None:
    (clean / name).write_bytes(content)
    assert form_of(clean / name) == form


def test_words_are_told_with_their_shares() -> None:
    inside = np.arange(50) < 20
    texts = ["Refund, please" if at % 2 or at >= 40 else "please help" for at in range(50)]
    texts = [f"{text} now" if at < 20 else text for at, text in enumerate(texts)]
    assert list(map(str, Vocabulary(texts).telling(inside))) == ["says now: 100 %, elsewhere 0 %"]
    assert Vocabulary(["", ""]).telling(np.array([True, False])) == []


def test_lines_of_several_templates_are_told_by_each_with_its_share() -> None:
    kinds = [
        "Failed password for {} from 10.0.0.{}",
        "Invalid user {} at port {}",
        "closed by {}{}",
    ]
    names = ["root", "root", "root", "ann"]
    lines = [kinds[0 if at < 50 else 1].format(names[at % 4], at) for at in range(90)]
    lines += [kinds[2].format(names[at % 4], at) for at in range(70)]
    inside = np.arange(160) < 100
    told = list(map(str, Templates(lines).telling(inside)))
    assert told == [
        "Failed password for <*> from <*>: 50 %, elsewhere 0 %",
        "Invalid user <*> at port <*>: 40 %, elsewhere 0 %",
    ]
    # What is as usual elsewhere does not tell these lines from others.
    assert Templates(lines).telling(inside | True) == []
    assert Templates(["a b c"] * 40).telling(np.arange(40) < 20) == []


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([[1, 2.5], [0, 1], None], {"size": 2}),
        ([[1, 2], [1, 2]], "the same in every record"),
        ([[1, 2], [1]], "lists of 1 to 2 numbers"),
        ([["a"], ["b"]], "lists of something else than numbers"),
        ([[True], [False]], "lists of something else than numbers"),
        ([[1], 2], "a list in some records, in others not"),
        ([[], []], "empty lists"),
    ],
)
def test_lists_of_numbers_of_one_length_are_vectors(values: list[Any], told: object) -> None:
    verdict = field_inference.judged("x", values, most_empty=0.5)
    if isinstance(told, dict):
        assert verdict.settings == told
    else:
        assert verdict == (None, f"left out: {told}", None)


def test_small_whole_numbers_beside_other_kinds_are_no_kinds_of_their_own(
    weald: Command, clean: Path, rng: np.random.Generator
) -> None:
    """Orders of two kinds, of which one to eight items were bought."""
    kind = rng.integers(0, 2, 2 * N)
    rows = [
        {
            "price": round(float(rng.normal((20.0, 60.0)[k], 5.0)), 2),
            "items": int(1 + rng.poisson((1.0, 2.0)[k])),
            "country": rng.choice(["Norway", "Chile"], p=[(0.8, 0.3)[k], (0.2, 0.7)[k]]),
        }
        for k in kind.tolist()
    ]
    write(clean / "items.csv", rows)
    found = looked(weald, "items.csv", "--no-page")
    sizes = [row["size"] for row in found["groups"] if row["size"] > 10]
    assert sizes == pytest.approx(sorted(np.bincount(kind))[::-1], abs=5)


def test_a_few_gaps_leave_the_others_their_covariance(
    weald: Command, rng: np.random.Generator
) -> None:
    """Two long kinds side by side, told apart by how their numbers hang together."""
    kind = rng.integers(0, 2, N)
    x = rng.normal(0.0, 30.0, N)
    y = x + 8.0 * kind + rng.normal(size=N)
    rows: list[dict[str, Any]] = [
        {"x": f"{a:.3f}", "y": f"{b:.3f}"} for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    for at, name in ((3, "x"), (50, "y"), (51, "y")):
        rows[at][name] = ""
    write(Path("long.csv"), rows)
    result = weald("look", "long.csv", "--seconds", "4", "--output", "json", "--out", "page.html")
    assert result.code == 0, result.err
    assert "3 rows with gaps in numbers: put where what they have fits best" in result.err
    sizes = [row["size"] for row in json.loads(result.out)["groups"]]
    assert sizes == pytest.approx(sorted(np.bincount(kind))[::-1], abs=3)
    assert sum(sizes) == N
    assert Path("page.html").exists()


def test_a_number_too_far_from_the_others_is_a_gap(
    weald: Command, rng: np.random.Generator
) -> None:
    """Also in a row with another gap, which is placed afterwards."""
    kind = rng.integers(0, 2, N)
    x = np.column_stack([rng.normal(30.0 * kind), rng.normal(size=N), rng.normal(size=N)])
    rows: list[dict[str, Any]] = [dict(zip("xyz", row, strict=True)) for row in x.tolist()]
    rows[7]["z"], rows[9]["z"], rows[9]["y"] = 1e9, 1e9, ""
    write(Path("far.csv"), rows)
    result = weald("look", "far.csv", "--seconds", "2", "--output", "json", "--out", "page.html")
    assert result.code == 0, result.err
    assert "  z: 2 numbers over 10,000 spreads from the others, taken for gaps\n" in result.err
    assert sum(row["size"] for row in json.loads(result.out)["clusters"]) == N
    assert Path("page.html").exists()


def test_copies_of_rows_are_seen_once_and_counted(weald: Command, rng: np.random.Generator) -> None:
    kind = rng.integers(0, 3, N)
    places = rng.normal(0.0, 20.0, (3, 4))[kind] + rng.normal(size=(N, 4))
    records: list[dict[str, Any]] = [dict(zip("abcd", row, strict=True)) for row in places.tolist()]
    records[7]["b"] = ""
    write(Path("twice.csv"), records + records[:40])
    result = weald("look", "twice.csv", "--seconds", "2", "--output", "json", "--out", "page.html")
    assert result.code == 0, result.err
    assert "40 rows are exact copies of others: each is seen once" in result.err
    assert "2 rows with gaps in numbers" in result.err
    found = json.loads(result.out)
    sizes = np.bincount(np.concatenate([kind, kind[:40]]))
    assert [row["size"] for row in found["groups"]] == sorted(sizes.tolist())[::-1]
    seen = seen_of(read_rows("twice.csv", 0), 0)
    assert seen.chosen.sum() == N - 1
    assert np.array_equal(seen.original[N:], np.arange(40))
    assert Path("page.html").exists()


def test_whole_numbers_seen_by_their_logarithm_are_no_kinds_of_their_own(
    clean: Path, rng: np.random.Generator
) -> None:
    """Each is moved about what rounds to it, in each column in another way, and told as it was."""
    visits = np.rint(rng.lognormal(0.7, 1.0, (600, 2))).astype(int)
    visits[0] = 5000
    rows = [
        {"pages": one, "requests": other, "paid": at % 3 == 0}
        for at, (one, other) in enumerate(visits.tolist())
    ]
    write(clean / "visits.csv", rows)
    read = read_rows(str(clean / "visits.csv"), 0)
    moved = seen_of(read, 0).values[:, :2]
    assert np.array_equal(np.stack([each.values for each in read.columns[:2]], 1), visits)
    off = 0.5 * (moved - np.log1p(visits)) / (np.log1p(visits + 0.5) - np.log1p(visits))
    # Of 600 moves of variance a quarter, four standard errors.
    assert np.abs(off.mean(axis=0)).max() < 4 * 0.5 / 600**0.5
    assert off.std(axis=0) == pytest.approx([0.5] * 2, rel=4 / 1200**0.5)
    assert abs(np.corrcoef(off.T)[0, 1]) < 4 / 600**0.5


def test_amounts_in_large_steps_with_zeros_have_logarithms(
    clean: Path, rng: np.random.Generator
) -> None:
    """Half a step below 0 is no amount."""
    paid = 500 * np.rint(rng.lognormal(1.0, 1.5, 400)).astype(int)
    paid[0] = 5_000_000
    assert (paid == 0).any()
    write(clean / "paid.csv", [{"paid": each, "at": at % 7} for at, each in enumerate(paid)])
    read = read_rows(str(clean / "paid.csv"), 0)
    assert read.schema.settings.fields[0].scale == "log"
    moved = seen_of(read, 0).values
    assert np.isfinite(moved).all()
    assert (moved[:, 0] != read.values[:, 0]).all()


def test_counts_that_vary_more_than_by_chance_are_few_clusters(
    weald: Command, clean: Path, rng: np.random.Generator
) -> None:
    """Readers, who call nothing, and scripts: to be 0 everywhere is one thing, not several."""
    kind = (rng.random(3 * N) < 0.2).astype(int)
    means = np.array([[4.0, 0.0], [40.0, 60.0]])[kind] * rng.gamma(3.0, 1 / 3, (3 * N, 1))
    rows = [
        {"visits_count": one, "of them: calls_count": other}
        for one, other in rng.poisson(means).tolist()
    ]
    write(clean / "visits.csv", rows)
    result = weald("look", "visits.csv", "--no-page", "--seconds", "4", "--output", "json")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    first, second, *rest = [row["size"] for row in found["groups"]]
    assert [first, second] == pytest.approx(sorted(np.bincount(kind))[::-1], abs=15)
    # How far four seconds lead is the machine's: a handful may not have found its group yet.
    assert sum(rest) <= 0.02 * 3 * N
    assert len(found["clusters"]) <= 5


@pytest.mark.parametrize(
    ("loading", "expected"),
    [(0.0, 3.0), (0.5, 3.0), (1.2, 3.6), (60.0, 5.0)],
    ids=["loaded before", "a quiet machine", "a busy one", "a cold disk"],
)
def test_more_time_is_kept_for_the_end_where_loading_was_slow(
    loading: float, expected: float
) -> None:
    assert afterwards_of(10.0, loading) == pytest.approx(expected)
