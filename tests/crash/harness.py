"""Kills a writer again and again, at every labelled step and at random instants, and compares.

    python -m tests.crash.harness                         1,000 kills and more: about 20 minutes
    python -m tests.crash.harness --kills 60 --scenes file/sqlite
    python -m tests.crash.harness --output json

A *scene* is a source and a database: a file, the embedded broker or Apache Kafka, into SQLite or
PostgreSQL. Topics of Apache Kafka are read by one client or the other. In each scene, stream after
stream is written by processes that are killed with SIGKILL: at each label of
``weald.storage.sql.failpoints`` in turn, and after random times. When a stream has come to its end
all the same, what SQL holds is compared with what was sent and with an undisturbed run: each
observation there once, received = inserted + duplicates + dead letters, and partition, lineage,
publications, statistics and the model with its random state the same, bit for bit. The scene
``command`` kills the real ``weald run``.

Of five streams one keeps everything; one has a window, and keys that come again replace what came
before; one has a window, and a retention that deletes rows all the while; in one records come
first; and one holds a sample, of which a cluster becomes empty.

Leaves with 1 when anything was lost, doubled or different.
"""

# What is forked must have one thread, also in BLAS, which reads this as it is loaded.

import os

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import argparse
import json
import math
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests.crash.command import commanded
from tests.crash.forked import forked
from tests.crash.ledgers import faults
from tests.crash.streams import KINDS, Place, SourceKind, embedded_broker, opened
from tests.servers.kafka import kafka_broker
from tests.servers.postgresql import postgresql_server
from weald.storage.settings import StorageSettings
from weald.storage.sql.failpoints import LABELS
from weald.storage.writing.store import SqlReader

# Scene and its share of the kills; a kill through a group costs its session's time-out.
SCENES: dict[str, float] = {
    "file/sqlite": 0.35,
    "file/postgresql": 0.35,
    "embedded/sqlite": 0.06,
    "embedded/postgresql": 0.06,
    "kafka/sqlite": 0.06,
    "kafka/postgresql": 0.06,
    "command/sqlite": 0.03,
    "command/postgresql": 0.03,
}
N_RECORDS = 700
KILLS_PER_STREAM = 30
RANDOM_SHARE = 0.3
# Labels that a run passes once or twice; the others it passes with every batch.
RARE = frozenset(
    label
    for label in LABELS
    if label.startswith(("load.", "begin.", "refine", "publish", "snapshot"))
)


@dataclass
class Tally:
    """What one scene came to."""

    scene: str
    kills: Counter[str] = field(default_factory=Counter)
    n_streams: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def n_kills(self) -> int:
        """Kills so far."""
        return sum(self.kills.values())


def next_order(seen: Counter[str], draw: random.Random, *, first: bool) -> str:
    """Return the label that has had the fewest kills, of those that the coming run passes.

    Only the first run of a stream begins it, and only a later one loads it.
    """
    passed = [label for label in LABELS if not label.startswith("load." if first else "begin.")]
    fewest = min(seen[label] for label in passed)
    label = draw.choice([label for label in passed if seen[label] == fewest])
    return f"{label}:{1 if label in RARE else draw.randint(1, 4)}"


def play(place: Place, scene: str, n_kills: int, seed: int, seen: Counter[str]) -> Tally:
    """Kill writers of one stream after another until there were `n_kills`; add them to `seen`."""
    tally = Tally(scene)
    draw = random.Random(seed)  # noqa: S311  nothing is protected
    began = time.monotonic()
    run = commanded if scene.startswith("command/") else forked
    prefix = scene.replace("/", "_")
    # Few kills in a few scenes are of several kinds, too.
    at = list(SCENES).index(scene)
    for number in count():
        if tally.n_kills >= n_kills:
            break
        kind = KINDS[(number - at) % len(KINDS)]
        stream, expected = opened(place, N_RECORDS, f"{prefix}_{number}", kind)
        killed = 0
        ended = False
        while not ended and killed < KILLS_PER_STREAM and tally.n_kills < n_kills:
            by_instant = draw.random() < RANDOM_SHARE
            order = "" if by_instant else next_order(seen, draw, first=not killed)
            kill_after = draw.expovariate(1 / longest(scene)) if by_instant else None
            ended = not run(stream, order, kill_after)
            if not ended:
                killed += 1
                label = "at a random instant" if by_instant else order.split(":")[0]
                tally.kills[label] += 1
                seen[label] += 1
        if not ended:
            run(stream, "")
        tally.n_streams += 1
        with SqlReader(StorageSettings(url=stream.database)) as reader:
            wrong = faults(reader, stream.plan.stream.name, expected)
        tally.faults += [f"{stream.plan.stream.name}: {each}" for each in wrong]
        tell(tally)
    tally.seconds = time.monotonic() - began
    return tally


