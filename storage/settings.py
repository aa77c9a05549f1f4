"""The settings of this room: where SQL and Redis are, and how patient to be with them."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

import msgspec

__all__ = ["RedisSettings", "StorageSettings", "redacted"]

Seconds = Annotated[float, msgspec.Meta(gt=0)]


def redacted(url: str) -> str:
    """Return a URL that is fit for a log: the password, if any, becomes ``***``.

    Examples
    --------
    >>> redacted("postgresql+psycopg://weald:secret@db/weald")
    'postgresql+psycopg://weald:***@db/weald'
    >>> redacted("sqlite:///weald.db")
    'sqlite:///weald.db'
    """
    parts = urlsplit(url)
    credentials, at, host = parts.netloc.rpartition("@")
    user, colon, _ = credentials.partition(":")
    if not colon:
        return url
    return urlunsplit(parts._replace(netloc=f"{user}:***{at}{host}"))


class StorageSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The SQL database, which alone holds the truth.

    Attributes
    ----------
    url
        SQLAlchemy URL: ``sqlite:///FILE`` or ``postgresql+psycopg://USER@HOST/DATABASE``.
    busy_timeout_seconds
        How long a writer waits for another one's lock before the commit counts as failed.
    connect_timeout_seconds
        How long to wait for a PostgreSQL server to accept a connection.
    snapshots_kept
        How many of the newest snapshots of a stream survive each commit. Two is the least: the
        older one is what a damaged newest one falls back to.
    """

    url: str = "sqlite:///weald.db"
    busy_timeout_seconds: Seconds = 30.0
    connect_timeout_seconds: Seconds = 5.0
    snapshots_kept: Annotated[int, msgspec.Meta(ge=2)] = 3

    def __repr__(self) -> str:
        return f"StorageSettings(url={redacted(self.url)!r})"


class RedisSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The Redis (or Valkey) server that holds a disposable copy of the statistics.

    Attributes
    ----------
    url
        ``redis://`` or ``rediss://`` URL with the database number as its path.
    enabled
        When false nothing is published and no connection is made.
    timeout_seconds
        For connecting and for one answer. None of the commands sent here blocks on the server.
    retries
        Attempts after the first before the server counts as away.
    """

    url: str = "redis://127.0.0.1:6379/0"
    enabled: bool = True
    timeout_seconds: Seconds = 5.0
    retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 2

    def __repr__(self) -> str:
        return f"RedisSettings(url={redacted(self.url)!r}, enabled={self.enabled})"
