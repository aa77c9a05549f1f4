"""Engines of the shards of one stream over one database: one cluster one name and id, and kills."""

import os
import platform
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import redis
from numpy.typing import NDArray

from tests.stream.scenario import (
    NAME,
    KilledError,
    assert_exactly_once,
    line_of,
    new_store,
    plan_for,
    shard_of,
    write_lines,
)
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.sharded.round_steps import ANCHORS, REPORT, shown_step, turn_step
from weald.storage.commit.commit import LineageRow, PublicationRow
from weald.storage.errors import Fenced, StorageUnavailable, StreamConflict
from weald.storage.queries.whole import WholeReader
from weald.storage.redis.statistics import RedisStatistics
from weald.storage.settings import RedisSettings
from weald.storage.sql.failpoints import SHARD_LABELS
from weald.storage.writing import shard_rounds as written
from weald.storage.writing import writer as committed
from weald.storage.writing.store import SqlStore
from weald.stream.engine import shard_rounds
from weald.stream.engine.engine import Engine
from weald.stream.engine.sinks import Sinks
from weald.stream.model.batch_outcome import BatchOutcome
from weald.stream.model.model import StreamConfig
from weald.stream.model.part_shard import PartShard
from weald.stream.record.pending_batch import Held
from weald.stream.recovery import snapshots
from weald.stream.recovery.recovery import first_difference, replay, restored
from weald.stream.settings import MemorySettings
from weald.stream.source.file_source import FileSource

S = 3
N = 240
MEMORY = MemorySettings()
# Two shards have some of a cluster, one has none of it, and so on: none lies in one alone.
CENTRES = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0], [20.0, 20.0]])


# Steps that come with a publication only.
OFTEN = ("shard.publish", "shard.sum")


class Going(FileSource):
    """A file that more may be appended to, for ever."""

    @property
    def exhausted(self) -> bool:
        return False


