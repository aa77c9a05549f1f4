"""Leases on their way to workers and back, through Redis Streams.

``weald:{<stream>}:leases`` holds an entry per lease, read by the consumer group ``workers``;
``weald:{<stream>}:leases:<role>`` likewise those that are meant for workers of another role than
``all``. ``weald:{<stream>}:lease_bytes`` has their contents, a field each, until they come back;
``weald:{<stream>}:lease_rows`` the statistics rows of their atoms, a page each;
``weald:{<stream>}:returns`` what came back; ``weald:{<stream>}:workers`` when each worker was last
heard of, and its role. All of it may be lost at any moment: the writer offers again what is
missing. Delivery is at least once. The same lease always gives the same answer, so a second one is
only dropped.

A worker that holds a lease beats: it claims its own entry again, which sets the entry's idle time
back without counting as a delivery. An entry idle for longer than a lease may be is taken over by
whoever asks next, and its deliveries are counted; one delivered too often is parked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Self

import redis

from weald.storage.settings import RedisSettings, redacted

from .client import answering, connect

__all__ = [
    "PAGES_A_CALL",
    "Key",
    "LeaseItem",
    "LeaseQueue",
    "LeaseReturn",
    "Standing",
    "Taken",
    "WorkerRow",
]

_GROUP = "workers"
_ALL = "all"
# Returns that nobody reads must not fill the server.
_RETURNS_KEPT = 1000
# Pages that one call should carry: keeps the server's single thread free for others in between.
PAGES_A_CALL = 64
# What Redis says of a stream or a group that is not there, or no longer.
_FLUSHED = ("NOGROUP", "UNBLOCKED")
Key = tuple[int, int, int]


@dataclass(frozen=True)
class LeaseItem:
    """A lease on offer: round, number in it, fencing token, its contents, and who is to take it."""

    key: Key
    payload: bytes
    role: str = _ALL


@dataclass(frozen=True)
class Taken:
    """A lease in a worker's hands; ``deliveries`` counts this one."""

    entry: str
    key: Key
    payload: bytes
    deliveries: int


@dataclass(frozen=True)
class LeaseReturn:
    """What a worker gives back; the payload is None for a lease that it parked."""

    key: Key
    worker: str
    payload: bytes | None


@dataclass(frozen=True)
class Standing:
    """A lease on the way: who holds it (None: nobody yet), its deliveries so far, and its role."""

    worker: str | None
    idle_seconds: float
    deliveries: int
    role: str = _ALL


@dataclass(frozen=True)
class WorkerRow:
    """A worker that has asked for leases, when it was last heard of, what it holds, its role."""

    name: str
    idle_seconds: float
    n_held: int
    role: str = _ALL


