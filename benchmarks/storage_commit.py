"""How many observations a second the store commits, replays and moves between clusters.

Run ``python -m benchmarks.storage_commit [--records N]``. PostgreSQL is started for the purpose
with durable commits (fsync on), as in production; SQLite writes to the temporary folder.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from tests.servers.postgresql import database, postgresql_server
from tests.servers.server import Server
from weald.storage.queries.base import (
    BatchCommit,
    ClusterRow,
    ObservationBlock,
    OffsetAdvance,
    PublicationRow,
    Reassignment,
    StreamSpec,
)
from weald.storage.settings import StorageSettings
from weald.storage.sql import migrate
from weald.storage.writing.store import SqlStore

D = 10
K = 30
OWNER = "benchmark"


def batch(stream: str, epoch: int, first_seq: int, n: int) -> BatchCommit:
    """Return a commit as the engine makes them: n observations and 30 changed clusters."""
    seq = np.arange(first_seq, first_seq + n, dtype=np.int64)
    rng = np.random.default_rng(epoch)
    block = ObservationBlock(
        seq=seq,
        topic="observations",
        partition=np.zeros(n, dtype=np.int32),
        offset=seq,
        key=[f"record-{number}" for number in seq.tolist()],
        event_time=seq.astype(np.float64),
        values=rng.normal(size=(n, D)),
        cluster=rng.integers(1, K + 1, n),
        received_at=time.time(),
    )
    statistics = rng.normal(size=1 + D + D * (D + 1) // 2)
    return BatchCommit(
        stream=stream,
        owner=OWNER,
        generation=1,
        epoch=epoch,
        offsets=[OffsetAdvance("observations", 0, int(seq[-1]) + 1, n, n)],
        observations=block,
        clusters=[ClusterRow(c, n, -1.0, statistics, epoch, 0) for c in range(1, K + 1)],
    )


@contextmanager
def opened(url: str) -> Iterator[SqlStore]:
    """Open a store on a database that has just been made."""
    settings = StorageSettings(url=url)
    migrate.upgrade(settings)
    with SqlStore(settings) as store:
        yield store


def measure(store: SqlStore, n_batch: int, n_records: int) -> dict[str, float]:
    """Return observations per second for each of the things that a store does in bulk."""
    stream = f"batches-of-{n_batch}"
    store.ensure_stream(StreamSpec(stream, "gaussian", {}, "dp", {}, {}, 0))
    store.claim(stream, OWNER, 1)
    made = [
        batch(stream, 1 + at // n_batch, 1 + at, n_batch) for at in range(0, n_records, n_batch)
    ]
    moves = [move(stream, len(made) + number, n_batch, number) for number in range(1, 6)]
    n = len(made) * n_batch
    return {
        "commit": n / seconds(lambda: commit(store, made)),
        "replay": n / seconds(lambda: replay(store, stream, n_batch)),
        "move": n_batch * len(moves) / seconds(lambda: commit(store, moves)),
    }


def commit(store: SqlStore, batches: list[BatchCommit]) -> None:
    """Commit one batch after the other."""
    for one in batches:
        store.commit(one)


def move(stream: str, epoch: int, n: int, number: int) -> BatchCommit:
    """Return publication ``number``, which gives n observations to a cluster of their own."""
    seq = np.arange(1, n + 1, dtype=np.int64)
    return BatchCommit(
        stream=stream,
        owner=OWNER,
        generation=1,
        epoch=epoch,
        publications=[PublicationRow(number, n, time.time(), -2.0, -1.0, K + 1, n)],
        reassigned=[Reassignment(number, seq, np.full(n, K + number, dtype=np.int64))],
    )


def replay(store: SqlStore, stream: str, limit: int) -> None:
    """Read every observation in order."""
    after = 0
    while (block := store.observations(stream, after, limit)) is not None:
        after = int(block.seq[-1])


def seconds(task: Callable[[], None]) -> float:
    """Return how long the call takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def durable(server: Server) -> Server:
    """Restart the server as production runs it; the tests' own does without fsync."""
    server.stop()
    server.argv = [part.replace("fsync=off", "fsync=on") for part in server.argv]
    server.start()
    return server


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    n_records = parser.parse_args().records
    print(f"observations per second, d = {D}, {K} changed clusters a batch, {n_records} records")
    print(f"{'database':<12}{'batch':>7}{'commit':>10}{'replay':>10}{'move':>10}")
    with ExitStack() as running:
        folder = running.enter_context(tempfile.TemporaryDirectory())
        server = durable(running.enter_context(postgresql_server()))
        urls = {
            "SQLite": f"sqlite:///{Path(folder) / 'weald.db'}",
            "PostgreSQL": running.enter_context(database(server, "benchmark")),
        }
        for name, url in urls.items():
            store = running.enter_context(opened(url))
            for n_batch in (500, 5000):
                rates = measure(store, n_batch, n_records)
                row = "".join(f"{rates[part]:>10,.0f}" for part in ("commit", "replay", "move"))
                print(f"{name:<12}{n_batch:>7}{row}", flush=True)


if __name__ == "__main__":
    main()
