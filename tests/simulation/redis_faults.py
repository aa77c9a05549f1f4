"""Clients of the simulated Redis, and what goes wrong between them and it."""

from collections.abc import Callable, Sequence
from typing import Any

import redis

from .redis_store import Commands, RedisStore
from .scheduler import Scheduler

__all__ = ["RedisClient", "RedisFaults"]

_LEAST_SECONDS = 0.0005


class RedisFaults:
    """The server's state of health, which events change.

    Attributes
    ----------
    away_until : float
    lost_answers : int
        So many commands are done, and their clients never hear of it.
    """

    def __init__(self, scheduler: Scheduler, clock: Callable[[], float]) -> None:
        self.store = RedisStore(clock)
        self.away_until = 0.0
        self.lost_answers = 0
        self._scheduler = scheduler
        self._replica: dict[bytes, Any] | None = None

    def flush(self) -> None:
        """Forget everything."""
        self.store.keys.clear()

    def evict(self, share: float) -> None:
        """Forget some keys, as a full server does."""
        names = sorted(self.store.keys)
        for name in names[: max(1, round(share * len(names)))]:
            del self.store.keys[name]

    def mark(self) -> None:
        """The replica has everything up to now."""
        self._replica = self.store.image()

    def fail_over(self) -> None:
        """A replica that was behind takes the server's place."""
        if self._replica is not None:
            self.store.keys = self._replica
            self._replica = None

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        self.away_until, self.lost_answers = 0.0, 0

    def call(self, command: Callable[[], Any]) -> Any:
        """Do a command for the process that runs, in its virtual time."""
        self._scheduler.sleep(_LEAST_SECONDS)
        if self._scheduler.now < self.away_until:
            raise redis.ConnectionError("Error 111 connecting: Connection refused.")
        answer = command()
        if self.lost_answers:
            self.lost_answers -= 1
            raise redis.ConnectionError("Connection closed by server.")
        return answer


class RedisClient:
    """redis-py's client as `weald.storage.redis` uses it."""

    def __init__(self, faults: RedisFaults, scheduler: Scheduler) -> None:
        self._faults = faults
        self._scheduler = scheduler
        self._commands = Commands(faults.store)

    def __getattr__(self, name: str) -> Any:
        command = getattr(self._commands, name)
        return lambda *args, **kwargs: self._faults.call(lambda: command(*args, **kwargs))

    def close(self) -> None:
        """There is no connection."""

    def xreadgroup(self, *args: Any) -> Any:
        """Wait for an entry, if none is there, once."""
        found = self._faults.call(lambda: self._commands.xreadgroup(*args))
        if not found and len(args) > 4:
            self._scheduler.sleep(args[4] / 1000.0)
            found = self._faults.call(lambda: self._commands.xreadgroup(*args))
        return found

    def pipeline(self, **_: object) -> "_Pipeline":
        """Commands that are done all at once, or not at all."""
        return _Pipeline(self._faults, self._commands)

    def register_script(self, source: str) -> Callable[..., Any]:
        """A script to be called with keys and args."""

        def run(keys: Sequence[Any], args: Sequence[Any]) -> Any:
            return self._faults.call(lambda: self._commands.script(source, keys, args))

        return run


class _Pipeline:
    def __init__(self, faults: RedisFaults, commands: Commands) -> None:
        self._faults, self._commands = faults, commands
        self._queued: list[Callable[[], Any]] = []

    def __getattr__(self, name: str) -> Any:
        command = getattr(self._commands, name)
        return lambda *args, **kwargs: self._queued.append(lambda: command(*args, **kwargs))

    def execute(self) -> list[Any]:
        """Do what was queued."""
        return self._faults.call(lambda: [each() for each in self._queued])  # type: ignore[no-any-return]
