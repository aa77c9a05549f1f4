"""Rows of leases through a real Redis: sent once, fetched once, and never mistaken for others."""

from collections.abc import Iterator

import numpy as np
import pytest
import redis

from weald.mcmc.leases.leases import Budget, Lease
from weald.mcmc.leases.outstanding import Lent
from weald.storage.redis.lease_queue import LeaseQueue
from weald.storage.settings import RedisSettings
from weald.stream.worker.row_pages import RowsKept, RowsSent
from weald.treecore.family import FAMILIES
from weald.treecore.prior import build_prior

N, D = 3000, 4
BUDGET = Budget("gibbs", 1, 7)
KEYS = [(1, 0, 5), (1, 1, 5)]


@pytest.fixture
def queue(redis_url: str, request: pytest.FixtureRequest) -> Iterator[LeaseQueue]:
    with LeaseQueue(RedisSettings(url=redis_url), request.node.name) as opened:
        yield opened


def roles(keys: list[tuple[int, int, int]]) -> dict[tuple[int, int, int], str]:
    return dict.fromkeys(keys, "all")


def lent_round(rows: np.ndarray) -> dict[tuple[int, int, int], Lent]:
    """Two leases of interleaved atoms, whose ids have gaps."""
    family = FAMILIES["bernoulli"].build({}, np.zeros((1, D)))
    made = {}
    for key, half in zip(KEYS, (slice(0, None, 2), slice(1, None, 2)), strict=True):
        part = rows[half]
        n = len(part)
        nothing = np.empty(0, dtype=np.int64)
        lease = Lease(
            family=family,
            prior=build_prior("dp", {}),
            log_share=0.0,
            labels=np.zeros(n, dtype=np.int64),
            size=np.ones(n, dtype=np.int64),
            rows=part,
            form=(nothing, nothing),
            anchors=nothing,
            budget=BUDGET,
        )
        made[key] = Lent(np.arange(len(rows), dtype=np.int64)[half] * 3 + 1, lease)
    return made


def taken(queue: LeaseQueue, kept: RowsKept) -> Lease | None:
    held = queue.take("a", 10.0, 0.1)
    assert held is not None
    lease = kept.lease(queue, held.payload)
    if lease is None:
        queue.drop(held)
    else:
        queue.give_back("a", held, b"answer")
    return lease


def test_rows_come_with_their_atoms_and_are_sent_once(queue: LeaseQueue) -> None:
    rows = np.random.default_rng(1).random((N, 100))
    leases, sent, kept = lent_round(rows), RowsSent(), RowsKept()
    first = sent.offer(queue, leases, roles(KEYS))
    for key in KEYS:
        lease = taken(queue, kept)
        assert lease is not None
        np.testing.assert_array_equal(lease.rows, leases[key].lease.rows)
        assert lease.budget == BUDGET
    assert first > rows.nbytes
    assert sent.offer(queue, leases, roles(KEYS)) < rows.nbytes / 50
    for key in KEYS:
        lease = taken(queue, kept)
        assert lease is not None
        np.testing.assert_array_equal(lease.rows, leases[key].lease.rows)
    changed = rows.copy()
    changed[17] += 1.0
    again = sent.offer(queue, lent_round(changed), roles(KEYS))
    assert rows.nbytes / 100 < again < rows.nbytes / 20
    for key in KEYS:
        lease = taken(queue, kept)
        assert lease is not None
        np.testing.assert_array_equal(lease.rows, lent_round(changed)[key].lease.rows)


def test_atoms_that_are_gone_leave_no_page(queue: LeaseQueue, redis_url: str) -> None:
    rows = np.random.default_rng(2).random((N, 100))
    sent = RowsSent()
    sent.offer(queue, lent_round(rows), roles(KEYS))
    server = redis.Redis.from_url(redis_url)
    name = f"weald:{{{test_atoms_that_are_gone_leave_no_page.__name__}}}:lease_rows"
    before = server.hlen(name)
    sent.offer(queue, lent_round(rows[: N // 10]), roles(KEYS))
    assert 0 < server.hlen(name) < before / 5


@pytest.mark.parametrize("loss", ["flushed", "older"])
def test_lost_rows_are_noticed_and_sent_again(
    queue: LeaseQueue, redis_url: str, request: pytest.FixtureRequest, loss: str
) -> None:
    rows = np.random.default_rng(3).random((N, 10))
    sent, kept = RowsSent(), RowsKept()
    sent.offer(queue, lent_round(rows), roles([]))
    server = redis.Redis.from_url(redis_url)
    name = f"weald:{{{request.node.name}}}:lease_rows"
    older = server.hgetall(name)
    leases = lent_round(rows + 1.0)
    sent.offer(queue, leases, roles(KEYS))
    server.delete(name)
    if loss == "older":
        for number, page in older.items():
            server.hset(name, number, page)
    assert taken(queue, kept) is None
    assert set(queue.standing()) == {KEYS[1]}
    sent.forget()
    sent.offer(queue, leases, roles(KEYS[:1]))
    assert taken(queue, kept) is not None
    lease = taken(queue, kept)
    assert lease is not None
    np.testing.assert_array_equal(lease.rows, leases[KEYS[0]].lease.rows)


def test_what_came_back_leaves_nothing_behind(queue: LeaseQueue, redis_url: str) -> None:
    rows = np.random.default_rng(4).random((N, 10))
    sent, kept = RowsSent(), RowsKept()
    server = redis.Redis.from_url(redis_url)
    name = f"weald:{{{test_what_came_back_leaves_nothing_behind.__name__}}}:lease_bytes"
    for _ in range(3):
        sent.offer(queue, lent_round(rows), roles(KEYS))
        assert server.hlen(name) == 2
        assert taken(queue, kept) is not None
        assert taken(queue, kept) is not None
        assert server.hlen(name) == 0
