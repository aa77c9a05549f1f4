"""What shards tell in a round, and are told: sums by block, and statistics of a few atoms."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.random import PCG64, Generator, SeedSequence
from numpy.typing import NDArray

__all__ = [
    "Anchors",
    "AnchorsAsked",
    "BlockSums",
    "Items",
    "ItemsAsked",
    "Pairs",
    "Redraw",
    "Redrawn",
    "ShardReport",
    "ShardTurn",
    "ShownItems",
    "ShownSums",
    "Sides",
    "added",
    "numbers_of",
]

Ids = NDArray[np.int64]
Matrix = NDArray[np.float64]


class BlockSums(NamedTuple):
    """Names (k, ascending) of blocks, observations (k) and statistics rows (k, m) of each."""

    names: Ids
    size: Ids
    rows: Matrix

    def of(self, names: Ids) -> Self:
        """Those of them that have one of these names."""
        chosen = np.isin(self.names, names)
        return type(self)(self.names[chosen], self.size[chosen], self.rows[chosen])

    def without(self, names: Ids) -> Self:
        """The others."""
        return self.of(np.setdiff1d(self.names, names))


class ShardReport(NamedTuple):
    """What a shard has between two rounds: its blocks, and the number of atoms (k) in each."""

    blocks: BlockSums
    atoms: Ids

    @property
    def n_atoms(self) -> int:
        """Atoms of the shard."""
        return int(self.atoms.sum())


class Redraw(NamedTuple):
    """All atoms of these blocks are to draw theirs anew, given weights and parameters.

    Attributes
    ----------
    names, group:
        Blocks (c, ascending) and their super-clusters (c): atoms stay within theirs.
    natural:
        Natural parameters (c, m), log weights among them.
    holds:
        Whether a random atom (c) of this shard stays where it is, so that no block is emptied.
    """

    names: Ids
    group: Ids
    natural: Matrix
    holds: NDArray[np.bool_]


class Redrawn(NamedTuple):
    """What a shard would have of the blocks then: atoms (c), observations (c), sums (c, m)."""

    atoms: Ids
    size: Ids
    rows: Matrix


class AnchorsAsked(NamedTuple):
    """Blocks that take what was drawn, and which atoms a shard is to tell of.

    Attributes
    ----------
    moved:
        Names of the blocks.
    asked, numbers:
        Places (q) in the question, and the numbers (q) of these atoms in the shard's report.
    """

    moved: Ids
    asked: Ids
    numbers: Ids


class Anchors(NamedTuple):
    """Of atoms that were asked for: which (q) of the question, their names (q), rows (q, m)."""

    asked: Ids
    names: Ids
    rows: Matrix


class Pairs(NamedTuple):
    """Blocks whose atoms a shard is to put on sides: see :mod:`~weald.mcmc.sharded.relay`.

    Attributes
    ----------
    names:
        The blocks (p, 2) of each pair, alike where one is to be split.
    anchors:
        Numbers (p, 2), in the shard's report, of its atoms that are on a side already; -1 for
        those of other shards.
    rows:
        Sums (p, 2, m) of the sides up to now, the anchors among them.
    """

    names: Ids
    anchors: Ids
    rows: Matrix


class Sides(NamedTuple):
    """Sums (p, 2, m) of its own atoms on the sides, anchors apart, and the log probability (p)."""

    rows: Matrix
    log_q: Matrix


class ShardTurn(NamedTuple):
    """What a shard does at last: sides get names, and then it moves its own atoms.

    Attributes
    ----------
    pairs, names:
        Blocks (p, 2) of all pairs, and the names (p, 2) that their sides have from now on.
    mine, n_leases:
        The blocks that the shard was dealt, ascending, and among how many.
    others:
        What the other shards have of these.
    elsewhere:
        Blocks of which the shard has nothing: arrivals may belong there.
    """

    pairs: Ids
    names: Ids
    mine: Ids
    n_leases: int
    others: BlockSums
    elsewhere: BlockSums


class ItemsAsked(NamedTuple):
    """The rounds (t, ascending) whose draws a shard is to tell, as far as it has them."""

    rounds: Ids


class Items(NamedTuple):
    """What no draw divides of a shard's atoms, nor what they are shown in.

    Attributes
    ----------
    rounds, seen:
        Rounds (t, ascending) of the draws, and how many observations each of them had seen.
    names:
        The block (t, i) of each item in each draw.
    now:
        Its block (i) at the report.
    cluster, size:
        The cluster (i) that it is shown in, and its observations (i).
    sums:
        What the shard has of the clusters that are shown.
    """

    rounds: Ids
    seen: Ids
    names: Ids
    now: Ids
    cluster: Ids
    size: Ids
    sums: BlockSums


class ShownItems(NamedTuple):
    """A publication of the whole, as one shard is told.

    Attributes
    ----------
    publication:
        Its number.
    clusters, percent:
        The cluster (i) of each of the shard's items, and how sure it is of it (2, i): probability
        and stability.
    before, heirs:
        Clusters (k, ascending) that were shown before, and where most of each is shown now: it goes
        on there itself, if anywhere.
    names, homes:
        Blocks (j, ascending), and the cluster (j) that most of each is shown in.
    """

    publication: int
    clusters: Ids
    percent: NDArray[np.uint8]
    before: Ids
    heirs: Ids
    names: Ids
    homes: Ids


class ShownSums(NamedTuple):
    """What a shard has of each cluster once it shows what was published.

    Attributes
    ----------
    sums:
        Of the clusters.
    cluster, rows:
        Some members (q) of each, and the statistics (q, m) of these.
    rounds, names:
        Some of the last rounds (t, ascending), and the block (t, q) that each member was in, by
        name, -1 for one that came later.
    asked_cluster, asked_rows:
        Observations (a) that stand for all of the shard, and their statistics (a, m).
    """

    sums: BlockSums
    cluster: Ids
    rows: Matrix
    rounds: Ids
    names: Ids
    asked_cluster: Ids
    asked_rows: Matrix


def numbers_of(seed: int, number: int, *whose: int) -> Generator:
    """Random numbers of a round: of all shards, or of one shard and stage."""
    return Generator(PCG64(SeedSequence(seed, spawn_key=(number, *whose))))


def added(sums: Sequence[BlockSums], m: int) -> BlockSums:
    """What several shards have of their blocks together, added in their order; rows are m wide."""
    names = np.unique(np.concatenate([np.empty(0, np.int64), *(each.names for each in sums)]))
    size = np.zeros(names.shape[0], dtype=np.int64)
    rows = np.zeros((names.shape[0], m))
    for each in sums:
        at = np.searchsorted(names, each.names)
        size[at] += each.size
        rows[at] += each.rows
    return BlockSums(names, size, rows)
