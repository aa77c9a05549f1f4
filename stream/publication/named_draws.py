"""What a shard has drawn in its last rounds, by the names of blocks, and its items.

Names are the same in all shards, so that items of several shards are of the same draws. Atoms that
came after a draw are where most of their block had been drawn: as in a publication of one shard.
"""

from collections.abc import Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.sharded.round_messages import BlockSums, Items
from weald.mcmc.sharded.shard import hash_of_draws
from weald.stream.tables.contingency import numbered, overlaps

from .certainty import DRAWS_KEPT

__all__ = ["NamedDraws"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]

_NONE = -1
# Above which every second draw is left out: so many numbers for each draw travel.
_MOST_ITEMS = 200_000
# Of as many draws as are kept these are four, as far apart as that goes.
_EVERY = DRAWS_KEPT // 4


class _Draw(NamedTuple):
    """Names of blocks (k), and which of them each atom is in by its id, -1 for one in none."""

    names: Ids
    block: NDArray[np.int32]

    def of(self, atoms: Ids) -> Ids:
        """The name of the block of each of these atoms (n), -1 for one in none."""
        found = np.full(atoms.shape[0], _NONE, dtype=np.int64)
        known = atoms < self.block.shape[0]
        found[known] = self.block[atoms[known]]
        known = found != _NONE
        found[known] = self.names[found[known]]
        return found


class NamedDraws:
    """The draws of the newest rounds, one each: four bytes an atom."""

    def __init__(self) -> None:
        self._draws: list[_Draw] = []
        self._rounds: list[int] = []

    def add(self, names: Ids, number: int) -> None:
        """Keep what a round came to: the block of every atom by its id, -1 for one in none."""
        known = names != _NONE
        kinds, place = np.unique(names[known], return_inverse=True)
        block = np.full(names.shape[0], _NONE, dtype=np.int32)
        block[known] = place
        self._draws = [*self._draws[1 - DRAWS_KEPT :], _Draw(kinds, block)]
        self._rounds = [*self._rounds[1 - DRAWS_KEPT :], number]

    def forget(self, atoms: Ids) -> None:
        """Strike out atoms that have left, whose ids others will have."""
        for _, block in self._draws:
            block[atoms[atoms < block.shape[0]]] = _NONE

    def items(
        self,
        asked: Ids,
        atoms: Ids,
        now: Ids,
        shown: tuple[Ids, Ids, BlockSums],
        most: int = _MOST_ITEMS,
    ) -> tuple[Items, Ids]:
        """Return the items of these atoms (n), and the item (n) that each is in.

        Parameters
        ----------
        asked : ndarray of int64
            Numbers of rounds.
        atoms, now : ndarray of int64, shape (n,)
            Ids of atoms, and the block that each is in, by name.
        shown : tuple
            The cluster (n) that each is shown in, its observations (n), and sums of these clusters.
        most : int
            Above so many items every second draw is left out.
        """
        cluster, size, sums = shown
        there = np.isin(self._rounds, asked).tolist()
        rounds = np.array(list(compress(self._rounds, there)), dtype=np.int64)
        drawn = [draw.of(atoms) for draw in compress(self._draws, there)]
        seen = np.array([size[draw != _NONE].sum() for draw in drawn], dtype=np.int64)
        names = [_filled(draw, now, size) for draw in drawn]
        while True:
            first, item = _kinds([now, cluster, *names])
            if first.shape[0] <= most or len(names) < 2:
                break
            # The newest stays.
            kept = slice((len(names) - 1) % 2, None, 2)
            rounds, seen, names = rounds[kept], seen[kept], names[kept]
        weights = np.bincount(item, size, first.shape[0]).astype(np.int64)
        told = np.array([draw[first] for draw in names], dtype=np.int64)
        told = told.reshape(len(names), first.shape[0])
        return Items(rounds, seen, told, now[first], cluster[first], weights, sums), item

    def some(self, atoms: Ids) -> tuple[Ids, Ids]:
        """Some rounds (t), the same in all shards that have drawn them, and the blocks (t, n)."""
        at = [place for place, number in enumerate(self._rounds) if number % _EVERY == 0]
        names = [self._draws[place].of(atoms) for place in at]
        return (
            np.array([self._rounds[place] for place in at], dtype=np.int64),
            np.array(names, dtype=np.int64).reshape(len(at), atoms.shape[0]),
        )

    def state(self) -> Arrays:
        """Arrays from which `restore` goes on."""
        sizes = [[each.shape[0] for each in draw] for draw in self._draws]
        names, blocks = ([draw[at] for draw in self._draws] for at in range(2))
        return {
            "lengths": np.array(sizes, dtype=np.int64).reshape(-1, 2),
            "names": np.concatenate([np.empty(0, dtype=np.int64), *names]),
            "blocks": np.concatenate([np.empty(0, dtype=np.int32), *blocks]),
            "rounds": np.array(self._rounds, dtype=np.int64),
        }

    @classmethod
    def restore(cls, state: Arrays) -> "NamedDraws":
        """Undo `state`."""
        draws = cls()
        draws._rounds = state["rounds"].tolist()
        if draws._rounds:
            ends = np.cumsum(state["lengths"], axis=0)[:-1]
            names = np.split(state["names"], ends[:, 0])
            blocks = np.split(state["blocks"], ends[:, 1])
            pairs = zip(names, blocks, strict=True)
            draws._draws = [_Draw(own.copy(), block.copy()) for own, block in pairs]
        return draws


def _filled(draw: Ids, now: Ids, size: Ids) -> Ids:
    """The draw, and what it has not seen with the others of its block; a new block is its own."""
    known = draw != _NONE
    if known.all():
        return draw
    blocks, block = numbered(now)
    home = blocks.copy()
    names, column = numbered(draw[known])
    # Rows are of all blocks that have any, which `overlaps` wants numbered densely.
    seen, row = numbered(block[known])
    cells = overlaps(row, column, size[known])
    order = np.lexsort((-cells.column, cells.n))
    home[seen[cells.row[order]]] = names[cells.column[order]]
    return np.where(known, draw, home[block])


def _kinds(columns: Sequence[Ids]) -> tuple[Ids, Ids]:
    """First place of each kind of row (n) of these columns, and the kind (n) of each row."""
    _, first, kind = np.unique(hash_of_draws(columns), return_index=True, return_inverse=True)
    if not all((column == column[first[kind]]).all() for column in columns):
        # Two kinds with one hash.
        whole = np.stack(columns, axis=1)
        _, first, kind = np.unique(whole, axis=0, return_index=True, return_inverse=True)
    return first.astype(np.int64), kind.reshape(-1).astype(np.int64)
