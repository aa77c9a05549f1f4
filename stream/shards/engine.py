"""All shards of a table: asks them at the same time, and brings back one that was lost.

How a shard is reached is a *link*, of which there is one kind for each engine: it takes bytes there
and back, and nothing else.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from .row_files import RowFiles
from .wire import decoded, encoded

__all__ = ["ShardEngine", "ShardFaultError", "ShardLink", "ShardLostError", "Traffic"]


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


class ShardLink(Protocol):
    """A running shard: a :class:`~weald.stream.shards.worker.ShardWorker` somewhere."""

    def send(self, message: bytes) -> bool:
        """Hand a message over without waiting for the answer; whether that was possible."""
        ...

    def receive(self) -> bytes | None:
        """The answer; None where the shard is gone."""
        ...

    def close(self) -> None:
        """Let the shard go, whether it is there or not."""
        ...


class ShardEngine:
    """All shards of a table, in the order of their rows.

    Parameters
    ----------
    files : RowFiles
    shares : sequence of (int, int)
        First row and end of each shard.
    chunk : int
        Rows that are summed as one.
    folder : Path
        What shards keep is below it, where they run.
    connect : callable
        Starts a shard; what it has to know it is told.
    """

    def __init__(
        self,
        files: RowFiles,
        shares: Sequence[tuple[int, int]],
        chunk: int,
        folder: Path,
        connect: Callable[[], ShardLink],
    ) -> None:
        self.traffic = Traffic()
        self._connect = connect
        self._opening = [
            encoded(("open", [msgspec.to_builtins(files), *share, chunk, str(folder / str(at))]))
            for at, share in enumerate(shares)
        ]
        self._set_up: list[bytes] = []
        self._lost: set[int] = set()
        self.links = [connect() for _ in shares]
        try:
            self._call("open", self._opening)
        except BaseException:
            self.close()
            raise

    @property
    def n_shards(self) -> int:
        """How many there are."""
        return len(self.links)

    def set_up(self, command: str, *arguments: Any) -> list[Any]:
        """Like ``ask``, and again to every shard that is restarted, before anything else."""
        self._set_up.append(encoded((command, arguments)))
        return self.ask(command, *arguments)

    def ask(self, command: str, *arguments: Any) -> list[Any]:
        """Give all shards one command; their answers in order.

        Raises ShardLostError, and ShardFaultError where a shard refuses.
        """
        return self._call(command, [encoded((command, arguments))] * self.n_shards)

    def _call(self, command: str, messages: Sequence[bytes]) -> list[Any]:
        """All messages first, so that the shards work at the same time; then all answers."""
        reached = [link.send(data) for link, data in zip(self.links, messages, strict=True)]
        answers = [
            link.receive() if sent else None for link, sent in zip(self.links, reached, strict=True)
        ]
        self.traffic.count(command, sum(map(len, messages)), sum(len(a) for a in answers if a))
        self._lost.update(at for at, answer in enumerate(answers) if answer is None)
        if self._lost:
            told = ", ".join(map(str, sorted(self._lost)))
            raise ShardLostError(f"shard {told} went away during {command}")
        found = [decoded(answer) for answer in answers if answer is not None]
        for at, (done, told) in enumerate(found):
            if not done:
                raise ShardFaultError(f"shard {at}: {told}")
        return [told for _, told in found]

    def restart(self) -> None:
        """Start again what went away, with all that was set up."""
        for at in sorted(self._lost):
            self.links[at].close()
            link = self.links[at] = self._connect()
            for message in (self._opening[at], *self._set_up):
                if not link.send(message) or link.receive() is None:
                    raise ShardLostError(f"shard {at} went away while it was started")
            self._lost.discard(at)

    def close(self) -> None:
        """Let all of them go."""
        for link in self.links:
            link.close()
