"""An assignor that gives every partition to one member; the others are hot standbys.

A stream has one writer, whatever the number of partitions: the chain is one. The protocol is the
cooperative one of KIP-429, so a standby that joins or leaves does not interrupt the writer, and a
partition is given to a new owner only after the old one gave it up.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

__all__ = ["Member", "SingleWriterAssignor", "assign_all"]

Partition = tuple[str, int]

# The first version whose subscription says what a member owns.
VERSION = 1


class Member(NamedTuple):
    """What one member says of itself when it joins."""

    identity: str
    generation: int
    owned: frozenset[Partition]


def assign_all(
    members: Sequence[Member], partitions: Iterable[Partition]
) -> dict[str, list[Partition]]:
    """Assign all partitions to one member.

    The writer stays the writer. A member that missed rebalances may still believe it owns
    something: the latest generation is right. Without a writer it is the first by identity.
    """
    writer = min(members, key=lambda member: (-_standing(member), member.identity))
    owners = {
        partition: member.identity
        for member in sorted(members, key=_standing)
        for partition in member.owned
    }
    # What another member still owns is withheld: it gives it up now, and the group meets again.
    given = sorted(
        partition
        for partition in partitions
        if owners.get(partition, writer.identity) == writer.identity
    )
    return {
        member.identity: given if member.identity == writer.identity else [] for member in members
    }


def _standing(member: Member) -> int:
    return member.generation if member.owned else -1


class SingleWriterAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # untyped base
    """kafka-python's face of `assign_all`; one instance belongs to one consumer.

    ``meeting`` is called whenever this member assigns for the group.
    """

    name = "weald-single-writer"

    def __init__(self) -> None:
        self.meeting: Callable[[], None] = lambda: None
        self._owned: frozenset[Partition] = frozenset()
        self._generation = -1

    def forget(self) -> None:
        """Own nothing: the partitions were lost."""
        self._owned = frozenset()

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Cooperative only; a group cannot mix protocols."""
        return [RebalanceProtocol.COOPERATIVE]

    def metadata(self, topics: Iterable[str]) -> Any:
        """Say what this member owns, and since which generation."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(self._owned):
            by_topic.setdefault(topic, []).append(partition)
        return ConsumerProtocolSubscription(
            version=VERSION,
            topics=sorted(topics),
            user_data=struct.pack(">i", self._generation),
            owned_partitions=[
                ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
                for topic, partitions in by_topic.items()
            ],
        )

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """Assign for the whole group; called on the group's leader only."""
        topics = {topic for member in members for topic in member.metadata.topics}
        partitions = [
            (topic, partition)
            for topic in topics
            for partition in cluster.partitions_for_topic(topic) or ()
        ]
        self.meeting()
        assigned = assign_all([_member(member) for member in members], partitions)
        return {identity: _assignment(given) for identity, given in assigned.items()}

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """Remember what to say at the next rebalance."""
        self._owned = frozenset((each.topic, each.partition) for each in assignment.partitions())
        self._generation = generation


def _member(joined: Any) -> Member:
    data = bytes(joined.metadata.user_data or b"")
    generation = struct.unpack(">i", data)[0] if len(data) == struct.calcsize(">i") else -1
    owned = frozenset(
        (each.topic, partition)
        for each in joined.metadata.owned_partitions or ()
        for partition in each.partitions
    )
    return Member(joined.member_id, generation, owned)


def _assignment(partitions: Sequence[Partition]) -> Any:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return ConsumerProtocolAssignment(VERSION, sorted(by_topic.items()), b"")
