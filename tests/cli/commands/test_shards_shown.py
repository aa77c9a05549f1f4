"""What is told of a stream in shards: accounts and clusters of all, and of each by its name."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import type_command
from tests.cli.http.test_http import Service, serving
from tests.stream.engine.test_shard_rounds import Shards
from tests.stream.engine.test_shards_of_a_stream import engine
from tests.stream.scenario import NAME, new_store
from weald.answers.report_data import Subject
from weald.answers.stored_stream import StoredStream
from weald.cli.errors import ExitCode
from weald.cli.http import questions
from weald.cli.report.of_stream import exploration_of_stream, subject_of_stream
from weald.cli.terminal.opened import reading
from weald.monitoring.exporter import Exporter
from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.monitoring.settings import MonitoringSettings
from weald.storage.queries.whole import WholeReader
from weald.stream.engine import shard_rounds


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
    # There is no publication yet, which is where clusters of all shards come from.
    assert not [line for line in lines[:at] if line.startswith(("clusters", "groups"))]


def test_a_shard_is_asked_by_its_name(sharded: Path) -> None:
    answer = told(sharded, "--stream", f"{NAME}/1")
    assert (answer["name"], answer["n_inserted"], answer["shards"]) == (f"{NAME}/1", 180, [])
    clusters = type_command("clusters", "--config", str(sharded), "--stream", f"{NAME}/1")
    assert clusters.code == 0
    unknown = type_command("clusters", "--config", str(sharded), "--stream", f"{NAME}/7")
    assert unknown.code == ExitCode.NOT_FOUND
    assert f"no shard 7: its shards are {NAME}/0, {NAME}/1" in unknown.err


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings that lead to a stream in three shards, of 120 records each, that has published."""
    folder = tmp_path_factory.mktemp("published")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_rounds, "_SHARE", 1.0)
        patch.setattr(shard_rounds, "_SHARE_BEHIND", 1.0)
        shards = Shards(folder, n=120)
        shards.go(90)
        assert len(shards.publications()) > 2
        shards.close()
    config = folder / "weald.toml"
    config.write_text(
        f"[stream]\nname = '{NAME}'\nshards = 3\n[monitoring]\nenabled = false\n"
        f"[storage]\nurl = 'sqlite:///{folder / 'weald.db'}'\n"
    )
    return config


def rows_of(config: Path, command: str, *more: str) -> list[dict[str, Any]]:
    result = type_command(*command.split(), "--config", str(config), "--output", "json", *more)
    assert result.code == 0, result.err
    rows: list[dict[str, Any]] = json.loads(result.out)
    return rows


def exported(config: Path, what: str, *more: str) -> list[dict[str, Any]]:
    result = type_command("export", what, "--config", str(config), "--output", "jsonl", *more)
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def test_clusters_of_all_shards_are_told_as_one(published: Path) -> None:
    rows = rows_of(published, "clusters")
    sizes = {row["cluster"]: row["size"] for row in rows}
    assert sum(sizes.values()) == 360
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    of_parts: Counter[int] = Counter()
    for shard in range(3):
        for row in rows_of(published, "clusters", "--stream", f"{NAME}/{shard}"):
            of_parts[row["cluster"]] += row["size"]
    assert sizes == of_parts
    largest = rows[0]
    assert 0.0 < largest["probability"] <= 1.0
    assert largest["log_marginal"] < 0.0
    assert set(largest["features"]) == {"x", "y"}
    assert largest["born"] is not None
    # As it is told by itself.
    one = type_command(
        "cluster", str(largest["cluster"]), "--config", str(published), "--output", "json"
    )
    assert one.code == 0, one.err
    told_of = json.loads(one.out)
    for name in ("size", "share", "probability", "features", "born_publication", "log_marginal"):
        assert told_of[name] == largest[name]
    assert len(told_of["members"]) == 10
    assert told_of["lineage"][0]["kind"] in ("birth", "split")
    assert told_of["description"]


