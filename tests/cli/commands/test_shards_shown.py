"""What is told of a stream in shards: its account as one, its clusters by shard."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import type_command
from tests.stream.engine.test_shards_of_a_stream import engine
from tests.stream.scenario import NAME, new_store
from weald.cli.errors import ExitCode
from weald.monitoring.exporter import Exporter
from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.monitoring.settings import MonitoringSettings


@pytest.fixture(scope="module")
def sharded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings that lead to a stream in two shards, of 120 and of 180 records."""
    folder = tmp_path_factory.mktemp("sharded")
    with new_store(folder) as store:
        engine(store, 0, range(120)).run()
        engine(store, 1, range(120, 300)).run()
    config = folder / "weald.toml"
    config.write_text(
        f"[stream]\nname = '{NAME}'\nshards = 2\n[monitoring]\nenabled = false\n"
        f"[storage]\nurl = 'sqlite:///{folder / 'weald.db'}'\n"
    )
    return config


def told(config: Path, *more: str) -> dict[str, object]:
    result = type_command("status", "--config", str(config), "--output", "json", *more)
    assert result.code == 0, result.err
    answer: dict[str, object] = json.loads(result.out)
    return answer


def test_status_adds_the_shards_up(sharded: Path) -> None:
    answer = told(sharded)
    assert (answer["name"], answer["n_received"], answer["n_inserted"]) == (NAME, 300, 300)
    shards = answer["shards"]
    assert isinstance(shards, list)
    assert [(row["shard"], row["n_inserted"]) for row in shards] == [(0, 120), (1, 180)]
    assert [row["owner"] for row in shards] == ["member-0", "member-1"]
    assert all(row["n_clusters"] > 0 for row in shards)
    assert answer["committed_at"] == max(row["committed_at"] for row in shards)
    partitions = answer["partitions"]
    assert isinstance(partitions, list)
    assert [(row["partition"], row["n_received"]) for row in partitions] == [(0, 120), (1, 180)]


def test_the_shortcut_tells_of_shards_what_the_long_way_tells(
    sharded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from weald.cli.commands import status

    at_once = told(sharded)
    monkeypatch.setattr(status, "_at_once", lambda _: None)
    assert told(sharded) == at_once


def test_status_as_a_table_has_a_line_for_each_shard(sharded: Path) -> None:
    result = type_command("status", "--config", str(sharded), "--wide")
    lines = result.out.splitlines()
    at = lines.index("shards")
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["shard", "0", "1"], result.out
    assert "member-1" in result.out


def test_a_shard_is_asked_by_its_name(sharded: Path) -> None:
    answer = told(sharded, "--stream", f"{NAME}/1")
    assert (answer["name"], answer["n_inserted"], answer["shards"]) == (f"{NAME}/1", 180, [])
    clusters = type_command("clusters", "--config", str(sharded), "--stream", f"{NAME}/1")
    assert clusters.code == 0
    unknown = type_command("clusters", "--config", str(sharded), "--stream", f"{NAME}/7")
    assert unknown.code == ExitCode.NOT_FOUND
    assert f"no shard 7: its shards are {NAME}/0, {NAME}/1" in unknown.err


@pytest.mark.parametrize("command", ["clusters", "assign k1", "lineage", "export clusters"])
def test_other_questions_ask_for_a_shard(sharded: Path, command: str) -> None:
    result = type_command(*command.split(), "--config", str(sharded))
    assert result.code == ExitCode.NOT_READY
    assert "in shards, each of which shows clusters of its own" in result.err
    assert f"--stream {NAME}/0" in result.err


def test_a_stream_that_is_not_in_shards_has_none(filled: Path) -> None:
    assert told(filled)["shards"] == []
    result = type_command("clusters", "--config", str(filled), "--stream", "pairs/0")
    assert result.code == ExitCode.NOT_FOUND
    assert "it is not in shards" in result.err


def test_each_shard_has_its_own_lag(sharded: Path, tmp_path: Path) -> None:
    first = Metrics(f"{NAME}/0")
    for at, (metrics, lag) in enumerate(((first, 3), (first.beside(f"{NAME}/1"), 4))):
        metrics.held(at)
        metrics.partition_lag("events", at, lag, 1.0 + at)
    with Exporter(MonitoringSettings(port=0), first.registry, Health()) as exporter:
        config = tmp_path / "weald.toml"
        port = exporter.url.rpartition(":")[2]
        text = sharded.read_text().replace("enabled = false", f"port = {port}")
        config.write_text(text)
        whole, part = told(config), told(config, "--stream", f"{NAME}/1")
    assert (whole["lag_records"], whole["lag_seconds"], part["lag_records"]) == (7, 2.0, 4)
    shards = whole["shards"]
    assert isinstance(shards, list)
    assert [row["lag_records"] for row in shards] == [3, 4]


def test_run_refuses_shards_of_an_embedded_broker(sharded: Path) -> None:
    result = type_command("run", "--embedded", "--config", str(sharded))
    assert result.code == ExitCode.USAGE
    assert "does not go with --embedded" in result.err
