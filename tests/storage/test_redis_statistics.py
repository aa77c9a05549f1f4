"""Statistics in Redis: moved by compare and set, never needed, always rebuildable."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import redis

from tests.servers.server import Server
from tests.storage.batches import SPEC, STREAM, batch, cluster_row
from weald.storage.errors import AccessDenied, StorageStopped, StorageUnavailable
from weald.storage.queries.base import ClusterRow
from weald.storage.redis.statistics import Outcome, RedisStatistics
from weald.storage.settings import RedisSettings
from weald.storage.writing.store import SqlStore

KEY = "weald:{quakes}:statistics"


@pytest.fixture
def database() -> str:
    """The copy is the same whatever it is a copy of."""
    return "sqlite"


@pytest.fixture(params=["redis_url", "valkey_url"])
def url(request: pytest.FixtureRequest) -> str:
    """The address of a real Redis, then of a real Valkey."""
    address: str = request.getfixturevalue(request.param)
    return address


@pytest.fixture
def statistics(url: str) -> Iterator[RedisStatistics]:
    with RedisStatistics(RedisSettings(url=url)) as opened:
        yield opened


@pytest.fixture
def server(url: str) -> Iterator[redis.Redis]:
    """The server itself, seen from outside."""
    with redis.Redis.from_url(url) as client:
        yield client


def commit(store: SqlStore, epoch: int, clusters: list[ClusterRow]) -> None:
    store.commit(batch(epoch, 1 + 5 * (epoch - 1), 5, clusters=clusters))


def versions(statistics: RedisStatistics) -> tuple[int, dict[int, int]]:
    shown = statistics.read_all(STREAM)
    assert shown is not None
    return shown.epoch, {cluster: row.version for cluster, row in shown.clusters.items()}


@pytest.fixture
def begun(statistics: RedisStatistics, store: SqlStore) -> RedisStatistics:
    """Redis shows commit 1 with clusters 1 and 2."""
    commit(store, 1, [cluster_row(1, 5), cluster_row(2, 3)])
    assert statistics.rebuild(STREAM, store)
    return statistics


def test_numbers_survive_bit_for_bit(begun: RedisStatistics) -> None:
    shown = begun.read_all(STREAM)
    assert shown is not None
    expected = cluster_row(1, 5).statistics
    assert shown.clusters[1].statistics.tobytes() == expected.tobytes()
    assert (shown.clusters[1].version, shown.clusters[1].epoch) == (1, 1)


def test_only_dirty_clusters_travel(begun: RedisStatistics) -> None:
    assert begun.publish(STREAM, 2, [cluster_row(2, 4, version=2)]) is Outcome.PUBLISHED
    assert versions(begun) == (2, {1: 1, 2: 2})
    assert begun.publish(STREAM, 3, []) is Outcome.PUBLISHED
    assert versions(begun) == (3, {1: 1, 2: 2})


def test_a_late_writer_changes_nothing(begun: RedisStatistics) -> None:
    begun.publish(STREAM, 2, [cluster_row(2, 4, version=2)])
    begun.publish(STREAM, 3, [cluster_row(2, 5, version=3)])
    assert begun.publish(STREAM, 2, [cluster_row(2, 4, version=2)]) is Outcome.STALE
    assert begun.publish(STREAM, 3, [cluster_row(1, 9, version=9)]) is Outcome.STALE
    assert versions(begun) == (3, {1: 1, 2: 3})


@pytest.mark.parametrize("version", [1, 2**53, 2**63])
def test_an_older_version_is_left_alone(begun: RedisStatistics, version: int) -> None:
    """Versions are compared as integers of 64 bits, which Lua's numbers cannot hold."""
    begun.publish(STREAM, 2, [cluster_row(2, 4, version=version + 1)])
    begun.publish(STREAM, 3, [cluster_row(2, 9, version=version), cluster_row(1, 9, version=2)])
    assert versions(begun) == (3, {1: 2, 2: version + 1})


def test_clusters_that_end_go(begun: RedisStatistics) -> None:
    begun.publish(STREAM, 2, [cluster_row(2, 0, version=2, retired=1)])
    assert versions(begun) == (2, {1: 1})


def test_a_missed_commit_is_a_gap(begun: RedisStatistics) -> None:
    assert begun.publish(STREAM, 3, [cluster_row(2, 4, version=3)]) is Outcome.GAP
    assert versions(begun) == (1, {1: 1, 2: 1})


def test_a_flush_is_a_gap_that_a_rebuild_closes(
    begun: RedisStatistics, store: SqlStore, server: redis.Redis
) -> None:
    server.flushall()
    assert begun.read_all(STREAM) is None
    commit(store, 2, [cluster_row(2, 4, version=2)])
    assert begun.publish(STREAM, 2, [cluster_row(2, 4, version=2)]) is Outcome.GAP
    assert begun.read_all(STREAM) is None
    assert begun.rebuild(STREAM, store)
    assert versions(begun) == (2, {1: 1, 2: 2})
    assert begun.publish(STREAM, 3, []) is Outcome.PUBLISHED