def test_groups_of_all_shards_are_told(published: Path) -> None:
    groups = rows_of(published, "clusters --level groups")
    rows = {row["cluster"]: row for row in rows_of(published, "clusters")}
    grouped = Counter({row["group"]: 0 for row in rows.values() if row["group"] is not None})
    for row in rows.values():
        if row["group"] is not None:
            grouped[row["group"]] += row["size"]
    assert {row["group"]: row["size"] for row in groups} == grouped
    answer = told(published)
    assert answer["n_groups"] == len(groups) > 1
    # Judged once all shards show it.
    assert isinstance(answer["warnings"], list)
    by_key = rows_of(published, "assign k1", "--history", "5")
    assert all(row["group"] == rows[row["cluster"]]["group"] for row in by_key)


def test_status_tells_of_the_newest_publication(published: Path) -> None:
    answer = told(published)
    assert answer["publication"] in (3, 4, 5)
    assert answer["n_observations"] in range(200, 361)
    live = {row["cluster"] for row in rows_of(published, "clusters")}
    assert answer["n_clusters"] == len(live)


def test_a_record_is_found_in_whatever_shard_it_is(published: Path) -> None:
    every = rows_of(published, "assign k1", "--history", "5")
    assert len(every) == 3
    of_parts = [
        row
        for shard in range(3)
        for row in rows_of(published, "assign k1", "--stream", f"{NAME}/{shard}")
    ]
    assert sorted(row["cluster"] for row in every) == sorted(row["cluster"] for row in of_parts)
    assert all(row["probability"] is not None for row in every)
    earlier = rows_of(published, "assign k1", "--history", "5", "--as-of", "publication:1")
    assert len(earlier) == 3
    missing = type_command("assign", "k1", "nobody", "--config", str(published))
    assert missing.code == ExitCode.NOT_FOUND
    assert "k1" in missing.out


def test_everything_of_all_shards_is_exported(published: Path) -> None:
    sizes = {row["cluster"]: row["size"] for row in rows_of(published, "clusters")}
    assert Counter(row["cluster"] for row in exported(published, "assignments")) == sizes
    clusters = exported(published, "clusters")
    assert {row["cluster"]: row["size"] for row in clusters if sizes.get(row["cluster"])} == sizes
    events = exported(published, "lineage")
    assert events == rows_of(published, "lineage", "--limit", "10000")
    assert {row["publication"] for row in events} >= {0, 2}