class Shards:
    """Engines of all shards of a stream, each of which has a turn in a fixed order."""

    def __init__(
        self,
        folder: Path,
        *,
        n: int = N,
        snapshot_records: int = 10_000,
        empty: int = -1,
        keys: int = 10_000,
        late: int = 0,
    ) -> None:
        """Of more records than there are ``keys`` the later ones take the place of earlier ones.

        Shard 1 has none of the last cluster among its first ``late`` records.
        """
        folder.mkdir(exist_ok=True)
        draw = np.random.default_rng(5)
        self.truth = [draw.integers(len(CENTRES), size=n) for _ in range(S)]
        self.truth[1][:late] %= len(CENTRES) - 1
        self.paths, self.n = [], n
        for shard, truth in enumerate(self.truth):
            rows = CENTRES[truth] + draw.normal(size=(n, 2))
            lines = [line_of(i % keys, row) for i, row in enumerate(rows) if shard != empty]
            self.paths.append(write_lines(folder / f"p{shard}.jsonl", lines))
            # Of which records without a time of their own are.
            os.utime(self.paths[-1], (1e9, 1e9))
        self.store: SqlStore = new_store(folder)
        plan = plan_for(None, source="kafka", shards=S, batch_records=2, poll_seconds=0.0)
        stream = msgspec.structs.replace(
            plan.stream,
            snapshot_records=snapshot_records,
            duplicate_keys="allow" if keys > n else "update",
        )
        cadence = msgspec.structs.replace(
            plan.refinement, every_records=20, publish_every_records=80
        )
        model = msgspec.structs.replace(plan.model, warmup_records=20)
        self.plan = replace(plan, stream=stream, refinement=cadence, model=model)
        self.sinks = Sinks()
        self.sources: list[FileSource] = []
        self.engines = [self.engine(shard) for shard in range(S)]
        self.killed: list[int] = []

    def plan_of(self, shard: int) -> StreamConfig:
        return replace(self.plan, shard=shard)

    def engine(self, shard: int) -> Engine:
        stream = msgspec.structs.replace(
            self.plan.stream, source="file", path=str(self.paths[shard])
        )
        self.sources.append(Going(stream))
        return Engine(self.plan_of(shard), self.sources[-1], self.store, sinks=self.sinks)

    def close(self) -> None:
        for source in self.sources:
            source.close()
        self.store.close()

    def again(self, shard: int) -> None:
        """Put a new process in the place of one that has been killed; it takes the stream over."""
        self.engines[shard] = self.engine(shard)
        self.engines[shard]._round()

    def part(self, shard: int) -> PartShard:
        found = shard_of(self.engines[shard])
        assert isinstance(found, PartShard)
        return found

    def step(self) -> None:
        """A turn of each engine; one that is killed is followed by another in the same turn."""
        for shard in range(S):
            try:
                self.engines[shard]._round()
            except KilledError:
                self.killed.append(shard)
                self.again(shard)
                self.engines[shard]._round()

    def go(self, n_steps: int) -> None:
        for _ in range(n_steps):
            self.step()

    def names(self) -> NDArray[np.int64]:
        """The block of each observation, by its name, in the order of the shards."""
        found = [self.names_of(shard) for shard in range(S)]
        assert {len(each) for each in found} == {self.n}
        return np.concatenate(found)

    def names_of(self, shard: int) -> NDArray[np.int64]:
        """The block of each observation of a shard, by its name; -1 for what came since."""
        part = self.part(shard)
        table = part.atom_table
        atoms = table.singles[np.argsort(table.seq[table.singles])]
        named = np.full(len(part.chain.labels), -1, dtype=np.int64)
        named[: len(part.part.named)] = part.part.named
        return named[atoms]

    def clusters(self) -> NDArray[np.int64]:
        """What SQL shows each observation in, in the order of the shards."""
        blocks = [self.store.observations(f"{NAME}/{shard}", 0, self.n) for shard in range(S)]
        return np.concatenate([block.cluster for block in blocks if block is not None])

    def whole(self) -> WholeReader:
        """What is asked about the stream."""
        return WholeReader(self.store, NAME)

    def told(self) -> tuple[object, ...]:
        """What SQL says of the whole."""
        publications = [
            (row.number, row.seq, row.n_clusters, row.warnings) for row in self.publications()
        ]
        rows = [
            (
                *(row.cluster, row.n_observations, row.born_publication),
                *(row.retired_publication, row.probability, row.stability),
                *(row.version, row.log_marginal, row.statistics.tolist()),
                *(row.group, row.group_born),
            )
            for row in self.store.clusters(NAME, include_retired=True)
        ]
        events = [replace(event, time=0.0) for event in self.store.lineage(NAME)]
        return publications, sorted(rows), events, self.clusters().tolist()

    def publications(self) -> list[PublicationRow]:
        return self.store.publications(NAME)

    def rounds(self) -> int:
        row = self.store.shard_round(NAME)
        return 0 if row is None else row.number

    def assert_same(self, other: "Shards") -> None:
        assert self.rounds() == other.rounds() > 5
        assert self.told() == other.told()
        for shard in range(S):
            there, here = self.part(shard).state(), other.part(shard).state()
            assert there.keys() == here.keys()
            for name, array in there.items():
                np.testing.assert_array_equal(here[name], array, err_msg=f"{shard} {name}")
        for number in range(1, self.rounds() + 1):
            one, two = self.store.shard_round(NAME, number), other.store.shard_round(NAME, number)
            assert one is not None
            assert two is not None
            assert one.hyperparameters == two.hyperparameters
            assert (one.step, one.next_name) == (two.step, two.next_name)


