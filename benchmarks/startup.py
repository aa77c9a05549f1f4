"""How long commands take to answer that must answer at once.

    python -m benchmarks.startup            --help and status, least and median of 15 runs

Each run is a process of its own on a stream of 2,000 observations in SQLite. Wall time is what a
person waits on this machine as busy as it is; processor time is what is left of it on a quiet one.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from weald.storage.commit.commit import BatchCommit, ObservationBlock, OffsetAdvance, StreamSpec
from weald.storage.settings import StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlStore

LIMIT_SECONDS = 0.3
N = 2_000
CONFIGURATION = """\
[stream]
name = "startup"
[storage]
url = "sqlite:///weald.db"
"""


def fill(folder: Path) -> None:
    """Leave a stream behind that has something in its tables."""
    (folder / "weald.toml").write_text(CONFIGURATION)
    storage = StorageSettings(url=f"sqlite:///{folder}/weald.db")
    upgrade(storage)
    schema = {"fields": [{"name": "x"}], "key": None, "time": None}
    block = ObservationBlock(
        seq=np.arange(1, N + 1),
        topic="t",
        partition=np.zeros(N, dtype=np.int32),
        offset=np.arange(N),
        key=[f"key-{i}" for i in range(N)],
        event_time=np.arange(N, dtype=np.float64),
        values=np.arange(N, dtype=np.float64)[:, np.newaxis],
        cluster=np.ones(N, dtype=np.int64),
        received_at=1.0,
    )
    with SqlStore(storage) as store:
        store.ensure_stream(StreamSpec("startup", "gaussian", {}, "dp", {}, schema, 0))
        store.claim("startup", "benchmark", 1)
        advance = OffsetAdvance("t", 0, N, N, N)
        store.commit(BatchCommit("startup", "benchmark", 1, 1, [advance], block))


def seconds_of(arguments: Sequence[str], folder: Path) -> tuple[float, float]:
    """Wall and processor time of one process."""
    began = time.perf_counter()
    argv = [sys.executable, "-m", "weald.cli.main", *arguments]
    with subprocess.Popen(argv, cwd=folder, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    print(f"{'command':10} {'wall min':>9} {'median':>8} {'cpu min':>8} {'median':>8}   seconds")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fill(folder)
        for arguments in (["--help"], ["status"]):
            times = [seconds_of(arguments, folder) for _ in range(runs)]
            wall, processor = zip(*times, strict=True)
            shown = " ".join(
                f"{f(part):8.3f}" for part in (wall, processor) for f in (min, statistics.median)
            )
            verdict = "ok" if min(processor) < LIMIT_SECONDS else f"over {LIMIT_SECONDS} s"
            print(f"{arguments[0]:10} {shown}   {verdict}", flush=True)


if __name__ == "__main__":
    main()
