"""The engine over PostgreSQL and with Redis, which may die and come back."""

from pathlib import Path

import numpy as np
import pytest

from tests.servers.server import Server
from tests.stream.scenario import (
    NAME,
    KilledError,
    assert_exactly_once,
    killer,
    new_store,
    outcome,
    plan_for,
    records_file,
    run,
)
from weald.storage.redis.statistics import RedisStatistics
from weald.storage.settings import RedisSettings, StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlStore
from weald.stream.engine.sinks import Sinks

N = 450


def test_postgresql_holds_what_sqlite_holds(tmp_path: Path, empty_postgresql_url: str) -> None:
    plan = plan_for(records_file(tmp_path, N), snapshot_records=150)
    sqlite = new_store(tmp_path)
    run(plan, sqlite)
    settings = StorageSettings(url=empty_postgresql_url)
    upgrade(settings)
    for step in ("commit", "redis"):
        store = SqlStore(settings)
        with pytest.raises(KilledError):
            run(plan, store, killer(step, 3))
        store.close()
    store = SqlStore(settings)
    run(plan, store)
    assert_exactly_once(store, N)
    assert outcome(store) == outcome(sqlite)
    store.close()


def same_as_sql(statistics: RedisStatistics, store: SqlStore) -> None:
    shown = statistics.read_all(NAME)
    assert shown is not None
    assert shown.epoch == store.position(NAME).epoch
    rows = {row.cluster: row.statistics for row in store.clusters(NAME)}
    assert shown.clusters.keys() == rows.keys()
    for cluster, row in rows.items():
        np.testing.assert_array_equal(shown.clusters[cluster].statistics, row)


def test_redis_shows_what_sql_holds(tmp_path: Path, redis_url: str) -> None:
    store = new_store(tmp_path)
    with RedisStatistics(RedisSettings(url=redis_url)) as statistics:
        assert statistics.n_bytes(NAME) is None
        run(plan_for(records_file(tmp_path, N)), store, sinks=Sinks(statistics))
        same_as_sql(statistics, store)
        size = statistics.n_bytes(NAME)
    assert size is not None
    assert size > sum(row.statistics.nbytes for row in store.clusters(NAME))


def test_a_restart_shows_what_the_last_owner_could_not(tmp_path: Path, redis_url: str) -> None:
    plan = plan_for(records_file(tmp_path, 200))
    with RedisStatistics(RedisSettings(url=redis_url)) as statistics:
        with pytest.raises(KilledError):
            run(plan, new_store(tmp_path), killer("redis", 4), Sinks(statistics))
        store = new_store(tmp_path)
        run(plan, store, sinks=Sinks(statistics))
        same_as_sql(statistics, store)


def test_the_stream_goes_on_without_redis_and_mends_it_later(
    tmp_path: Path, own_redis: Server
) -> None:
    store = new_store(tmp_path)
    settings = RedisSettings(url=f"redis://{own_redis.address}/0", retries=0)
    with RedisStatistics(settings) as statistics:
        sinks = Sinks(statistics)

        def interfere(name: str, nth: int) -> None:
            if (name, nth) == ("redis", 3):
                own_redis.kill()
            if (name, nth) == ("redis", 5):
                own_redis.start()
                sinks._rest_until = 0.0

        run(plan_for(records_file(tmp_path, N)), store, interfere, sinks)
        assert_exactly_once(store, N)
        same_as_sql(statistics, store)
