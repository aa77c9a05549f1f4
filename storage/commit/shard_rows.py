"""What rounds of the shards of one stream add to a transaction of one of them: plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

__all__ = ["ANSWERED", "ASKED", "ShardMessageRow", "ShardRoundRow"]

Arrays = dict[str, NDArray[Any]]

ASKED, ANSWERED = "asked", "answered"


@dataclass(frozen=True)
class ShardRoundRow:
    """A round of all shards, as it stands.

    Attributes
    ----------
    number, seed
        Rounds of a stream count from 1; the seed is that of all its random numbers.
    step
        What shards are asked now.
    hyperparameters
        As they were drawn in this round, as JSON-able values.
    next_name
        For blocks that are split off in the round; once turns are asked for, that of the next.
    opened_at, closed_at
        Seconds since 1970. It is closed when all shards have reported for the next.
    next_group
        What the next new group of clusters is called.
    """

    number: int
    seed: int
    step: int
    hyperparameters: dict[str, Any]
    next_name: int
    opened_at: float
    closed_at: float | None = None
    next_group: int = 1


@dataclass(frozen=True, eq=False)
class ShardMessageRow:
    """What a shard was asked in a step of a round, or what it has answered.

    Attributes
    ----------
    round_number, step, shard
        A report is the answer to step 0, which nobody asked.
    direction
        ``asked`` or ``answered``.
    payload
        The message as arrays.
    """

    round_number: int
    step: int
    shard: int
    direction: str
    payload: Arrays
