"""Who gets the partitions: one member, the present one if it is still there."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from weald.stream.source.single_writer import Member, Partition, assign_all

ALL = [("events", i) for i in range(4)]


def member(identity: str, generation: int = -1, *owned: int) -> Member:
    return Member(identity, generation, frozenset(("events", i) for i in owned))


def counts(assigned: Mapping[str, list[Partition]]) -> dict[str, int]:
    return {identity: len(given) for identity, given in assigned.items()}


def test_the_first_of_a_new_group_writes() -> None:
    assert counts(assign_all([member("b"), member("a")], ALL)) == {"a": 4, "b": 0}


def test_a_writer_stays_whoever_joins() -> None:
    assert counts(assign_all([member("a"), member("b", 3, 0, 1, 2, 3)], ALL)) == {"a": 0, "b": 4}


def test_new_partitions_go_to_the_writer() -> None:
    assert counts(assign_all([member("a"), member("b", 3, 0, 1)], ALL)) == {"a": 0, "b": 4}


def test_a_member_that_missed_rebalances_is_not_believed() -> None:
    stale, current = member("a", 2, 0, 1, 2, 3), member("b", 5, 0, 1, 2, 3)
    assert counts(assign_all([stale, current], ALL)) == {"a": 0, "b": 4}


def test_what_another_still_owns_is_given_in_the_next_round() -> None:
    older, newer = member("a", 5, 0, 1), member("b", 6, 2)
    assert assign_all([older, newer], ALL) == {"a": [], "b": [ALL[2], ALL[3]]}
    assert counts(assign_all([member("a", 7), member("b", 7, 2, 3)], ALL)) == {"a": 0, "b": 4}


members = st.lists(
    st.tuples(st.integers(-1, 5), st.frozensets(st.sampled_from(ALL))), min_size=1, max_size=5
)


@given(members)
def test_a_group_settles_on_one_writer(joined: list[tuple[int, frozenset[Partition]]]) -> None:
    group = [Member(f"m{i}", *each) for i, each in enumerate(joined)]
    assigned: dict[str, list[Partition]] = {}
    for generation in range(6, 10):
        assigned = assign_all(group, ALL)
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
