"""What an engine has to do: reach all shards, and bring back one that was lost."""

from typing import Any, Protocol

__all__ = ["ShardEngine", "ShardFaultError", "ShardLostError", "Traffic"]


class ShardLostError(Exception):
    """Shards went away while they were asked; the others have answered, and wait."""


class ShardFaultError(Exception):
    """A shard could not do what it was asked, and would not the next time."""


class Traffic:
    """Bytes to all shards and back, by command."""

    def __init__(self) -> None:
        self.sent: dict[str, int] = {}
        self.received: dict[str, int] = {}

    def count(self, command: str, sent: int, received: int) -> None:
        """Add those of one call."""
        self.sent[command] = self.sent.get(command, 0) + sent
        self.received[command] = self.received.get(command, 0) + received

    def total(self) -> int:
        """All bytes, both ways."""
        return sum(self.sent.values()) + sum(self.received.values())


class ShardEngine(Protocol):
    """All shards of a table, in the order of their rows."""

    @property
    def n_shards(self) -> int:
        """How many there are."""
        ...

    @property
    def traffic(self) -> Traffic:
        """What was sent and received so far."""
        ...

    def set_up(self, command: str, *arguments: Any) -> list[Any]:
        """Like ``ask``, and again to every shard that is restarted, before anything else."""
        ...

    def ask(self, command: str, *arguments: Any) -> list[Any]:
        """Give all shards one command; their answers in order.

        Raises ShardLostError, and ShardFaultError where a shard refuses.
        """
        ...

    def restart(self) -> None:
        """Bring back the shards that were lost."""
        ...

    def close(self) -> None:
        """Let all of them go."""
        ...