class LeaseQueue:
    """One stream's leases in one Redis; connects when first used.

    Every method raises ``StorageUnavailable`` when the server is away.

    Parameters
    ----------
    settings : RedisSettings
    stream : str
    roles : sequence of str
        Whose leases this side sees: a writer those of every role, a worker those of its own.
    """

    def __init__(
        self, settings: RedisSettings, stream: str, roles: Sequence[str] = (_ALL,)
    ) -> None:
        self._place = redacted(settings.url)
        self._client: Any = connect(settings)
        base = f"weald:{{{stream}}}"
        self._role = roles[0]
        self._places = {
            role: f"{base}:leases" + ("" if role == _ALL else f":{role}") for role in roles
        }
        self._leases = self._places[self._role]
        self._bytes = f"{base}:lease_bytes"
        self._rows = f"{base}:lease_rows"
        self._returns = f"{base}:returns"
        self._workers = f"{base}:workers"
        script = files(__package__) / "worker_sign.lua"
        self._sign = self._client.register_script(script.read_text(encoding="utf-8"))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    # The writer's side.

    def offer(self, items: Sequence[LeaseItem]) -> None:
        """Put leases up, after SQL has them."""
        with answering(self._place):
            for role in {item.role for item in items}:
                self._make_group(self._places[role])
            pipe = self._client.pipeline(transaction=True)
            for item in items:
                pipe.hset(self._bytes, _field(item.key), item.payload)
                pipe.xadd(self._places[item.role], {"key": _field(item.key)})
            pipe.execute()

    def put_pages(self, pages: Mapping[int, bytes]) -> None:
        """Put pages of rows in the place of those that had their numbers; leases go up later."""
        with answering(self._place):
            self._client.hset(self._rows, mapping=dict(pages))

    def drop_pages(self, numbers: Collection[int]) -> None:
        """Remove pages that no atom lies in any more."""
        with answering(self._place):
            for chunk in _chunks(list(numbers)):
                self._client.hdel(self._rows, *chunk)

    def returned(self) -> list[LeaseReturn]:
        """Return what came back since the last call."""
        with answering(self._place):
            entries = self._client.xrange(self._returns)
            if entries:
                self._client.xdel(self._returns, *(entry for entry, _ in entries))
        return [
            LeaseReturn(_key(fields[b"key"]), fields[b"worker"].decode(), fields.get(b"payload"))
            for _, fields in entries
        ]

    def standing(self) -> dict[Key, Standing]:
        """Return where each lease is that is on offer or in a worker's hands."""
        found = {}
        with answering(self._place):
            for role, place in self._places.items():
                entries = self._client.xrange(place)
                held = {row["message_id"]: row for row in self._pending(place, len(entries))}
                for entry, fields in entries:
                    found[_key(fields[b"key"])] = _standing(held.get(entry), role)
        return found

    def withdraw(self, keys: Sequence[Key]) -> None:
        """Take leases down, wherever they are; a return of one is late from now on."""
        wanted = {_field(key).encode() for key in keys}
        if not wanted:
            return
        with answering(self._place):
            pipe = self._client.pipeline(transaction=True)
            for place in self._places.values():
                entries = self._client.xrange(place)
                gone = [entry for entry, fields in entries if fields[b"key"] in wanted]
                if gone:
                    pipe.xack(place, _GROUP, *gone)
                    pipe.xdel(place, *gone)
            pipe.hdel(self._bytes, *wanted)
            pipe.execute()

    def workers(self) -> list[WorkerRow]:
        """Return the workers that are known, those heard of last first."""
        with answering(self._place):
            signs: dict[bytes, bytes] = self._client.hgetall(self._workers)
            seconds, microseconds = self._client.time()
            held = Counter(
                row["consumer"]
                for place in self._places.values()
                for row in self._pending(place, _RETURNS_KEPT)
            )
        now = seconds + microseconds / 1e6
        found = []
        for name, sign in signs.items():
            heard, _, role = sign.decode().partition(" ")
            idle = max(now - int(heard) / 1000.0, 0.0)
            found.append(WorkerRow(name.decode(), idle, held[name], role or _ALL))
        return sorted(found, key=lambda row: row.idle_seconds)

    def forget(self, worker: str) -> None:
        """Forget a worker that left or died; a lease that it holds goes to another in its time."""
        with answering(self._place):
            self._client.hdel(self._workers, worker)
            for place in self._places.values():
                try:
                    pending = self._pending(place, _RETURNS_KEPT)
                    if worker not in {row["consumer"].decode() for row in pending}:
                        self._client.xgroup_delconsumer(place, _GROUP, worker)
                except redis.ResponseError as error:
                    if "NOGROUP" not in str(error) and "exist" not in str(error):
                        raise

    # The worker's side.

    def take(self, worker: str, lease_seconds: float, wait_seconds: float) -> Taken | None:
        """Take over a lease that nobody has beaten for, or the next on offer; None after a wait.

        ``wait_seconds`` must stay below the connection's timeout.
        """
        with answering(self._place):
            self._sign(keys=[self._workers], args=[worker, self._role])
            try:
                return self._take(worker, lease_seconds, wait_seconds)
            except redis.ResponseError as error:
                if not any(word in str(error) for word in _FLUSHED):
                    raise
                # The server was flushed, perhaps in the wait, or no writer was here before.
                self._make_group(self._leases)
                return None

    def _take(self, worker: str, lease_seconds: float, wait_seconds: float) -> Taken | None:
        least = int(lease_seconds * 1000)
        reply = self._client.xautoclaim(self._leases, _GROUP, worker, least, count=1)
        entries = [each for each in reply[1] if each[0] is not None]
        if not entries:
            block = max(int(wait_seconds * 1000), 1)
            read = self._client.xreadgroup(_GROUP, worker, {self._leases: ">"}, 1, block)
            entries = _entries(read)
        if not entries:
            return None
        entry, fields = entries[0]
        payload = self._client.hget(self._bytes, fields[b"key"])
        if payload is None:
            # Withdrawn or lost in between: the writer knows.
            self._client.xack(self._leases, _GROUP, entry)
            self._client.xdel(self._leases, entry)
            return None
        rows = self._client.xpending_range(self._leases, _GROUP, entry, entry, 1)
        deliveries = rows[0]["times_delivered"] if rows else 1
        return Taken(entry.decode(), _key(fields[b"key"]), payload, deliveries)

    def beat(self, worker: str, taken: Taken) -> bool:
        """Say that the lease is being worked on; return whether it is still this worker's."""
        with answering(self._place):
            self._sign(keys=[self._workers], args=[worker, self._role])
            try:
                rows = self._client.xpending_range(
                    self._leases, _GROUP, taken.entry, taken.entry, 1
                )
                if not rows or rows[0]["consumer"].decode() != worker:
                    return False
                self._client.xclaim(self._leases, _GROUP, worker, 0, [taken.entry], justid=True)
            except redis.ResponseError as error:
                # The server was flushed, perhaps between the two.
                if not any(word in str(error) for word in _FLUSHED):
                    raise
                return False
            return True

    def pages(self, numbers: Sequence[int]) -> Iterator[tuple[int, bytes | None]]:
        """Yield pages of rows as they are now, None for one that is not there."""
        for chunk in _chunks(numbers):
            with answering(self._place):
                found = self._client.hmget(self._rows, chunk)
            yield from zip(chunk, found, strict=True)

    def drop(self, taken: Taken) -> None:
        """Take a lease down that nobody can work on as it is: the writer offers it again."""
        with answering(self._place):
            self._client.xack(self._leases, _GROUP, taken.entry)
            self._client.xdel(self._leases, taken.entry)

    def give_back(self, worker: str, taken: Taken, payload: bytes | None) -> None:
        """Return a lease with its answer, or with None to park it."""
        fields: dict[str, Any] = {"key": _field(taken.key), "worker": worker}
        if payload is not None:
            fields["payload"] = payload
        with answering(self._place):
            pipe = self._client.pipeline(transaction=True)
            pipe.xadd(self._returns, fields, maxlen=_RETURNS_KEPT, approximate=True)
            pipe.xack(self._leases, _GROUP, taken.entry)
            pipe.xdel(self._leases, taken.entry)
            # Whoever holds the lease, too, has it in hand; nobody else need begin.
            pipe.hdel(self._bytes, _field(taken.key))
            pipe.execute()

    def _pending(self, place: str, n: int) -> list[dict[str, Any]]:
        if n == 0:
            return []
        try:
            return list(self._client.xpending_range(place, _GROUP, "-", "+", n + 100))
        except redis.ResponseError:
            return []

    def _make_group(self, place: str) -> None:
        try:
            self._client.xgroup_create(place, _GROUP, id="0", mkstream=True)
        except redis.ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise


def _standing(row: dict[str, Any] | None, role: str) -> Standing:
    """Where a lease is, by its line of what is pending; None: nobody took it."""
    if row is None:
        return Standing(None, 0.0, 0, role)
    idle = row["time_since_delivered"] / 1000.0
    return Standing(row["consumer"].decode(), idle, row["times_delivered"], role)


def _entries(read: Any) -> list[tuple[bytes, dict[bytes, bytes]]]:
    """Entries of one stream, in either shape that redis-py gives by protocol version."""
    if not read:
        return []
    if isinstance(read, dict):
        (parts,) = read.values()
        return [entry for part in parts for entry in part]
    return list(read[0][1])


def _chunks(numbers: Sequence[int]) -> Iterator[list[int]]:
    for start in range(0, len(numbers), PAGES_A_CALL):
        yield list(numbers[start : start + PAGES_A_CALL])


def _field(key: Key) -> str:
    return ":".join(str(part) for part in key)


def _key(field: bytes) -> Key:
    round_number, number, token = (int(part) for part in field.split(b":"))
    return round_number, number, token
