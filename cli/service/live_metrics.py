"""What a Weald that is running here tells of a stream through its metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weald.cli.config.settings import Settings

__all__ = ["Running", "running"]

# A question must not wait for a process that hangs.
_TIMEOUT_SECONDS = 1.0
_ROLE = re.compile(r'role="(\w+)"')
_SAMPLE = re.compile(r"^(weald_\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True)
class Running:
    """Numbers that only a running process knows.

    Attributes
    ----------
    n_held
        Observations in its memory that SQL does not have yet.
    lag_records, lag_seconds
        Records of all its partitions that SQL does not hold yet, and the age of the last committed
        one of the partition that is furthest behind.
    lag_of
        Records of each shard that it writes, of a stream in shards.
    n_workers
        Workers of each role that it has heard of lately, roles without any left out.
    """

    n_held: int
    lag_records: int
    lag_seconds: float
    n_workers: dict[str, int]
    lag_of: dict[int, int]


def running(settings: Settings, shard: int | None = None) -> Running | None:
    """Ask the metrics of the stream's writer; None unless one is running where they are served.

    Of a stream in shards that process tells of the shards that it writes, of all or of one.
    """
    text = _metrics(settings)
    if text is None:
        return None
    # Of a stream in shards each has a name of its own.
    stream = re.compile(rf'stream="{re.escape(settings.stream.name)}(?:/(\d+))?"')
    found: dict[str, list[float]] = {}
    workers: dict[str, int] = {}
    lag_of: dict[int, int] = {}
    for name, labels, value in _SAMPLE.findall(text):
        meant = next(filter(None, map(stream.fullmatch, labels.split(","))), None)
        if meant is None or (shard is not None and meant[1] != str(shard)):
            continue
        if name == "weald_partition_lag_records" and meant[1]:
            lag_of[int(meant[1])] = lag_of.get(int(meant[1]), 0) + round(float(value))
        found.setdefault(name, []).append(float(value))
        if name == "weald_workers" and float(value):
            workers.update({role: round(float(value)) for role in _ROLE.findall(labels)})
    if "weald_held_observations" not in found:
        return None

    def values(name: str) -> list[float]:
        return found.get(name, [])

    return Running(
        n_held=round(sum(values("weald_held_observations"))),
        lag_records=round(sum(values("weald_partition_lag_records"))),
        lag_seconds=max(values("weald_partition_lag_seconds"), default=0.0),
        n_workers=workers,
        lag_of=lag_of,
    )


def _metrics(settings: Settings) -> str | None:
    from http.client import HTTPConnection, HTTPException

    where = settings.monitoring
    if not where.enabled or where.port == 0:
        return None
    headers = {} if where.token is None else {"Authorization": f"Bearer {where.token}"}
    connection = HTTPConnection(where.host, where.port, timeout=_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/metrics", headers=headers)
        return connection.getresponse().read().decode("utf-8", "replace")
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
