"""Engines of the shards of one stream over one database: one cluster one name, and kills."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
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
from weald.mcmc.sharded.round_steps import turn_step
from weald.storage.errors import Fenced, StreamConflict
from weald.storage.sql.failpoints import SHARD_LABELS
from weald.storage.writing import shard_rounds as written
from weald.storage.writing.store import SqlStore
from weald.stream.engine import shard_rounds
from weald.stream.engine.engine import Engine
from weald.stream.model.model import StreamConfig
from weald.stream.model.part_shard import PartShard
from weald.stream.record.pending_batch import Held
from weald.stream.recovery import snapshots
from weald.stream.recovery.recovery import replay, restored
from weald.stream.source.file_source import FileSource

S = 3
N = 240
# Two shards have some of a cluster, one has none of it, and so on: none lies in one alone.
CENTRES = np.array([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0], [20.0, 20.0]])


class Going(FileSource):
    """A file that more may be appended to, for ever."""

    @property
    def exhausted(self) -> bool:
        return False


class Shards:
    """Engines of all shards of a stream, each of which has a turn in a fixed order."""

    def __init__(
        self, folder: Path, *, n: int = N, snapshot_records: int = 10_000, empty: int = -1
    ) -> None:
        folder.mkdir(exist_ok=True)
        draw = np.random.default_rng(5)
        self.truth = [draw.integers(len(CENTRES), size=n) for _ in range(S)]
        self.paths, self.n = [], n
        for shard, truth in enumerate(self.truth):
            rows = CENTRES[truth] + draw.normal(size=(n, 2))
            lines = [line_of(i, row) for i, row in enumerate(rows) if shard != empty]
            self.paths.append(write_lines(folder / f"p{shard}.jsonl", lines))
            # Of which records without a time of their own are.
            os.utime(self.paths[-1], (1e9, 1e9))
        self.store: SqlStore = new_store(folder)
        plan = plan_for(None, source="kafka", shards=S, batch_records=2, poll_seconds=0.0)
        stream = msgspec.structs.replace(plan.stream, snapshot_records=snapshot_records)
        cadence = msgspec.structs.replace(
            plan.refinement, every_records=20, publish_every_records=80
        )
        model = msgspec.structs.replace(plan.model, warmup_records=20)
        self.plan = replace(plan, stream=stream, refinement=cadence, model=model)
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
        return Engine(self.plan_of(shard), self.sources[-1], self.store)

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
        found = []
        for shard in range(S):
            part = self.part(shard)
            table = part.atom_table
            atoms = table.singles[np.argsort(table.seq[table.singles])]
            assert len(atoms) == self.n
            found.append(part.part.named[atoms])
        return np.concatenate(found)

    def rounds(self) -> int:
        row = self.store.shard_round(NAME)
        return 0 if row is None else row.number

    def assert_same(self, other: "Shards") -> None:
        assert self.rounds() == other.rounds() > 5
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


def test_a_cluster_that_lies_across_shards_has_one_name(shards_in: Callable[..., Shards]) -> None:
    shards, n = shards_in(n=480), 480
    shards.go(290)
    names, truth = shards.names(), np.concatenate(shards.truth)
    assert shards.rounds() >= 20
    # Those that came after the last round have no name yet.
    there = names != -1
    assert there.mean() > 0.9
    assert adjusted_rand_index(names[there], truth[there]) > 0.95
    sizes = Counter(names[there].tolist())
    assert len([name for name, size in sizes.items() if size > 10]) == len(CENTRES)
    for shard in range(S):
        part = f"{NAME}/{shard}"
        assert_exactly_once(shards.store, n, part)
        assert shards.store.lease_counts(part)["adopted"] >= 19
        assert {row.kernel for row in shards.store.rounds(part)} >= {"gibbs", "sams"}


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
        # Every shard dies now and then, wherever the round is.
        if step == label and passed[step] % 7 == 4:
            raise KilledError

    monkeypatch.setattr(shard_rounds, "failpoint", pass_or_die)
    monkeypatch.setattr(written, "failpoint", pass_or_die)
    broken.go(150)
    assert len(broken.killed) >= (1 if "ask" in label else 3)
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


def test_what_has_waited_is_shown_though_a_shard_is_away(
    shards_in: Callable[..., Shards], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_rounds, "_PATIENCE_SECONDS", 0.0)
    shards = shards_in(n=70)
    cadence = msgspec.structs.replace(
        shards.plan.refinement, publish_every_records=1000, publish_every_seconds=0.001
    )
    shards.plan = replace(shards.plan, refinement=cadence)
    shards.engines = [shards.engine(shard) for shard in range(S)]
    shards.go(30)
    shards.engines[2]._round = lambda: False  # type: ignore[method-assign]  # it is away
    shards.go(40)
    assert shards.part(0).rounds.out
    assert not shards.part(0).unpublished
    told = len(shards.store.publications(f"{NAME}/0"))
    shards.go(5)
    # But nothing again and again.
    assert len(shards.store.publications(f"{NAME}/0")) == told
    live = shards.part(0)
    shards.again(0)
    np.testing.assert_array_equal(shards.part(0).chain.labels, live.chain.labels)
    assert shards.part(0).publication == live.publication


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
