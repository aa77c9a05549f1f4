"""Redis in this process: the commands that Weald uses, under virtual time; real scripts run in it.

Answers are those of redis-py. `test_redis_store.py` holds it against a real server.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import redis
from lupa import LuaRuntime

__all__ = ["Commands", "RedisStore"]

Id = tuple[int, int]
Fields = dict[bytes, bytes]


@dataclass
class _Pending:
    consumer: bytes
    since: float
    deliveries: int


@dataclass
class _Group:
    delivered: Id = (0, 0)
    pending: dict[Id, _Pending] = field(default_factory=dict)


@dataclass
class _Stream:
    entries: dict[Id, Fields] = field(default_factory=dict)
    last: Id = (0, 0)
    groups: dict[bytes, _Group] = field(default_factory=dict)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _id(text: Any) -> Id:
    first, _, second = _bytes(text).decode().partition("-")
    return int(first), int(second or 0)


def _name(number: Id) -> bytes:
    return b"%d-%d" % number


class RedisStore:
    """What the server holds.

    Parameters
    ----------
    clock : callable
        Seconds since 1970.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.keys: dict[bytes, Any] = {}

    def image(self) -> dict[bytes, Any]:
        """A copy of everything, as a replica has it that falls behind."""
        return copy.deepcopy(self.keys)


_LUA: Any = LuaRuntime(encoding=None)


@cache
def _compiled(source: str) -> Any:
    head = b"function(call, KEYS, ARGV) local redis = {call = call}\n"
    return _LUA.eval(head + source.encode() + b"\nend")


