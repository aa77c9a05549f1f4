"""Shards as processes of this machine, each with its own rows and nobody else's."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from .engine import ShardFaultError, ShardLostError, Traffic
from .row_files import RowFiles
from .wire import decoded, encoded
from .worker import read_message, write_message

__all__ = ["LocalShards"]

_COMMAND = (sys.executable, "-m", "weald.stream.shards.worker")


class LocalShards:
    """One process for each range of rows; what they keep is below ``folder``."""

    def __init__(
        self, files: RowFiles, shares: Sequence[tuple[int, int]], chunk: int, folder: Path
    ) -> None:
        self.traffic = Traffic()
        self._opening = [
            encoded(("open", [msgspec.to_builtins(files), *share, chunk, str(folder / str(at))]))
            for at, share in enumerate(shares)
        ]
        self._set_up: list[bytes] = []
        self._lost: set[int] = set()
        self._processes = [self._started() for _ in shares]
        self._call("open", self._opening)

    @staticmethod
    def _started() -> subprocess.Popen[bytes]:
        # The interpreter's own path and a fixed module: nothing of it comes from outside.
        return subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - as said

    @property
    def n_shards(self) -> int:
        """How many processes there are."""
        return len(self._processes)

    @property
    def process_ids(self) -> list[int]:
        """Of the processes, in the order of their rows."""
        return [each.pid for each in self._processes]

    def set_up(self, command: str, *arguments: Any) -> list[Any]:
        """Like ``ask``, and again to every process that is started later."""
        self._set_up.append(encoded((command, arguments)))
        return self.ask(command, *arguments)

    def ask(self, command: str, *arguments: Any) -> list[Any]:
        """Give all of them one command; their answers in order."""
        return self._call(command, [encoded((command, arguments))] * self.n_shards)

    def _call(self, command: str, messages: Sequence[bytes]) -> list[Any]:
        """All messages first, so that the shards work at the same time; then all answers."""
        reached = [_sent(each, data) for each, data in zip(self._processes, messages, strict=True)]
        answers = [
            read_message(cast("BinaryIO", each.stdout)) if sent else None
            for each, sent in zip(self._processes, reached, strict=True)
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
            _end(self._processes[at])
            self._processes[at] = self._started()
            for message in (self._opening[at], *self._set_up):
                sent = _sent(self._processes[at], message)
                if not sent or read_message(cast("BinaryIO", self._processes[at].stdout)) is None:
                    raise ShardLostError(f"shard {at} went away while it was started")
            self._lost.discard(at)

    def close(self) -> None:
        """End all processes."""
        for process in self._processes:
            _end(process)


def _sent(process: subprocess.Popen[bytes], message: bytes) -> bool:
    """Whether a message could be written."""
    stream = cast("BinaryIO", process.stdin)
    try:
        write_message(stream, message)
    except (OSError, ValueError):
        return False
    return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """Close both pipes, which a shard takes for the end, and wait for it."""
    for stream in (process.stdin, process.stdout):
        try:
            cast("BinaryIO", stream).close()
        except OSError:
            # What could not be written to one that is gone.
            continue
    process.wait()
