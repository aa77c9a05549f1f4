"""A stream that goes on at one rate: what waits, what it costs, and how good what it shows is.

    python -m benchmarks.steady                                    an hour, 1,000 records a second
    python -m benchmarks.steady --minutes 5 --rate 4000 --output steady.json

``weald run`` with default settings reads a topic of Apache Kafka into SQLite; both are started
here. Records are drawn from Gaussians with the sizes, centres and covariances of the clusters of
``tgmcmc_10k.npz`` (``WEALD_DATA``, by default ../shared/data) that have at least twenty rows. A
line a minute says how many records were not in SQL when one looked, at the most of every second's
look, and at the minute's end; how long records took from the topic to their commit, by the
service's own histogram; the share of one processor that the service took, its memory, and what it
shows.

When all has come the service is asked to end, and what it shows of 20,000 records drawn from all
is compared with the truth, beside a fit of ``weald fit`` to the same records and what one knows who
knows each Gaussian.
"""

import argparse
import json
import multiprocessing
import os
import signal
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from prometheus_client.parser import text_string_to_metric_families
from scipy.stats import multivariate_normal

from benchmarks.end_to_end import produce
from benchmarks.papers.data import DATA
from benchmarks.shown import fitted
from benchmarks.soak import Service
from tests.servers.kafka import kafka_broker
from tests.servers.server import free_port
from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.storage.settings import StorageSettings
from weald.storage.writing.store import SqlReader
from weald.stream.settings import KafkaSettings

NAME, N_PARTITIONS = "steady", 4
SMALLEST = 20
CHUNK = 10_000
COMPARED = 20_000
PATIENCE_SECONDS = 600.0
# In which the producer's process has begun.
PRODUCER_SECONDS = 10.0
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Mixture(NamedTuple):
    """Gaussians with their shares."""

    share: Floats
    mean: Floats
    covariance: Floats

    def draw(self, rng: Generator, n: int) -> tuple[Floats, Ints]:
        """Draw observations (n, d) and where each is from (n)."""
        labels = rng.choice(len(self.share), size=n, p=self.share)
        root = np.linalg.cholesky(self.covariance)
        noise = rng.normal(size=(n, self.mean.shape[1]))
        return self.mean[labels] + np.einsum("nij,nj->ni", root[labels], noise), labels

    def known(self, values: Floats) -> Ints:
        """Where each is most probably from."""
        log = [
            np.log(share) + multivariate_normal(mean, covariance).logpdf(values)
            for share, mean, covariance in zip(*self, strict=True)
        ]
        best: Ints = np.stack(log).argmax(axis=0)
        return best


@cache
def mixture() -> Mixture:
    """The Gaussians of the clusters that are large enough to tell theirs."""
    with np.load(DATA / "tgmcmc_10k.npz") as held:
        values, labels = held["X"].astype(np.float64), held["y"].astype(np.int64)
    sizes = np.bincount(labels)
    members = [values[labels == each] for each in np.flatnonzero(sizes >= SMALLEST)]
    share = np.array([len(each) for each in members], dtype=np.float64)
    return Mixture(
        share / share.sum(),
        np.array([each.mean(axis=0) for each in members]),
        np.array([np.cov(each.T) for each in members]),
    )


def drawn(number: int, n: int) -> tuple[Floats, Ints]:
    """Records ``number * CHUNK`` and on, and where each is from: the same in each process."""
    return mixture().draw(np.random.default_rng((11, number)), n)