def test_a_script_that_the_server_forgot_is_sent_again(
    begun: RedisStatistics, server: redis.Redis
) -> None:
    begun.publish(STREAM, 2, [])
    server.script_flush()
    assert begun.publish(STREAM, 3, []) is Outcome.PUBLISHED


def test_a_rebuild_removes_what_sql_does_not_have(
    begun: RedisStatistics, store: SqlStore, server: redis.Redis
) -> None:
    server.hset(KEY, "99", b"rubbish")
    begun.rebuild(STREAM, store)
    assert versions(begun) == (1, {1: 1, 2: 1})
    assert server.keys("*") == [KEY.encode()]
    assert server.ttl(KEY) == -1


def test_a_late_rebuild_changes_nothing(
    begun: RedisStatistics, store: SqlStore, server: redis.Redis
) -> None:
    begun.publish(STREAM, 2, [cluster_row(2, 4, version=2)])
    assert not begun.rebuild(STREAM, store)
    assert versions(begun) == (2, {1: 1, 2: 2})
    assert server.keys("*") == [KEY.encode()]


def test_many_clusters_in_several_calls(statistics: RedisStatistics, store: SqlStore) -> None:
    rows = [cluster_row(number, 2) for number in range(1, 1001)]
    commit(store, 1, rows)
    statistics.rebuild(STREAM, store)
    dirty = [replace(row, version=2) for row in rows[:700]]
    ended = [replace(row, retired_publication=3) for row in rows[900:]]
    assert statistics.publish(STREAM, 2, dirty + ended) is Outcome.PUBLISHED
    epoch, shown = versions(statistics)
    assert epoch == 2
    assert shown == dict.fromkeys(range(1, 701), 2) | dict.fromkeys(range(701, 901), 1)


def test_streams_have_hashes_of_their_own(begun: RedisStatistics, store: SqlStore) -> None:
    store.ensure_stream(replace(store.spec(STREAM), name="other"))
    begun.rebuild("other", store)
    shown = begun.read_all("other")
    assert shown is not None
    assert (shown.epoch, shown.clusters) == (0, {})


def test_clusters_that_another_stream_writes_go_by_its_commits(
    begun: RedisStatistics, store: SqlStore
) -> None:
    store.ensure_stream(replace(SPEC, name="wide"))
    commit(store, 2, [cluster_row(1, 7)])
    assert begun.rebuild("wide", store, written_by=STREAM)
    # By its own commits, of which there are none, it would be put back.
    assert not begun.rebuild("wide", store)
    shown = begun.read_all("wide")
    assert shown is not None
    assert (shown.epoch, shown.clusters) == (2, {})


def test_an_outage_is_passing(own_redis: Server, store: SqlStore) -> None:
    settings = RedisSettings(url=f"redis://{own_redis.address}/0", timeout_seconds=1.0, retries=0)
    commit(store, 1, [cluster_row(1, 5)])
    with RedisStatistics(settings) as statistics:
        statistics.rebuild(STREAM, store)
        own_redis.kill()
        with pytest.raises(StorageUnavailable):
            statistics.publish(STREAM, 2, [])
        with pytest.raises(StorageUnavailable):
            statistics.ping()
        own_redis.start()
        statistics.ping()
        assert statistics.publish(STREAM, 2, []) is Outcome.GAP
        assert statistics.rebuild(STREAM, store)


def test_what_no_retry_mends(own_redis: Server) -> None:
    address = f"{own_redis.address}/0"
    with redis.Redis.from_url(f"redis://{address}") as server:
        server.set(KEY, "not a hash")
        server.config_set("requirepass", "secret")
    stranger = RedisStatistics(RedisSettings(url=f"redis://{address}"))
    known = RedisStatistics(RedisSettings(url=f"redis://:secret@{address}"))
    with stranger, pytest.raises(AccessDenied):
        stranger.ping()
    with known, pytest.raises(StorageStopped) as caught:
        known.publish(STREAM, 1, [])
    assert "secret" not in str(caught.value)


def test_a_full_server_is_an_outage(own_redis: Server) -> None:
    url = f"redis://{own_redis.address}/0"
    with redis.Redis.from_url(url) as server:
        server.hset(KEY, "epoch", 0)
        server.config_set("maxmemory", "1")
    statistics = RedisStatistics(RedisSettings(url=url))
    with statistics, pytest.raises(StorageUnavailable):
        statistics.publish(STREAM, 1, [cluster_row(1, 5)])