@pytest.fixture(autouse=True)
def _no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds take as much of the time as they want: nothing then depends on a clock."""
    monkeypatch.setattr(shard_rounds, "_SHARE", 1.0)
    monkeypatch.setattr(shard_rounds, "_SHARE_BEHIND", 1.0)


@pytest.fixture
def shards_in(tmp_path: Path) -> Iterator[Callable[..., Shards]]:
    """What makes shards that are closed in the end."""
    made: list[Shards] = []

    def make(**settings: int) -> Shards:
        made.append(Shards(tmp_path, **settings))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shards]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard_rounds, "_SHARE", 1.0)
        patch.setattr(shard_rounds, "_SHARE_BEHIND", 1.0)
        whole = Shards(tmp_path_factory.mktemp("whole"))
        whole.go(150)
    yield whole
    whole.close()


def test_shards_rest_for_waiting_records_no_longer_than_these_wait(
    shards_in: Callable[..., Shards], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Of a share so small nothing is left for another round.
    monkeypatch.setattr(shard_rounds, "_SHARE_BEHIND", 1e-9)
    shards, found = shards_in(n=480), []
    for behind in (False, True, True, False):
        monkeypatch.setattr(Engine, "_behind", lambda *_, behind=behind: behind)
        shards.go(50)
        found.append(shards.rounds())
    # Where they begin to wait a round may be out.
    assert 0 < found[0] <= found[1] == found[2] < found[3] - 1


def test_where_nothing_leaves_nothing_is_looked_at(shards_in: Callable[..., Shards]) -> None:
    shards = shards_in(n=120)
    shards.go(60)
    part = shards.part(0)
    homes = part._homes()
    part._leave(np.empty(0, dtype=np.int64), BatchOutcome(), 0.0)
    assert part._homes() is homes


def most_of(labels: NDArray[np.int64]) -> int:
    return int(Counter(labels.tolist()).most_common(1)[0][0])


def test_a_cluster_that_lies_across_shards_has_one_name(shards_in: Callable[..., Shards]) -> None:
    shards, n = shards_in(n=720), 720
    shards.go(430)
    names, truth = shards.names(), np.concatenate(shards.truth)
    assert shards.rounds() >= 30
    # Those that came after the last round have no name yet.
    there = names != -1
    assert there.mean() > 0.9
    assert adjusted_rand_index(names[there], truth[there]) > 0.95
    of = np.repeat(np.arange(S), n)
    found = set()
    for cluster in range(len(CENTRES)):
        in_shards = {most_of(names[there & (truth == cluster) & (of == each)]) for each in range(S)}
        assert len(in_shards) == 1
        found |= in_shards
    assert len(found) == len(CENTRES)
    for shard in range(S):
        part = f"{NAME}/{shard}"
        assert_exactly_once(shards.store, n, part)
        assert shards.store.lease_counts(part)["adopted"] >= 29
        assert {row.kernel for row in shards.store.rounds(part)} >= {"gibbs", "sams"}


def test_a_cluster_that_lies_across_shards_has_one_id(shards_in: Callable[..., Shards]) -> None:
    shards = shards_in(n=480)
    shards.go(290)
    shown, truth = shards.clusters(), np.concatenate(shards.truth)
    assert len(shown) == S * 480
    covered = np.concatenate([np.arange(480) < shards.part(s)._published_seq for s in range(S)])
    assert covered.mean() > 0.8
    assert adjusted_rand_index(shown[covered], truth[covered]) > 0.9
    of = np.repeat(np.arange(S), 480)
    for cluster in range(len(CENTRES)):
        there = covered & (truth == cluster)
        assert len({most_of(shown[there & (of == shard)]) for shard in range(S)}) == 1
    # Sizes and sums are those of all shards.
    rows = {row.cluster: row for row in shards.whole().clusters(NAME)}
    assert {each: row.n_observations for each, row in rows.items()} == Counter(shown.tolist())
    for row in rows.values():
        assert row.statistics[0] == row.n_observations
    assert_one_lineage(shards)


def test_rows_of_the_whole_have_the_sums_of_all_shards(shards_in: Callable[..., Shards]) -> None:
    """From the round after a publication on."""
    shards = shards_in()
    shards.go(60)
    before = shards.clusters()
    for _ in range(60):
        if all(row.version % 2 for row in shards.store.clusters(NAME)):
            break
        before = shards.clusters()
        shards.step()
    rows = shards.store.clusters(NAME)
    assert {row.version for row in rows} == {2 * len(shards.publications()) + 1}
    whole = {row.cluster: row for row in shards.whole().clusters(NAME)}
    for row in rows:
        assert row.statistics[0] == row.n_observations
        # Some have come since.
        assert row.n_observations <= whole[row.cluster].n_observations
        assert row.statistics.shape == whole[row.cluster].statistics.shape
        assert row.log_marginal < 0.0
    assert sum(row.n_observations for row in rows) > 0.7 * len(before)


def assert_one_lineage(shards: Shards) -> None:
    """Every cluster begins once, before anything else of it, and ends once."""
    events = shards.whole().lineage(NAME)
    begun: set[int] = set()
    ended: set[int] = set()
    for event in events:
        if event.kind in ("birth", "split"):
            assert event.cluster not in begun
            begun.add(event.cluster)
        assert event.cluster in begun
        assert {*event.parents} <= begun
        assert event.cluster not in ended
        if event.kind == "retire":
            ended.add(event.cluster)
    assert begun - ended == {row.cluster for row in shards.whole().clusters(NAME)}


def test_every_observation_that_a_publication_moves_is_counted_once(undisturbed: Shards) -> None:
    """But those that came after its reports, which follow their clusters."""
    for publication in range(1, len(undisturbed.publications()) + 1):
        events = [each for each in moves(undisturbed) if each.publication == publication]
        changed = late = 0
        for shard in range(S):
            name = f"{NAME}/{shard}"
            (row,) = [
                row for row in undisturbed.store.publications(name) if row.number == publication
            ]
            changes = undisturbed.store.changes(name, after=publication - 1)
            seqs = changes[changes[:, 0] == publication, 1]
            changed += len(seqs)
            late += int((seqs > row.seq).sum())
        assert sum(event.n_moved for event in events) == changed - late


def test_redis_has_the_clusters_of_all_shards_by_version(
    shards_in: Callable[..., Shards], redis_url: str
) -> None:
    shards = shards_in()
    with RedisStatistics(RedisSettings(url=redis_url)) as statistics:

        def assert_same_as_sql() -> None:
            shown = statistics.read_all(NAME)
            assert shown is not None
            assert len(shown.clusters) >= len(CENTRES)
            rows = {row.cluster: row for row in shards.store.clusters(NAME)}
            assert shown.clusters.keys() == rows.keys()
            for cluster, row in rows.items():
                assert shown.clusters[cluster].version == row.version
                np.testing.assert_array_equal(shown.clusters[cluster].statistics, row.statistics)

        shards.sinks = Sinks(statistics)
        shards.engines = [shards.engine(shard) for shard in range(S)]
        shards.go(100)
        assert len(shards.publications()) > 2
        assert_same_as_sql()
        with redis.Redis.from_url(redis_url) as server:
            server.flushdb()
        # Whoever finds a gap, or takes the first shard over, shows them again.
        shards.go(3)
        assert_same_as_sql()
        with redis.Redis.from_url(redis_url) as server:
            server.flushdb()
        shards.again(1)
        assert statistics.read_all(NAME) is None
        shards.again(0)
        assert_same_as_sql()


def test_metrics_have_the_verdict_of_all_shards_from_whoever_writes_the_first(
    shards_in: Callable[..., Shards],
) -> None:
    shards = shards_in()

    def told(shard: int) -> dict[str, float | None]:
        registry = shards.engines[shard]._telemetry.metrics.registry
        names = ("weald_publication_warnings", "weald_groups", "weald_stability_ratio")
        return {name: registry.get_sample_value(name, {"stream": NAME}) for name in names}

    shards.go(100)
    row = shards.publications()[-1]
    groups = {each.group for each in shards.store.clusters(NAME)}
    found = told(0)
    assert found["weald_publication_warnings"] == len(row.warnings or ())
    assert found["weald_groups"] == len(groups) >= 3
    assert found["weald_stability_ratio"] is not None
    assert 0.5 < found["weald_stability_ratio"] <= 1.0
    assert set(told(1).values()) == {None}
    # Whoever has it no more says nothing of it.
    shards.engines[0]._telemetry.phase("standby", 0)
    assert set(told(0).values()) == {None}


def test_metrics_count_what_publications_of_all_shards_do_to_clusters(
    shards_in: Callable[..., Shards],
) -> None:
    """A dashboard's stream is one that has a version, and its events are those of the lineage."""
    shards = shards_in()
    shards.go(100)
    kinds = Counter(event.kind for event in shards.store.lineage(NAME))
    assert kinds["split"] + kinds["merge"] > 0

    def told(metric: str, **labels: str) -> float | None:
        registry = shards.engines[0]._telemetry.metrics.registry
        return registry.get_sample_value(metric, {"stream": NAME, **labels})

    for kind in ("split", "merge", "move", "retire"):
        assert (told("weald_lineage_events_total", kind=kind) or 0) == kinds[kind]
    assert told("weald_publications_total") == len(shards.publications())
    assert told("weald_build_info", version="unknown", python=platform.python_version()) == 1.0


