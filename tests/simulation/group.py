"""The broker's side of a consumer group: generations, rebalances, and who has gone silent."""

from dataclasses import dataclass
from typing import Any

from weald.stream.source.single_writer import SingleWriterAssignor

from .scheduler import Scheduler

__all__ = ["Group", "Member"]

SESSION_SECONDS = 6.0
JOIN_SECONDS = 4.0


@dataclass(eq=False)
class Member:
    """What the group knows of a member."""

    id: str
    assignor: SingleWriterAssignor
    heard_at: float
    metadata: Any = None
    joined: bool = False
    given: Any = None


class Group:
    """Members, generation, and the rebalance that is under way, if any."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.generation = 0
        self.members: dict[str, Member] = {}
        self.joining = False
        self._join_until = 0.0
        self._cluster: Any = None
        self._named = 0

    def enter(self, assignor: SingleWriterAssignor) -> str:
        """Take a member in; it has to join."""
        self._named += 1
        name = f"member-{self._named}"
        self.members[name] = Member(name, assignor, self._scheduler.now)
        self.rebalance()
        return name

    def leave(self, name: str) -> None:
        """Let a member go; it may have been the one that the others waited for."""
        if self.members.pop(name, None) is not None:
            self.rebalance()
            self._complete()

    def reset(self) -> None:
        """Forget everything, as a coordinator that lost its log does."""
        self.generation, self.joining = 0, False
        self.members.clear()

    def rebalance(self) -> None:
        """Have everybody meet."""
        if not self.joining:
            self.joining = True
            for member in self.members.values():
                member.joined = False
        self._join_until = self._scheduler.now + JOIN_SECONDS

    def heartbeat(self, name: str) -> bool:
        """Hear of a member; return whether it still is one."""
        self._expire()
        member = self.members.get(name)
        if member is not None:
            member.heard_at = self._scheduler.now
        return member is not None

    def join(self, name: str, metadata: Any, cluster: Any) -> None:
        """Hear what a member owns; the last one to come completes the meeting."""
        member = self.members[name]
        if not self.joining:
            self.rebalance()
        member.joined, member.metadata = True, metadata
        self._cluster = cluster
        self._complete()

    def _expire(self) -> None:
        now = self._scheduler.now
        silent = [m.id for m in self.members.values() if now - m.heard_at > SESSION_SECONDS]
        if self.joining and now > self._join_until:
            silent += [each.id for each in self.members.values() if not each.joined]
        for name in silent:
            self.leave(name)

    def _complete(self) -> None:
        if not (self.joining and self.members and all(m.joined for m in self.members.values())):
            return
        self.joining = False
        self.generation += 1
        leader = next(iter(self.members.values()))
        joined = [_Joined(each.id, each.metadata) for each in self.members.values()]
        given = leader.assignor.assign(self._cluster, joined)
        for name, member in self.members.items():
            member.given = (self.generation, given[name])


@dataclass
class _Joined:
    member_id: str
    metadata: Any
