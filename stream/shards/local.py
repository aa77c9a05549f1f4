"""A shard as a process of this machine, with its own rows and nobody else's."""

import subprocess
import sys
from typing import BinaryIO, cast

from .worker import read_message, write_message

__all__ = ["LocalShard"]

_COMMAND = (sys.executable, "-m", "weald.stream.shards.worker")


class LocalShard:
    """A process, and both ends of a pipe."""

    def __init__(self) -> None:
        # The interpreter's own path and a fixed module: nothing of it comes from outside.
        self._process = subprocess.Popen(_COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - as said
        self._to = cast("BinaryIO", self._process.stdin)
        self._from = cast("BinaryIO", self._process.stdout)

    @property
    def process_id(self) -> int:
        """Of the process."""
        return self._process.pid

    def send(self, message: bytes) -> bool:
        """Write a message; whether that was possible."""
        try:
            write_message(self._to, message)
        except OSError:
            return False
        return True

    def receive(self) -> bytes | None:
        """Wait for the answer; None where the process is gone."""
        return read_message(self._from)

    def close(self) -> None:
        """Close both pipes, which the process takes for the end, and wait for it."""
        for stream in (self._to, self._from):
            try:
                stream.close()
            except OSError:
                # What could not be written to one that is gone.
                continue
        self._process.wait()
