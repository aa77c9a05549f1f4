"""A small stream with known clusters, and the engine run over it: what several tests begin with."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.monitoring.health import Health
from weald.monitoring.metrics import Metrics
from weald.storage.settings import StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlStore
from weald.stream.engine.engine import Engine
from weald.stream.engine.sinks import Sinks
from weald.stream.engine.yielding import Yielding
from weald.stream.model.mixture_shard import MixtureShard
from weald.stream.model.model import StreamConfig, new_shard
from weald.stream.model.shard import CHAIN, Arrays
from weald.stream.record.record import Reason, TopicPartition
from weald.stream.recovery.recovery import first_difference, replay, restored, with_offsets
from weald.stream.settings import FieldSettings, SchemaSettings, StreamSettings
from weald.stream.source.file_source import FileSource
from weald.stream.telemetry.telemetry import Telemetry

NAME = "stream"
SCHEMA = SchemaSettings(fields=(FieldSettings("x"), FieldSettings("y")), key="id")
CADENCE = RefinementSettings(
    every_records=100,
    publish_every_records=200,
    rounds=1,
    quiet_seconds=0.0,
    publish_every_seconds=0.0,
    pace="counted",
)
MODEL = ModelSettings(seed=7, warmup_records=60)


class KilledError(BaseException):
    """Ends the engine where it stands, as a kill would: no handler of its own may run."""


class Hook(Telemetry):
    """Telemetry that calls back before each labelled step with the step's name and its count."""

    def __init__(self, before: Callable[[str, int], None]) -> None:
        super().__init__(Metrics(NAME, reasons=[str(reason) for reason in Reason]), Health())
        self._before = before
        self._counts: dict[str, int] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        self._counts[name] = self._counts.get(name, 0) + 1
        self._before(name, self._counts[name])
        with super().step(name):
            yield


def killer(step: str, count: int) -> Callable[[str, int], None]:
    """What ends the engine before a labelled step when it comes for the `count`-th time."""

    def before(name: str, nth: int) -> None:
        if (name, nth) == (step, count):
            raise KilledError

    return before


def values_of(n: int, seed: int = 3) -> NDArray[np.float64]:
    """Points of five well separated clusters in the plane, shuffled."""
    draw = np.random.default_rng(seed)
    centres = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0], [20.0, 20.0], [10.0, 10.0]])
    return centres[draw.integers(5, size=n)] + draw.normal(size=(n, 2))


def line_of(i: int, row: NDArray[np.float64]) -> str:
    """One record as JSON; its key tells its number."""
    return json.dumps({"id": f"k{i}", "x": float(row[0]), "y": float(row[1])})


def write_lines(path: Path, lines: Sequence[str]) -> Path:
    """Write lines to a file."""
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def records_file(folder: Path, n: int, whole: int | None = None) -> Path:
    """A file of `n` good records: the first of `whole`, to which more are appended later."""
    rows = values_of(whole or n)[:n]
    return write_lines(folder / "records.jsonl", [line_of(i, row) for i, row in enumerate(rows)])


def plan_for(path: Path | None, *, batch_records: int = 64, **stream: object) -> StreamConfig:
    """A plan over a file of `line_of` records."""
    settings = StreamSettings(
        name=NAME,
        source="file",
        path=None if path is None else str(path),
        batch_records=batch_records,
        poll_seconds=0.05,
        takeover_seconds=0.0,
    )
    return StreamConfig(msgspec.structs.replace(settings, **stream), SCHEMA, MODEL, CADENCE)


def plan_of_rows(
    folder: Path, schema: SchemaSettings, rows: Iterable[dict[str, object]], **stream: object
) -> StreamConfig:
    """A plan over a file of these rows, whose keys tell their numbers."""
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"id": f"k{i}", **row}) for i, row in enumerate(rows)]
    plan = plan_for(write_lines(folder / "records.jsonl", lines), **stream)  # type: ignore[arg-type]  # of the stream
    return replace(plan, schema=schema)


def new_store(folder: Path, name: str = "weald", *, snapshots_kept: int = 3) -> SqlStore:
    """A store over a fresh SQLite file, or the same one again."""
    url = f"sqlite:///{folder / name}.db"
    settings = StorageSettings(url=url, busy_timeout_seconds=0.2, snapshots_kept=snapshots_kept)
    upgrade(settings)
    return SqlStore(settings)


def run(
    plan: StreamConfig,
    store: SqlStore,
    before: Callable[[str, int], None] = lambda _name, _count: None,
    sinks: Sinks | None = None,
) -> Engine:
    """Run the engine over the plan's file until it ends."""
    engine = Engine(plan, FileSource(plan.stream), store, sinks, Hook(before))
    engine.run()
    return engine


def engine_at_pace(
    plan: StreamConfig,
    store: SqlStore,
    pace: Yielding,
    before: Callable[[str, int], None] = lambda _name, _count: None,
) -> Engine:
    """An engine over the plan's file, at this pace where the plan's yields."""
    engine = Engine(plan, FileSource(plan.stream), store, None, Hook(before))
    if engine._yielding is not None:
        engine._yielding = pace
    return engine


