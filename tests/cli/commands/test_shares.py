"""Shares are of what is in clusters now, where records leave the model."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import N_GOOD, Command, records, type_command
from weald.answers.report_data import Subject
from weald.cli.report.of_stream import subject_of_stream
from weald.cli.terminal.opened import reading

LEFT = {"window": (120, "[memory]\nwindow_records = 120\n"), "update": (60, "")}


@pytest.fixture(scope="module", params=sorted(LEFT))
def leaving(
    request: pytest.FixtureRequest, filled: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, int]:
    """A stream of which most has left, and how many observations are there."""
    home = tmp_path_factory.mktemp(request.param)
    n_there, memory = LEFT[request.param]
    lines = [dict(record) for record in records()]
    settings = (filled / "weald.toml").read_text()
    if request.param == "update":
        good = [record for record in lines if str(record["id"]).startswith("k")]
        for at, record in enumerate(good):
            record["id"] = f"k{at % n_there}"
        settings = settings.replace("[stream]\n", "[stream]\nduplicate_keys = 'update'\n")
    (home / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in lines))
    (home / "weald.toml").write_text(settings + memory)
    result = type_command("run", "--config", str(home))
    assert result.code == 0, result.err
    return home, n_there


@pytest.mark.usefixtures("clean")
def test_shares_are_of_what_is_there(weald: Command, leaving: tuple[Path, int]) -> None:
    home, n_there = leaving
    to = ("--config", str(home), "--output", "json")
    rows = json.loads(weald("clusters", *to).out)
    assert sum(row["size"] for row in rows) == n_there
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    # As many come to either cluster as are there.
    assert all(row["growth"] == pytest.approx(1.0, abs=0.2) for row in rows)
    groups = json.loads(weald("clusters", "--level", "groups", *to).out)
    assert sum(row["share"] for row in groups) == pytest.approx(1.0)
    one = json.loads(weald("cluster", str(rows[0]["cluster"]), *to).out)
    assert one["share"] == rows[0]["share"]
    every = json.loads(weald("clusters", "--retired", *to).out)
    assert sum(row["share"] for row in every) == pytest.approx(1.0)


def test_what_settled_is_a_share_of_what_is_there(
    clean: Path, weald: Command, leaving: tuple[Path, int]
) -> None:
    home, n_there = leaving
    shutil.copytree(home, clean / "moved")
    to = ("--config", str(clean / "moved"))
    with closing(sqlite3.connect(clean / "moved" / "weald.db")) as connection, connection:
        # As if the newest publication had moved half of what is there.
        connection.execute(
            "UPDATE lineage_events SET n_moved = ?, publication = (SELECT max(number) FROM"
            " publications) WHERE rowid = (SELECT min(rowid) FROM lineage_events)",
            (n_there // 2,),
        )
    status = json.loads(weald("status", *to, "--output", "json").out)
    assert (status["n_inserted"], status["n_clustered"]) == (N_GOOD, n_there)
    assert "no: 50 % of the observations stayed" in weald("status", *to).out
    with reading(clean / "moved", None) as state:
        subject = subject_of_stream(state, 1000)
    assert isinstance(subject, Subject)
    assert subject.stayed == pytest.approx(0.5)
    assert subject.title.endswith(f"of {n_there} rows")


def test_a_tree_says_what_it_has_of_a_cluster(filled: Path, clean: Path, weald: Command) -> None:
    """Of a model that holds a sample, the sample's."""
    settings = (filled / "weald.toml").read_text()
    settings = settings.replace("records.jsonl", str(filled / "records.jsonl"))
    settings = settings.replace("every_records = 100", "every_records = 25", 1)
    (clean / "weald.toml").write_text(settings + "[memory]\nleaf_budget = 100\n")
    assert weald("run").code == 0
    largest = json.loads(weald("clusters", "--limit", "1", "--output", "json").out)[0]
    which = str(largest["cluster"])
    tree = weald("tree", which, "--output", "json")
    held = sum(row["size"] for row in json.loads(tree.out) if row["leaf"])
    assert 0 < held < largest["size"]
    told = f"{largest['size'] - held} of the cluster's {largest['size']} have no leaf"
    assert told in " ".join(tree.err.split())
    assert f"{held} that have a leaf" in weald("cluster", which).out
