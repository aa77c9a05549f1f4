"""Networks as streams: edges come in, vertices are clustered, and everything else holds."""

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tests.stream.network import COMMUNITIES, SCHEMA, edges, edges_file, plan_for, record
from tests.stream.scenario import (
    NAME,
    KilledError,
    assert_images_stay_as_they_are,
    killer,
    new_store,
    outcome,
    run,
    write_lines,
)
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.storage.commit.commit import ObservationBlock
from weald.storage.settings import RetentionSettings
from weald.storage.writing import store as sql
from weald.storage.writing.store import SqlStore
from weald.stream.errors import SchemaError
from weald.stream.model.model import StreamConfig
from weald.stream.model.network_shard import LEAST_WEIGHT
from weald.stream.record.schema import Schema
from weald.stream.recovery.recovery import first_difference, replay, restored, usable
from weald.stream.recovery.snapshots import shown_network
from weald.stream.settings import FieldSettings, MemorySettings, SchemaSettings, StreamSettings
from weald.treecore.errors import ParameterError
from weald.treecore.relational.edges import GammaEdges


def rows_of(store: SqlStore) -> ObservationBlock:
    """Every row of the stream."""
    block = store.observations(NAME, 0, 10_000)
    assert block is not None
    return block


def clusters_of(store: SqlStore) -> dict[str, int]:
    """Cluster of every vertex that the stream has seen, by its name."""
    block = rows_of(store)
    named = zip(block.key, block.cluster.tolist(), strict=True)
    return {key: cluster for key, cluster in named if key is not None}


def told(store: SqlStore) -> list[tuple[str | None, str | None]]:
    """Names of both ends of every edge, in order of arrival."""
    block = rows_of(store)
    name = dict(zip(block.seq.tolist(), block.key, strict=True))
    ends = block.values[block.offset >= 0, :2].astype(int).tolist()
    return [(name[source], name[target]) for source, target in ends]


def test_vertices_are_clustered_and_every_edge_is_kept_once(tmp_path: Path) -> None:
    path, store = edges_file(tmp_path), new_store(tmp_path)
    run(plan_for(path), store)
    found, pairs = clusters_of(store), edges()
    assert set(found) == {name for pair in pairs for name in pair}
    # The planted communities are clear: each is one cluster.
    homes = {int(name[1:]) % COMMUNITIES: cluster for name, cluster in found.items()}
    assert len(set(homes.values())) == COMMUNITIES
    assert all(homes[int(name[1:]) % COMMUNITIES] == cluster for name, cluster in found.items())
    assert told(store) == pairs
    assert sorted(rows_of(store).offset[rows_of(store).offset >= 0]) == list(range(len(pairs)))
    (account,) = store.ledger(NAME)
    assert (account.n_received, account.n_inserted) == (len(pairs), len(pairs))
    live = store.clusters(NAME)
    assert {row.cluster: row.n_observations for row in live} == {
        cluster: list(found.values()).count(cluster) for cluster in set(found.values())
    }
    assert sum(row.statistics[2] for row in live) == 2 * len(pairs)


def test_cuts_and_kills_change_nothing(tmp_path: Path) -> None:
    path = edges_file(tmp_path)
    whole = new_store(tmp_path, "whole")
    run(plan_for(path, batch_records=1000), whole)
    expected = outcome(whole)
    for label, at in (("commit", 3), ("commit.done", 3), ("refine", 2), ("publish", 1)):
        store = new_store(tmp_path, f"killed-{label}")
        plan = plan_for(path, snapshot_records=50)
        step, count = label.removesuffix(".done"), at + label.endswith(".done")
        with pytest.raises(KilledError):
            run(plan, store, killer(step, count))
        run(plan, store)
        assert outcome(store) == expected
        assert told(store) == edges()


def test_images_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_for(edges_file(tmp_path), snapshot_records=50)
    assert_images_stay_as_they_are(tmp_path, plan, monkeypatch)


