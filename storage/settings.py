"""The settings of this room: where SQL and Redis are, and how patient to be with them."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

__all__ = ["RedisSettings", "RetentionSettings", "StorageSettings", "redacted"]

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Secret = Annotated[str | None, msgspec.Meta(extra={"secret": True})]

# Up to the last @: an unescaped one in a password must not leave the rest of it in sight.
_CREDENTIALS = re.compile(r"(?<=://)([^:/?#@]*):.*@", re.DOTALL)
_SECRET_PARAMETERS = re.compile(r"([?&](?:ssl)?_?(?:password|passfile)=)[^&]*", re.IGNORECASE)


def redacted(url: str) -> str:
    """Return a URL that is fit for a log: every password in it becomes ``***``.

    Works on any text, also one that is no URL. Where it is in doubt it hides too much.

    Examples
    --------
    >>> redacted("postgresql+psycopg://weald:secret@db/weald")
    'postgresql+psycopg://weald:***@db/weald'
    >>> redacted("sqlite:///weald.db")
    'sqlite:///weald.db'
    """
    shown = _SECRET_PARAMETERS.sub(r"\1***", url)
    return _CREDENTIALS.sub(r"\1:***@", shown)


class StorageSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The SQL database, which alone holds the truth.

    Attributes
    ----------
    url
        SQLAlchemy URL: ``sqlite:///FILE`` or ``postgresql+psycopg://USER@HOST/DATABASE``. Its query
        takes libpq's parameters (``?sslmode=require``).
    password
        Of PostgreSQL's user, in place of one in the URL. A secret: give it as
        ``WEALD__STORAGE__PASSWORD``, or as ``password_file``.
    ssl_cafile
        Certificate authority of the PostgreSQL server. With it the connection is encrypted and
        the server must prove that it is the host of the URL (``sslmode=verify-full``).
    ssl_certfile, ssl_keyfile
        Certificate and key by which this client proves who it is.
    busy_timeout_seconds
        How long a writer waits for another one's lock before the commit counts as failed.
    connect_timeout_seconds
        How long to wait for a PostgreSQL server to accept a connection.
    snapshots_kept
        How many of the newest snapshots of a stream survive each commit. Two is the least: the
        older one is what a damaged newest one falls back to.
    """

    url: str = "sqlite:///weald.db"
    password: Secret = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    busy_timeout_seconds: Seconds = 30.0
    connect_timeout_seconds: Seconds = 5.0
    snapshots_kept: Annotated[int, msgspec.Meta(ge=2)] = 3

    def __post_init__(self) -> None:
        _check_certificate(self.ssl_certfile, self.ssl_keyfile)

    def __repr__(self) -> str:
        return f"StorageSettings(url={redacted(self.url)!r})"


class RetentionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The ``[retention]`` section: how much of each stream SQL remembers; 0 is for ever.

    Whatever is chosen, nothing goes that a start after a crash would need. Snapshots have a bound
    of their own, ``storage.snapshots_kept``; those with a label stay until they are deleted.

    Attributes
    ----------
    observations
        Raw rows kept, the newest: their values, key and cluster.
    publications
        Publications kept, the newest: with them go lineage events, reassignments and the clusters
        that had ended by then. ``--as-of`` reaches back as far.
    rounds
        Reports of refinement kept, the newest.
    dead_letters
        Dead letters kept, the newest, and those that wait to be replayed.
    days
        Observations and dead letters received longer ago than this go as well.
    """

    observations: Annotated[int, msgspec.Meta(ge=0)] = 50_000_000
    publications: Annotated[int, msgspec.Meta(ge=0)] = 100_000
    rounds: Annotated[int, msgspec.Meta(ge=0)] = 1_000_000
    dead_letters: Annotated[int, msgspec.Meta(ge=0)] = 1_000_000
    days: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class RedisSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The Redis (or Valkey) server that holds a disposable copy of the statistics.

    Attributes
    ----------
    url
        ``redis://`` or, encrypted, ``rediss://`` URL with the database number as its path.
    username, password
        An ACL user of the server, where the URL names none; without a name the default user. The
        password is a secret: give it as ``WEALD__REDIS__PASSWORD``, or as ``password_file``.
    ssl_cafile
        Certificate authority of the server; the system's when absent.
    ssl_certfile, ssl_keyfile
        Certificate and key by which this client proves who it is.
    enabled
        When false nothing is published and no connection is made.
    timeout_seconds
        For connecting and for one answer. None of the commands sent here blocks on the server.
    retries
        Attempts after the first before the server counts as away.
    """

    url: str = "redis://127.0.0.1:6379/0"
    username: str | None = None
    password: Secret = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    enabled: bool = True
    timeout_seconds: Seconds = 5.0
    retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 2

    def __post_init__(self) -> None:
        _check_certificate(self.ssl_certfile, self.ssl_keyfile)
        files = (self.ssl_cafile, self.ssl_certfile, self.ssl_keyfile)
        if any(files) and not self.url.startswith("rediss://"):
            raise ValueError("certificates are of no use to a url that is not rediss://")
        if self.username is not None and self.password is None:
            raise ValueError("username needs a password, or a password_file")

    def __repr__(self) -> str:
        return f"RedisSettings(url={redacted(self.url)!r}, enabled={self.enabled})"


def _check_certificate(certfile: str | None, keyfile: str | None) -> None:
    if (certfile is None) != (keyfile is None):
        raise ValueError("ssl_certfile and ssl_keyfile go together")
