"""Groups of clusters that several shards have: as those of a stream in one piece."""

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from tests.stream.publication.test_groups import roster_of, two_kinds
from weald.mcmc.sharded.message_arrays import arrays_of, message_of
from weald.mcmc.sharded.round_messages import BlockSums, ShownSums
from weald.storage.commit.commit import ClusterRow
from weald.stream.publication.groups import PublishedGroups
from weald.stream.publication.judgement import warnings_of
from weald.stream.publication.named_draws import NamedDraws
from weald.stream.publication.whole_groups import groups_of_whole
from weald.treecore.family import FAMILIES
from weald.treecore.family.totals import single_rows

Ids = NDArray[np.int64]
S, N = 3, 150


def shown_by(rows: NDArray[np.float64], clusters: Ids, draws: NDArray[np.int64]) -> ShownSums:
    """What a shard tells that has all of these observations, as its reader gets it."""
    ids, place = np.unique(clusters, return_inverse=True)
    sums = np.zeros((len(ids), rows.shape[1]))
    np.add.at(sums, place, rows)
    rounds = 4 * np.arange(1, len(draws) + 1)
    told = ShownSums(
        BlockSums(ids, np.bincount(place), sums), clusters, rows, rounds, draws, clusters, rows
    )
    back = message_of(arrays_of(told))
    assert isinstance(back, ShownSums)
    return back


def known(clusters: Ids, groups: Mapping[int, int] | None = None) -> dict[int, ClusterRow]:
    ids, sizes = np.unique(clusters, return_counts=True)
    return {
        each: ClusterRow(
            each, n, 0.0, np.array([float(n)]), 2, 0, None, group=(groups or {}).get(each)
        )
        for each, n in zip(ids.tolist(), sizes.tolist(), strict=True)
    }


def test_groups_and_judgement_are_those_of_one_piece(rng: Generator) -> None:
    values, clusters = two_kinds(rng, N)
    shard = rng.integers(S, size=N)
    family = FAMILIES["gaussian"].build({}, values)
    rows = single_rows(family, values)
    draws = np.stack([clusters, np.where(rng.random(N) < 0.2, 3, clusters), clusters % 2])
    draws[0, :10] = -1
    parts = [
        shown_by(rows[shard == s], clusters[shard == s], draws[:, shard == s]) for s in range(S)
    ]
    told = groups_of_whole(parts, known(clusters), family, 7, 5)

    whole, roster = PublishedGroups(), roster_of(clusters)
    whole.adopt([], 5)
    whole.publish(7, family, roster, lambda at: rows[at], np.empty(0, dtype=np.int64))
    assert told.sums.names.tolist() == whole.cluster.tolist() == [3, 4, 5, 6]
    assert told.group.tolist() == whole.group.tolist() == [5, 5, 6, 6]
    assert told.born.tolist() == [7] * 4
    assert told.next_group == 7
    totals = np.stack([rows[clusters == each].sum(axis=0) for each in (3, 4, 5, 6)])
    np.testing.assert_allclose(told.sums.rows, totals, rtol=1e-12)
    blocks = [draw.astype(np.int32) for draw in draws]
    agree = whole.agreement(family, roster, lambda at: rows[at], blocks)
    assert agree is not None
    assert agree < 0.75
    expected = warnings_of(family, roster, lambda at: rows[at], lambda ids: totals[ids - 3], agree)
    assert told.warnings == expected
    assert any("groups differ" in each for each in told.warnings)


def test_groups_keep_their_names_and_no_name_is_given_again(rng: Generator) -> None:
    values, clusters = two_kinds(rng, N)
    family = FAMILIES["gaussian"].build({}, values)
    rows, none = single_rows(family, values), np.empty((0, N), dtype=np.int64)
    there = known(clusters, {3: 2, 4: 2, 5: 1})
    # Cluster 9 began in a shard since, and people were not told of it.
    later = np.where(np.arange(N) < 2, 9, clusters)
    told = groups_of_whole([shown_by(rows, later, none)], there, family, 3, 8)
    assert told.sums.names.tolist() == [3, 4, 5, 6]
    assert told.group.tolist() == [2, 2, 1, 1]
    assert told.next_group == 8
    # What has lost its name to another: a new one is not called as any before.
    apart = groups_of_whole([shown_by(rows, clusters, none)], known(clusters), family, 4, 8)
    assert apart.group.tolist() == [8, 8, 9, 9]
    assert apart.next_group == 10


def test_draws_are_the_same_in_all_shards() -> None:
    kept = NamedDraws()
    for number in range(1, 22):
        kept.add(np.array([number, 7, -1]), number)
    rounds, names = kept.some(np.array([0, 2, 5]))
    # Of sixteen, four; of atoms that came later, nothing.
    assert rounds.tolist() == [8, 12, 16, 20]
    assert names.tolist() == [[number, -1, -1] for number in (8, 12, 16, 20)]
    assert NamedDraws().some(np.array([0]))[1].shape == (0, 1)
