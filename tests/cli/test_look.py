"""``weald look``: planted kinds in every format, what is said of them, and the page."""

import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.servers.chromium import Browser
from tests.servers.devtools import driven
from weald.cli.errors import ExitCode

from .conftest import Command

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


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_planted_kinds_are_found_in_every_format(
    form: str, weald: Command, rng: np.random.Generator
) -> None:
    records, kind = planted(rng)
    path = Path(f"kinds.{form}")
    if form == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pyarrow.Table.from_pylist(records), path)
    elif form == "jsonl":
        path.write_text("".join(json.dumps(each) + "\n" for each in records))
    else:
        write(path, records, "\t" if form == "tsv" else ",")
    found = looked(weald, str(path), "--no-page")
    assert found["rows"] == found["rows_looked_at"] == N
    assert [row["size"] for row in found["groups"]] == sorted(np.bincount(kind))[::-1]
    assert found["verdict"]["status"] == "ok"
    assert not Path("weald-look.html").exists()


def test_a_look_needs_no_file(
    weald: Command, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, _ = planted(rng)
    text = "".join(json.dumps(each) + "\n" for each in records)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
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
        assert page.console == []
    places = {name.rstrip(" ▲"): at for at, name in enumerate(shown[0])}
    for row in shown[1:]:
        line = lines[int(row[0].removeprefix("row ")) - 1]
        assert row[places["country"]] == line["country"]
        assert row[places["express"]] == line["express"]
        if line["price"] != "NA":
            assert float(row[places["price"]]) == float(line["price"])
        assert row[places["ordered_at (day)"]] == line["ordered_at"][11:16]


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