def moves(shards: Shards) -> list[LineageRow]:
    return [event for event in shards.store.lineage(NAME) if event.n_moved]


def test_a_publication_that_sql_kept_from_being_made_is_left_out(
    shards_in: Callable[..., Shards], monkeypatch: pytest.MonkeyPatch
) -> None:
    shards, n_asked = shards_in(), 0
    ask = shards.store.last_cluster

    def fails_at_first(stream: str, *, multiple_of: int) -> int:
        nonlocal n_asked
        n_asked += 1
        if n_asked < 3:
            raise StorageUnavailable("away")
        return ask(stream, multiple_of=multiple_of)

    monkeypatch.setattr(shards.store, "last_cluster", fails_at_first)
    shards.go(100)
    assert [row.number for row in shards.publications()] == list(range(1, n_asked - 1))
    assert n_asked > 3
    assert {shards.part(shard).publication for shard in range(S)} == {n_asked - 2}
    assert_one_lineage(shards)


def test_what_begins_and_ends_between_two_publications_has_its_end_told(
    shards_in: Callable[..., Shards],
) -> None:
    """By the shard, as its beginning was: no publication has ever seen it."""
    shards = shards_in(n=240, keys=240)
    lines = shards.paths[0].read_text().splitlines()
    for at in range(200, 20, -12):
        # A record that is like nothing else, and soon after another one of its key.
        lines.insert(at, line_of(at - 1, np.array([80.0, 5.0 * at])))
        lines.insert(at + 3, line_of(at - 1, np.zeros(2)))
    shards.paths[0].write_text("\n".join(lines) + "\n")
    shards.go(200)
    events = shards.store.lineage(f"{NAME}/0")
    ended = [event.cluster for event in events if event.kind == "retire"]
    assert len(ended) > 2
    assert not {*ended} & {event.cluster for event in shards.store.lineage(NAME)}
    assert_one_lineage(shards)