def test_replay_is_bit_for_bit(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    # The one snapshot is of the beginning: all the rest is replayed.
    plan = plan_for(edges_file(tmp_path))

    with pytest.raises(KilledError):
        run(plan, store, killer("commit", 7))
    last = store.position(NAME).next_seq - 1
    settings = plan.refinement, plan.memory
    shard, snapshot = restored(store, store.spec(NAME), settings)
    assert snapshot is not None
    assert snapshot.seq < last
    replay(store, NAME, shard, last, lambda _: None)
    assert first_difference(store, NAME, shard) is None
    run(plan, store)
    usable(store, NAME, store.snapshots(NAME)[0].number)


def test_bad_records_become_dead_letters(tmp_path: Path) -> None:
    bad = [
        ('{"source": "a"}', "missing_field", "target"),
        ('{"source": null, "target": "b", "time": 0}', "missing_value", "source"),
        ('{"source": 1.5, "target": "b", "time": 0}', "wrong_type", "source"),
        (record(0, "a", "a"), "unfit", "itself"),
        (record(0, "a", "b", weight=-1), "unfit", "-1.0"),
        (record(0, "a", "b", weight=0), "unfit", "0.0"),
        ('{"source": "a", "target": "b", "time": 0, "weight": NaN}', "not_json", ""),
        (record(0, "a", "b", weight="much"), "wrong_type", "weight"),
        (record(0, "a", "b", weight="inf"), "not_finite", "weight"),
        (record(0, "a", "x" * 600), "bad_key", "target"),
    ]
    lines = [record(i, *pair) for i, pair in enumerate(edges())] + [line for line, *_ in bad]
    store = new_store(tmp_path)
    run(plan_for(write_lines(tmp_path / "bad.jsonl", lines)), store)
    letters = sorted(store.dead_letters(NAME, limit=100), key=lambda letter: letter.offset)
    assert [letter.reason for letter in letters] == [reason for _, reason, _ in bad]
    for letter, (_, _, word) in zip(letters, bad, strict=True):
        assert word in letter.detail
    assert told(store) == edges()


def test_counts_are_whole_and_add_up(tmp_path: Path) -> None:
    pairs = edges()
    lines = [record(i, *pair, weight=2) for i, pair in enumerate(pairs)]
    lines += [record(i, *pair) for i, pair in enumerate(pairs)]  # a weight of 1
    lines.append(record(0, "a", "b", weight=1.5))
    store = new_store(tmp_path)
    plan = plan_for(write_lines(tmp_path / "counts.jsonl", lines))
    model = ModelSettings(seed=7, warmup_records=10, params={"counts": True})
    run(StreamConfig(plan.stream, plan.schema, model, plan.refinement), store)
    assert [letter.reason for letter in store.dead_letters(NAME, limit=9)] == ["unfit"]
    assert sum(row.statistics[2] for row in store.clusters(NAME)) == 2 * 3 * len(pairs)


def test_a_repeated_edge_is_counted_once_and_changes_nothing(tmp_path: Path) -> None:
    pairs = edges()
    turned = [(target, source) for source, target in pairs]
    store = new_store(tmp_path)
    run(plan_for(edges_file(tmp_path, [*pairs, *turned])), store)
    assert told(store) == [*pairs, *turned]
    assert sum(row.statistics[2] for row in store.clusters(NAME)) == 2 * len(pairs)
    assert len(shown_network(store, NAME).chain.edges().source) == len(pairs)


@pytest.mark.parametrize("memory", [{"window_records": 60}, {"window_seconds": 60.0}], ids=str)
def test_a_window_holds_the_newest_edges(tmp_path: Path, memory: dict[str, float]) -> None:
    # A vertex of a star that ends leaves with its last edge, and comes back as another row.
    star = [("hub", f"s{i}") for i in range(10)]
    pairs = [*star, *edges(), *edges(seed=6), *star[:2]]
    path, settings = edges_file(tmp_path, pairs), MemorySettings(**memory)  # type: ignore[arg-type]
    whole, store = new_store(tmp_path, "whole"), new_store(tmp_path)
    run(plan_for(path, settings, batch_records=1000), whole)

    with pytest.raises(KilledError):
        run(plan_for(path, settings), store, killer("commit", 8))
    run(plan_for(path, settings), store)
    assert outcome(store) == outcome(whole)
    shard = usable(store, NAME, store.snapshots(NAME)[0].number)
    held = shown_network(store, NAME)
    recent = pairs[-60:] if "window_records" in memory else held.names
    assert len(shard.atom_table.present) == len(held.names)
    if "window_records" in memory:
        assert set(held.names) == {name for pair in recent for name in pair}
    rows = store.assignments(NAME, ["hub", "s9", "s1"], limit=5)
    left = {key: [row.left_seq for row in rows if row.key == key] for key in ("hub", "s9", "s1")}
    # Newest first: the hub that is there now, and the one that left.
    assert len(left["hub"]) == 2
    assert left["hub"][0] is None
    assert left["hub"][1] is not None
    assert len(left["s9"]) == 1
    assert left["s9"][0] is not None
    assert all(row.left_seq is None or row.left_seq > row.seq for row in rows)
    shown = held.atom_table.cluster[held.atom_table.present].tolist()
    assert {row.cluster: row.n_observations for row in store.clusters(NAME)} == {
        cluster: shown.count(cluster) for cluster in set(shown)
    }


def test_retention_keeps_the_names_of_vertices_that_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Fewer at a time than there are vertices among the oldest rows.
    monkeypatch.setattr(sql, "PRUNED_AT_ONCE", 2)
    store, pairs = new_store(tmp_path), [("lone", "also"), *edges()]
    run(plan_for(edges_file(tmp_path, pairs), MemorySettings(window_records=60)), store)
    while store.prune(NAME, RetentionSettings(observations=1)):
        pass
    rows = rows_of(store)
    # Edges stay that a replay would need.
    assert (rows.seq[rows.offset >= 0] > store.snapshots(NAME)[-1].seq).all()
    found = {key for key in rows.key if key is not None}
    held = shown_network(store, NAME)
    assert found == set(held.names)
    assert not {"lone", "also"} & found
    assert len(held.chain.edges().source) > 1


def test_counts_fade_and_their_rate_is_learned(tmp_path: Path) -> None:
    pairs, half_life = [("lone", "also"), *edges(), *edges(seed=6)], 8.0
    path = edges_file(tmp_path, pairs)
    model = ModelSettings(seed=7, warmup_records=10, params={"counts": True, "learn": True})
    memory = MemorySettings(half_life_records=half_life)

    def plan(**stream: object) -> StreamConfig:
        return replace(plan_for(path, memory, **stream), model=model)

    whole, store = new_store(tmp_path, "whole"), new_store(tmp_path)
    run(plan(batch_records=1000), whole)

    with pytest.raises(KilledError):
        run(plan(snapshot_records=50), store, killer("commit", 8))
    run(plan(snapshot_records=50), store)
    assert outcome(store) == outcome(whole)
    usable(store, NAME, store.snapshots(NAME)[0].number)
    held, rows = shown_network(store, NAME), rows_of(store)
    learned = held.chain.family.edges
    assert isinstance(learned, GammaEdges)
    assert (learned.shape, learned.rate) != (1.0, 1.0)
    # All that is there fades at a refinement by what has come since the one before.
    edge = rows.offset >= 0
    refined = [*range(40, int(rows.seq[-1]) + 1, 40), int(rows.seq[-1])]
    since = np.searchsorted(refined, rows.seq)
    come = np.concatenate([[0], np.cumsum(edge)[np.array(refined) - 1]])
    weights = 0.5 ** ((edge.sum() - come[since]) / half_life) * edge
    assert held.chain.edge_weights() == pytest.approx(weights[weights >= LEAST_WEIGHT])
    assert "lone" not in held.names
    assert sum(row.statistics[2] for row in store.clusters(NAME)) == pytest.approx(
        2.0 * weights[weights >= LEAST_WEIGHT].sum()
    )


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"refinement": RefinementSettings(40, 80, 1, "workers")}, "worker"),
        ({"memory": MemorySettings(leaf_budget=1000)}, "leaf_budget"),
        ({"memory": MemorySettings(half_life_records=10.0)}, "half-li"),
        ({"model": ModelSettings(params={"shape": 1.0}, warmup_records=1)}, "shape"),
        ({"model": ModelSettings("gaussian", warmup_records=1)}, "vertex"),
    ],
    ids=str,
)
def test_what_a_network_cannot_have(tmp_path: Path, change: dict[str, object], word: str) -> None:
    plan = plan_for(edges_file(tmp_path))
    parts = {name: getattr(plan, name) for name in ("stream", "schema", "model", "refinement")}
    with pytest.raises(ParameterError, match=word):
        run(StreamConfig(**{**parts, **change}), new_store(tmp_path))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"refinement": RefinementSettings(40, 80, 1, "workers")}, "worker"),
        ({"memory": MemorySettings(leaf_budget=1000)}, "leaf_budget"),
        ({"stream": StreamSettings(duplicate_keys="keep-first")}, "duplicate_keys"),
    ],
    ids=str,
)
def test_what_no_network_can_have_is_refused_before_it_is_read(
    tmp_path: Path, change: dict[str, object], word: str
) -> None:
    """So `weald doctor` says it, and no tables are made for a stream that cannot be."""
    with pytest.raises(ParameterError, match=word):
        replace(plan_for(tmp_path / "none.jsonl"), **change)  # type: ignore[arg-type]


def test_keys_are_the_names_of_vertices(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="duplicate_keys"):
        run(plan_for(edges_file(tmp_path), duplicate_keys="keep-first"), new_store(tmp_path))
    with pytest.raises(SchemaError, match="no key"):
        Schema.of(msgspec.structs.replace(SCHEMA, key="id"))


@pytest.mark.parametrize("kinds", [("vertex",), ("vertex", "vertex", "number"), ("weight",)])
def test_an_edge_has_two_ends_and_a_weight(kinds: tuple[str, ...]) -> None:
    fields = tuple(FieldSettings(f"f{i}", kind=kind) for i, kind in enumerate(kinds))  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="two fields of kind 'vertex'"):
        Schema.of(SchemaSettings(fields=fields))
