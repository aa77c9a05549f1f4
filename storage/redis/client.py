"""One way to reach Redis, for whatever this room keeps there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.retry import Retry

from weald.storage.errors import AccessDenied, StorageError, StorageStopped, StorageUnavailable
from weald.storage.settings import RedisSettings

__all__ = ["answering", "connect"]


def connect(settings: RedisSettings) -> Any:
    """Return a client that connects when first used.

    No command may block on the server for as long as ``timeout_seconds``: one timeout serves all.
    """
    # redis-py's default of ten retries would hold the stream for a minute and more.
    return redis.Redis.from_url(
        settings.url,
        socket_timeout=settings.timeout_seconds,
        socket_connect_timeout=settings.timeout_seconds,
        retry=Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.5), settings.retries),
        health_check_interval=30,
        client_name="weald",
        **_identity(settings),
    )


@contextmanager
def answering(place: str) -> Iterator[None]:
    """Turn the driver's errors into ours, naming the server."""
    try:
        yield
    except redis.RedisError as error:
        raise _meaning_of(error)(f"{place}: {error}") from error


def _meaning_of(error: redis.RedisError) -> type[StorageError]:
    denied = (
        redis.exceptions.AuthenticationError,
        redis.exceptions.AuthorizationError,
        redis.exceptions.NoPermissionError,
        redis.exceptions.AuthenticationWrongNumberOfArgsError,
    )
    passing = (
        redis.exceptions.ConnectionError,
        redis.exceptions.TimeoutError,
        redis.exceptions.OutOfMemoryError,
        redis.exceptions.ReadOnlyError,
        redis.exceptions.ClusterDownError,
        redis.exceptions.TryAgainError,
    )
    if isinstance(error, denied):
        return AccessDenied
    return StorageUnavailable if isinstance(error, passing) else StorageStopped


def _identity(settings: RedisSettings) -> dict[str, str]:
    """Who connects, and which certificates count; what the URL says wins."""
    given = {
        "username": settings.username,
        "password": settings.password,
        "ssl_ca_certs": settings.ssl_cafile,
        "ssl_certfile": settings.ssl_certfile,
        "ssl_keyfile": settings.ssl_keyfile,
    }
    return {name: value for name, value in given.items() if value is not None}