class Commands:
    """redis-py's methods, done at once; `RedisStore` is shared by all clients."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    def _now_ms(self) -> int:
        return int(self._store.clock() * 1000)

    def time(self) -> tuple[int, int]:
        now = self._store.clock()
        return int(now), int(now % 1 * 1e6)

    # Hashes and keys.

    def hset(self, key: Any, name: Any = None, value: Any = None, mapping: Any = None) -> int:
        row = self._store.keys.setdefault(_bytes(key), {})
        before = len(row)
        pairs = {**(mapping or {}), **({} if name is None else {name: value})}
        row.update({_bytes(k): _bytes(v) for k, v in pairs.items()})
        return len(row) - before

    def hget(self, key: Any, name: Any) -> bytes | None:
        found: bytes | None = self._store.keys.get(_bytes(key), {}).get(_bytes(name))
        return found

    def hmget(self, key: Any, names: Sequence[Any]) -> list[bytes | None]:
        return [self.hget(key, name) for name in names]

    def hgetall(self, key: Any) -> Fields:
        return dict(self._store.keys.get(_bytes(key), {}))

    def hdel(self, key: Any, *names: Any) -> int:
        row = self._store.keys.get(_bytes(key), {})
        gone = sum(row.pop(_bytes(name), None) is not None for name in names)
        if not row:
            self._store.keys.pop(_bytes(key), None)
        return gone

    def delete(self, *keys: Any) -> int:
        return sum(self._store.keys.pop(_bytes(key), None) is not None for key in keys)

    def rename(self, old: Any, new: Any) -> bool:
        self._store.keys[_bytes(new)] = self._store.keys.pop(_bytes(old))
        return True

    def exists(self, key: Any) -> int:
        return int(_bytes(key) in self._store.keys)

    def expire(self, key: Any, _seconds: int) -> int:
        return self.exists(key)

    def persist(self, key: Any) -> int:
        return self.exists(key)

    def memory_usage(self, key: Any) -> int | None:
        return 100 if self.exists(key) else None

    def ping(self) -> bool:
        return True

    # Streams.

    def _stream(self, key: Any) -> _Stream:
        return self._store.keys.setdefault(_bytes(key), _Stream())  # type: ignore[no-any-return]

    def xadd(self, key: Any, fields: Mapping[Any, Any], **limits: Any) -> bytes:
        stream = self._stream(key)
        now = (self._now_ms(), 0)
        stream.last = now if now > stream.last else (stream.last[0], stream.last[1] + 1)
        stream.entries[stream.last] = {_bytes(k): _bytes(v) for k, v in fields.items()}
        while len(stream.entries) > limits.get("maxlen", 10**9):
            del stream.entries[next(iter(stream.entries))]
        return _name(stream.last)

    def xrange(self, key: Any) -> list[tuple[bytes, Fields]]:
        stream = self._store.keys.get(_bytes(key), _Stream())
        return [(_name(number), dict(fields)) for number, fields in stream.entries.items()]

    def xdel(self, key: Any, *names: Any) -> int:
        entries = self._store.keys.get(_bytes(key), _Stream()).entries
        return sum(entries.pop(_id(name), None) is not None for name in names)

    def xgroup_create(self, key: Any, group: Any, **_: Any) -> bool:
        if _bytes(group) in self._stream(key).groups:
            raise redis.ResponseError("BUSYGROUP Consumer Group name already exists")
        self._stream(key).groups[_bytes(group)] = _Group()
        return True

    def xgroup_delconsumer(self, key: Any, group: Any, consumer: Any) -> int:
        pending = self._group(key, group)[1].pending
        gone = [n for n, each in pending.items() if each.consumer == _bytes(consumer)]
        for number in gone:
            del pending[number]
        return len(gone)

    def _group(self, key: Any, group: Any) -> tuple[_Stream, _Group]:
        stream = self._store.keys.get(_bytes(key))
        if stream is None or _bytes(group) not in stream.groups:
            raise redis.ResponseError(f"NOGROUP No such key {key!r} or consumer group {group!r}")
        return stream, stream.groups[_bytes(group)]

    def xreadgroup(
        self, group: Any, consumer: Any, streams: Mapping[Any, Any], count: int, _block: int = 0
    ) -> Any:
        ((key, _),) = streams.items()
        stream, members = self._group(key, group)
        new = [number for number in stream.entries if number > members.delivered][:count]
        for number in new:
            members.delivered = number
            members.pending[number] = _Pending(_bytes(consumer), self._store.clock(), 1)
        found = [(_name(number), dict(stream.entries[number])) for number in new]
        return [[_bytes(key), found]] if found else []

    def xautoclaim(
        self, key: Any, group: Any, consumer: Any, least_ms: int, count: int = 100
    ) -> list[Any]:
        stream, members = self._group(key, group)
        claimed: list[tuple[bytes, Fields]] = []
        for number in sorted(members.pending):
            pending = members.pending[number]
            if number not in stream.entries:
                del members.pending[number]
            elif (self._store.clock() - pending.since) * 1000 >= least_ms and len(claimed) < count:
                members.pending[number] = _Pending(
                    _bytes(consumer), self._store.clock(), pending.deliveries + 1
                )
                claimed.append((_name(number), dict(stream.entries[number])))
        return [b"0-0", claimed, []]

    def xpending_range(
        self, key: Any, group: Any, least: Any, most: Any, count: int
    ) -> list[dict[str, Any]]:
        _, members = self._group(key, group)
        low = (0, 0) if least == "-" else _id(least)
        high = (2**63, 0) if most == "+" else _id(most)
        return [
            {
                "message_id": _name(number),
                "consumer": each.consumer,
                "time_since_delivered": int((self._store.clock() - each.since) * 1000),
                "times_delivered": each.deliveries,
            }
            for number, each in sorted(members.pending.items())
            if low <= number <= high
        ][:count]

    def xclaim(
        self, key: Any, group: Any, consumer: Any, _least: int, names: Sequence[Any], justid: bool
    ) -> list[bytes]:  # as redis-py
        _, members = self._group(key, group)
        claimed = []
        for name in names:
            pending = members.pending.get(_id(name))
            if pending is not None:
                more = 0 if justid else 1
                members.pending[_id(name)] = _Pending(
                    _bytes(consumer), self._store.clock(), pending.deliveries + more
                )
                claimed.append(_bytes(name))
        return claimed

    def xack(self, key: Any, group: Any, *names: Any) -> int:
        stream = self._store.keys.get(_bytes(key), _Stream())
        members = stream.groups.get(_bytes(group), _Group())
        return sum(members.pending.pop(_id(name), None) is not None for name in names)

    # Scripts.

    def script(self, source: str, keys: Sequence[Any], args: Sequence[Any]) -> Any:
        """Run a Lua script as the server would."""
        lua = _LUA
        names: dict[bytes, Any] = {
            b"HGET": self.hget,
            b"HSET": self.hset,
            b"HDEL": self.hdel,
            b"DEL": self.delete,
        }
        names |= {b"RENAME": self.rename, b"TIME": self.time}

        def call(name: bytes, *arguments: Any) -> Any:
            answer = names[name](*(_number(each) for each in arguments))
            if isinstance(answer, tuple):
                return lua.table(*(b"%d" % each for each in answer))
            return False if answer is None else answer

        run = _compiled(source)
        answer = run(call, lua.table(*map(_bytes, keys)), lua.table(*map(_bytes, args)))
        return answer if isinstance(answer, int) else list(answer.values())


def _number(value: Any) -> Any:
    return int(value) if isinstance(value, float) else value
