"""Certainty of what is shown: against a slow count, cut to what changed, whole after a restart."""

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from weald.stream.publication.certainty import DRAWS_KEPT, RecentDraws, judge
from weald.stream.tables.atom_table import Roster

Labels = NDArray[np.int64]


def padded(draws: list[NDArray[np.int32]], n: int) -> list[NDArray[np.int32]]:
    """-1 for what came after a draw."""
    return [np.append(draw, np.full(n - len(draw), -1, dtype=np.int32)) for draw in draws]


def roster_of(clusters: Labels) -> Roster:
    """One observation an atom, in order."""
    roster = Roster()
    n = len(clusters)
    roster.enter(np.arange(n), 1 + np.arange(n), np.zeros(n), clusters)
    return roster


def slow(draws: list[NDArray[np.int32]], clusters: Labels, i: int) -> tuple[float, float]:
    """Probability and stability of one observation, by counting."""
    inside, together = [], []
    for draw in draws:
        if i >= len(draw):
            continue
        members = [j for j in range(len(draw)) if clusters[j] == clusters[i]]
        blocks = [int(draw[j]) for j in members]
        largest = max(sorted(set(blocks)), key=blocks.count)
        inside.append(draw[i] == largest)
        mates = [draw[j] == draw[i] for j in members if j != i]
        together.append(np.mean(mates) if mates else 1.0)
    return float(np.mean(inside)), float(np.mean(together))


def test_every_observation_is_judged_as_by_counting(rng: Generator) -> None:
    clusters = rng.integers(3, 9, size=60)
    draws = [rng.integers(0, 5, size=n).astype(np.int32) for n in (20, 45, 60, 60)]
    judged = judge(padded(draws, 60), clusters, np.ones(60, dtype=np.int64))
    for i in range(60):
        assert (judged.probability[i], judged.stability[i]) == pytest.approx(
            slow(draws, clusters, i)
        )


def test_what_the_draws_agree_on_is_certain() -> None:
    labels = np.array([0, 0, 1, 1, 1, 2])
    judged = judge([labels.astype(np.int32)] * 3, labels + 7, np.ones(6, dtype=np.int64))
    assert (judged.probability == 1.0).all()
    assert (judged.stability == 1.0).all()


def test_only_the_newest_draws_count(rng: Generator) -> None:
    clusters = rng.integers(0, 4, size=30)
    draws = [rng.integers(0, 4, size=30) for _ in range(DRAWS_KEPT + 3)]
    recent = RecentDraws()
    for draw in draws:
        recent.add(draw)
    told = recent.certainty(roster_of(clusters))
    newest = [draw.astype(np.int32) for draw in draws[-DRAWS_KEPT:]]
    expected = judge(newest, clusters, np.ones(30, dtype=np.int64))
    assert told.seq.tolist() == list(range(1, 31))
    assert told.percent.tolist() == np.rint(100 * np.stack(expected)).tolist()


def test_what_changed_is_told_once() -> None:
    clusters = np.repeat([1, 2], 4000)
    roster, recent = roster_of(clusters), RecentDraws()
    recent.add(clusters)
    assert recent.certainty(roster).seq.tolist() == list(range(1, 8001))
    assert recent.certainty(roster).seq.tolist() == []
    other = clusters.copy()
    other[-1] = 3
    recent.add(other)
    again = RecentDraws.restore(recent.state())
    # One of thousands is less than half a percent of what the others are with.
    assert recent.certainty(roster).seq.tolist() == [8000]
    assert again.certainty(roster).seq.tolist() == list(range(1, 8001))
    assert again.certainty(roster).cluster.tolist() == [1, 2]


def test_an_atom_of_many_observations_counts_as_many() -> None:
    draws = [np.array(draw, dtype=np.int32) for draw in ([0, 0, 1], [0, 1, 1])]
    heavy = judge(draws, np.array([5, 5, 5]), np.array([3, 1, 2]))
    places = [0, 0, 0, 1, 2, 2]
    one_by_one = judge([draw[places] for draw in draws], np.full(6, 5), np.ones(6, dtype=np.int64))
    assert heavy.probability[places].tolist() == one_by_one.probability.tolist()
    np.testing.assert_allclose(heavy.stability[places], one_by_one.stability)


def test_the_id_of_one_that_left_says_nothing_of_the_next() -> None:
    clusters = np.array([1, 1, 2])
    roster, recent = roster_of(clusters), RecentDraws()
    recent.add(np.array([0, 0, 1]))
    recent.certainty(roster)
    recent.forget(np.array([1]))
    roster.leave(np.array([1]))
    roster.enter(np.array([1]), np.array([4]), np.zeros(1), np.array([2]))
    recent.add(np.array([0, 1, 1]))
    told = recent.certainty(roster)
    assert told.seq.tolist() == [4]
    assert told.percent.tolist() == [[100], [100]]


def test_no_draws() -> None:
    assert RecentDraws.restore(RecentDraws().state()).state()["labels"].tolist() == []
