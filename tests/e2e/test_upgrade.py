"""An upgrade and the way back, rehearsed on a database that an earlier Weald wrote and left.

`data/revision_0009.sql.gz` is what the commands of commit a8d1937 (2026-11-21) made of 150 good and
two bad records: `weald db upgrade`, `weald run` until the file's end, and SQLite's own dump.
"""

import gzip
import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.storage.contents import assert_kept, contents
from tests.stream.scenario import line_of, values_of
from weald.storage.settings import StorageSettings
from weald.storage.sql.revision import HEAD

EARLIER = "0009"
DATABASE = Path(__file__).with_name("data") / f"revision_{EARLIER}.sql.gz"
CONFIGURATION = """\
[stream]
name = "stream"
source = "file"
path = "records.jsonl"
batch_records = 20
snapshot_records = 60
[schema]
fields = [{ name = "x" }, { name = "y" }]
key = "id"
[model]
seed = 7
warmup_records = 40
[refinement]
every_records = 40
publish_every_records = 40
rounds = 1
[storage]
url = "sqlite:///weald.db"
[monitoring]
port = 0
"""
N_EARLIER = 150
BAD = ('{"id": "b", "x": 1}', "nonsense")


def weald(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "weald.cli.main", *arguments]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, check=False)


def records(folder: Path, n: int) -> None:
    """The file as it is when `n` good records have been written to it."""
    lines = [line_of(i, row) for i, row in enumerate(values_of(400)[:n])]
    lines[100:100] = BAD
    (folder / "records.jsonl").write_text("".join(f"{line}\n" for line in lines))


def earlier_database(folder: Path, *, killed: bool) -> StorageSettings:
    """A folder as the earlier Weald left it; killed, it had no time for a last snapshot."""
    (folder / "weald.toml").write_text(CONFIGURATION)
    records(folder, N_EARLIER)
    with sqlite3.connect(folder / "weald.db") as database:
        database.executescript(gzip.decompress(DATABASE.read_bytes()).decode())
        if killed:
            last = "DELETE FROM snapshots WHERE number = (SELECT max(number) FROM snapshots)"
            database.execute(last)
    database.close()
    return StorageSettings(url=f"sqlite:///{folder}/weald.db")


def assert_refused(folder: Path, command: str) -> None:
    done = weald(folder, "run")
    assert done.returncode != 0
    assert command in done.stderr


def succeed(folder: Path, *arguments: str) -> str:
    done = weald(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stderr


def assert_whole(settings: StorageSettings, n: int) -> None:
    """Each good record is there once, the bad ones are dead letters, and the account adds up."""
    rows = contents(settings)
    assert Counter(row["record_key"] for row in rows["observations"]) == Counter(
        f"k{i}" for i in range(n)
    )
    (account,) = rows["offsets"]
    assert (account["n_inserted"], account["n_dead"]) == (n, len(BAD))
    assert account["n_received"] == n + len(BAD) + account["n_duplicate"]
    live = [row for row in rows["clusters"] if row["retired_publication"] is None]
    assert sum(row["n_observations"] for row in live) == n


def assert_history_stays(
    before: dict[str, list[dict[str, object]]], after: dict[str, list[dict[str, object]]]
) -> None:
    """What was said is still said; later rows come beside it."""
    facts = {
        "observations": ["seq", "record_offset", "record_key", "received_at"],
        "dead_letters": ["record_offset", "record_value", "reason"],
        "publications": ["number", "seq", "published_at", "log_joint"],
        "lineage_events": ["number", "kind", "publication", "cluster", "size"],
        "assignment_changes": ["seq", "publication", "old_cluster"],
    }

    def told(rows: Sequence[dict[str, object]], names: list[str]) -> set[str]:
        return {json.dumps([repr(row[name]) for name in names]) for row in rows}

    for table, names in facts.items():
        assert told(before[table], names) <= told(after[table], names), table


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_an_upgrade_and_the_way_back_lose_nothing(tmp_path: Path, *, killed: bool) -> None:
    settings = earlier_database(tmp_path, killed=killed)
    earlier = contents(settings)
    assert_refused(tmp_path, "weald db upgrade")
    assert contents(settings) == earlier

    succeed(tmp_path, "db", "upgrade")
    assert_kept(earlier, contents(settings))
    records(tmp_path, 250)
    succeed(tmp_path, "run")
    assert_whole(settings, 250)
    further = contents(settings)
    assert_history_stays(earlier, further)

    said = succeed(tmp_path, "db", "downgrade", EARLIER, "--yes")
    assert f"is at revision {EARLIER} (was {HEAD})" in said
    back = contents(settings)
    assert_kept(further, back)
    assert {name: set(rows[0]) for name, rows in earlier.items() if rows}.items() <= {
        name: set(rows[0]) for name, rows in back.items() if rows
    }.items()
    assert_refused(tmp_path, "weald db upgrade")

    succeed(tmp_path, "db", "upgrade")
    records(tmp_path, 300)
    succeed(tmp_path, "run")
    assert_whole(settings, 300)
    assert_history_stays(further, contents(settings))
