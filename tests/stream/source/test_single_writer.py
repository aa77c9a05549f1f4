"""Who gets the partitions: of each shard one member, the present one if it is still there."""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from weald.stream.source.single_writer import (
    Member,
    Partition,
    Seat,
    SingleWriterAssignor,
    assign_shards,
)

ALL = [("events", i) for i in range(4)]


def member(identity: str, generation: int = -1, *owned: int) -> Member:
    return Member(identity, generation, frozenset(("events", i) for i in owned))


def counts(assigned: Mapping[str, list[Partition]]) -> dict[str, int]:
    return {identity: len(given) for identity, given in assigned.items()}


def test_the_first_of_a_new_group_writes() -> None:
    assert counts(assign_shards([member("b"), member("a")], ALL)) == {"a": 4, "b": 0}


def test_a_writer_stays_whoever_joins() -> None:
    assert counts(assign_shards([member("a"), member("b", 3, 0, 1, 2, 3)], ALL)) == {"a": 0, "b": 4}


def test_new_partitions_go_to_the_writer() -> None:
    assert counts(assign_shards([member("a"), member("b", 3, 0, 1)], ALL)) == {"a": 0, "b": 4}


def test_a_member_that_missed_rebalances_is_not_believed() -> None:
    stale, current = member("a", 2, 0, 1, 2, 3), member("b", 5, 0, 1, 2, 3)
    assert counts(assign_shards([stale, current], ALL)) == {"a": 0, "b": 4}


def test_what_another_still_owns_is_given_in_the_next_round() -> None:
    older, newer = member("a", 5, 0, 1), member("b", 6, 2)
    assert assign_shards([older, newer], ALL) == {"a": [], "b": [ALL[2], ALL[3]]}
    assert counts(assign_shards([member("a", 7), member("b", 7, 2, 3)], ALL)) == {"a": 0, "b": 4}


members = st.lists(
    st.tuples(st.integers(-1, 5), st.frozensets(st.sampled_from(ALL))), min_size=1, max_size=5
)


@given(members)
def test_a_group_settles_on_one_writer(joined: list[tuple[int, frozenset[Partition]]]) -> None:
    group = [Member(f"m{i}", *each) for i, each in enumerate(joined)]
    assigned: dict[str, list[Partition]] = {}
    for generation in range(6, 10):
        assigned = assign_shards(group, ALL)
        holders = [identity for identity, given in assigned.items() if given]
        assert len(holders) <= 1
        # Nobody is given what another member owned when it joined.
        for each in group:
            others = set().union(*(one.owned for one in group if one is not each))
            newer = {p for one in group if one.generation >= each.generation for p in one.owned}
            assert not (set(assigned[each.identity]) & others & newer) - each.owned
        group = [
            Member(one.identity, generation, frozenset(assigned[one.identity])) for one in group
        ]
    assert sorted(p for given in assigned.values() for p in given) == ALL


# Streams in shards.


def seated(process: str, shards: int = 4) -> list[Member]:
    """The members of one process: one for each shard, which own nothing yet."""
    return [
        Member(f"{process}{shard}", -1, frozenset(), Seat(shard, shards, process))
        for shard in range(shards)
    ]


def meet(group: Sequence[Member], partitions: Sequence[Partition], shards: int) -> list[Member]:
    """Let the group meet until nothing changes; what it comes to."""
    for generation in range(1, 10):
        assigned = assign_shards(group, partitions, shards)
        owned = [frozenset(assigned[each.identity]) for each in group]
        taken = [place for each in owned for place in each]
        assert len(set(taken)) == len(taken)
        settled = owned == [each.owned for each in group]
        # Between two meetings nobody has what somebody else had and has not given up.
        for each, now in zip(group, owned, strict=True):
            others = set().union(*(one.owned for one in group if one is not each))
            assert not (now - each.owned) & others
        group = [
            each._replace(generation=generation, owned=now)
            for each, now in zip(group, owned, strict=True)
        ]
        if settled:
            return list(group)
    raise AssertionError("the group does not settle")