@dataclass(frozen=True)
class Outcome:
    """Everything that must not depend on how the stream was cut or interrupted."""

    keys: list[str | None]
    clusters: list[int]
    rows: list[tuple[int, int, float, list[float], int, int | None, int | None, int | None]]
    publications: list[tuple[int, int, float, float, int]]
    lineage: list[tuple[str, int, int, int, tuple[int, ...], int, int]]


def outcome(store: SqlStore, stream: str = NAME) -> Outcome:
    """Read back what the store holds of the stream."""
    keys: list[str | None] = []
    clusters: list[int] = []
    while block := store.observations(stream, len(keys), 1_000):
        keys += block.key
        clusters += block.cluster.tolist()
    rows = [
        (
            row.cluster,
            row.n_observations,
            row.log_marginal,
            row.statistics.tolist(),
            row.born_publication,
            row.retired_publication,
            row.group,
            row.group_born,
        )
        for row in sorted(store.clusters(stream, include_retired=True), key=lambda row: row.cluster)
    ]
    publications = [
        (row.number, row.seq, row.log_joint_before, row.log_joint, row.n_clusters)
        for row in store.publications(stream)
    ]
    lineage = [
        (row.kind, row.publication, row.seq, row.cluster, row.parents, row.size, row.n_moved)
        for row in store.lineage(stream)
    ]
    return Outcome(keys, clusters, rows, publications, lineage)


def left(store: SqlStore) -> list[int | None]:
    """After which observation each one left the model, if it did."""
    numbers = range(1, store.position(NAME).next_seq)
    return [row.left_seq for row in store.observed(NAME, numbers)]


def assert_exactly_once(store: SqlStore, n: int, stream: str = NAME) -> None:
    """Each of `n` good records is there once, and every account adds up."""
    found = outcome(store, stream)
    assert sorted(str(key) for key in found.keys) == sorted(f"k{i}" for i in range(n))
    ledger = store.ledger(stream)
    assert sum(row.n_inserted for row in ledger) == n
    for row in ledger:
        assert row.n_received == row.n_inserted + row.n_duplicate + row.n_dead
    live = [row for row in found.rows if row[5] is None]
    sizes = {row[0]: row[1] for row in live}
    assert sizes == {cluster: found.clusters.count(cluster) for cluster in set(found.clusters)}


def run_to_its_end(folder: Path, plan: StreamConfig) -> tuple[SqlStore, Outcome]:
    """A stream in a store of its own, and what it came to."""
    store = new_store(folder)
    run(plan, store)
    return store, outcome(store)


def assert_images_stay_as_they_are(
    folder: Path, plan: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Run a stream: no array of an image changes while it goes on, so it may be packed beside."""
    images: list[tuple[Arrays, Arrays]] = []

    def watched(state: Arrays, offsets: dict[TopicPartition, int]) -> Arrays:
        arrays = with_offsets(state, offsets)
        images.append((arrays, {name: array.copy() for name, array in arrays.items()}))
        return arrays

    monkeypatch.setattr("weald.stream.engine.writer.with_offsets", watched)
    run(plan, new_store(folder, "watched"))
    assert len(images) > 2
    for arrays, before in images:
        for name, array in before.items():
            np.testing.assert_array_equal(arrays[name], array, err_msg=name)


def assert_a_kill_changes_nothing(
    folder: Path, plan: StreamConfig, undisturbed: Outcome, kill: tuple[str, int]
) -> SqlStore:
    """Kill a stream before a labelled step comes for the n-th time, and start it again."""
    with pytest.raises(KilledError):
        run(plan, new_store(folder), killer(*kill))
    store = new_store(folder)
    run(plan, store)
    assert_exactly_once(store, len(undisturbed.keys))
    assert outcome(store) == undisturbed
    return store


def shard_of(engine: Engine) -> MixtureShard:
    """The model of an engine that has one."""
    writer = engine._ownership.writer
    assert writer is not None
    assert isinstance(writer.shard, MixtureShard)
    return writer.shard


# What may have been brought in order sooner or later.
LAGGING = ("forest_log_marginal", "forest_stale_")


def assert_replayed(
    store: SqlStore,
    live: MixtureShard,
    cadence: RefinementSettings = CADENCE,
    *,
    lagging: bool = False,
) -> None:
    """A replay comes to the live model, which holds all that SQL has: `assert_models_replayed`."""
    assert_models_replayed(store, live, cadence, lagging=lagging)
    block = store.observations(NAME, 0, live.seq)
    assert block is not None
    assert np.array_equal(block.cluster, live.clusters)


def assert_models_replayed(
    store: SqlStore,
    live: MixtureShard,
    cadence: RefinementSettings = CADENCE,
    *,
    lagging: bool = False,
) -> None:
    """A replay comes to the live model, from the beginning and from the newest snapshot.

    With ``lagging`` numbers of the forest that lag behind may be in order in one and not in the
    other.
    """
    spec, settings = store.spec(NAME), (cadence, live.forgetting.settings)
    newest, _ = restored(store, spec, settings)
    for again in (newest, new_shard(spec, *settings)):
        replay(store, NAME, again, live.seq, lambda _: None)
        assert first_difference(store, NAME, again) is None
        there, here = live.state(), again.state()
        assert there.keys() == here.keys()
        for name, array in there.items():
            if not (lagging and name.removeprefix(CHAIN).startswith(LAGGING)):
                np.testing.assert_array_equal(here[name], array, err_msg=name)
