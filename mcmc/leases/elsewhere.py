"""Leases of blocks that have members elsewhere: how shards refine one partition, and exactly.

A shard has observations of its own; it moves no others, and never sees them. What it needs of the
others are their sums in each block. In a shard's lease these are one atom for each block, and no
two of these atoms ever share a block (:mod:`weald.treecore.prior.apart`). What is sampled so is the
posterior given how the observations elsewhere are parted among themselves: this says nothing of
which own ones they are with, it is the same after every move as before it, and so it is a
conditional of the posterior over all observations, which any exact kernel leaves invariant.

They are numbered anew, at random, for each lease: kernels go by numbers, and if these came from the
order of blocks, or from names that blocks were given, they would say how own atoms lie.

Shards that move at the same time need blocks of their own. They get them by the coins of
:mod:`weald.mcmc.leases.leases`: a block goes to one of W shards, W and which these are being drawn
without a look at the partition, and weighs 1 / W in the lease. A shard's lease has its own atoms of
the blocks that it was dealt, and nothing moves in these but there. A lease that never comes back
leaves its blocks as they are.

Two blocks that are one cluster must come to one shard to be joined, and with W of 1,000 they hardly
ever do; with W of 1 all others wait. So W is any power of two up to the number of shards.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.treecore.compiled.draw import below, shuffle
from weald.treecore.family.interface.base import workspace
from weald.treecore.guide.guide import guide_of_atoms
from weald.treecore.partition.partition import Model, make_atoms

from .leases import Lease
from .restricted_guide import restrict

__all__ = ["Deal", "Elsewhere", "deal_to_shards", "with_elsewhere"]

Ids = NDArray[np.int64]


class Deal(NamedTuple):
    """The shard (k) that each block goes to, and among how many they were dealt."""

    shards: Ids
    n_leases: int


class Elsewhere(NamedTuple):
    """What others have of blocks: size (o) and statistics rows (o, m), one of each block.

    ``labels`` (o) are the blocks, as a lease numbers them; a number that no atom of the lease has
    is a block whose members are all elsewhere.
    """

    labels: Ids
    size: Ids
    rows: NDArray[np.float64]


def deal_to_shards(
    rng: Generator, n_blocks: int, n_shards: int, *, is_product: bool = True
) -> Deal:
    """Deal blocks to some of the shards by coins; to one where the prior is no product."""
    n_leases = 1 << int(below(rng, n_shards.bit_length())) if is_product else 1
    order = np.arange(n_shards, dtype=np.int64)
    shuffle(rng, order, n_shards)
    coins = np.array([below(rng, n_leases) for _ in range(n_blocks)], dtype=np.int64)
    return Deal(order[coins], n_leases)


def with_elsewhere(rng: Generator, lease: Lease, elsewhere: Elsewhere) -> tuple[Lease, Ids]:
    """The lease of a shard's own atoms, with what others have of its blocks behind them.

    In the guide these are a tree of their own beside that of the shard's atoms. Returns the lease
    and the order (o) in which they stand there. Raises ValueError where a block has two atoms
    elsewhere, which could not be told from two blocks.
    """
    n_own, n_others = lease.labels.shape[0], elsewhere.labels.shape[0]
    if np.unique(elsewhere.labels).shape[0] < n_others:
        raise ValueError("what others have of a block is one atom")
    if n_others == 0:
        return lease, np.empty(0, dtype=np.int64)
    among = np.arange(n_others, dtype=np.int64)
    shuffle(rng, among, n_others)
    labels, size, rows = elsewhere.labels[among], elsewhere.size[among], elsewhere.rows[among]
    work = workspace(lease.family)
    seating = lease.prior.seating(int(size.sum()), n_others)
    atoms = make_atoms(lease.family, rows, size, work)
    guide = guide_of_atoms(lease.family, Model(lease.family, seating, work), atoms)
    n_leaves, order = restrict(guide, np.arange(n_others))
    whole = replace(
        lease,
        labels=np.concatenate([lease.labels, labels]),
        size=np.concatenate([lease.size, size]),
        rows=np.concatenate([lease.rows, rows]),
        form=(
            np.concatenate([[n_own + n_others], lease.form[0], n_leaves]),
            np.concatenate([lease.form[1], order + n_own]),
        ),
        apart=n_own + np.arange(n_others),
    )
    return whole, among
