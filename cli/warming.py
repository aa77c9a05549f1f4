"""What a stream without any state is doing: a new one keeps its first observations in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import NotReadyError
from .options import open_settings

__all__ = ["explained"]

TIMEOUT_SECONDS = 1.0
_HELD = re.compile(r'^weald_held_observations\{[^}]*stream="([^"]+)"[^}]*\} (\S+)$', re.MULTILINE)


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
        settings = open_settings(config, set_, {"stream.name": stream}).settings
        where, needed = settings.monitoring, settings.model.warmup_records
        held = _held(where.host, where.port, settings.stream.name) if where.enabled else None
        if held is None:
            raise
        raise NotReadyError(
            f"stream {settings.stream.name} is warming up: {held} of {needed} observations have "
            "come, which set the family's parameters; nothing is stored before that",
            next_step="wait, or begin with fewer: weald run --set model.warmup_records=50",
        ) from error


def _held(host: str, port: int, stream: str) -> int | None:
    """Ask the metrics of a Weald that may be running here."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(host, port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode("utf-8", "replace")
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    return next((round(float(n)) for name, n in _HELD.findall(text) if name == stream), None)
