"""Stable cluster ids: matching, conservation, and events that explain every change."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from weald.stream.publication.publication import LineageEvent, Moment, Published, publish
from weald.stream.tables.contingency import places_in

MOMENT = Moment(seq=9, time=100.0)
Labels = NDArray[np.int64]


def shown(*sizes: tuple[int, int], number: int = 3, next_cluster: int = 50) -> Published:
    clusters = np.concatenate([np.full(n, cluster) for cluster, n in sizes])
    return Published(number, clusters.astype(np.int64), next_cluster)


def told(events: list[LineageEvent]) -> list[tuple[str, int, tuple[int, ...], int, int]]:
    return [(e.kind, e.cluster, e.parents, e.size, e.n_moved) for e in events]


def test_the_first_publication_of_arrivals_keeps_their_ids() -> None:
    previous = shown((1, 4), (2, 3), number=0, next_cluster=3)
    published, events, changed = publish(previous, np.array([7, 7, 7, 7, 0, 0, 0]), MOMENT)
    assert (published.number, published.next_cluster, events, len(changed)) == (1, 3, [], 0)


def test_nothing_published_yet() -> None:
    published, events, changed = publish(Published.empty(), np.empty(0, np.int64), MOMENT)
    assert (published.number, len(events), len(changed)) == (1, 0, 0)


def test_the_larger_part_of_a_split_keeps_the_id() -> None:
    published, events, changed = publish(shown((4, 10)), np.repeat([1, 0], [3, 7]), MOMENT)
    assert told(events) == [("split", 50, (4,), 3, 3)]
    assert published.clusters.tolist() == [50] * 3 + [4] * 7
    assert published.next_cluster == 51
    assert changed.tolist() == [0, 1, 2]
    assert (events[0].publication, events[0].seq, events[0].time) == (4, 9, 100.0)


def test_the_larger_cluster_of_a_merge_keeps_the_id() -> None:
    published, events, _ = publish(shown((4, 3), (5, 8)), np.zeros(11, np.int64), MOMENT)
    assert told(events) == [("merge", 5, (4,), 11, 3), ("retire", 4, (), 3, 0)]
    assert set(published.clusters.tolist()) == {5}


def test_a_move_between_two_that_live_on() -> None:
    labels = np.repeat([0, 1], [8, 12])
    _, events, changed = publish(shown((4, 10), (5, 10)), labels, MOMENT)
    assert told(events) == [("move", 5, (4,), 12, 2)]
    assert changed.tolist() == [8, 9]


def test_a_cluster_without_a_main_parent_is_born() -> None:
    # Three tens of each of two clusters leave for a block of their own.
    labels = np.concatenate([np.repeat([0, 2], [10, 5]), np.repeat([1, 2], [10, 5])])
    _, events, _ = publish(shown((4, 15), (5, 15)), labels, MOMENT)
    assert told(events) == [("birth", 50, (4, 5), 10, 10)]


def test_a_dissolved_cluster_moves_and_retires() -> None:
    labels = np.concatenate([np.repeat([0], 10), np.repeat([1], 10), np.repeat([0, 1], [2, 2])])
    _, events, _ = publish(shown((4, 10), (5, 10), (6, 4)), labels, MOMENT)
    assert told(events) == [
        ("move", 4, (6,), 12, 2),
        ("move", 5, (6,), 12, 2),
        ("retire", 6, (), 4, 0),
    ]


partitions = st.integers(1, 60).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(1, 7), min_size=n, max_size=n),
        st.lists(st.integers(0, 6), min_size=n, max_size=n),
    )
)


@given(partitions)
def test_every_change_is_told_once_and_sizes_add_up(pair: tuple[list[int], list[int]]) -> None:
    previous = Published(2, np.array(pair[0], dtype=np.int64), 8)
    labels = np.array(pair[1], dtype=np.int64)
    published, events, changed = publish(previous, labels, MOMENT)
    old, new = previous.clusters, published.clusters

    # The shown partition is the reference partition.
    assert len(set(zip(new.tolist(), labels.tolist(), strict=True))) == len(set(labels.tolist()))
    assert len(set(new.tolist())) == len(set(labels.tolist()))
    # Ids are never used again.
    assert all(cluster < 8 or cluster not in pair[0] for cluster in new.tolist())
    born = {e.cluster for e in events if e.kind in {"birth", "split"}}
    assert born == set(new.tolist()) - set(old.tolist()) == set(range(8, published.next_cluster))
    retired = {e.cluster for e in events if e.kind == "retire"}
    assert retired == set(old.tolist()) - set(new.tolist())

    # Each flow from one id to another belongs to exactly one event.
    flows = Counter((a, b) for a, b in zip(old.tolist(), new.tolist(), strict=True) if a != b)
    counted = Counter((p, e.cluster) for e in events for p in e.parents)
    assert set(counted) == set(flows)
    assert set(counted.values()) <= {1}
    for event in events:
        size = (old if event.kind == "retire" else new).tolist().count(event.cluster)
        assert event.size == size
        assert event.n_moved == sum(flows[parent, event.cluster] for parent in event.parents)
    assert sum(event.n_moved for event in events) == len(changed) == flows.total()
    for event in events:
        if event.kind == "split":
            assert event.parents[0] in new
            assert 2 * flows[event.parents[0], event.cluster] > event.size
        if event.kind == "merge":
            assert set(event.parents) <= retired


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.permutations(range(10)))
def test_a_relabelled_partition_is_no_news(clusters: list[int], names: list[int]) -> None:
    previous = Published(0, np.array(clusters, dtype=np.int64), 10)
    labels = np.array([names[cluster] for cluster in clusters])
    published, events, changed = publish(previous, labels, MOMENT)
    np.testing.assert_array_equal(published.clusters, previous.clusters)
    assert (events, len(changed), published.next_cluster) == ([], 0, 10)


@given(partitions, st.permutations(range(7)))
def test_the_sampler_s_numbering_does_not_matter(
    pair: tuple[list[int], list[int]], names: list[int]
) -> None:
    previous = Published(2, np.array(pair[0], dtype=np.int64), 8)
    labels = np.array(pair[1])
    one = publish(previous, labels, MOMENT)
    other = publish(previous, np.array(names)[labels], MOMENT)
    np.testing.assert_array_equal(one[0].clusters, other[0].clusters)
    assert one[1] == other[1]


@given(st.sets(st.integers(0, 20)), st.lists(st.integers(-1, 22)))
def test_ids_are_found_among_others(known: set[int], asked: list[int]) -> None:
    ids = np.array(sorted(known), dtype=np.int64)
    places = places_in(ids, np.array(asked, dtype=np.int64))
    expected = [sorted(known).index(each) if each in known else -1 for each in asked]
    assert places.tolist() == expected