def longest(scene: str) -> float:
    """Mean of the random instants: about what a run takes from its start."""
    return {"file": 0.3, "command": 3.0}.get(scene.split("/", maxsplit=1)[0], 2.5)


def tell(tally: Tally) -> None:
    """Show where it stands."""
    end = "\n" if not sys.stderr.isatty() else "\r"
    sys.stderr.write(
        f"{tally.scene}: {tally.n_kills} kills, {tally.n_streams} streams compared, "
        f"{len(tally.faults)} faults{end}"
    )


def warmed(folder: Path) -> None:
    """Run one stream in this process, so that its children find everything loaded."""
    from tests.crash.forked import write

    for kind in KINDS:
        run, expected = opened(Place(folder, "file"), N_RECORDS, f"warm_{kind}", kind)
        write(run, "")
        with SqlReader(StorageSettings(url=run.database)) as reader:
            wrong = faults(reader, run.plan.stream.name, expected)
            n_rows = len(reader.observed(run.plan.stream.name, range(1, N_RECORDS)))
        assert not wrong, wrong
        assert (n_rows < expected.keys.total()) == (kind == "shedding"), n_rows


def played(scenes: list[str], n_kills: int, seed: int) -> list[Tally]:
    """Play the scenes on servers of their own; `n_kills` is the sum of all."""
    whole = sum(SCENES[scene] for scene in scenes)
    tallies = []
    seen: Counter[str] = Counter()
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="weald-crashes-")))
        warmed(folder)
        places: dict[str, str] = {}
        postgresql = None
        if any(scene.endswith("/postgresql") for scene in scenes):
            postgresql = running.enter_context(postgresql_server())
        if any(scene.startswith("embedded/") for scene in scenes):
            places["embedded"] = running.enter_context(embedded_broker())
        if any(scene.startswith("kafka/") for scene in scenes):
            (folder / "kafka").mkdir()
            places["kafka"] = running.enter_context(kafka_broker(folder / "kafka")).address
        for scene in scenes:
            kind, database = scene.split("/")
            source: SourceKind = "embedded" if kind == "embedded" else "kafka"
            place = Place(
                folder,
                source if kind in places else "file",
                postgresql if database == "postgresql" else None,
                places.get(kind, ""),
            )
            share = math.ceil(n_kills * SCENES[scene] / whole)
            tallies.append(play(place, scene, share, seed, seen))
    return tallies


def main() -> None:
    """Play the scenes that were asked for and print what came of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=1_200, help="of all scenes together")
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", choices=("table", "json"), default="table")
    options = parser.parse_args()
    tallies = played(options.scenes, options.kills, options.seed)
    wrong = [fault for tally in tallies for fault in tally.faults]
    kills: Counter[str] = sum((tally.kills for tally in tallies), Counter())
    if options.output == "json":
        answer = {
            "kills": sum(kills.values()),
            "streams": sum(tally.n_streams for tally in tallies),
            "faults": wrong,
            "by_label": dict(sorted(kills.items())),
            "by_scene": {tally.scene: tally.n_kills for tally in tallies},
        }
        sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    else:
        for tally in tallies:
            sys.stdout.write(
                f"{tally.scene:<22} {tally.n_kills:>5} kills {tally.n_streams:>4} streams "
                f"{len(tally.faults):>3} faults {tally.seconds:>7.0f} s\n"
            )
        for label, n in sorted(kills.items()):
            sys.stdout.write(f"  {label:<22} {n:>5}\n")
        sys.stdout.write(f"{sum(kills.values())} kills, {len(wrong)} faults\n")
        sys.stdout.writelines(f"  {fault}\n" for fault in wrong)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
