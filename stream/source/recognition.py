"""Whether a partition's log is the one that was read, or another under the same name. Pure.

A topic that was deleted and made anew, a log that lost its end and grew again, or a file that was
replaced has records at offsets that SQL counts as read; going on there would pass over them without
a word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from weald.storage.commit.log_marks import LogMark, LogReplacement
from weald.stream.errors import LogReplaced, SourceError
from weald.stream.record.record import TopicPartition

__all__ = [
    "Decision",
    "FoundLog",
    "differences_of",
    "is_earlier_log",
    "replacements",
]

# No topic may have it in its name.
_EARLIER = "~"


@dataclass(frozen=True)
class FoundLog:
    """What there is of a partition now.

    Parameters
    ----------
    topic_id : str or None
        The broker's own name for the topic; None where it tells none.
    start : int
        Oldest offset.
    end : int or None
        The next record's offset; None where it isn't known beforehand.
    checksum : str or None
        Of the record at the offset that was asked for; None where that is gone.
    """

    topic_id: str | None
    start: int
    end: int | None
    checksum: str | None = None


@dataclass(frozen=True)
class Decision:
    """Where a person wants reading to go on in a log that is another one than was read.

    Parameters
    ----------
    everywhere : int, optional
        Offset for each partition that has none of its own.
    by_partition : mapping of int to int
        Without any offset at all every partition is read from its oldest record.
    """

    everywhere: int | None = None
    by_partition: Mapping[int, int] = field(default_factory=dict)

    def require(self, places: Iterable[TopicPartition]) -> None:
        """Raise SourceError where something was said of other partitions and not of all of these.

        What has to be said is told at once, with what was said already.
        """
        if self.everywhere is not None or not self.by_partition:
            return
        lacking = sorted(place for place in places if place.partition not in self.by_partition)
        if lacking:
            told = ", ".join(f"{place.topic}[{place.partition}]" for place in lacking)
            is_are = "is another log" if len(lacking) == 1 else "are other logs"
            needed = {place.partition: "OFFSET" for place in lacking} | dict(self.by_partition)
            flags = " ".join(f"--skip-to {each}:{needed[each]}" for each in sorted(needed))
            raise SourceError(
                f"{told} {is_are}, too: say where it goes on", next_step=f"weald run {flags}"
            )

    def offset_in(self, place: TopicPartition, log: FoundLog) -> int:
        """Return where to go on.

        Raises
        ------
        SourceError
            When the log ends before, or nothing was said of the partition.
        """
        self.require([place])
        chosen = self.by_partition.get(place.partition, self.everywhere)
        if chosen is None:
            return log.start
        if log.end is not None and chosen > log.end:
            raise SourceError(
                f"{place.topic}[{place.partition}] ends at offset {log.end}: nothing is skipped to "
                f"{chosen}"
            )
        return chosen


def is_earlier_log(topic: str) -> bool:
    """Whether this names what the tables keep of a log that another has taken the place of."""
    return _EARLIER in topic


def differences_of(
    offsets: Mapping[TopicPartition, int],
    marks: Mapping[TopicPartition, LogMark],
    found: Mapping[TopicPartition, FoundLog],
) -> dict[TopicPartition, str]:
    """Say of each partition whose log is not the one that was read by what that is seen.

    Parameters
    ----------
    offsets, marks : mappings
        What SQL knows of each partition that was read.
    found : mapping
        What there is.
    """
    # A topic is made anew as a whole: partitions that were not read since their ids are known, too.
    ids = {place.topic: mark.topic_id for place, mark in marks.items() if mark.topic_id}
    differences: dict[TopicPartition, str] = {}
    for place, log in found.items():
        mark = marks.get(place)
        if mark is not None:
            was = ids.get(place.topic)
            seen = _difference(offsets.get(place, 0), mark, log, was)
            if seen is not None:
                differences[place] = seen
    return differences


def _difference(offset: int, mark: LogMark, log: FoundLog, was: str | None) -> str | None:
    if was is not None and log.topic_id is not None and was != log.topic_id:
        return f"the topic that was read has the id {was}, the one that is there {log.topic_id}"
    if log.end is not None and offset > log.end:
        return f"SQL goes on at offset {offset}, the log ends at {log.end}"
    if mark.log_start is not None and log.start < mark.log_start:
        return f"the log that was read began at offset {mark.log_start}, this one at {log.start}"
    if mark.checksum is not None and log.checksum is not None and mark.checksum != log.checksum:
        return (
            f"the record at offset {mark.last_offset} had the checksum {mark.checksum} when it was "
            f"read, the one that is there has {log.checksum}"
        )
    return None


def replacements(
    differences: Mapping[TopicPartition, str],
    found: Mapping[TopicPartition, FoundLog],
    known: Iterable[TopicPartition],
    decision: Decision | None,
    now: float,
) -> list[LogReplacement]:
    """Turn a person's decision into what SQL is told of it.

    Parameters
    ----------
    differences : mapping of TopicPartition to str
        Of one topic, not empty.
    found : mapping of TopicPartition to FoundLog
    known : iterable of TopicPartition
        Everything that SQL has offsets of.
    decision : Decision or None
    now : float
        Seconds since the epoch.

    Raises
    ------
    LogReplaced
        When nobody has decided.
    SourceError
        When a decision leads nowhere in one of them, or was not made of all.
    """
    if decision is None:
        told = "; ".join(f"{p.topic}[{p.partition}]: {why}" for p, why in differences.items())
        raise LogReplaced(
            f"this is not the log that was read before: {told}. It was made anew, truncated or "
            "replaced; going on would pass over records of it without a word. Nothing was changed"
        )
    decision.require(differences)
    names = {place.topic for place in known}
    made = []
    for place, why in differences.items():
        made.append(
            LogReplacement(
                topic=place.topic,
                partition=place.partition,
                kept_as=_free_name(place.topic, names),
                next_offset=decision.offset_in(place, found[place]),
                difference=why,
                mark=LogMark(found[place].topic_id, found[place].start),
                decided_at=now,
            )
        )
    return made


def _free_name(topic: str, taken: set[str]) -> str:
    number = 1
    while f"{topic}{_EARLIER}{number}" in taken:
        number += 1
    return f"{topic}{_EARLIER}{number}"