def shares(group: Sequence[Member]) -> Counter[str]:
    return Counter(each.seat.process for each in group if each.owned)


def test_one_process_alone_writes_all_shards() -> None:
    eight = [("events", i) for i in range(8)]
    for member in meet(seated("a"), eight, 4):
        shard = member.seat.shard
        assert member.owned == {("events", shard), ("events", shard + 4)}


def test_processes_that_come_later_get_their_share() -> None:
    group = meet(seated("a"), ALL, 4)
    group = meet([*group, *seated("b")], ALL, 4)
    assert shares(group) == {"a": 2, "b": 2}
    group = meet([*group, *seated("c")], ALL, 4)
    assert sorted(shares(group).values()) == [1, 1, 2]


def test_members_that_join_one_by_one_come_to_the_same() -> None:
    group: list[Member] = []
    for process in "abc":
        for member in seated(process):
            group = meet([*group, member], ALL, 4)
    assert sorted(shares(group).values()) == [1, 1, 2]


def test_a_shard_stays_where_no_process_has_two_fewer() -> None:
    group = meet([*seated("a", 2), *seated("b", 2)], ALL, 2)
    owned = [each.owned for each in group]
    assert [each.owned for each in meet([*group, *seated("0", 2)], ALL, 2)[:4]] == owned


def test_the_shards_of_a_process_that_dies_are_shared_by_the_others() -> None:
    group = meet([*seated("a"), *seated("b"), *seated("c")], ALL, 4)
    kept = {each.identity: each.owned for each in group if each.owned and each.seat.process != "a"}
    group = meet([each for each in group if each.seat.process != "a"], ALL, 4)
    assert shares(group) == {"b": 2, "c": 2}
    now = {each.identity: each.owned for each in group}
    assert all(now[identity] == owned for identity, owned in kept.items())


def test_members_of_another_number_of_shards_get_nothing() -> None:
    assigned = assign_shards([*seated("a", 2), *seated("b", 4), member("c")], ALL, 2)
    assert {identity[0] for identity, given in assigned.items() if given} == {"a"}


def test_a_shard_that_nobody_stands_for_waits() -> None:
    assert counts(assign_shards(seated("a")[:3], ALL, 4)) == {"a0": 1, "a1": 1, "a2": 1}


processes = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["come", "go"])), min_size=1, max_size=8
)


@given(processes, st.integers(2, 4), st.integers(0, 3))
def test_any_coming_and_going_settles_and_is_even(
    events: list[tuple[str, str]], shards: int, extra: int
) -> None:
    partitions = [("events", i) for i in range(shards + extra)]
    group: list[Member] = []
    for process, what in events:
        group = [each for each in group if each.seat.process != process]
        if what == "come":
            group += seated(process, shards)
        if not group:
            continue
        group = meet(group, partitions, shards)
        there = {each.seat.process for each in group}
        load = [shares(group)[each] for each in there]
        assert max(load) - min(load) <= 1
        assert sorted(place for each in group for place in each.owned) == partitions


def test_what_a_member_says_is_heard() -> None:
    for seat in (Seat(), Seat(3, 16, "0123456789ab")):
        assignor = SingleWriterAssignor(seat)
        owned = SimpleNamespace(partitions=lambda: [SimpleNamespace(topic="events", partition=3)])
        assignor.on_assignment(owned, 7)
        joined = SimpleNamespace(member_id="m", metadata=assignor.metadata(["events"]))
        cluster = SimpleNamespace(partitions_for_topic=lambda _: range(16))
        answer = assignor.assign(cluster, [joined])
        assert list(answer) == ["m"]
        found = sorted(p for _, given in answer["m"].assigned_partitions for p in given)
        assert found == ([3] if seat.shards > 1 else list(range(16)))
