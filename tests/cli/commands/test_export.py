"""Lineage, exports and completion over a stream that a real engine has filled."""

import csv
import errno
import io
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.conftest import N_GOOD, Command
from weald.cli.errors import ExitCode, UsageError
from weald.cli.main import main
from weald.cli.terminal.complete import complete_cluster, complete_key, complete_stream
from weald.cli.terminal.moments import parse_since

SETTINGS = """\
[stream]
name = "orders"
[schema]
fields = [{ name = "x" }, { name = "y" }]
key = "id"
[storage]
url = "sqlite:///weald.db"
[redis]
enabled = false
[monitoring]
enabled = false
[model]
warmup_records = 20
"""

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def weald(filled: Path, weald: Command, monkeypatch: pytest.MonkeyPatch, clean: Path) -> Command:
    monkeypatch.setenv("WEALD_CONFIG", str(filled / "weald.toml"))
    assert clean.is_dir()
    return weald


def test_lineage_is_told_and_chosen(weald: Command) -> None:
    every = json.loads(weald("lineage", "--output", "json").out)
    assert every[0]["kind"] == "birth"
    births = json.loads(weald("lineage", "--kind", "birth", "--output", "json").out)
    assert births == [event for event in every if event["kind"] == "birth"]
    first = str(every[0]["cluster"])
    of_one = json.loads(weald("lineage", "--cluster", first, "--output", "json").out)
    assert of_one[0] == every[0]
    never = weald("lineage", "--cluster", "999")
    assert never.code == ExitCode.NOT_FOUND
    assert "never had a cluster 999" in never.err
    later = ("--since", "2100-01-01", "--cluster", first)
    assert weald("lineage", *later).code == 0
    assert json.loads(weald("lineage", "--since", "2100-01-01", "--output", "json").out) == []
    cut = weald("lineage", "--limit", "1", "--output", "json")
    assert json.loads(cut.out) == every[-1:]
    assert len(every) == 1 or "--limit 2 shows more" in cut.err


def test_moments_may_be_ages() -> None:
    assert parse_since("24h") == pytest.approx(parse_since("1d"), abs=5)
    assert parse_since("90m") > parse_since("2h")
    with pytest.raises(UsageError, match="an age such as"):
        parse_since("lately")


def test_every_assignment_is_exported(weald: Command, tmp_path: Path) -> None:
    out = weald("export", "assignments").out
    rows = list(csv.DictReader(out.splitlines()))
    assert len(rows) == N_GOOD
    assert rows[0]["key"] == "k0"
    assert float(rows[0]["probability"]) > 0.5
    assert float(rows[0]["x"]) < 0
    lines = weald("export", "assignments", "--output", "jsonl").out.splitlines()
    assert [json.loads(line)["cluster"] for line in lines] == [int(row["cluster"]) for row in rows]
    path = tmp_path / "all.parquet"
    assert weald("export", "assignments", "--to", str(path)).code == 0
    table = parquet.read_table(path)
    assert table.num_rows == N_GOOD
    assert table.column("x").to_pylist() == [float(row["x"]) for row in rows]


@pytest.mark.parametrize("what", ["clusters", "lineage"])
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_clusters_and_lineage_are_exported(
    what: str, suffix: str, weald: Command, tmp_path: Path
) -> None:
    path = tmp_path / f"{what}.{suffix}"
    result = weald("export", what, "--to", str(path))
    assert result.code == 0, result.err
    if suffix == "parquet":
        clusters = parquet.read_table(path).column("cluster").to_pylist()
    elif suffix == "csv":
        with path.open() as file:
            clusters = [int(row["cluster"]) for row in csv.DictReader(file)]
    else:
        clusters = [json.loads(line)["cluster"] for line in path.read_text().splitlines()]
    arguments = ("--retired",) if what == "clusters" else ()
    asked = json.loads(weald(what, *arguments, "--output", "json").out)
    assert clusters == [row["cluster"] for row in asked]


