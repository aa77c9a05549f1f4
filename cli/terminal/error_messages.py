"""What the rooms' errors mean to somebody at a terminal: an exit code and the next command."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from weald.cli.errors import CommandError, ConflictError, NotFoundError, NotReadyError, UsageError

__all__ = ["translated"]

DOCTOR = "weald doctor    checks the database, Redis, Kafka and the configuration"

# By module and class name, so that naming an error loads nothing: a room that was never imported
# has raised nothing.
_MEANING: dict[tuple[str, str], tuple[type[CommandError], str | None]] = {
    ("weald.storage.errors", "StorageUnavailable"): (NotReadyError, DOCTOR),
    ("weald.storage.errors", "Fenced"): (ConflictError, "weald status    shows the owner"),
    ("weald.storage.errors", "StreamNotFound"): (
        NotFoundError,
        "weald run    starts the stream; weald demo makes one to look at",
    ),
    ("weald.storage.errors", "MomentForgotten"): (NotFoundError, None),
    ("weald.storage.errors", "SchemaMismatch"): (NotReadyError, None),
    ("weald.storage.errors", "StreamConflict"): (
        ConflictError,
        "choose another name: weald run --set stream.name=NAME",
    ),
    ("weald.storage.errors", "AccessDenied"): (NotReadyError, DOCTOR),
    ("weald.storage.errors", "StorageError"): (CommandError, DOCTOR),
    ("weald.stream.errors", "SchemaError"): (UsageError, "correct [schema] in weald.toml"),
    ("weald.stream.errors", "LibraryMissing"): (NotReadyError, None),
    ("weald.stream.errors", "SourceUnavailable"): (NotReadyError, DOCTOR),
    ("weald.stream.errors", "LogReplaced"): (
        ConflictError,
        "weald run --from-beginning-again    reads all of it; or weald run --skip-to OFFSET",
    ),
    ("weald.stream.errors", "Rebalanced"): (ConflictError, "weald status    shows the owner"),
    ("weald.stream.errors", "TooManyDeadLetters"): (
        CommandError,
        "compare [schema] in weald.toml with a record of the topic",
    ),
    ("weald.stream.errors", "StreamError"): (CommandError, DOCTOR),
    ("weald.answers.errors", "NoAnswerYetError"): (NotReadyError, None),
    ("weald.answers.errors", "UnsuitableError"): (UsageError, None),
    ("weald.treecore.errors", "ParameterError"): (UsageError, None),
    ("weald.treecore.errors", "ObservationError"): (UsageError, None),
    ("weald.treecore.errors", "WealdError"): (CommandError, None),
}

# No fault of the program, wherever it was writing.
_FULL = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def translated() -> Iterator[None]:
    """Raise ``CommandError`` instead of a room's own error; any other passes as it is."""
    try:
        yield
    except CommandError:
        raise
    except Exception as error:
        meaning = _meaning_of(error)
        if meaning is None:
            raise
        raise meaning from error


def _meaning_of(error: Exception) -> CommandError | None:
    if isinstance(error, OSError) and error.errno in _FULL:
        what = "" if error.filename is None else f" {error.filename}"
        return CommandError(f"cannot write{what}: {error.strerror}")
    for kind in type(error).__mro__:
        found = _MEANING.get((kind.__module__, kind.__qualname__))
        if found is not None and kind.__module__ in sys.modules:
            meaning, next_step = found
            return meaning(str(error), next_step=getattr(error, "next_step", None) or next_step)
    return None
