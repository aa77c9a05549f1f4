"""Leases through a real Redis: offered, taken, beaten for, reclaimed, parked, lost."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import redis

from tests.servers.server import wait_until
from weald.storage.redis.lease_queue import LeaseItem, LeaseQueue
from weald.storage.settings import RedisSettings

ITEMS = [LeaseItem((1, number, 7), bytes([number]) * 3) for number in range(3)]


@pytest.fixture
def queue(redis_url: str, request: pytest.FixtureRequest) -> Iterator[LeaseQueue]:
    with LeaseQueue(RedisSettings(url=redis_url), request.node.name) as opened:
        yield opened


def test_offered_taken_and_given_back(queue: LeaseQueue) -> None:
    assert queue.workers() == []
    assert queue.take("a", 10.0, 0.001) is None
    queue.offer(ITEMS)
    assert {key: each.worker for key, each in queue.standing().items()} == {
        item.key: None for item in ITEMS
    }
    taken = queue.take("a", 10.0, 0.1)
    assert taken is not None
    assert (taken.key, taken.payload, taken.deliveries) == (*_parts(ITEMS[0]), 1)
    assert queue.standing()[taken.key].worker == "a"
    assert queue.beat("a", taken)
    assert [(row.name, row.n_held) for row in queue.workers()] == [("a", 1)]
    assert not queue.beat("b", taken)
    queue.give_back("a", taken, b"answer")
    (back,) = queue.returned()
    assert (back.key, back.worker, back.payload) == (taken.key, "a", b"answer")
    assert queue.returned() == []
    assert set(queue.standing()) == {item.key for item in ITEMS[1:]}
    # The server keeps the contents of no lease that has come back.
    assert queue._client.hkeys(queue._bytes) == [b"1:1:7", b"1:2:7"]
    queue.forget("a")
    assert [row.name for row in queue.workers()] == ["b"]


def _parts(item: LeaseItem) -> tuple[tuple[int, int, int], bytes]:
    return item.key, item.payload


def test_the_lease_of_a_silent_worker_goes_to_another(queue: LeaseQueue) -> None:
    queue.offer(ITEMS[:1])
    first = queue.take("a", 10.0, 0.1)
    assert first is not None
    # Whatever was silent for no time at all is this one's to take over.
    second = queue.take("b", 0.0, 0.1)
    assert second is not None
    assert (second.key, second.deliveries) == (first.key, 2)
    assert not queue.beat("a", first)
    # Both answer: the writer drops the second.
    queue.give_back("b", second, None)
    queue.give_back("a", first, b"late")
    assert [(back.worker, back.payload) for back in queue.returned()] == [
        ("b", None),
        ("a", b"late"),
    ]


def test_a_flushed_server_is_no_error(queue: LeaseQueue, redis_url: str) -> None:
    queue.offer(ITEMS[:1])
    taken = queue.take("a", 10.0, 0.1)
    assert taken is not None
    redis.Redis.from_url(redis_url).flushall()
    assert not queue.beat("a", taken)
    assert queue.standing() == {}
    queue.give_back("a", taken, b"answer")
    assert len(queue.returned()) == 1
    assert queue.take("a", 10.0, 0.001) is None
    queue.offer(ITEMS[:1])
    assert queue.take("a", 10.0, 0.1) is not None


@pytest.mark.parametrize("step", ["xpending_range", "xclaim"])
def test_a_server_flushed_while_a_worker_beats(
    queue: LeaseQueue, redis_url: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    queue.offer(ITEMS[:1])
    taken = queue.take("a", 10.0, 0.1)
    assert taken is not None
    command = getattr(queue._client, step)

    def flushed(*arguments: Any, **options: Any) -> Any:
        redis.Redis.from_url(redis_url).flushall()
        return command(*arguments, **options)

    monkeypatch.setattr(queue._client, step, flushed)
    assert not queue.beat("a", taken)


def test_a_server_flushed_while_a_worker_waits(queue: LeaseQueue, redis_url: str) -> None:
    queue.take("a", 10.0, 0.001)
    server = redis.Redis.from_url(redis_url)
    found: list[object] = []
    waiting = threading.Thread(target=lambda: found.append(queue.take("a", 10.0, 4.0)))
    waiting.start()

    def blocked() -> bool:
        clients: Any = server.info("clients")
        return bool(clients["blocked_clients"])

    wait_until(blocked, "the worker waits")
    server.flushall()
    waiting.join()
    assert found == [None]


def test_leases_are_taken_by_workers_of_their_role(queue: LeaseQueue, redis_url: str) -> None:
    settings, stream = RedisSettings(url=redis_url), queue._workers.partition("{")[2][:-9]
    offered = [
        replace(item, role=role) for item, role in zip(ITEMS, ("all", "subc", "subc"), strict=True)
    ]
    with (
        LeaseQueue(settings, stream, ("all", "sdds", "subc")) as writer,
        LeaseQueue(settings, stream, ("subc",)) as side,
    ):
        writer.offer(offered)
        assert side.take("b", 10.0, 0.001) is not None
        taken = side.take("b", 10.0, 0.001)
        assert taken is not None
        assert taken.key == offered[2].key
        assert side.take("b", 10.0, 0.001) is None
        mine = queue.take("a", 10.0, 0.001)
        assert mine is not None
        assert mine.key == offered[0].key
        rows = {row.name: (row.role, row.n_held) for row in writer.workers()}
        assert rows == {"a": ("all", 1), "b": ("subc", 2)}
        assert {key: each.worker for key, each in writer.standing().items()} == {
            offered[0].key: "a",
            offered[1].key: "b",
            offered[2].key: "b",
        }
        # What nobody of its role works on is another's as soon as the writer has moved it.
        writer.withdraw([taken.key])
        assert not side.beat("b", taken)
        writer.offer([replace(offered[2], role="all")])
        moved = queue.take("a", 10.0, 0.001)
        assert moved is not None
        assert (moved.key, moved.deliveries) == (taken.key, 1)
        queue.give_back("a", moved, b"answer")
        side.give_back("b", taken, b"answer")
        assert [back.worker for back in writer.returned()] == ["a", "b"]
        writer.forget("b")
        assert [row.name for row in writer.workers()] == ["a"]


def test_withdrawn_leases_are_not_taken(queue: LeaseQueue) -> None:
    queue.offer(ITEMS)
    taken = queue.take("a", 10.0, 0.1)
    assert taken is not None
    queue.withdraw([item.key for item in ITEMS])
    assert queue.standing() == {}
    assert queue.take("b", 10.0, 0.001) is None
