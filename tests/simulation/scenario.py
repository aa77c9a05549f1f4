"""What a seed stands for: the settings of a run, and the list of everything that happens to it."""

import random
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["FAULTS", "Event", "Scenario", "scenario_of"]

# Virtual seconds in which things happen; then everything heals.
CHAOS_SECONDS = 40.0

# Each class of faults, with the events that it draws from. A run has some classes only: a fault
# that needs a long calm to show would otherwise never have one.
FAULTS: dict[str, tuple[str, ...]] = {
    "crash": ("crash", "crash_at"),
    "freeze": ("freeze", "skew"),
    "group": ("rebalance", "group_reset", "expel"),
    "broker": ("broker_away", "redeliver"),
    "log": ("expire", "compact", "add_partition"),
    "another_log": ("recreate", "truncate"),
    "sql_answers": ("sql_lost", "sql_late", "sql_abort", "sql_drop"),
    "sql_away": ("sql_away", "sql_full", "sql_slow"),
    "redis": ("redis_away", "redis_flush", "redis_evict", "redis_lost", "redis_stale"),
    "workers": ("worker_crash", "worker_freeze"),
    "operator": ("replay_letters", "snapshot", "damage_snapshot"),
}

STEPS = (
    "load.claimed",
    "load.restored",
    "load.replayed",
    "begin.created",
    "poll.done",
    "decode.done",
    "insert.done",
    "refine.done",
    "publish.done",
    "snapshot.done",
    "dead_letters",
    "commit",
    "commit.fenced",
    "commit.observations",
    "commit.clusters",
    "commit.adopting",
    "commit.written",
    "commit.done",
    "redis.done",
    "lend.done",
    "adopt.done",
    "pruned",
)


@dataclass(frozen=True)
class Event:
    """Something that happens.

    Parameters
    ----------
    at : float
        Virtual seconds.
    kind : str
    target : int
        Which process or partition, modulo how many there are.
    amount : float
    label : str
        Of `crash_at`: the step.
    """

    at: float
    kind: str
    target: int = 0
    amount: float = 0.0
    label: str = ""

    def __str__(self) -> str:
        more = f" {self.label}" if self.label else ""
        return f"{self.at:7.2f} s  {self.kind}{more} of {self.target}, {self.amount:.2f}"


@dataclass(frozen=True)
class Scenario:
    """A run, complete: the same scenario always gives the same run."""

    seed: int
    n_writers: int
    n_workers: int
    n_partitions: int
    stream: dict[str, Any]
    refinement: dict[str, Any]
    memory: dict[str, Any]
    few_atoms: int
    retention: dict[str, Any]
    repeated_keys: float
    faults: tuple[str, ...]
    events: tuple[Event, ...] = field(repr=False)

    def without(self, events: set[int]) -> "Scenario":
        """The same run without some of its events, by their places in the list."""
        kept = tuple(each for i, each in enumerate(self.events) if i not in events)
        return replace(self, events=kept)


def scenario_of(seed: int) -> Scenario:
    """Draw everything from a seed."""
    draw = random.Random(seed)
    workers = draw.random() < 0.5
    every = draw.choice((4, 6, 10))
    policy = draw.choice(("allow", "allow", "allow", "keep-first", "update"))
    classes = [name for name in FAULTS if name not in ("workers", "another_log")]
    faults = draw.sample(classes, draw.randint(1, 4))
    if draw.random() < 0.15:
        faults.append("another_log")
    if workers:
        faults.append("workers")
    n_partitions = draw.choice((1, 1, 2, 3))
    return Scenario(
        seed=seed,
        n_writers=draw.choice((1, 2, 2, 3)),
        n_workers=draw.choice((1, 2)) if workers else 0,
        n_partitions=n_partitions,
        stream={
            "batch_records": draw.choice((3, 8, 20)),
            "snapshot_records": draw.choice((6, 15, 40)),
            "duplicate_keys": policy,
            "takeover_seconds": draw.choice((2.0, 5.0)),
        },
        refinement={
            "every_records": every,
            "publish_every_records": every * draw.choice((1, 2)),
            "rounds": 1,
            "mode": "workers" if workers else "inline",
            "quiet_seconds": draw.choice((0.0, 0.0, 4.0)),
            "publish_every_seconds": draw.choice((0.0, 0.0, 6.0)),
            "pace": random.Random(seed ^ 0xACE).choice(("counted", "yielding")),
        },
        memory=_memory(draw, seed, every, policy),
        # Of more than these, refinement goes on beside the records where they come first.
        few_atoms=random.Random(seed ^ 0xFE3).choice((8, 10**6)),
        retention=(
            {"observations": 20, "publications": 4, "dead_letters": 3}
            if draw.random() < 0.2
            else {}
        ),
        repeated_keys=0.0 if policy == "allow" else 0.2,
        faults=tuple(faults),
        events=tuple(
            sorted(
                _events(draw, faults) + _backlogs(random.Random(seed ^ 0xBAC)),
                key=lambda event: event.at,
            )
        ),
    )


def _memory(draw: random.Random, seed: int, every: int, policy: str) -> dict[str, Any]:
    if draw.random() < 0.2:
        return {"window_records": draw.choice((12, 30))}
    if policy != "update" and random.Random(seed ^ 0x5A3).random() < 0.2:
        return {"leaf_budget": 4 * every, "policy": "sample"}
    return {}


def _events(draw: random.Random, faults: list[str]) -> list[Event]:
    events = [
        Event(draw.uniform(0.0, CHAOS_SECONDS), "append", draw.randrange(6), draw.randint(1, 9))
        for _ in range(draw.randint(6, 12))
    ]
    events.append(Event(0.0, "append", 0, 8))
    if draw.random() < 0.3:
        events += [Event(draw.uniform(0.0, CHAOS_SECONDS), "abort", draw.randrange(6), 2)]
    for fault in faults:
        n = 1 if fault == "another_log" else draw.randint(1, 5)
        for _ in range(n):
            kind = draw.choice(FAULTS[fault])
            label = draw.choice(STEPS) if kind == "crash_at" else ""
            events.append(
                Event(
                    draw.uniform(1.0, CHAOS_SECONDS),
                    kind,
                    draw.randrange(6),
                    draw.choice((draw.uniform(0.1, 2.0), draw.uniform(2.0, 15.0))),
                    label,
                )
            )
    return events


def _backlogs(draw: random.Random) -> list[Event]:
    """So much at once that records come first for a while, now and then."""
    n = draw.choice((0, 0, 1, 2))
    return [
        Event(draw.uniform(0.0, CHAOS_SECONDS), "append", draw.randrange(6), draw.randint(30, 90))
        for _ in range(n)
    ]
