"""What a stream without any state is doing: a new one keeps its first observations in memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weald.cli.errors import NotReadyError
from weald.cli.terminal.opened import open_settings, stream_and_shard

from .live_metrics import running

__all__ = ["explained"]


@contextmanager
def explained(
    config: Path | None, set_: list[str] | None, stream: str | None = None
) -> Iterator[None]:
    """Add to an error about missing state how far a running Weald has come.

    Raises
    ------
    NotReadyError
        As raised inside, or with the number of observations that wait.
    """
    try:
        yield
    except NotReadyError as error:
        settings = open_settings(
            config, set_, {"stream.name": stream_and_shard(stream)[0]}
        ).settings
        writer, needed = running(settings), settings.model.warmup_records
        if writer is None:
            raise
        raise NotReadyError(
            f"stream {settings.stream.name} is warming up: {writer.n_held} of {needed} "
            "observations have come, which set the family's parameters; nothing is stored before "
            "that",
            next_step="wait, or begin with fewer: weald run --set model.warmup_records=50",
        ) from error
