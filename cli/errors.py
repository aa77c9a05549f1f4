"""Exit codes and the errors that carry them.

``CommandError`` is the root; what a caller can do about it decides the branch::

    CommandError      1  something failed that trying another way may mend
      UsageError      2  the command line, the environment or weald.toml is wrong
      NotFoundError   3  the stream, cluster, key or file named does not exist
      NotReadyError   4  the state or a server is not there yet
      ConflictError   5  another owner holds what the command wanted

130 is what a shell reports for a program stopped by Ctrl-C, and is used for nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = [
    "CommandError",
    "ConflictError",
    "ExitCode",
    "NotFoundError",
    "NotReadyError",
    "UsageError",
    "writing",
]


class ExitCode(IntEnum):
    """What the shell sees when a command ends."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_READY = 4
    CONFLICT = 5
    INTERRUPTED = 130


class CommandError(Exception):
    """A command could not do what it was asked.

    Parameters
    ----------
    message : str
        What failed and where, as one sentence or a short list.
    next_step : str, optional
        The command to try next, or what to change.
    """

    code = ExitCode.FAILURE

    def __init__(self, message: str, *, next_step: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step

    def lines(self) -> list[str]:
        """Return the lines to print on standard error."""
        head = [f"weald: {self.message}"]
        return head if self.next_step is None else [*head, f"Next: {self.next_step}"]


class UsageError(CommandError):
    """The command line, the environment or the configuration file is wrong."""

    code = ExitCode.USAGE


class NotFoundError(CommandError):
    """What the command names does not exist."""

    code = ExitCode.NOT_FOUND


class NotReadyError(CommandError):
    """The state or a server that the command needs is not there yet."""

    code = ExitCode.NOT_READY


class ConflictError(CommandError):
    """Somebody else owns what the command wanted to change."""

    code = ExitCode.CONFLICT


@contextmanager
def writing(*paths: Path | None) -> Iterator[None]:
    """Name these files when the block cannot write.

    Raises
    ------
    CommandError
        In place of the system's error; not where there are no files, or a pipe has closed, since
        it is standard output then.
    """
    named = ", ".join(str(path) for path in paths if path is not None)
    try:
        yield
    except OSError as error:
        if not named or isinstance(error, BrokenPipeError):
            raise
        raise CommandError(f"cannot write {named}: {error.strerror}") from error
