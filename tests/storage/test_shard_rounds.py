"""Rounds of shards in SQL: who may write what, what stays, and how long."""

from dataclasses import replace

import numpy as np
import pytest

from tests.storage.batches import OWNER, SPEC
from weald.storage.commit.commit import BatchCommit
from weald.storage.commit.shard_rows import ANSWERED, ASKED, ShardMessageRow, ShardRoundRow
from weald.storage.errors import Fenced, InvariantBroken
from weald.storage.writing.store import SqlStore

WHOLE = replace(SPEC, name="wide", shards=2)
LEARNED = {"family": {"kappa": 0.1 + 0.2}, "prior": ["dp", {"alpha": 1 / 3}]}


def round_row(number: int, step: int, next_name: int = 2) -> ShardRoundRow:
    return ShardRoundRow(number, WHOLE.seed, step, LEARNED, next_name, 10.0 * number)


def said(number: int, step: int, shard: int, direction: str) -> ShardMessageRow:
    return ShardMessageRow(number, step, shard, direction, {"x": np.array([step, shard])})


@pytest.fixture
def shards(store: SqlStore) -> SqlStore:
    for shard in range(2):
        store.ensure_part(WHOLE, shard)
        store.claim(f"wide/{shard}", OWNER, 1)
    return store


def commit(store: SqlStore, shard: int, epoch: int, **what: object) -> None:
    store.commit(BatchCommit(f"wide/{shard}", OWNER, 1, epoch, **what))  # type: ignore[arg-type]  # of the commit


def test_what_was_said_stays_until_the_next_round_opens(shards: SqlStore) -> None:
    for shard in range(2):
        commit(shards, shard, 1, shard_messages=[said(1, 0, shard, ANSWERED)])
    assert shards.shard_round("wide") is None
    asked = [said(1, 1, shard, ASKED) for shard in range(2)]
    commit(shards, 0, 2, shard_round=round_row(1, 1), shard_messages=asked)
    assert shards.shard_round("wide") == round_row(1, 1)
    assert shards.shard_steps("wide", 1, ASKED) == [(1, 0), (1, 1)]
    (found,) = shards.shard_messages("wide", 1, ASKED, shard=1)
    assert found.payload["x"].tolist() == [1, 1]
    commit(shards, 0, 3, shard_round=round_row(1, 5, 8))
    assert shards.shard_round("wide") == round_row(1, 5, 8)
    for shard in range(2):
        commit(shards, shard, 4 if shard == 0 else 2, shard_messages=[said(2, 0, shard, ANSWERED)])
    assert shards.shard_steps("wide", 1, ANSWERED) == [(0, 0), (0, 1)]
    commit(shards, 0, 5, shard_round=round_row(2, 1, 8))
    assert shards.shard_steps("wide", 1, ANSWERED) == []
    assert shards.shard_steps("wide", 2, ANSWERED) == [(0, 0), (0, 1)]
    assert shards.shard_round("wide", 1) == replace(round_row(1, 5, 8), closed_at=20.0)


def test_a_fenced_owner_writes_nothing(shards: SqlStore) -> None:
    shards.claim("wide/0", "another", 2)
    with pytest.raises(Fenced):
        commit(shards, 0, 1, shard_round=round_row(1, 1), shard_messages=[said(1, 1, 0, ASKED)])
    assert shards.shard_round("wide") is None
    assert shards.shard_steps("wide", 1, ASKED) == []


def test_shard_0_asks_and_each_answers_for_itself(shards: SqlStore) -> None:
    for what in (
        {"shard_round": round_row(1, 1)},
        {"shard_messages": [said(1, 1, 1, ASKED)]},
        {"shard_messages": [said(1, 1, 0, ANSWERED)]},
    ):
        with pytest.raises(InvariantBroken, match="answers for itself"):
            commit(shards, 1, 1, **what)
    with pytest.raises(InvariantBroken):
        shards.commit(BatchCommit(SPEC.name, OWNER, 1, 1, shard_round=round_row(1, 1)))
    assert shards.shard_round("wide") is None


def test_a_shard_says_of_what_it_is_a_part(shards: SqlStore) -> None:
    assert shards.whole("wide/1") == WHOLE
    assert shards.whole(SPEC.name) is None