def test_of_many_a_publication_comes_when_a_tenth_is_new() -> None:
    def turns(n: int) -> list[int]:
        return [each for each in range(1, 130) if shard_rounds._in_turn(each, 4, n, 60)]

    assert turns(5000)[:5] == [1, 2, 4, 8, 12]
    # 16 rounds bring 960; 8 bring 480.
    assert turns(9600)[:4] == [1, 2, 16, 32]
    assert turns(4801)[:4] == [1, 2, 4, 8]
    assert turns(20_000)[:4] == [1, 2, 64, 128]


def test_arrivals_join_what_their_block_is_shown_in_wherever_that_began(
    shards_in: Callable[..., Shards],
) -> None:
    shards = shards_in(n=300)
    shards.go(140)
    at, n_pinned = shards.part(1), 0
    for _ in range(40):
        before, seq, turn = at.publication, at.seq, at.rounds.taken
        # As if other shards had most of each block, which is shown as something unheard of here.
        at.home_clusters = at.home_clusters % 4000 + 4000
        at._arrivals = None
        homes = at._published_homes()
        shards.step()
        new = np.flatnonzero(at.atom_table.seq[: at.atom_table.end] > seq)
        if (at.publication, at.rounds.taken) != (before, turn):
            continue
        for slot, cluster in zip(
            at.chain.labels_of(new).tolist(), at.atom_table.cluster[new].tolist(), strict=True
        ):
            n_pinned += slot in homes
            assert cluster == homes.get(slot, cluster)
    assert n_pinned > 10


