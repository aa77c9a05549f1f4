"""An assignor that gives each shard of a stream to one member; the others are hot standbys.

A shard has one writer, whatever the number of its partitions: the chain is one. A stream is one
shard, unless its settings say otherwise; of S shards, shard s has the partitions p with
p mod S = s. A process has a member for each shard, which stands for that shard only, so that one
process can write them all, and several share them. The protocol is the cooperative one of KIP-429,
so a standby that joins or leaves does not interrupt a writer, and a partition is given to a new
owner only after the old one gave it up.
"""

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)

__all__ = ["UNDIVIDED", "Member", "Seat", "SingleWriterAssignor", "assign_shards"]

Partition = tuple[str, int]

# The first version whose subscription says what a member owns.
VERSION = 1
# What a member says beyond that: the generation, and of a stream in shards its seat, too.
_GENERATION = struct.Struct(">i")
_SEATED = struct.Struct(">iHH12s")


class Seat(NamedTuple):
    """For which shard of how many a member stands, and in which process."""

    shard: int = 0
    shards: int = 1
    process: str = ""


# Of a stream that is one shard.
UNDIVIDED = Seat()


class Member(NamedTuple):
    """What one member says of itself when it joins."""

    identity: str
    generation: int
    owned: frozenset[Partition]
    seat: Seat = UNDIVIDED


def assign_shards(
    members: Sequence[Member], partitions: Iterable[Partition], shards: int = 1
) -> dict[str, list[Partition]]:
    """Assign the partitions of each shard to one member that stands for it.

    A writer stays the writer, unless its process has at least two shards more than another that
    could have this one. A member that missed rebalances may still believe it owns something: the
    latest generation is right. A shard without a writer goes to the process that has the fewest,
    and where all have as many to the first member by identity. Members that stand for a shard of
    another number of shards get nothing.
    """
    writers = _writers([each for each in members if each.seat.shards == shards], shards)
    owners = {
        partition: member.identity
        for member in sorted(members, key=_standing)
        for partition in member.owned
    }
    given: dict[str, list[Partition]] = {member.identity: [] for member in members}
    for place in sorted(partitions):
        writer = writers.get(place[1] % shards)
        # What another member still owns is withheld: it gives it up now, and the group meets again.
        if writer is not None and owners.get(place, writer.identity) == writer.identity:
            given[writer.identity].append(place)
    return given


def _writers(members: Sequence[Member], shards: int) -> dict[int, Member]:
    """Return who is to write each shard that somebody stands for."""
    standing = {
        shard: sorted((each for each in members if each.seat.shard == shard), key=_identity)
        for shard in range(shards)
    }
    chosen = {
        shard: max(candidates, key=_standing)
        for shard, candidates in standing.items()
        if any(each.owned for each in candidates)
    }
    load = Counter(each.seat.process for each in chosen.values())
    for shard, candidates in standing.items():
        if candidates and shard not in chosen:
            chosen[shard] = min(candidates, key=lambda each: load[each.seat.process])
            load[chosen[shard].seat.process] += 1
    moved = True
    while moved:
        moved = False
        for shard, writer in chosen.items():
            other = min(standing[shard], key=lambda each: load[each.seat.process])
            if load[writer.seat.process] - load[other.seat.process] > 1:
                load[writer.seat.process] -= 1
                load[other.seat.process] += 1
                chosen[shard], moved = other, True
    return chosen


def _identity(member: Member) -> str:
    return member.identity


def _standing(member: Member) -> int:
    return member.generation if member.owned else -1


class SingleWriterAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # untyped base
    """kafka-python's face of `assign_shards`; one instance belongs to one consumer.

    ``meeting`` is called whenever this member assigns for the group.

    Parameters
    ----------
    seat : Seat, optional
        What the member stands for; the process is named by twelve ASCII letters at most.
    """

    name = "weald-single-writer"

    def __init__(self, seat: Seat = UNDIVIDED) -> None:
        self._seat = seat
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
            user_data=self._said(),
            owned_partitions=[
                ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
                for topic, partitions in by_topic.items()
            ],
        )

    def _said(self) -> bytes:
        shard, shards, process = self._seat
        if shards == 1:
            return _GENERATION.pack(self._generation)
        return _SEATED.pack(self._generation, shard, shards, process.encode())

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """Assign for the whole group; called on the group's leader only."""
        topics = {topic for member in members for topic in member.metadata.topics}
        partitions = [
            (topic, partition)
            for topic in topics
            for partition in cluster.partitions_for_topic(topic) or ()
        ]
        self.meeting()
        joined = [_member(member) for member in members]
        assigned = assign_shards(joined, partitions, self._seat.shards)
        return {identity: _assignment(given) for identity, given in assigned.items()}

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """Remember what to say at the next rebalance."""
        self._owned = frozenset((each.topic, each.partition) for each in assignment.partitions())
        self._generation = generation


def _member(joined: Any) -> Member:
    generation, seat = _heard(bytes(joined.metadata.user_data or b""))
    owned = frozenset(
        (each.topic, partition)
        for each in joined.metadata.owned_partitions or ()
        for partition in each.partitions
    )
    return Member(joined.member_id, generation, owned, seat)


def _heard(said: bytes) -> tuple[int, Seat]:
    if len(said) == _SEATED.size:
        generation, shard, shards, process = _SEATED.unpack(said)
        return generation, Seat(shard, shards, process.rstrip(b"\0").decode())
    return _GENERATION.unpack(said)[0] if len(said) == _GENERATION.size else -1, UNDIVIDED


def _assignment(partitions: Sequence[Partition]) -> Any:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return ConsumerProtocolAssignment(VERSION, sorted(by_topic.items()), b"")