@pytest.mark.parametrize(
    ("what", "table"), [("assignments", "observations"), ("lineage", "lineage_events")]
)
def test_where_nothing_is_left_columns_are_told_all_the_same(
    what: str, table: str, filled: Path, tmp_path: Path, weald: Command
) -> None:
    """As after [retention]."""
    database = tmp_path / "copy.db"
    with sqlite3.connect(filled / "weald.db") as source, sqlite3.connect(database) as copy:
        source.backup(copy)
        copy.execute(f"DELETE FROM {table}")  # noqa: S608 - a name of this test
    of_copy = ("--set", f"storage.url=sqlite:///{database}")
    before = weald("export", what).out.splitlines()
    assert len(before) > 1
    assert weald("export", what, *of_copy).out.splitlines() == before[:1]
    path = tmp_path / "none.parquet"
    assert weald("export", what, "--to", str(path), *of_copy).code == 0
    assert parquet.read_table(path).column_names == before[0].split(",")
    assert weald("export", what, "-o", "jsonl", *of_copy).out == ""


def test_keys_of_records_give_a_spreadsheet_no_orders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, weald: Command
) -> None:
    key = '=HYPERLINK("http://evil.example")\x1b[2J'
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weald.toml").write_text(SETTINGS)
    rows = [{"id": key if i == 0 else f"k{i}", "x": float(i), "y": 1.0} for i in range(70)]
    (tmp_path / "records.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    arguments = ("--config", str(tmp_path))
    assert weald("run", "--source", "file", "--path", "records.jsonl", *arguments).code == 0

    def first(*more: str) -> str:
        out = weald("export", "assignments", *arguments, *more).out
        return next(csv.DictReader(out.splitlines()))["key"]

    assert first() == '\'=HYPERLINK("http://evil.example")\\x1b[2J'
    assert first("--raw") == key
    (line, *_) = weald("export", "assignments", "-o", "jsonl", *arguments).out.splitlines()
    assert json.loads(line)["key"] == key


def test_an_export_replaces_nothing_unasked(weald: Command, tmp_path: Path) -> None:
    path = tmp_path / "here.csv"
    path.write_text("mine")
    result = weald("export", "lineage", "--to", str(path))
    assert result.code == ExitCode.CONFLICT
    assert path.read_text() == "mine"
    assert weald("export", "lineage", "--to", str(path), "--force").code == 0
    assert path.read_text().startswith("time,kind")
    assert list(tmp_path.glob("*.part")) == []
    assert weald("export", "lineage", "--output", "parquet").code == ExitCode.USAGE


class Full(io.StringIO):
    """Standard output that goes into a file on a full disk."""

    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_is_told(
    weald: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page = tmp_path / "rows.csv", tmp_path / "page.html"
    for written in (tmp_path / "rows.csv.part", page):
        written.symlink_to("/dev/full")
    for command, to in ((("export", "assignments", "--to"), file), (("report", "--out"), page)):
        refused = weald(*command, str(to))
        assert refused.code == 1
        assert refused.err.endswith(f"weald: cannot write {to}: No space left on device\n")
    assert not file.exists()
    with redirect_stdout(Full()), pytest.raises(SystemExit) as left:
        main(["clusters"])
    assert left.value.code == 1
    assert capsys.readouterr().err == "weald: cannot write: No space left on device\n"


def typed(**params: Any) -> SimpleNamespace:
    """What a shell's question leaves of the words typed so far."""
    return SimpleNamespace(params=params)


@pytest.mark.parametrize("complete", [complete_stream, complete_cluster, complete_key])
def test_completion_is_silent_where_there_is_nothing(
    complete: Callable[[Any, str], list[str]], clean: Path
) -> None:
    assert clean.is_dir()
    assert complete(typed(), "") == []


@pytest.mark.usefixtures("weald")
def test_completion_offers_what_is_there(weald: Command) -> None:
    assert complete_stream(typed(), "pa") == ["pairs"]
    assert complete_stream(typed(), "x") == []
    ids = [str(row["cluster"]) for row in json.loads(weald("clusters", "-o", "json").out)]
    assert complete_cluster(typed(), "") == ids
    assert complete_key(typed(stream="pairs"), "k29") == ["k29", *(f"k29{i}" for i in range(10))]
