"""Fits in shards: the same bits, the same clusters, and what they cost.

    python -m benchmarks.shards                     10^5 rows of 8 numbers in 20 clusters
    python -m benchmarks.shards 1000000             so many rows
    python -m benchmarks.shards 1000000 --whole     and the fit that is not in shards
    python -m benchmarks.shards 10000000 --clusters 30 --sweeps 10 --rows-in FOLDER

Each number of shards, and each engine that is there, fits the same Parquet file, which
``--rows-in`` keeps. ``bits`` is a digest of every row's cluster and probability and of all sums:
they are to be the same. Of a sweep, ``shards_s`` and ``near_s`` are processor seconds, since
the machine may be busy: in all shards together, and where they are asked from. ``limit_s`` are
those that densities of all rows under all clusters take as products of matrices, with their
exponentials. ``bytes`` are those of a sweep, both ways and with all shards; ``statistics`` those of
all clusters, once; ``least`` what the law needs: parameters of all clusters to each shard and their
statistics back, and for each pair of anchors the odds of five passes there, one side of four back,
and of a split one more. ``resident_mb`` is the largest size of any shard with the pages of its
files, ``of_its_own_mb`` without, ``near_mb`` the largest size of the process they are asked from.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.process_memory import mebibytes
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.offline.fit import FitSettings, fit
from weald.mcmc.sharded.fixed_order import CHUNK, shares_of_rows
from weald.stream.shards.engine import ShardEngine
from weald.stream.shards.links import linked
from weald.stream.shards.local import LocalShard
from weald.stream.shards.row_files import row_files
from weald.stream.shards.sharded_fit import ShardedFit, fit_in_shards, items_of_rows

D = 8
_BATCH = 100_000


def made(path: Path, n: int, k: int) -> Path:
    """Write n rows of k normal clusters in batches; returns the file of their clusters."""
    clusters = path.with_suffix(".npy")
    if clusters.exists():
        return clusters
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(k, D)) * 2.0
    roots = np.linalg.cholesky(np.array([np.cov(rng.normal(size=(D, 3 * D))) for _ in range(k)]))
    names = [f"x{at}" for at in range(D)]
    truth = rng.integers(0, k, n)
    with parquet.ParquetWriter(
        path, arrow.schema([(name, arrow.float64()) for name in names])
    ) as out:
        for start in range(0, n, _BATCH):
            y = truth[start : start + _BATCH]
            rows = centres[y] + np.einsum("nij,nj->ni", roots[y], rng.normal(size=(y.size, D)))
            out.write_table(arrow.table(dict(zip(names, rows.T, strict=True))))
    np.save(clusters, truth)
    return clusters


def limit_seconds(n: int, m: int, k: int) -> float:
    """Processor time of n rows' log densities under k clusters, and their exponentials."""
    rows, natural = np.full((CHUNK, m), 1e-3), np.full((m, k), 1e-3)
    repeats = 200
    began = time.process_time()
    for _ in range(repeats):
        np.exp(rows @ natural)
    return (time.process_time() - began) / (repeats * CHUNK) * n


def processor_seconds(process: int) -> float:
    """Of a process so far, by the kernel."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(path: Path, engine: str, n_shards: int, sweeps: int, truth: Path) -> Any:
    """One fit, and what it cost."""
    files = row_files([path], None)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder, linked(engine) as connect:
        shares = shares_of_rows(files.n, n_shards)
        # The largest size from now on.
        Path("/proc/self/clear_refs").write_text("5")
        shards = ShardEngine(files, shares, CHUNK, Path(folder), connect)
        processes = [link.process_id for link in shards.links if isinstance(link, LocalShard)]
        marks: list[tuple[float, float]] = []

        def mark(*_: object) -> None:
            away = sum(map(processor_seconds, processes))
            marks.append((time.process_time(), away))

        try:
            settings = FitSettings(iterations=sweeps, seed=1)
            found = fit_in_shards(shards, files.n, settings, mark)
            sizes = [(mebibytes(each, "VmHWM"), mebibytes(each, "RssAnon")) for each in processes]
            near_mb = round(mebibytes("self", "VmHWM"))
            items = np.concatenate(list(items_of_rows(shards, files.n)))
        finally:
            shards.close()
    clusters = found.shown.cluster[items]
    k, m = found.sums.shape
    _, splits, merges = found.trace.tally[:, 0] / sweeps
    least = 8 * m * (2 * np.mean(found.trace.n_clusters) + 9 * (splits + merges) + splits)
    told = {
        "engine": engine,
        "shards": len(shares),
        "bits": digest(found, clusters, found.shown.probability[items]),
        "clusters": found.shown.n_clusters,
        "index": round(adjusted_rand_index(clusters, np.load(truth)), 4),
        "draws": len(found.shown.sweeps),
        "bytes": round(np.mean(found.trace.bytes)),
        "least": round(least * len(shares)),
        "statistics": 8 * found.sums.size,
        "wall_s_a_sweep": round(float(np.median(np.diff(found.trace.seconds))), 3),
        "limit_s": round(limit_seconds(files.n, m, k), 3),
        "near_mb": near_mb,
    }
    if processes:
        (near, away), (near_end, away_end) = marks[0], marks[-1]
        told["near_s"] = round((near_end - near) / (len(marks) - 1), 3)
        told["shards_s"] = round((away_end - away) / (len(marks) - 1), 3)
        told["resident_mb"] = round(max(size for size, _ in sizes))
        told["of_its_own_mb"] = round(max(own for _, own in sizes))
    return told


def digest(found: ShardedFit, clusters: NDArray[np.int64], sure: NDArray[np.float64]) -> str:
    """Of everything that could differ."""
    parts = (clusters, sure, found.sums, found.state.sums, np.array(found.trace.log_joint))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:12]


def main() -> None:
    """Fit, and print a line of JSON for each."""
    asked = argparse.ArgumentParser()
    asked.add_argument("rows", nargs="?", type=int, default=100_000)
    asked.add_argument("--clusters", type=int, default=20)
    asked.add_argument("--sweeps", type=int, default=30)
    asked.add_argument("--shards", default="1,2,4")
    asked.add_argument("--engines", default="local,ray")
    asked.add_argument("--whole", action="store_true")
    asked.add_argument("--rows-in", type=Path)
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = (given.rows_in or Path(folder)) / f"{given.rows}x{given.clusters}.parquet"
        truth = made(path, given.rows, given.clusters)
        for engine in given.engines.split(","):
            if engine == "ray" and find_spec("ray") is None:
                continue
            for n_shards in map(int, given.shards.split(",")):
                told = run(path, engine, n_shards, given.sweeps, truth)
                sys.stdout.write(json.dumps(told) + "\n")
                sys.stdout.flush()
        if given.whole:
            table = import_module("pyarrow.parquet").read_table(path)
            values = np.column_stack([column.to_numpy() for column in table.columns])
            began = time.process_time()
            result = fit(values, FitSettings(iterations=given.sweeps, seed=1), time.process_time)
            told = {
                "engine": None,
                "clusters": result.n_clusters,
                "index": round(adjusted_rand_index(result.labels, np.load(truth)), 4),
                "processor_s": round(time.process_time() - began, 1),
            }
            sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
