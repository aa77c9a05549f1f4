"""What shards tell of their draws, and the publication of all of them that comes of it."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.sharded.round_messages import BlockSums, Items, ShownItems
from weald.stream.publication.named_draws import NamedDraws
from weald.stream.publication.whole import (
    ShownBefore,
    WholePublication,
    own_ids,
    publication_of_items,
)
from weald.treecore.prior.sequential import canonical_labels

Ids = NDArray[np.int64]
NOTHING = ShownBefore(0, 0, {})


def sums_of(cluster: Ids) -> BlockSums:
    """Statistics of observations that count, and are nothing else."""
    ids, size = np.unique(cluster, return_counts=True)
    return BlockSums(ids, size, np.stack([size, size], axis=1).astype(np.float64))


def told(draws: NamedDraws, asked: Sequence[int], now: Ids, cluster: Ids) -> tuple[Items, Ids]:
    atoms = np.arange(now.shape[0])
    shown = cluster, np.ones_like(cluster), sums_of(cluster)
    return draws.items(np.array(asked), atoms, now, shown)


@pytest.fixture
def draws(rng: Generator) -> tuple[NamedDraws, Ids]:
    """Five draws of 200 atoms in blocks with names of any kind, and these (t, n)."""
    names = rng.choice([3, 7, 40, 900_001], size=(5, 200))
    kept = NamedDraws()
    for number, draw in enumerate(names, start=1):
        kept.add(draw, number)
    return kept, names


def test_an_item_is_what_no_draw_divides(rng: Generator, draws: tuple[NamedDraws, Ids]) -> None:
    kept, names = draws
    now, cluster = rng.choice([3, 7], size=200), rng.choice([1, 4], size=200)
    items, item = told(kept, [2, 3, 5, 8], now, cluster)
    assert items.rounds.tolist() == [2, 3, 5]
    assert items.seen.tolist() == [200] * 3
    np.testing.assert_array_equal(items.names[:, item], names[[1, 2, 4]])
    np.testing.assert_array_equal(items.now[item], now)
    np.testing.assert_array_equal(items.cluster[item], cluster)
    np.testing.assert_array_equal(items.size, np.bincount(item))
    rows = np.concatenate([items.names, items.now[None], items.cluster[None]])
    assert np.unique(rows, axis=1).shape[1] == items.size.shape[0]


def test_what_came_after_a_draw_is_where_most_of_its_block_was() -> None:
    kept = NamedDraws()
    kept.add(np.array([5, 5, 8, -1, -1]), 1)
    # The last atom is beyond those that the draw knows of, and its block began after it.
    now = np.array([5, 5, 5, 5, 11, 11])
    items, item = told(kept, [1], now, np.ones(6, dtype=np.int64))
    assert items.names[0, item].tolist() == [5, 5, 8, 5, 11, 11]
    assert items.seen.tolist() == [3]


def test_of_too_many_items_every_second_draw_is_left_out(draws: tuple[NamedDraws, Ids]) -> None:
    kept, _ = draws
    atoms, alike = np.arange(200), np.ones(200, dtype=np.int64)
    shown = alike, alike, sums_of(alike)
    all_items, _ = kept.items(np.arange(1, 6), atoms, alike, shown)
    fewer, _ = kept.items(np.arange(1, 6), atoms, alike, shown, most=all_items.size.shape[0] - 1)
    assert fewer.rounds.tolist() == [1, 3, 5]
    last, _ = kept.items(np.arange(1, 6), atoms, alike, shown, most=1)
    assert last.rounds.tolist() == [5]


def test_draws_come_back_from_their_state_and_forget(draws: tuple[NamedDraws, Ids]) -> None:
    kept, _ = draws
    kept.add(np.array([3, 3]), 6)
    again = NamedDraws.restore(kept.state())
    for each in (kept, again):
        each.forget(np.array([1, 150]))
    now = np.full(200, 3)
    found, was = (told(each, range(7), now, now)[0] for each in (again, kept))
    for name in ("rounds", "seen", "names", "now", "cluster", "size"):
        np.testing.assert_array_equal(getattr(found, name), getattr(was, name))
    assert told(kept, [6], now, now)[0].seen.tolist() == [1]
    assert NamedDraws.restore(NamedDraws().state()).state()["rounds"].shape == (0,)


def dealt(
    draws: Ids, now: Ids, cluster: Ids, owner: Ids, n_shards: int
) -> tuple[list[Items], list[Ids]]:
    """Items of each shard of these observations (n), and in which its own are."""
    items, of = [], []
    for shard in range(n_shards):
        kept, own = NamedDraws(), owner == shard
        for number, draw in enumerate(draws, start=1):
            kept.add(draw[own], number)
        found, item = told(kept, range(1, len(draws) + 1), now[own], cluster[own])
        items.append(found)
        of.append(item)
    return items, of


def shown_of(found: WholePublication, of: Sequence[Ids], owner: Ids) -> Ids:
    clusters = np.zeros_like(owner)
    for shard, (shown, item) in enumerate(zip(found.shown, of, strict=True)):
        clusters[owner == shard] = shown.clusters[item]
    return clusters


@pytest.fixture
def blurred(rng: Generator) -> tuple[Ids, Ids]:
    """Clusters (n) of 600 observations, and eight draws (t, n) that mostly agree on them."""
    truth = rng.integers(3, size=600)
    draws = np.where(rng.random((8, 600)) < 0.1, rng.integers(3, size=(8, 600)), truth) * 5
    return truth, draws


@pytest.mark.parametrize("n_shards", [1, 2, 3, 7])
def test_the_clusters_do_not_depend_on_who_has_which_observation(
    rng: Generator, blurred: tuple[Ids, Ids], n_shards: int
) -> None:
    truth, draws = blurred
    owner = rng.integers(n_shards, size=600)
    # All are shown in clusters that began in their shards.
    first = np.array([own_ids(shard, n_shards)[0] for shard in range(n_shards)])[owner]
    before = first + truth * (n_shards + 1)
    items, of = dealt(draws, draws[-1], before, owner, n_shards)
    found = publication_of_items(items, NOTHING, 1.0)
    assert found is not None
    clusters = shown_of(found, of, owner)
    np.testing.assert_array_equal(canonical_labels(clusters), canonical_labels(truth))
    assert (found.number, found.n_observations) == (1, 600)
    ids, size = np.unique(clusters, return_counts=True)
    np.testing.assert_array_equal(found.clusters, ids)
    np.testing.assert_array_equal(found.sizes, size)
    # Some go on, others are new with ids that no shard gives.
    assert all(each in before or each % (n_shards + 1) == 0 for each in ids)
    assert sum(event.n_moved for event in found.events) == (clusters != before).sum()
    assert set(found.ended) == set(before.tolist()) - set(ids.tolist())
    for each, statistics in found.ended.items():
        assert statistics[0] == (before == each).sum()
    share = [(draws == draws[:, [i]])[:, clusters == clusters[i]].sum(axis=1) for i in range(600)]
    of_block = [(draws == draws[:, [i]]).sum(axis=1) for i in range(600)]
    probability = [(one / all_).mean() for one, all_ in zip(share, of_block, strict=True)]
    for shard in range(n_shards):
        np.testing.assert_allclose(
            found.shown[shard].percent[0, of[shard]] / 100.0,
            np.array(probability)[owner == shard],
            atol=0.0051,
        )
    for cluster, sure in zip(found.clusters, found.probability, strict=True):
        assert sure == pytest.approx(np.mean(np.array(probability)[clusters == cluster]))


def test_what_is_shown_goes_on_under_its_ids(rng: Generator, blurred: tuple[Ids, Ids]) -> None:
    truth, draws = blurred
    owner = rng.integers(3, size=600)
    items, of = dealt(draws, draws[-1], np.ones(600, dtype=np.int64), owner, 3)
    first = publication_of_items(items, NOTHING, 1.0)
    assert first is not None
    # Two are new, one has the id that all had.
    assert first.clusters.tolist() == [1, 4, 8]
    shown = shown_of(first, of, owner)
    live = dict(zip(first.clusters.tolist(), first.sizes.tolist(), strict=True))
    again, of = dealt(draws, draws[-1], shown, owner, 3)
    second = publication_of_items(again, ShownBefore(1, 8, live), 2.0)
    assert second is not None
    assert second.number == 2
    assert second.events == []
    assert second.ended == {}
    np.testing.assert_array_equal(shown_of(second, of, owner), shown)
    # Where arrivals go: by block, and by what their cluster has become.
    told_of: ShownItems = second.shown[0]
    by_name = dict(zip(told_of.names.tolist(), told_of.homes.tolist(), strict=True))
    assert by_name == {5 * label: int(shown[truth == label][0]) for label in range(3)}
    assert told_of.before.tolist() == told_of.heirs.tolist() == [1, 4, 8]


def test_a_cluster_whose_observations_have_all_left_ends(
    rng: Generator, blurred: tuple[Ids, Ids]
) -> None:
    _, draws = blurred
    owner = rng.integers(2, size=600)
    items, _ = dealt(draws, draws[-1], np.ones(600, dtype=np.int64), owner, 2)
    found = publication_of_items(items, ShownBefore(4, 9, {1: 600, 6: 17}), 1.0)
    assert found is not None
    assert found.number == 5
    assert found.clusters.tolist() == [1, 12, 15]
    (gone,) = [event for event in found.events if event.kind == "retire"]
    assert (gone.cluster, gone.size) == (6, 17)
    assert found.ended[6].tolist() == [17.0]


def test_draws_that_a_shard_lacks_or_that_saw_too_little_do_not_count() -> None:
    now = np.repeat([3, 7], 50)
    kept, poor = NamedDraws(), NamedDraws()
    kept.add(np.where(now == 3, 3, -1), 1)
    kept.add(np.roll(now, 25), 2)
    kept.add(now, 3)
    poor.add(now, 1)
    poor.add(now, 3)
    alike = np.ones(100, dtype=np.int64)
    items = [told(each, [1, 2, 3], now, alike)[0] for each in (kept, poor)]
    found = publication_of_items(items, NOTHING, 1.0)
    assert found is not None
    assert found.sizes.tolist() == [100, 100]
    assert found.means == (1.0, 1.0)


def test_without_draws_blocks_are_shown_as_they_are_and_without_atoms_nothing() -> None:
    now = np.repeat([3, 7], 50)
    nobody = np.empty(0, dtype=np.int64)
    items = [told(NamedDraws(), [1], each, np.ones_like(each))[0] for each in (now, nobody)]
    found = publication_of_items(items, NOTHING, 1.0)
    assert found is not None
    assert found.sizes.tolist() == [50, 50]
    assert found.shown[1].clusters.shape == (0,)
    assert publication_of_items([items[1]] * 2, NOTHING, 1.0) is None
