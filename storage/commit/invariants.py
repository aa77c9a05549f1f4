"""What every batch must satisfy by itself, before the database is asked. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sized

import numpy as np

from weald.storage.errors import InvariantBroken

from .commit import BatchCommit, ObservationBlock

__all__ = ["check_batch"]

Source = tuple[str, int]


def check_batch(batch: BatchCommit) -> None:
    """Raise unless the batch's parts agree with one another.

    The columns of the observations have one length, their numbers follow on, every record lies
    below its partition's next offset, and each partition's account adds up to what is written.

    Raises
    ------
    InvariantBroken
        Naming the stream and what does not agree.
    """
    for problem in _problems(batch):
        raise InvariantBroken(f"stream {batch.stream!r}, epoch {batch.epoch}: {problem}")


def _problems(batch: BatchCommit) -> list[str]:
    block = batch.observations
    if block is not None and (shape := _shape_problem(block)):
        return [shape]
    advances = {(a.topic, a.partition): a for a in batch.offsets}
    if len(advances) != len(batch.offsets):
        return ["a partition advances twice"]
    problems = [
        f"{a.topic}[{a.partition}] received {a.n_received}, but inserted {a.n_inserted} + "
        f"duplicate {a.n_duplicate} + dead {a.n_dead}"
        for a in batch.offsets
        if a.n_received != a.n_inserted + a.n_duplicate + a.n_dead
    ]
    inserted, dead = _inserted(block), _dead(batch)
    for source in advances.keys() | inserted.keys() | dead.keys():
        advance = advances.get(source)
        expected = (advance.n_inserted, advance.n_dead) if advance else (0, 0)
        found = (inserted[source], dead[source])
        if found != expected:
            problems.append(
                f"{source[0]}[{source[1]}] says (inserted, dead) = {expected}, carries {found}"
            )
    return problems


def _shape_problem(block: ObservationBlock) -> str | None:
    n = len(block.seq)
    columns: list[Sized] = [block.partition, block.offset, block.key, block.event_time]
    columns += [block.values, block.cluster]
    columns += [each for each in (block.text, block.passed) if each is not None]
    if block.values.ndim != 2 or any(len(column) != n for column in columns):
        return f"the columns of {n} observations differ in length"
    if n and not np.array_equal(block.seq, np.arange(block.seq[0], block.seq[0] + n)):
        return "the numbers of the observations do not follow on"
    return _key_problem(block)


def _key_problem(block: ObservationBlock) -> str | None:
    keys = "".join(filter(None, block.key))
    try:
        keys.encode()
    except UnicodeEncodeError:
        return "a key holds half of a surrogate pair, which UTF-8 cannot carry"
    return "a key holds NUL, which PostgreSQL refuses" if "\0" in keys else None


def _inserted(block: ObservationBlock | None) -> Counter[Source]:
    counts: Counter[Source] = Counter()
    if block is not None and len(block):
        # Vertices of a network come with a record, and have offsets below 0 themselves.
        records = block.partition[block.offset >= 0]
        partitions, n = np.unique(records, return_counts=True)
        for partition, count in zip(partitions.tolist(), n.tolist(), strict=True):
            counts[block.topic, partition] = count
    return counts


def _dead(batch: BatchCommit) -> Counter[Source]:
    counts = Counter((letter.topic, letter.partition) for letter in batch.dead_letters)
    counts.subtract((letter.topic, letter.partition) for letter in batch.taken_back)
    return counts