def test_records_are_weighed_by_the_clusters_of_all_shards(published: Path, tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    records.write_text('{"x": 0.1, "y": 0.2}\n{"x": 500.0, "y": 900.0}\n')
    near, far = rows_of(published, f"predict {records}")
    assert near["cluster"] in {row["cluster"] for row in rows_of(published, "clusters")}
    assert far["cluster"] is None


def test_before_anything_is_published_arrivals_are_shown(sharded: Path) -> None:
    rows = rows_of(sharded, "clusters")
    assert sum(row["size"] for row in rows) == 300
    assert {row["kind"] for row in rows_of(sharded, "lineage")} == {"birth"}
    (row,) = rows_of(sharded, "assign k200")
    assert row["partition"] == 1


def test_observations_of_all_shards_have_one_space_of_numbers(published: Path) -> None:
    rows = exported(published, "assignments")
    numbers = [row["seq"] for row in rows]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 360
    by_number = {row["seq"]: row for row in rows}
    # Whoever asks for one record is told the same number.
    for told_of in rows_of(published, "assign k1", "--history", "5"):
        row = by_number[told_of["seq"]]
        for name in ("key", "cluster", "offset", "probability", "event_time"):
            assert row[name] == told_of[name]


def test_a_look_at_all_shards(published: Path) -> None:
    result = type_command("watch", "--config", str(published), "--looks", "1")
    assert result.code == 0, result.err
    look = json.loads(result.out)
    assert (look["stream"], look["inserted"], look["log_joint"]) == (NAME, 360, None)
    assert look["clusters"] == told(published)["n_clusters"]


def test_a_report_is_of_all_shards(published: Path, tmp_path: Path) -> None:
    page, pictures = tmp_path / "page.html", tmp_path / "pictures"
    flags = ("--out", str(page), "--pictures", str(pictures))
    result = type_command("report", "--config", str(published), *flags)
    assert result.code == 0, result.err
    assert "360" in page.read_text("utf-8")
    assert list(pictures.iterdir())


@pytest.fixture
def state(published: Path) -> Iterator[StoredStream]:
    with reading(published, None, undivided=False) as stored:
        yield stored


def test_a_page_is_of_all_shards(state: StoredStream) -> None:
    found = exploration_of_stream(state, 1000)
    assert found is not None
    sizes = {row.cluster: row.n_observations for row in state.reader.clusters(NAME)}
    assert Counter(found.clusters.tolist()) == sizes
    assert {part.id: part.size for part in found.parts} == sizes
    assert len(set(found.keys)) == 120
    newest = exploration_of_stream(state, 30)
    assert newest is not None
    assert len(newest.clusters) == 30


def test_what_publications_showed_is_known_of_all_shards(state: StoredStream) -> None:
    subject = subject_of_stream(state, 1000)
    assert isinstance(subject, Subject)
    assert subject.history
    for shown in subject.history:
        publication = int(shown.title)
        then: Counter[int] = Counter()
        for shard in range(3):
            part = f"{NAME}/{shard}"
            rows = state.reader.publications(part)
            covered = max((row.seq for row in rows if row.number <= publication), default=0)
            asked = state.reader.shown(part, publication, 0, 1000)
            then.update(asked.cluster[asked.seq <= covered].tolist())
        seen = shown.clusters[shown.clusters >= 0]
        assert Counter(seen.tolist()) == then


def test_who_listens_hears_each_event_once(state: StoredStream) -> None:
    whole = [row for rows in state.reader.lineages(NAME) for row in rows]
    start, _ = questions.events_after(state, None)
    assert questions.events_after(state, start) == (start, [])
    # Somebody who has heard some of each list.
    place = tuple(n // 2 for n in start)
    now, fresh = questions.events_after(state, place)
    assert now == start
    assert len(fresh) == len(whole) - sum(place)
    assert fresh[-1][0] == start
    # And who goes on from an event in the middle.
    middle, _ = fresh[len(fresh) // 2]
    assert questions.events_after(state, middle)[1] == fresh[len(fresh) // 2 + 1 :]
    assert questions.events_after(state, (1,)) == (start, [])


def test_all_shards_are_asked_over_http(published: Path) -> None:
    with serving(published) as address:
        service = Service(address)
        clusters = service.ask("/v1/clusters").json
        assert sum(row["size"] for row in clusters["items"]) == 360
        stream = service.ask("/v1/stream").json
        assert (stream["n_inserted"], stream["epoch"]) == (360, clusters["epoch"])
        assert len(service.ask("/v1/points?limit=90").json["items"]) == 90
        (first, *_) = service.ask("/v1/assignments/k1?limit=5").json["items"]
        assert first["cluster"] in {row["cluster"] for row in clusters["items"]}
        explored = service.ask("/v1/explored").json
        assert explored["publication"] == stream["publication"]
        assert explored["data"] is not None


def test_every_commit_of_a_shard_is_a_new_answer(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        engine(store, 0, range(120)).run()
        reader = WholeReader(store, NAME)
        before = reader.position(NAME).epoch
        assert before == store.status(NAME).epoch > 0
        heard, _ = questions.events_after(StoredStream(reader, NAME), None)
        assert [n > 0 for n in heard] == [False, True, False]
        # A shard that begins while somebody goes on asking.
        engine(store, 1, range(120, 150)).run()
        _, fresh = questions.events_after(StoredStream(reader, NAME), heard)
        assert {event["kind"] for _, event in fresh} == {"birth"}
        assert reader.position(NAME).epoch > before
        assert reader.position(NAME).offsets.keys() == {("events", 0), ("events", 1)}


def test_dead_letters_of_all_shards_are_listed(sharded: Path) -> None:
    result = type_command("dlq", "list", "--config", str(sharded))
    assert result.code == 0, result.err
    result = type_command("dlq", "replay", "--all", "--config", str(sharded))
    assert (result.code, "no dead letter to replay" in result.err) == (ExitCode.NOT_FOUND, True)


@pytest.mark.parametrize("command", ["tree 1", "snapshot list"])
def test_other_questions_ask_for_a_shard(sharded: Path, command: str) -> None:
    result = type_command(*command.split(), "--config", str(sharded))
    assert result.code == ExitCode.NOT_READY
    assert "in shards, and this is told of one of them only" in result.err
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
