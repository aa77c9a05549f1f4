"""A network through a topic: killed and restarted, and the posterior of the batch fit of its edges.

The topic is of Apache Kafka and the tables are PostgreSQL's; the service is killed with SIGKILL.
"""

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from kafka import KafkaProducer
from numpy.typing import NDArray

from tests.crash.processes import runners, wait_until
from tests.crash.runner import Orders
from tests.stream import network
from tests.stream.scenario import NAME, new_store, outcome, run
from weald.mcmc.offline.fit import FitSettings
from weald.mcmc.relational.fit import fit_network
from weald.storage.errors import StreamNotFound
from weald.storage.settings import StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlStore
from weald.stream.model.network_shard import NetworkShard
from weald.stream.recovery.recovery import first_difference, usable
from weald.stream.settings import KafkaSettings, StreamSettings
from weald.treecore.relational.network import Links, make_network

pytestmark = pytest.mark.slow

STREAM = StreamSettings(name=NAME, batch_records=20, poll_seconds=0.1, snapshot_records=60)
KILLED_AT = ("refine", "commit.observations", "commit.done")
N_DRAWS, N_BATCHES = 4000, 25
# A bound that one pair in some hundreds of thousands passes by chance.
STANDARD_ERRORS = 4.5


def test_killed_and_compared_with_the_batch_fit(
    tmp_path: Path,
    kafka_bootstrap: str,
    kafka_topic: Callable[..., str],
    empty_postgresql_url: str,
    request: pytest.FixtureRequest,
) -> None:
    # Less clear than elsewhere: what is compared should not be zeros and ones.
    pairs = network.edges(seed=8, within=0.75, between=0.15)
    storage = StorageSettings(url=empty_postgresql_url)
    upgrade(storage)
    store, topic = SqlStore(storage), kafka_topic()
    request.addfinalizer(store.close)
    with runners(tmp_path) as start:
        kafka = KafkaSettings(
            bootstrap_servers=kafka_bootstrap,
            topic=topic,
            group=topic,
            # A killed member is a member until then.
            session_timeout_ms=4_000,
            heartbeat_interval_ms=500,
        )
        with closing(KafkaProducer(bootstrap_servers=kafka_bootstrap)) as producer:
            for i, pair in enumerate(pairs):
                producer.send(topic, network.record(i, *pair).encode(), partition=0)
        for step in KILLED_AT:
            orders = Orders(storage.url, STREAM, kafka, step, 1, edges=True)
            assert start(orders, step).ended() == -9
        last = start(Orders(storage.url, STREAM, kafka, edges=True), "last")
        wait_until(lambda: _inserted(store) == len(pairs), "every edge is in SQL")
        last.stop()
    _kept_once(store, pairs)
    # The same as from a file, uninterrupted, but for what is published at a file's end.
    whole = new_store(tmp_path, "whole")
    run(network.plan_for(network.edges_file(tmp_path, pairs)), whole)
    found, expected = outcome(store), outcome(whole)
    assert found.keys == expected.keys
    assert found.publications == expected.publications[: len(found.publications)]
    assert len(found.publications) > 0
    shard = usable(store, NAME, store.snapshots(NAME)[0].number)
    assert first_difference(store, NAME, shard) is None
    assert isinstance(shard, NetworkShard)
    assert shard.seq == store.position(NAME).next_seq - 1
    _agree(_streamed(shard), _fitted(shard, pairs))


def _inserted(store: SqlStore) -> int:
    try:
        return sum(row.n_inserted for row in store.ledger(NAME))
    except StreamNotFound:
        return 0


def _kept_once(store: SqlStore, pairs: list[tuple[str, str]]) -> None:
    block = store.observations(NAME, 0, 10_000)
    assert block is not None
    name = dict(zip(block.seq.tolist(), block.key, strict=True))
    edges = block.offset >= 0
    assert block.offset[edges].tolist() == list(range(len(pairs)))
    ends = block.values[edges, :2].astype(int).tolist()
    assert [(name[source], name[target]) for source, target in ends] == pairs


def _streamed(shard: NetworkShard) -> NDArray[np.int64]:
    """Draws of the stream's chain as it goes on, a row each, vertices by their atoms."""
    draws = []
    for _ in range(N_DRAWS):
        shard.chain.refine(1)
        draws.append(shard.chain.labels)
    return np.array(draws)


def _fitted(shard: NetworkShard, pairs: list[tuple[str, str]]) -> NDArray[np.int64]:
    """Draws of the batch fit of the same edges."""
    atom = {
        name: int(shard.atom_table.atoms_of(np.array([seq]))[0])
        for name, seq in shard.names.items()
    }
    source, target = (np.array([atom[pair[side]] for pair in pairs]) for side in (0, 1))
    edges = make_network(len(atom), Links(source, target, np.ones(len(pairs))))
    kernels = ("gibbs", "sdds", "rgsm")
    settings = FitSettings(kernels=kernels, iterations=N_DRAWS, keep_labels=True, seed=11)
    (trace,) = fit_network(edges, settings, lambda: 0.0).traces
    return np.array(trace.labels)


def _agree(streamed: NDArray[np.int64], fitted: NDArray[np.int64]) -> None:
    n = streamed.shape[1]
    assert fitted.shape[1] == n
    upper = np.triu_indices(n, 1)
    means, errors = [], []
    for draws in (streamed[N_DRAWS // 10 :], fitted[N_DRAWS // 10 :]):
        together = (draws[:, upper[0]] == draws[:, upper[1]]).astype(np.float64)
        whole = len(together) // N_BATCHES * N_BATCHES
        batches = together[:whole].reshape(N_BATCHES, -1, together.shape[1]).mean(axis=1)
        means.append(batches.mean(axis=0))
        errors.append(batches.var(axis=0, ddof=1) / N_BATCHES)
    # One batch's resolution for pairs that are nearly always, or nearly never, together.
    error = np.sqrt(errors[0] + errors[1] + (2.0 / N_DRAWS) ** 2)
    worst = np.abs(means[0] - means[1]) / error
    sys.stdout.write(
        f"largest difference {np.abs(means[0] - means[1]).max():.4f}, "
        f"in standard errors {worst.max():.2f}, mean error {error.mean():.4f}\n"
    )
    assert worst.max() < STANDARD_ERRORS
    # It would see a difference: the errors are small beside what varies.
    assert error.mean() < 0.05
    assert means[0].std() > 0.1
