"""Where records come from: the port that the engine polls, whatever is behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from weald.storage.commit.log_marks import LogMark
from weald.stream.record.record import Message, TopicPartition

from .recognition import FoundLog

__all__ = ["Change", "Source", "group_of", "in_order", "owned_by"]

_OF_GROUP = " of group "


@dataclass(frozen=True)
class Change:
    """A change of ownership, as it was recorded; the engine acts on it in its own time.

    Parameters
    ----------
    kind : {"assigned", "revoked", "lost"}
        "revoked": given up in agreement with the group; "lost": taken away after silence.
    partitions : tuple of TopicPartition
    """

    kind: Literal["assigned", "revoked", "lost"]
    partitions: tuple[TopicPartition, ...]


class Source(Protocol):
    """A source of records with replayable positions. One thread uses it.

    An offset is the position of a record; the position to go on from is the next one's. A source
    begins with nothing assigned; what it yields before the first `seek` after an assignment is
    to be thrown away.
    """

    @property
    def exhausted(self) -> bool:
        """Whether no record will ever come again; never true of a topic."""

    def poll(self, timeout_s: float) -> list[Message]:
        """Wait at most `timeout_s` seconds for records; fewer, or none, may come.

        The list is the caller's, who empties it: a client whose time runs out may leave its error
        in a cycle with all frames that had called it, as kafka-python does, and what these hold
        waits for Python's collector.

        Raises
        ------
        SourceUnavailable
            When the broker does not answer.
        SourceError
            When polling again cannot help.
        """

    def pause(self) -> None:
        """Yield no records until `resume`, from partitions assigned meanwhile neither."""

    def resume(self) -> None:
        """Undo `pause`."""

    def take_changes(self) -> list[Change]:
        """Return the changes of ownership since the last call, oldest first."""

    def assignment(self) -> set[TopicPartition]:
        """Partitions that this process owns now."""

    def look(self, marks: Mapping[TopicPartition, LogMark]) -> dict[TopicPartition, FoundLog]:
        """Return what there is of each assigned partition; of a stream that can't go back, nothing.

        Parameters
        ----------
        marks : mapping of TopicPartition to LogMark
            At whose last offsets the records are read again.

        Raises
        ------
        SourceUnavailable
            When the broker does not answer.
        """

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Go on from these positions; assigned partitions without one begin at their start.

        (Or at their end, where the settings say so.)
        """

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Tell the broker how far SQL is: a courtesy to lag tools, which may fail silently."""

    def generation(self) -> int:
        """Count of the group's rebalances, which fences former owners; 0 without a group."""

    def member_id(self) -> str:
        """Identity of this process, which no other ever had, and its group (`owned_by`)."""

    def lag(self) -> dict[TopicPartition, int]:
        """Return the records between position and end, where the end is known."""

    def close(self) -> None:
        """Leave the group and free what is held."""


def owned_by(member: str, group: str) -> str:
    """Return the identity of a member of a group, as SQL shows who owns a stream."""
    return f"{member}{_OF_GROUP}{group}"


def group_of(owner: str) -> str | None:
    """Return the group of an owner; None for one without, such as whoever reads a file."""
    _, found, group = owner.partition(_OF_GROUP)
    return group if found else None


def in_order(messages: Sequence[Message]) -> list[Message]:
    """Sort by partition and offset: what one poll brings must not depend on a network's luck."""
    return sorted(messages, key=lambda message: message[:3])
