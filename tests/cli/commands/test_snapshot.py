"""``weald snapshot`` typed at a stream of its own."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import N_GOOD, Command
from weald.cli.errors import ExitCode


@pytest.fixture
def home(filled: Path, clean: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the filled stream, which may be changed."""
    folder = shutil.copytree(filled, clean / "home")
    monkeypatch.chdir(folder)
    return folder


def rows_of(weald: Command, *arguments: str) -> list[dict[str, object]]:
    result = weald("snapshot", *arguments, "--output", "json")
    assert result.code == 0, result.err
    found: list[dict[str, object]] = json.loads(result.out)
    return found


@pytest.mark.usefixtures("home")
def test_made_listed_checked_and_compared(weald: Command) -> None:
    before = rows_of(weald, "list")
    result = weald("snapshot", "create", "--label", "mine", "--output", "json")
    assert result.code == 0, result.err
    made = json.loads(result.out)
    assert (made["label"], made["observations"]) == ("mine", N_GOOD)
    assert [row["number"] for row in rows_of(weald, "list")] == [
        made["number"],
        *(row["number"] for row in before),
    ]
    assert {row["verdict"] for row in rows_of(weald, "verify")} == {"good"}
    pair = (str(before[-1]["number"]), str(made["number"]))
    difference = json.loads(weald("snapshot", "diff", *pair, "--output", "json").out)
    assert difference["compared"] + difference["new"] == N_GOOD
    assert "variation of information" in weald("snapshot", "diff", *pair).out


@pytest.mark.usefixtures("home")
def test_going_back_is_asked_about_and_done(weald: Command) -> None:
    oldest = rows_of(weald, "list")[-1]
    number = str(oldest["number"])
    assert weald("snapshot", "revert", number, "--yes").code == ExitCode.USAGE
    done = weald("snapshot", "revert", number, "--keep-later", "--yes", "--output", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["reverted_to"] == oldest["number"]
    done = weald("snapshot", "revert", number, "--drop-later", "--yes", "--output", "json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["taken_out"] == N_GOOD - int(str(oldest["observations"]))
    status = json.loads(weald("status", "--output", "json").out)
    assert weald("run").code == 0
    assert json.loads(weald("status", "--output", "json").out) != status
    assert sum(row["size"] for row in json.loads(weald("clusters", "-o", "json").out)) == N_GOOD


def test_one_that_cannot_be_used_is_named(home: Path, weald: Command) -> None:
    (database,) = home.glob("*.db")
    newest = rows_of(weald, "list")[0]["number"]
    with sqlite3.connect(database) as connection:
        connection.execute(
            "UPDATE snapshots SET payload = zeroblob(100) WHERE number = ?", (newest,)
        )
    result = weald("snapshot", "verify")
    assert result.code == ExitCode.FAILURE
    assert f"cannot be used: {newest}" in result.err
    assert weald("snapshot", "verify", "999").code == ExitCode.NOT_FOUND
