"""A stream in shards: rows of its own for each shard, which say what the first of them said."""

import threading
from dataclasses import replace

import pytest

from tests.storage.batches import OWNER, SPEC, STREAM, full_batch
from weald.storage.commit.parts import part_name, part_of, whole_written_by
from weald.storage.errors import StreamConflict
from weald.storage.queries.base import Letters
from weald.storage.settings import StorageSettings
from weald.storage.sql import migrate
from weald.storage.writing.store import SqlStore

WHOLE = replace(SPEC, name="wide", shards=3)


def test_a_shard_is_what_the_whole_is_with_draws_of_its_own(store: SqlStore) -> None:
    parts = [store.ensure_part(WHOLE, shard) for shard in (1, 0)]
    assert [(part.name, part.shard, part.shards) for part in parts] == [
        ("wide/1", 1, 1),
        ("wide/0", 0, 1),
    ]
    assert len({WHOLE.seed, *(part.seed for part in parts)}) == 3
    assert parts[1] == part_of(WHOLE, 0)
    assert store.spec("wide") == WHOLE
    assert store.spec("wide/1") == parts[0]
    assert store.parts("wide") == {0: "wide/0", 1: "wide/1"}


def test_the_first_shard_writes_the_whole() -> None:
    assert whole_written_by("wide/0") == "wide"
    assert [whole_written_by(each) for each in ("wide", "wide/1", "wide/10", "/0")] == [None] * 4


def test_the_first_shard_says_what_all_are(store: SqlStore) -> None:
    first = store.ensure_part(replace(WHOLE, family_params={"kappa": 0.5}), 2)
    second = store.ensure_part(replace(WHOLE, family_params={"kappa": 0.7}), 0)
    assert second.family_params == first.family_params == {"kappa": 0.5}
    assert store.ensure_part(WHOLE, 0) == second


def test_shards_that_begin_at_once_agree(settings: StorageSettings) -> None:
    found = []

    def begin(shard: int) -> None:
        with SqlStore(settings) as own:
            whole = replace(WHOLE, family_params={"kappa": 1.0 + shard})
            found.append(own.ensure_part(whole, shard).family_params)

    threads = [threading.Thread(target=begin, args=(shard,)) for shard in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert found[0] == found[1] == found[2]


def test_parts_are_written_like_streams_and_listed_like_none(store: SqlStore) -> None:
    store.ensure_part(WHOLE, 1)
    store.claim("wide/1", OWNER, 1)
    store.commit(replace(full_batch(), stream=part_name("wide", 1)))
    assert store.status("wide/1").n_inserted == 10
    assert store.streams() == [STREAM, "wide"]
    assert store.parts(STREAM) == {}


def test_dead_letters_of_the_whole_are_those_of_its_shards(store: SqlStore) -> None:
    for shard in (0, 2):
        store.ensure_part(WHOLE, shard)
        part = part_name("wide", shard)
        store.claim(part, OWNER, 1)
        store.commit(replace(full_batch(), stream=part))
    letters = store.dead_letters("wide")
    assert len(letters) == 2
    assert store.dead_letters("wide", Letters(partition=0)) == letters
    assert store.dead_letters("wide", Letters(partition=1)) == []
    newest = letters[0].number
    assert store.request_replay("wide", Letters(numbers=[newest])) == (1, 0)
    # Whoever writes the shard takes it up.
    asked = [store.replay_requests(f"wide/{shard}", limit=5) for shard in (0, 2)]
    assert [[row.number for row in rows] for rows in asked] == [[], [newest]]
    assert store.purge_dead_letters("wide", Letters()) == 1
    assert [row.number for row in store.dead_letters("wide")] == [newest]
    assert store.dead_letters(STREAM) == []


def test_the_number_of_shards_stays(store: SqlStore) -> None:
    store.ensure_part(WHOLE, 0)
    for shards in (1, 4):
        with pytest.raises(StreamConflict, match=f"shards 3, asked for {shards}"):
            store.ensure_stream(replace(WHOLE, shards=shards))


def test_parts_survive_the_way_down_and_up_as_streams(
    settings: StorageSettings, store: SqlStore
) -> None:
    """What an earlier Weald makes of them; nothing that they hold is lost."""
    store.ensure_part(WHOLE, 1)
    store.close()
    migrate.downgrade(settings, "0022")
    migrate.upgrade(settings)
    with SqlStore(settings) as again:
        assert again.streams() == sorted([STREAM, "wide", "wide/1"])
