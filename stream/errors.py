"""Errors of the stream room.

::

    StreamError
      SchemaError         the declared schema cannot be used              stop
      SourceError         a source cannot be opened or read               stop
        LogReplaced       the log is another one than was read            stop: a person decides
      LibraryMissing      a library that is no dependency is needed     stop
      SourceUnavailable   the broker does not answer                      retry
      TooManyDeadLetters  nearly every record is bad                      stop
      ReplayDiverged      replay does not reproduce what SQL holds        stop
      Rebalanced          another process owns the partitions now         drop state, rejoin

Bad records are not errors: they are `DeadLetter` values.
"""

# ruff: noqa: N818 - the names say what happened; the root class says that it is an error

__all__ = [
    "LibraryMissing",
    "LogReplaced",
    "Rebalanced",
    "ReplayDiverged",
    "SchemaError",
    "SourceError",
    "SourceUnavailable",
    "StreamError",
    "TooManyDeadLetters",
]


class StreamError(Exception):
    """Root of this room's errors."""


class SchemaError(StreamError):
    """The declared schema cannot be used."""


class SourceError(StreamError):
    """A source cannot be opened or read.

    Parameters
    ----------
    message : str
    next_step : str, optional
        The command that mends it, where there is one.
    """

    def __init__(self, message: str, next_step: str | None = None) -> None:
        super().__init__(message)
        self.next_step = next_step


class LogReplaced(SourceError):
    """A topic or a file has another log than the one that SQL's offsets are of."""


class LibraryMissing(StreamError):
    """Something that was asked for needs a library that is not installed."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.next_step = next_step
        # Who meets it in Python sees no next step of a command.
        self.add_note(next_step)


class SourceUnavailable(StreamError):
    """The broker does not answer; the same call may succeed later."""


class TooManyDeadLetters(StreamError):
    """So many recent records are bad that the schema, not the data, must be wrong."""


class ReplayDiverged(StreamError):
    """Replaying the observations of SQL gave other clusters than SQL holds."""


class Rebalanced(StreamError):
    """The partitions changed hands while something was being retried."""
