"""Certainty of what is shown: against a slow count, cut to what changed, whole after a restart."""

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.estimate.agreement import adjusted_rand_index
from weald.mcmc.estimate.consensus import expected_loss
from weald.stream.publication.certainty import DRAWS_KEPT, RecentDraws, judge
from weald.stream.tables.atom_table import AtomTable
from weald.treecore.prior.sequential import canonical_labels

Labels = NDArray[np.int64]


def padded(draws: list[NDArray[np.int32]], n: int) -> list[NDArray[np.int32]]:
    """-1 for what came after a draw."""
    return [np.append(draw, np.full(n - len(draw), -1, dtype=np.int32)) for draw in draws]


def roster_of(clusters: Labels) -> AtomTable:
    """One observation an atom, in order."""
    atom_table = AtomTable()
    n = len(clusters)
    atom_table.enter(np.arange(n), 1 + np.arange(n), np.zeros(n), clusters)
    return atom_table


def slow(draws: list[NDArray[np.int32]], clusters: Labels, i: int) -> tuple[float, float]:
    """Probability and stability of one observation, by counting."""
    inside, together = [], []
    for draw in draws:
        if i >= len(draw):
            continue
        members = [j for j in range(len(draw)) if clusters[j] == clusters[i]]
        block = [j for j in range(len(draw)) if draw[j] == draw[i]]
        inside.append(np.mean([clusters[j] == clusters[i] for j in block]))
        mates = [draw[j] == draw[i] for j in members if j != i]
        together.append(np.mean(mates) if mates else float(block == [i]))
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
        recent.add(draw, len(draw))
    told = recent.certainty(roster_of(clusters))
    newest = [draw.astype(np.int32) for draw in draws[-DRAWS_KEPT:]]
    expected = judge(newest, clusters, np.ones(30, dtype=np.int64))
    assert told.seq.tolist() == list(range(1, 31))
    assert told.percent.tolist() == np.rint(100 * np.stack(expected)).tolist()


def test_what_changed_is_told_once() -> None:
    clusters = np.repeat([1, 2], 4000)
    atom_table, recent = roster_of(clusters), RecentDraws()
    recent.add(clusters, 8000)
    assert recent.certainty(atom_table).seq.tolist() == list(range(1, 8001))
    assert recent.certainty(atom_table).seq.tolist() == []
    other = clusters.copy()
    other[-1] = 3
    recent.add(other, 8000)
    again = RecentDraws.restore(recent.state())
    # One of thousands is less than half a percent of what the others are with.
    assert recent.certainty(atom_table).seq.tolist() == [8000]
    assert again.certainty(atom_table).seq.tolist() == list(range(1, 8001))
    assert again.certainty(atom_table).cluster.tolist() == [1, 2]


def test_an_atom_of_many_observations_counts_as_many() -> None:
    draws = [np.array(draw, dtype=np.int32) for draw in ([0, 0, 1], [0, 1, 1])]
    heavy = judge(draws, np.array([5, 5, 5]), np.array([3, 1, 2]))
    places = [0, 0, 0, 1, 2, 2]
    one_by_one = judge([draw[places] for draw in draws], np.full(6, 5), np.ones(6, dtype=np.int64))
    assert heavy.probability[places].tolist() == one_by_one.probability.tolist()
    np.testing.assert_allclose(heavy.stability[places], one_by_one.stability)


def test_the_id_of_one_that_left_says_nothing_of_the_next() -> None:
    clusters = np.array([1, 1, 2])
    atom_table, recent = roster_of(clusters), RecentDraws()
    recent.add(np.array([0, 0, 1]), 3)
    recent.certainty(atom_table)
    recent.forget(np.array([1]))
    atom_table.leave(np.array([1]))
    atom_table.enter(np.array([1]), np.array([4]), np.zeros(1), np.array([2]))
    recent.add(np.array([0, 1, 1]), 4)
    told = recent.certainty(atom_table)
    assert told.seq.tolist() == [4]
    assert told.percent.tolist() == [[100], [100]]


def test_one_that_is_shown_alone_is_as_sure_as_draws_have_it_alone() -> None:
    draws = [np.array(draw, dtype=np.int32) for draw in ([0, 0, 1], [0, 0, 0], [0, 0, 1])]
    judged = judge(draws, np.array([4, 4, 9]), np.ones(3, dtype=np.int64))
    assert judged.stability[2] == pytest.approx(2 / 3)
    assert judged.probability[2] == pytest.approx((1 + 1 / 3 + 1) / 3)


def test_the_best_is_no_worse_than_any_draw_or_what_is_shown(rng: Generator) -> None:
    truth = np.arange(200) % 4
    draws = [np.where(rng.random(200) < 0.2, rng.integers(0, 6, 200), truth) for _ in range(12)]
    shown = np.where(rng.random(200) < 0.3, rng.integers(0, 4, 200), truth)
    atom_table, recent = roster_of(shown), RecentDraws()
    for draw in draws:
        recent.add(draw, len(draw))
    best = recent.best(atom_table, draws[-1], 200, 200)
    every = np.stack([canonical_labels(draw) for draw in draws])
    others = [expected_loss(every, canonical_labels(each), "vi") for each in [*draws, shown]]
    assert expected_loss(every, best, "vi") < min(others)
    assert adjusted_rand_index(best, truth) > 0.95


def test_what_came_after_a_draw_is_with_its_like(rng: Generator) -> None:
    """A draw of less than nine tenths of the records is passed over."""
    truth = np.arange(100) % 3
    atom_table, recent = roster_of(truth), RecentDraws()
    recent.add(np.zeros(60, dtype=np.int64), 60)
    for n in (90, 95, 100):
        recent.add(rng.permutation(7)[truth[:n]], n)
    assert adjusted_rand_index(recent.best(atom_table, truth + 5, 100, 100), truth) == 1.0


def test_without_draws_the_best_is_the_chain_s_own() -> None:
    atom_table = roster_of(np.array([1, 1, 2, 2]))
    assert RecentDraws().best(atom_table, np.array([4, 0, 0, 0]), 4, 4).tolist() == [0, 1, 1, 1]


def test_no_draws() -> None:
    assert RecentDraws.restore(RecentDraws().state()).state()["labels"].tolist() == []


def test_of_nothing_nothing_is_told() -> None:
    atom_table = roster_of(np.array([1, 1]))
    draws = RecentDraws()
    draws.add(np.zeros(2, dtype=np.int32), 2)
    draws.forget(np.arange(2))
    atom_table.leave(np.arange(2))
    told = draws.certainty(atom_table)
    assert (len(told.seq), len(told.cluster)) == (0, 0)
    assert np.isnan(told.means).all()