def test_an_arrival_is_shown_in_a_cluster_that_only_others_have(
    shards_in: Callable[..., Shards],
) -> None:
    """At once and without a birth; and its block is theirs from the next report on."""
    late = 150
    shards = shards_in(n=300, late=late)
    shards.go(late // 2 - 10)
    while shards.part(1).seq < late:
        shards.step()
    own, of_others = shards.part(1), shards.part(0)
    theirs = shards.truth[0][: of_others.seq] == len(CENTRES) - 1
    cluster = most_of(of_others.clusters[theirs])
    assert cluster not in own.clusters
    (block,) = of_others.home_names[of_others.home_clusters == cluster]
    assert block in own.part.elsewhere.names
    shown = own.publication
    while own.seq < late + 10:
        shards.step()
    new = np.flatnonzero(shards.truth[1][: own.seq] == len(CENTRES) - 1)
    assert own.publication == shown
    assert new.size > 1
    assert (own.clusters[new] == cluster).all()
    births = [row for row in shards.store.lineage(f"{NAME}/1") if row.kind == "birth"]
    assert cluster not in {row.cluster for row in births}
    assert not [row for row in births if row.seq > late]
    turn = own.rounds.taken
    while own.rounds.taken == turn:
        shards.step()
    names = shards.names_of(1)[new]
    assert (names[names != -1] == block).all()
    assert (names != -1).any()
    assert block not in own.part.elsewhere.names


def test_groups_are_the_kinds_that_made_the_records(undisturbed: Shards) -> None:
    rows = {row.cluster: row for row in undisturbed.store.clusters(NAME)}
    newest = undisturbed.publications()[-1].number
    told = np.array([(rows[each].group or 0) for each in undisturbed.clusters().tolist()])
    truth = np.concatenate(undisturbed.truth)
    assert (told > 0).all()
    assert adjusted_rand_index(told, truth) > 0.95
    # A name stays with its kind: those of the first publication that had all are those of now.
    births = {row.group: row.group_born for row in rows.values()}
    assert min(birth for birth in births.values() if birth is not None) < newest


@pytest.mark.parametrize("label", SHARD_LABELS)
def test_a_kill_in_a_round_changes_no_bit(
    shards_in: Callable[..., Shards],
    monkeypatch: pytest.MonkeyPatch,
    undisturbed: Shards,
    label: str,
) -> None:
    broken, passed = shards_in(), Counter[str]()

    def pass_or_die(step: str) -> None:
        passed[step] += 1
        # Every shard dies now and then, wherever the round is; what is rare oftener.
        every = 3 if step in ("shard.show", "commit.whole") or step.startswith(OFTEN) else 7
        if step == label and passed[step] % every == 4 % every:
            raise KilledError

    monkeypatch.setattr(shard_rounds, "failpoint", pass_or_die)
    monkeypatch.setattr(written, "failpoint", pass_or_die)
    monkeypatch.setattr(committed, "failpoint", pass_or_die)
    broken.go(150)
    rare = {"shard.ask", "shard.ask.done", "shard.show", "commit.whole"}
    assert len(broken.killed) >= (1 if label in rare or label.startswith(OFTEN) else 3)
    undisturbed.assert_same(broken)


def test_who_comes_after_a_snapshot_in_a_round_goes_on_with_the_same_bits(
    shards_in: Callable[..., Shards], undisturbed: Shards
) -> None:
    broken = shards_in(snapshot_records=30)
    for at in range(150):
        broken.step()
        # What warms up is in no snapshot.
        if at > 30 and at % 3 == 1:
            shard = at // 3 % S
            broken.engines[shard]._save()
            broken.again(shard)
    for shard in range(S):
        assert broken.store.snapshots(f"{NAME}/{shard}")
    undisturbed.assert_same(broken)


def test_a_replay_from_the_beginning_comes_to_the_same(undisturbed: Shards) -> None:
    for shard in range(S):
        live, plan = undisturbed.part(shard), undisturbed.plan_of(shard)
        writer = undisturbed.engines[shard]._ownership.writer
        assert writer is not None
        spec = undisturbed.store.spec(plan.name)
        again, _ = restored(undisturbed.store, spec, (plan.cadence, plan.memory))
        replay(undisturbed.store, plan.name, again, live.seq, lambda _: None, writer._out(again))
        np.testing.assert_array_equal(again.chain.labels, live.chain.labels)
        assert again.rounds.taken == live.rounds.taken
        assert again.publication == live.publication == len(undisturbed.publications()) > 3
        np.testing.assert_array_equal(again.clusters, live.clusters)
        assert first_difference(undisturbed.store, plan.name, again) is None


def test_an_owner_of_shard_0_that_is_fenced_asks_nothing(shards_in: Callable[..., Shards]) -> None:
    shards = shards_in()
    shards.go(30)
    old = shards.engines[0]
    writer = old._ownership.writer
    assert writer is not None
    shards.engines[0] = shards.engine(0)
    shards.engines[0]._round()
    before = shards.store.shard_round(NAME), shards.store.position(f"{NAME}/0").epoch
    rounds = old._shards
    assert rounds is not None
    for _ in range(40):
        applied = rounds.turn(writer, wants=True)
        if applied is not None:
            commit = writer.commit_of(Held(), applied, 0, None)
            with pytest.raises(Fenced):
                shards.store.commit(commit)
            break
    else:
        raise AssertionError("it had nothing to say")
    assert (shards.store.shard_round(NAME), shards.store.position(f"{NAME}/0").epoch) == before


@pytest.mark.parametrize("at", [REPORT, ANCHORS, shown_step(S)])
def test_an_owner_of_shard_0_that_stood_still_before_it_read_is_fenced(
    shards_in: Callable[..., Shards], monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """What it was about to read is gone, as others are two rounds on."""
    shards = shards_in()
    shards.go(30)
    old, stood = shards.engines[0], False
    writer, rounds = old._ownership.writer, old._shards
    assert rounds is not None
    all_said = rounds._keeper._all_said

    def stands_still(number: int, step: int) -> bool:
        nonlocal stood
        if not all_said(number, step):
            return False
        if step == at and not stood:
            stood = True
            end = shards.rounds() + 2
            shards.again(0)
            while shards.rounds() < end:
                shards.step()
        return True

    monkeypatch.setattr(rounds._keeper, "_all_said", stands_still)
    for _ in range(100):
        if old._ownership.writer is not writer:
            break
        shards.step()
    assert stood
    assert old._ownership.writer is None


def test_sums_are_told_though_sql_was_away(
    shards_in: Callable[..., Shards], monkeypatch: pytest.MonkeyPatch, undisturbed: Shards
) -> None:
    shards, n_tried, add_up = shards_in(), 0, shard_rounds._Keeper._sum

    def away(*_: object) -> None:
        raise StorageUnavailable("away")

    def fails_at_first(*arguments: Any) -> None:
        nonlocal n_tried
        n_tried += 1
        with monkeypatch.context() as patch:
            if n_tried % 2:
                patch.setattr(shards.store, "clusters", away)
            add_up(*arguments)

    monkeypatch.setattr(shard_rounds._Keeper, "_sum", fails_at_first)
    shards.go(150)
    assert n_tried == 2 * len(shards.publications())
    undisturbed.assert_same(shards)


def test_a_round_waits_for_a_shard_that_is_away(shards_in: Callable[..., Shards]) -> None:
    shards = shards_in()
    shards.go(30)
    away: Callable[[], bool] = lambda: False  # noqa: E731 - a turn of nobody
    third, shards.engines[2]._round = shards.engines[2], away  # type: ignore[method-assign]
    shards.go(100)
    stuck = shards.store.shard_round(NAME)
    shards.go(10)
    assert shards.store.shard_round(NAME) == stuck
    # The others take in what comes meanwhile.
    assert shards.part(0).seq == shards.part(1).seq == N
    del third._round
    shards.go(100)
    assert shards.rounds() > (0 if stuck is None else stuck.number)


def test_what_comes_is_shown_at_once_though_a_shard_is_away(
    shards_in: Callable[..., Shards],
) -> None:
    shards = shards_in(n=70)
    shards.go(30)
    shards.engines[2]._round = lambda: False  # type: ignore[method-assign]  # it is away
    told = len(shards.publications())
    shards.go(40)
    assert shards.part(0).rounds.out
    assert len(shards.publications()) - told <= 1
    live = shards.part(0)
    assert live.seq == 70
    assert (live.clusters > 0).all()
    sizes = {row.cluster: row.n_observations for row in shards.whole().clusters(NAME)}
    assert sizes == Counter(shards.clusters().tolist())
    shards.again(0)
    np.testing.assert_array_equal(shards.part(0).clusters, live.clusters)
    assert shards.part(0).publication == live.publication


def test_a_publication_comes_when_something_has_waited(shards_in: Callable[..., Shards]) -> None:
    shards = shards_in(n=70)
    cadence = msgspec.structs.replace(
        shards.plan.refinement, publish_every_records=100_000, publish_every_seconds=0.001
    )
    shards.plan = replace(shards.plan, refinement=cadence)
    shards.engines = [shards.engine(shard) for shard in range(S)]
    shards.go(100)
    in_turn = [each for each in range(1, shards.rounds() + 1) if each.bit_count() == 1]
    assert len(shards.publications()) > len(in_turn)
    assert [row.seq for row in shards.publications()][-1] == S * 70


def test_what_has_left_is_shown_by_nobody(shards_in: Callable[..., Shards]) -> None:
    shards = shards_in(n=240, keys=60, snapshot_records=30)
    for at in range(170):
        shards.step()
        if at > 30 and at % 7 == 1:
            shards.again(at // 7 % S)
    rows = {row.cluster: row.n_observations for row in shards.whole().clusters(NAME)}
    held: Counter[int] = Counter()
    for shard in range(S):
        part, writer = shards.part(shard), shards.engines[shard]._ownership.writer
        assert writer is not None
        table, name = part.atom_table, f"{NAME}/{shard}"
        # What is replaced goes before the next report.
        assert 60 <= len(table.present) < 120
        held.update(table.cluster[table.present].tolist())
        snapshots.verify(shards.store, name, shards.store.snapshots(name)[0].number)
        again, _ = restored(shards.store, shards.store.spec(name), (part.cadence, MEMORY))
        replay(shards.store, name, again, part.seq, lambda _: None, writer._out(again))
        np.testing.assert_array_equal(again.clusters, part.clusters)
    assert rows == held
    assert shards.rounds() > 6
    assert len(shards.publications()) > 3
    # Of all shards' clusters some have ended, and none goes on.
    assert_one_lineage(shards)


def test_a_snapshot_that_is_asked_for_in_a_round_knows_of_it(
    shards_in: Callable[..., Shards],
) -> None:
    shards = shards_in()
    shards.go(20)
    for _ in range(60):
        shards.step()
        row = shards.store.shard_round(NAME)
        if row is not None and 1 < row.step < turn_step(S) and row.number > 2:
            break
    name = f"{NAME}/1"
    assert shards.part(1).rounds.out
    number = snapshots.create(shards.store, name, "now", lambda _: None)
    snapshots.verify(shards.store, name, number)
    payload = shards.store.snapshot(name, number)
    assert payload is not None
    assert payload.payload["lease_rounds"][0] == shards.part(1).rounds.out
    # But no shard goes back to one alone.
    with pytest.raises(StreamConflict, match="goes back alone"):
        snapshots.revert_dropping(shards.store, name, number)
    with pytest.raises(StreamConflict, match="goes back alone"):
        snapshots.revert_keeping(shards.store, name, number, shards.plan.refinement, lambda _: None)


def test_a_shard_without_records_keeps_nobody_waiting(shards_in: Callable[..., Shards]) -> None:
    shards = shards_in(empty=1)
    shards.go(100)
    assert shards.rounds() >= 5
    assert shards.part(1).seq == 0
    # And whoever comes to own it goes on.
    shards.again(1)
    shards.again(0)
    before = shards.rounds()
    shards.go(50)
    assert shards.rounds() > before
