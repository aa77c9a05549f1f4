"""A small fit in shards, also as a program that is killed when it has sent so many messages.

    python -m tests.stream.shards.small_fit ROWS FOLDER MESSAGES

goes on in the folder, and leaves there what it comes to unless it was killed.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from weald.mcmc.offline.fit import FitSettings
from weald.mcmc.sharded.fixed_order import shares_of_rows
from weald.stream.shards.engine import ShardEngine, ShardLink
from weald.stream.shards.fit_snapshots import FitSnapshots
from weald.stream.shards.local import LocalShard
from weald.stream.shards.row_files import row_files
from weald.stream.shards.sharded_fit import ShardedFit, fit_in_shards, fit_terms, items_of_rows

Connect = Callable[[], ShardLink]

N, CHUNK = 3_000, 256
SETTINGS = FitSettings(iterations=8, seed=3)


@contextmanager
def running(
    folder: Path, kept: Path, n_shards: int, connect: Connect = LocalShard
) -> Iterator[ShardEngine]:
    files = row_files(sorted(folder.glob("*.parquet")), None)
    shares = shares_of_rows(files.n, n_shards, CHUNK)
    shards = ShardEngine(files, shares, CHUNK, kept, connect)
    try:
        yield shards
    finally:
        shards.close()


def told(shards: ShardEngine, found: ShardedFit) -> dict[str, Any]:
    """Everything that could differ, as bytes."""
    items = np.concatenate(list(items_of_rows(shards, N)))
    return {
        "clusters": found.shown.cluster[items].tobytes(),
        "probability": found.shown.probability[items].tobytes(),
        "sums": found.sums.tobytes(),
        "state": found.state.sums.tobytes(),
        "joint": np.array(found.trace.log_joint).tobytes(),
    }


def main() -> None:
    """Fit, be killed, or leave what was found."""
    rows, kept, most = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    sent = 0

    class LastMessage(LocalShard):
        """Kills who sends the last message, when it is sent."""

        def send(self, message: bytes) -> bool:
            nonlocal sent
            done = super().send(message)
            sent += 1
            if sent == most:
                os.kill(os.getpid(), signal.SIGKILL)
            return done

    files = row_files(sorted(rows.glob("*.parquet")), None)
    terms = fit_terms(files, shares_of_rows(files.n, 2, CHUNK), SETTINGS)
    snapshots = FitSnapshots(kept, terms)
    with running(rows, kept, 2, LastMessage) as shards:
        found = fit_in_shards(shards, N, SETTINGS, snapshots=snapshots)
        for name, data in told(shards, found).items():
            (kept / name).write_bytes(data)


if __name__ == "__main__":
    main()
