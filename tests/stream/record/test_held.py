"""What is held between poll and commit: duplicates, accounts, and what a family cannot take."""

import json

import numpy as np
import pytest

from weald.storage.commit.commit import StreamSpec
from weald.stream.model.model import Fitness
from weald.stream.record.decode import decode
from weald.stream.record.pending_batch import Held, fresh
from weald.stream.record.record import Message, TopicPartition
from weald.stream.record.schema import Schema
from weald.stream.settings import FieldSettings, SchemaSettings

SCHEMA = Schema.of(SchemaSettings(fields=(FieldSettings("x"), FieldSettings("y"))))
POISSON = StreamSpec(
    name="counts",
    family="poisson",
    family_params={"shape": [1.0, 1.0], "rate": [1.0, 1.0]},
    prior="dp",
    prior_params={"alpha": 1.0},
    schema={"fields": [{"name": "x"}, {"name": "y"}], "key": None, "time": None},
    seed=0,
)


def messages(partition: int, *offsets: int) -> list[Message]:
    value = json.dumps({"x": 1, "y": 2}).encode()
    return [Message("events", partition, offset, 1_000 * offset, None, value) for offset in offsets]


def held(polled: list[Message], offsets: dict[TopicPartition, int]) -> Held:
    found = Held()
    kept = fresh(polled, offsets)
    found.add(polled, kept, decode(kept, SCHEMA), 5.0, offsets)
    return found


def test_what_sql_already_has_is_a_duplicate() -> None:
    polled = [*messages(0, 3, 4, 5, 5), *messages(1, 0, 1)]
    found = held(polled, {TopicPartition("events", 0): 5})
    first, second = found.advances({})
    assert (first.next_offset, first.n_received, first.n_inserted, first.n_duplicate) == (
        6,
        4,
        1,
        3,
    )
    assert (second.next_offset, second.n_received, second.n_inserted) == (2, 2, 2)
    assert found.batch.offset.tolist() == [5, 0, 1]
    assert found.reached == {TopicPartition("events", 0): 6, TopicPartition("events", 1): 2}


@pytest.mark.parametrize("offsets", [(3, 4), (3,)])
def test_only_duplicates_move_no_offset_back(offsets: tuple[int, ...]) -> None:
    place = TopicPartition("events", 0)
    found = held(messages(0, *offsets), {place: 5})
    (advance,) = found.advances({})
    assert (advance.n_received, advance.n_duplicate) == (len(offsets), len(offsets))
    assert (advance.next_offset, len(found), found.reached) == (5, 0, {place: 5})


def test_offsets_may_have_gaps() -> None:
    found = held(messages(0, 10, 17, 40), {TopicPartition("events", 0): 8})
    (advance,) = found.advances({})
    assert (advance.next_offset, advance.n_inserted) == (41, 3)


def test_two_polls_make_one_block() -> None:
    found = held(messages(0, 0, 1), {})
    later = messages(0, 2)
    found.add(later, later, decode(later, SCHEMA), 6.0, {})
    block = found.block(11, np.array([1, 1, 2]))
    assert block is not None
    assert block.seq.tolist() == [11, 12, 13]
    assert block.offset.tolist() == [0, 1, 2]
    assert found.newest() == {TopicPartition("events", 0): 2.0}
    assert found.broker_times().tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("bad", [[-1.0, 2.0], [0.5, 2.0]])
def test_what_the_family_cannot_take_becomes_a_dead_letter(bad: list[float]) -> None:
    found = held(messages(0, 0, 1, 2), {})
    found.batch.values[1] = bad
    dead = found.refuse(Fitness(POISSON).refused(found.batch.values))
    assert [(letter.reason, letter.offset) for letter in dead] == [("unfit", 1)]
    assert dead[0].value == b'{"x": 1, "y": 2}'
    (advance,) = found.advances({})
    assert (advance.n_received, advance.n_inserted, advance.n_dead) == (3, 2, 1)
    assert found.batch.offset.tolist() == [0, 2]
