"""A small network of known communities, as records, and a plan to stream it."""

import json
from pathlib import Path

import msgspec
import numpy as np

from weald.mcmc.settings import ModelSettings, RefinementSettings
from weald.stream.model.model import StreamConfig
from weald.stream.settings import FieldSettings, MemorySettings, SchemaSettings, StreamSettings

from .scenario import NAME, write_lines

SCHEMA = SchemaSettings(
    fields=(
        FieldSettings("source", kind="vertex"),
        FieldSettings("target", kind="vertex"),
        FieldSettings("weight", kind="weight"),
    ),
    time="time",
)
# Counted from a topic, too: what comes of it is compared with what comes of a file.
CADENCE = RefinementSettings(every_records=40, publish_every_records=80, rounds=5, pace="counted")
MODEL = ModelSettings(seed=7, warmup_records=10)
COMMUNITIES = 3
SIZE = 8


def edges(seed: int = 5, within: float = 0.85, between: float = 0.08) -> list[tuple[str, str]]:
    """Edges of a planted network, shuffled; vertex v12 is in community 12 mod 3."""
    draw = np.random.default_rng(seed)
    n = COMMUNITIES * SIZE
    pairs = [(i, j) for i in range(n) for j in range(i)]
    draw.shuffle(pairs)
    kept = [
        (i, j)
        for i, j in pairs
        if draw.random() < (within if i % COMMUNITIES == j % COMMUNITIES else between)
    ]
    return [(f"v{i}", f"v{j}") for i, j in kept]


def record(i: int, source: str, target: str, **more: object) -> str:
    """One edge as JSON; it happened i seconds after the epoch."""
    return json.dumps({"source": source, "target": target, "time": i, **more})


def edges_file(folder: Path, pairs: list[tuple[str, str]] | None = None) -> Path:
    """A file of records."""
    pairs = edges() if pairs is None else pairs
    return write_lines(folder / "edges.jsonl", [record(i, *pair) for i, pair in enumerate(pairs)])


def plan_for(
    path: Path | None, memory: MemorySettings | None = None, **stream: object
) -> StreamConfig:
    """A plan over a file of records."""
    settings = StreamSettings(
        name=NAME,
        source="file",
        path=None if path is None else str(path),
        batch_records=16,
        poll_seconds=0.05,
        takeover_seconds=0.0,
    )
    settings = msgspec.structs.replace(settings, **stream)
    return StreamConfig(settings, SCHEMA, MODEL, CADENCE, memory=memory or MemorySettings())