def records(n: int) -> Iterator[bytes]:
    """The first so many, in order, as JSON with a key."""
    for start in range(0, n, CHUNK):
        values, _ = drawn(start // CHUNK, min(CHUNK, n - start))
        for number, row in enumerate(values.tolist(), start=start):
            yield msgspec.json.encode(
                {"id": f"k{number}", **{f"x{j}": x for j, x in enumerate(row)}}
            )


def feed(bootstrap: str, rate: float, n: int, begin: float) -> None:
    """Send records, so many a second from a moment on, to all partitions in turn."""
    time.sleep(max(begin - time.time(), 0.0))
    produce(NAME, records(n), KafkaSettings(bootstrap_servers=bootstrap), rate)


class Histogram(NamedTuple):
    """Counts below each bound."""

    bounds: Floats
    counts: Floats

    def quantile(self, since: "Histogram | None", share: float) -> float:
        """Upper end, by interpolation, of so large a share of what was counted since."""
        counts = self.counts - (0 if since is None else since.counts)
        if not len(counts) or counts[-1] == 0:
            return float("nan")
        finite = np.where(np.isinf(self.bounds), self.bounds[-2], self.bounds)
        return float(np.interp(share * counts[-1], np.r_[0, counts], np.r_[0, finite]))


class Observed(Service):
    """The service, and its own account."""

    def account(self) -> tuple[dict[str, float], Histogram]:
        """What is counted now, by name, and the latencies; nothing before it has begun."""
        self.alive()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics") as answer:
                text = answer.read().decode()
        except OSError:
            return {}, Histogram(np.empty(0), np.empty(0))
        found: dict[str, float] = {}
        buckets: list[tuple[float, float]] = []
        for family in text_string_to_metric_families(text):
            for each in family.samples:
                found[each.name] = found.get(each.name, 0.0) + each.value
                late = each.name == "weald_assignment_latency_seconds_bucket"
                if late and each.labels["since"] == "broker":
                    buckets.append((float(each.labels["le"]), each.value))
        return found, Histogram(*np.array(sorted(buckets)).reshape(-1, 2).T)

    def processor_seconds(self) -> float:
        """What it has taken so far."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settings_text(kafka: str, url: str, port: int) -> str:
    """The service's ``weald.toml``: what it reads and where it writes, and nothing else."""
    fields = ", ".join(f'{{name = "x{j}"}}' for j in range(6))
    return f"""
[stream]
name = "{NAME}"
[schema]
fields = [{fields}]
key = "id"
[kafka]
bootstrap_servers = "{kafka}"
topic = "{NAME}"
[storage]
url = "{url}"
[monitoring]
port = {port}
"""


def create_topic(bootstrap: str) -> None:
    """Make the topic."""
    from kafka import KafkaAdminClient

    administrator = KafkaAdminClient(bootstrap_servers=bootstrap)
    administrator.create_topics({NAME: {"num_partitions": N_PARTITIONS, "replication_factor": 1}})
    administrator.close()


def watch(service: Observed, rate: float, n: int, begin: float) -> list[dict[str, float]]:
    """Look every second until all has come, and tell every minute."""
    minutes: list[dict[str, float]] = []
    told_at = begin
    time.sleep(max(begin - time.time(), 0.0))
    before, processor, waiting = None, service.processor_seconds(), 0.0
    print("minute  records  waiting at most/end  half/99 % ms  share    MiB  clusters  groups")
    while True:
        time.sleep(1.0)
        now = time.time()
        found, late = service.account()
        inserted = found.get("weald_observations_inserted_total", 0.0)
        behind = min(rate * (now - begin), n) - inserted
        waiting = max(waiting, behind)
        assert now - begin < n / rate + PATIENCE_SECONDS, f"{inserted:.0f} of {n} arrived"
        done = inserted >= n
        if now - told_at < 60.0 and not done:
            continue
        used = service.processor_seconds()
        minutes.append(
            {
                "minute": (now - begin) / 60,
                "records": inserted,
                "waiting_most": waiting,
                "waiting_end": behind,
                "half_ms": 1000 * late.quantile(before, 0.5),
                "most_ms": 1000 * late.quantile(before, 0.99),
                "share": (used - processor) / (now - told_at),
                "mebibytes": service.resident_megabytes(),
                "clusters": found.get("weald_clusters", 0.0),
                "groups": found.get("weald_groups", 0.0),
            }
        )
        print(
            "{minute:6.1f} {records:8.0f} {waiting_most:11.0f} {waiting_end:8.0f}"
            " {half_ms:8.0f}/{most_ms:5.0f} {share:6.2f} {mebibytes:6.0f} {clusters:9.0f}"
            " {groups:7.0f}".format(**minutes[-1]),
            flush=True,
        )
        if done:
            return minutes
        before, processor, waiting, told_at = late, used, 0.0, now


def quality(url: str, n: int) -> dict[str, float]:
    """Index of what is shown of some records, of a fit to them, and of who knows the Gaussians."""
    rng = np.random.default_rng(7)
    chosen = np.zeros(n, dtype=np.bool_)
    chosen[rng.choice(n, size=min(COMPARED, n), replace=False)] = True
    shown = np.zeros(n, dtype=np.int64)
    with SqlReader(StorageSettings(url=url)) as reader:
        seq = 0
        while (block := reader.observations(NAME, seq, CHUNK)) is not None:
            shown[block.offset * N_PARTITIONS + block.partition] = block.cluster
            seq = int(block.seq[-1])
    values, truth = [], []
    for start in range(0, n, CHUNK):
        drew, labels = drawn(start // CHUNK, min(CHUNK, n - start))
        here = chosen[start : start + CHUNK]
        values.append(drew[here])
        truth.append(labels[here])
    rows, of = np.concatenate(values), np.concatenate(truth)
    _, fit = fitted(rows, 120.0, 0)
    numbered = np.unique(shown[chosen], return_inverse=True)[1]
    return {
        "shown": adjusted_rand_index(of, numbered),
        "fit": adjusted_rand_index(of, fit),
        "known": adjusted_rand_index(of, mixture().known(rows)),
        "clusters_shown": float(numbered.max() + 1),
        "clusters_fit": float(fit.max() + 1),
        "clusters_true": float(len(np.unique(of))),
    }


def main() -> None:
    """Run a stream for so long, and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=1_000.0, help="records a second")
    parser.add_argument("--output", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    n = int(60 * options.minutes * options.rate)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="weald-steady-")))
        broker = running.enter_context(kafka_broker(folder))
        create_topic(broker.address)
        config, port, url = folder / "weald.toml", free_port(), f"sqlite:///{folder}/weald.db"
        config.write_text(settings_text(broker.address, url, port))
        service = Observed(config, folder / "weald.log", port)
        service.start()
        running.callback(service.kill)
        while service.account()[0].get("weald_assigned_partitions", 0.0) < N_PARTITIONS:
            time.sleep(0.5)
        begin = time.time() + PRODUCER_SECONDS
        beside = multiprocessing.get_context("spawn").Process(
            target=feed, args=(broker.address, options.rate, n, begin)
        )
        beside.start()
        minutes = watch(service, options.rate, n, begin)
        beside.join()
        ending = time.monotonic()
        service.end(signal.SIGTERM)
        told: dict[str, Any] = {
            "rate": options.rate,
            "minutes": minutes,
            "seconds_to_end": time.monotonic() - ending,
            **quality(url, n),
        }
    print(json.dumps({name: each for name, each in told.items() if name != "minutes"}, indent=1))
    if options.output:
        options.output.write_text(json.dumps(told))


if __name__ == "__main__":
    main()
