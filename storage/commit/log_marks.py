"""By what a partition's log is known again, and what was decided when it was another one."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LogMark", "LogReplacement"]


@dataclass(frozen=True)
class LogMark:
    """What tells the log of a partition from another one under the same name.

    Attributes
    ----------
    topic_id
        The broker's own name for the topic, which no other topic ever has; None where it tells
        none.
    log_start
        Where the log began when it was last looked at. It never goes back.
    last_offset, checksum
        Offset of the last record that was committed, and a checksum of its bytes; None before any.
    """

    topic_id: str | None = None
    log_start: int | None = None
    last_offset: int | None = None
    checksum: str | None = None


@dataclass(frozen=True)
class LogReplacement:
    """A person's decision about a partition whose log is another one than was read.

    Attributes
    ----------
    topic, partition
        Which log.
    kept_as
        Name under which the tables keep what was read of the earlier log: no topic has it.
    next_offset
        Where reading goes on in the log that is there.
    difference
        By what it was told from the earlier one.
    decided_at
        Seconds since 1970.
    mark
        By what the log that is there will be known again; not read back.
    """

    topic: str
    partition: int
    kept_as: str
    next_offset: int
    difference: str
    decided_at: float
    mark: LogMark = LogMark()
