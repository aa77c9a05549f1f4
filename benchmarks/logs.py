"""Log lines into templates: Weald with its default settings beside Drain3, in one run.

    python -m benchmarks.logs                     all six systems
    python -m benchmarks.logs --systems Apache    one of them
    python -m benchmarks.logs --halves            each half of a system as a stream of its own
    pip install 'weald[bench]'                    Drain3, which is compared with

Each system's 2,000 lines are streamed in order through the engine into SQLite, with one text field,
the family that follows from it and default settings throughout; the published partition is what is
compared with the hand-made templates of loghub. Drain3 runs with its own defaults.

How texts are hashed and weighed was chosen on these same six systems, so the figures are in-sample;
nothing was chosen on the halves, but their lines were seen all the same.

Grouping accuracy (Zhu et al. 2019, "Tools and benchmarks for automated log parsing") is the share
of lines whose group holds exactly the lines of their template; ARI is the adjusted Rand index of
Hubert and Arabie (1985), V the V-measure of Rosenberg and Hirschberg (2007).
"""

import argparse
import csv
import gzip
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.storage.settings import StorageSettings
from weald.storage.sql.migrate import upgrade
from weald.storage.writing.store import SqlStore
from weald.stream.engine.engine import Engine
from weald.stream.model.model import StreamConfig
from weald.stream.settings import FieldSettings, SchemaSettings, StreamSettings
from weald.stream.source.file_source import FileSource

from .papers.data import DATA

LINES = DATA / "logs_loghub_dev_6x2000.csv.gz"
Labels = NDArray[np.int64]


class Score(NamedTuple):
    """How well groups agree with templates."""

    grouping: float
    ari: float
    v: float
    groups: int
    seconds: float


def read(path: Path) -> dict[str, list[tuple[str, str]]]:
    """Lines with their templates, by system, in order."""
    systems: dict[str, list[tuple[str, str]]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            systems.setdefault(row["system"], []).append((row["content"], row["event_id"]))
    return systems


def halved(systems: dict[str, list[tuple[str, str]]]) -> dict[str, list[tuple[str, str]]]:
    """Both halves of every system, each by itself."""
    halves = {}
    for system, rows in systems.items():
        middle = len(rows) // 2
        halves[f"{system} 1"], halves[f"{system} 2"] = rows[:middle], rows[middle:]
    return halves


def by_weald(lines: Sequence[str]) -> Labels:
    """Published cluster of each line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lines.jsonl")
        path.write_bytes(b"\n".join(msgspec.json.encode({"line": line}) for line in lines))
        stream = StreamSettings(source="file", path=str(path))
        schema = SchemaSettings(fields=(FieldSettings("line", kind="text"),))
        storage = StorageSettings(url=f"sqlite:///{folder}/weald.db")
        upgrade(storage)
        with SqlStore(storage) as store:
            plan = StreamConfig(stream, schema, ModelSettings(), RefinementSettings())
            Engine(plan, FileSource(stream), store).run()
            block = store.observations(stream.name, 0, len(lines))
    assert block is not None
    assert len(block) == len(lines)
    return block.cluster


def by_drain3(lines: Sequence[str]) -> Labels:
    """Drain3's cluster of each line, as it stands when the line has come."""
    # By name: it is needed here alone and has no types.
    miner = import_module("drain3").TemplateMiner(
        config=import_module("drain3.template_miner_config").TemplateMinerConfig()
    )
    return np.array([miner.add_log_message(line)["cluster_id"] for line in lines])


def grouping_accuracy(found: Labels, truth: Labels) -> float:
    """Share of the lines whose group is exactly their template's lines."""
    pairs = Counter(zip(found.tolist(), truth.tolist(), strict=True))
    sizes, templates = Counter(found.tolist()), Counter(truth.tolist())
    right = sum(n for (a, b), n in pairs.items() if n == sizes[a] == templates[b])
    return right / len(truth)


def v_measure(found: Labels, truth: Labels) -> float:
    """Harmonic mean of homogeneity and completeness."""
    pairs = Counter(zip(found.tolist(), truth.tolist(), strict=True))
    joint, a, b = (
        entropy(list(counts.values()))
        for counts in (pairs, Counter(found.tolist()), Counter(truth.tolist()))
    )
    return 2 * (a + b - joint) / (a + b) if a + b else 1.0


def entropy(counts: Sequence[int]) -> float:
    """Entropy in nats of a partition with these sizes."""
    share = np.array(counts) / sum(counts)
    return float(-(share * np.log(share)).sum())


def score(found: Labels, truth: Labels, seconds: float) -> Score:
    """Compare groups with templates."""
    return Score(
        grouping_accuracy(found, truth),
        adjusted_rand_index(found, truth),
        v_measure(found, truth),
        len(np.unique(found)),
        seconds,
    )


def run(systems: dict[str, list[tuple[str, str]]]) -> dict[str, list[Score]]:
    """Score every method on every system, printing as it goes."""
    methods = {"weald": by_weald}
    if find_spec("drain3") is not None:
        methods["drain3"] = by_drain3
    else:
        print("drain3 is not installed: pip install 'weald[bench]'")
    by_weald([content for content, _ in next(iter(systems.values()))][:300])  # compile
    head = f"{'system':11} {'method':7} {'GA':>6} {'ARI':>6} {'V':>6} {'groups':>6} {'lines/s':>8}"
    print(head)
    scores: dict[str, list[Score]] = {name: [] for name in methods}
    for system, rows in systems.items():
        lines = [content for content, _ in rows]
        _, truth = np.unique([template for _, template in rows], return_inverse=True)
        print(f"{system:11} {'(truth)':7} {'':>6} {'':>6} {'':>6} {truth.max() + 1:6d}")
        for name, method in methods.items():
            began = time.perf_counter()
            found = method(lines)
            reached = score(found, truth, time.perf_counter() - began)
            scores[name].append(reached)
            tell(system, name, reached, len(lines))
    for name, reached in scores.items():
        means = Score(*np.mean(reached, axis=0).tolist())
        print(f"{'mean':11} {name:7} {means.grouping:6.3f} {means.ari:6.3f} {means.v:6.3f}")
    return scores


def tell(system: str, name: str, reached: Score, n_lines: int) -> None:
    """Print one row."""
    figures = f"{reached.grouping:6.3f} {reached.ari:6.3f} {reached.v:6.3f}"
    rate = n_lines / reached.seconds
    print(f"{system:11} {name:7} {figures} {reached.groups:6d} {rate:8.0f}", flush=True)


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=LINES, help="the loghub sample")
    parser.add_argument("--systems", nargs="*", help="only these")
    parser.add_argument("--halves", action="store_true", help="each half as a stream of its own")
    given = parser.parse_args()
    systems = read(given.data)
    chosen = {name: systems[name] for name in given.systems or systems}
    run(halved(chosen) if given.halves else chosen)


if __name__ == "__main__":
    main()
