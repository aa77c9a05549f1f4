"""Some rows with their labels, and the commands that they take.

Labels never leave a shard, but where people are to see them. What comes back from a command are
statistics, sums over chunks as :mod:`~weald.mcmc.sharded.fixed_order` has them, and what single
rows are.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from weald.treecore.family.interface.base import Family, spec_of, statistics_width
from weald.treecore.family.totals import add_observations

from .counter import RowKey
from .fixed_order import PartialSum, partial_sums
from .launches import Launches, draw_pairs, gains
from .passes import (
    Counts,
    Matrix,
    Places,
    RowChoices,
    draw_labels_of_rows,
    draw_sides_of_rows,
    held_rows,
)

__all__ = ["COMMANDS", "SHOWN", "LabelKeeper", "RowShard", "RowsPlace", "Shards", "hash_of_draws"]

# What is kept under this number in place of a sweep's is the item of each row.
SHOWN = -1
COMMANDS = frozenset(
    {
        *("begin", "draw_labels", "draw_sides", "fault", "finish", "gather", "held", "items"),
        *("launch", "mark", "marked", "propose_sides", "seconds", "settle", "sum_labels"),
    }
)
# Rows of which something is made in memory at a time.
_AT_A_TIME = 1 << 18

Draws = NDArray[np.int32]


class Shards(Protocol):
    """All shards, in the order of their rows."""

    def ask(self, command: str, *arguments: Any) -> list[Any]:
        """Give all of them one command of ``COMMANDS``; returns their answers in order."""
        ...


class LabelKeeper(Protocol):
    """Where a shard's labels outlive its process."""

    def save(self, sweep: int, labels: Places) -> None:
        """Keep the labels after a sweep; all or nothing."""
        ...

    def load(self, sweep: int) -> Places:
        """The labels after a sweep."""
        ...

    def drop(self, sweep: int) -> None:
        """Forget them, if they are there."""
        ...

    def scratch(self, n: int, dtype: type[np.generic]) -> NDArray[Any]:
        """Room for n numbers, all 0, that is gone with the process; memory, or as good as that."""
        ...


class RowsPlace(NamedTuple):
    """Where a shard's rows lie: its ``first`` row of ``n`` in all, and the rows of a ``chunk``.

    What is summed as one is a chunk, which divides ``first``.
    """

    first: int
    n: int
    chunk: int


class RowShard:
    """Some rows, of which ``values`` (n, d) may be a memory map, at their place."""

    def __init__(
        self, family: Family, values: Matrix, place: RowsPlace, keeper: LabelKeeper
    ) -> None:
        self._family = family
        self._values = values
        self._place = place
        self._first = place.first
        self._keeper = keeper
        self._width = int(statistics_width(family))
        n = values.shape[0]
        self._labels: Places = keeper.scratch(n, np.int32)
        self._drawn: Places = keeper.scratch(n, np.int32)
        self._side: NDArray[np.int8] = keeper.scratch(n, np.int8)
        nobody = np.empty((0, 2), dtype=np.int64)
        self._launches = 0, Launches(nobody, nobody)

    def _part(self, at: int) -> tuple[slice, int, Matrix]:
        """Of the chunk at a place among all: rows, its first row, and values."""
        first = at * self._place.chunk
        part = slice(first - self._first, first - self._first + self._place.chunk)
        # Labels of a memory map are read through a plain array, which compiles once.
        return part, first, np.asarray(self._values[part], np.float64)

    def _chunks(self) -> tuple[int, int]:
        """First of the chunks that are here, and their end."""
        chunk = self._place.chunk
        return self._first // chunk, -(-(self._first + self._values.shape[0]) // chunk)

    def _summed(self, of_chunk: Callable[[int], Matrix]) -> list[PartialSum]:
        return partial_sums(-(-self._place.n // self._place.chunk), self._chunks(), of_chunk)

    def _slices(self) -> Iterator[slice]:
        """All rows, so many at a time that what is made of them fits anywhere."""
        for start in range(0, self._values.shape[0], _AT_A_TIME):
            yield slice(start, min(start + _AT_A_TIME, self._values.shape[0]))

    def fault(self) -> tuple[int, str] | None:
        """The first row that the family cannot take, and why."""
        validate = spec_of(self._family).validate
        for at in range(*self._chunks()):
            _, first, values = self._part(at)
            found = validate(self._family, values)
            if found is not None:
                return first + found[0], found[1]
        return None

    def _here(self, rows: Counts) -> Counts:
        """Where those of the rows that are here stand among them."""
        end = self._first + self._values.shape[0]
        return np.flatnonzero((rows >= self._first) & (rows < end))

    def gather(self, rows: Counts) -> tuple[Counts, Matrix, Places]:
        """Those of the rows that are here: where they stand in ``rows``, values, labels."""
        inside = self._here(rows)
        at = rows[inside] - self._first
        return inside, np.asarray(self._values[at], np.float64), self._labels[at]

    def seconds(self, key: RowKey, firsts: Matrix) -> tuple[Counts, Counts, Matrix, Matrix, Places]:
        """For pairs of which the first row has the values ``firsts`` (p, d), the best second here.

        Which pair, where it stands among those that were drawn, its gain, its values, its label.
        Gains are those under the base measure that the shard was given, which never changes.
        """
        pairs, places, gained, here = [], [], [], []
        for pair, rows in enumerate(draw_pairs(key, self._place.n, firsts.shape[0])):
            inside = self._here(rows[1:])
            if inside.size == 0:
                continue
            at = rows[1:][inside] - self._first
            gain = gains(self._family, firsts[pair], np.asarray(self._values[at], np.float64))
            best = int(np.argmax(gain))
            pairs.append(pair)
            places.append(int(inside[best]))
            gained.append(float(gain[best]))
            here.append(int(at[best]))
        at = np.array(here, dtype=np.int64)
        return (
            np.array(pairs, dtype=np.int64),
            np.array(places, dtype=np.int64),
            np.array(gained),
            np.asarray(self._values[at], np.float64),
            self._labels[at],
        )

    def begin(self, sweep: int) -> None:
        """Go to the labels after a sweep; after sweep 0, where all rows are in one cluster."""
        if sweep == 0:
            self._labels[:] = 0
        else:
            self._labels[:] = self._keeper.load(sweep)

    def held(self, k: int, key: RowKey) -> Counts:
        """For each of k clusters the row here with the smallest number, or -1."""
        least, found = np.ones(k), np.full(k, -1, dtype=np.int64)
        held_rows(self._first, self._labels, key, least, found)
        return found

    def draw_labels(
        self, owner: Places, ends: Places, natural: Matrix, held: Counts, key: RowKey
    ) -> list[PartialSum]:
        """Draw a label for each row, beside the present ones; sums (c, m) by column.

        Parameters
        ----------
        owner : int32 (c)
            The cluster of each column.
        ends : int32 (g)
            Where the columns of each super-cluster end.
        natural : (m, c)
        held : int64 (k)
            See :class:`~weald.mcmc.sharded.passes.RowChoices`. Rows of clusters that own no column
            stay.
        key : RowKey
        """
        among = _choices(owner.astype(np.int64), ends.astype(np.int64), natural, held)
        shape = (owner.shape[0], self._width)

        def of_chunk(at: int) -> Matrix:
            part, first, values = self._part(at)
            sums = np.zeros(shape)
            rows = values, first, self._labels[part]
            draw_labels_of_rows(self._family, *rows, among, key, self._drawn[part], sums)
            return sums

        return self._summed(of_chunk)

    def settle(self, accepted: NDArray[np.bool_]) -> None:
        """Let the rows of these clusters (k) go where they were drawn to."""
        for part in self._slices():
            labels = self._labels[part]
            np.copyto(labels, self._drawn[part], where=accepted[labels])

    def launch(self, k: int, anchors: Counts, clusters: Places) -> None:
        """Let the rows of these clusters (p, 2) of the k that there are draw sides from now on."""
        self._launches = k, Launches(anchors, clusters.astype(np.int64))

    def draw_sides(self, odds: Matrix, key: RowKey, wanted: Places) -> list[PartialSum]:
        """Draw sides by odds (p, m); statistics (s, m) of those ``wanted`` (s), laid flat.

        ``wanted`` are places among the sides, two of each pair.
        """
        drawn = self._sides(odds, key, last=False)
        return [each._replace(value=each.value[wanted, :-1].reshape(-1)) for each in drawn]

    def propose_sides(self, odds: Matrix, key: RowKey, wanted: Places) -> list[PartialSum]:
        """Like ``draw_sides``, but clusters that are to be joined are forced to their sides.

        Behind the statistics is the log probability of all sides, for each pair (p).
        """
        drawn = self._sides(odds, key, last=True)
        return [
            each._replace(value=np.append(each.value[wanted, :-1], each.value[::2, -1]))
            for each in drawn
        ]

    def _sides(self, odds: Matrix, key: RowKey, *, last: bool) -> list[PartialSum]:
        """Sums (2p, m + 1) of :func:`~weald.mcmc.sharded.passes.draw_sides_of_rows`."""
        k, launches = self._launches
        between = launches.contest(k, odds, last=last)
        shape = (2 * odds.shape[0], self._width + 1)

        def of_chunk(at: int) -> Matrix:
            part, first, values = self._part(at)
            sums = np.zeros(shape)
            rows = values, first, self._labels[part]
            draw_sides_of_rows(self._family, *rows, between, key, self._side[part], sums)
            return sums

        return self._summed(of_chunk)

    def finish(self, sweep: int, target: Places, dropped: Sequence[int]) -> None:
        """Give rows of cluster k on side s the label ``target[k, s]``, and keep these labels.

        ``dropped`` are sweeps whose labels nobody will ask for again.
        """
        for part in self._slices():
            second = (self._side[part] == 1).astype(np.int8)
            self._labels[part] = target[self._labels[part], second]
        self._keeper.save(sweep, self._labels)
        for each in dropped:
            self._keeper.drop(each)

    def sum_labels(self, sweep: int, number: Counts, k: int) -> list[PartialSum]:
        """Statistics (k, m) of what ``number`` makes of the labels after a sweep."""
        labels = self._keeper.load(sweep)

        def of_chunk(at: int) -> Matrix:
            part, _, values = self._part(at)
            sums = np.zeros((k, self._width))
            add_observations(self._family, values, number[labels[part]], sums)
            return sums

        return self._summed(of_chunk)

    def items(self, sweeps: Sequence[int], most: int) -> tuple[Draws, Counts, Counts] | None:
        """What no draw divides: labels (t) after the sweeps, rows, and the first row, of each.

        None where there are more than ``most``, or the hash of two is the same.
        """
        draws = [self._keeper.load(sweep) for sweep in sweeps]
        hashed = np.empty(0, dtype=np.uint64)
        first, counts = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        for part in self._slices():
            own, at, number = np.unique(
                hash_of_draws([draw[part] for draw in draws]),
                return_index=True,
                return_counts=True,
            )
            # Of those that were seen before the first row stays.
            every = np.concatenate([hashed, own])
            hashed, oldest, item = np.unique(every, return_index=True, return_inverse=True)
            first = np.concatenate([first, at + part.start])[oldest]
            weights = np.concatenate([counts, number])
            counts = np.bincount(item, weights=weights).astype(np.int64)
            if first.size > most:
                return None
        labels = np.array([draw[first] for draw in draws], dtype=np.int32).T
        for part in self._slices():
            own_draws = [draw[part] for draw in draws]
            item = np.searchsorted(hashed, hash_of_draws(own_draws))
            if not all((labels[item, t] == own).all() for t, own in enumerate(own_draws)):
                return None
        return labels, counts, first + self._first

    def mark(self, sweeps: Sequence[int], items: Draws) -> None:
        """Keep for each row its place among ``items`` (i, t)."""
        known = hash_of_draws(list(items.T))
        order = np.argsort(known)
        draws = [self._keeper.load(sweep) for sweep in sweeps]
        for part in self._slices():
            hashed = hash_of_draws([draw[part] for draw in draws])
            self._drawn[part] = order[np.searchsorted(known, hashed, sorter=order)]
        self._keeper.save(SHOWN, self._drawn)

    def marked(self, start: int, stop: int) -> Places:
        """The places of those rows from ``start`` to ``stop`` that are here."""
        first, end = max(start - self._first, 0), max(stop - self._first, 0)
        return self._keeper.load(SHOWN)[first:end]


def _choices(owner: Counts, ends: Counts, natural: Matrix, held: Counts) -> RowChoices:
    """Rows choose among all columns of the super-cluster that theirs has a column in."""
    k = held.shape[0]
    start, stop = np.full(k, -1, dtype=np.int64), np.full(k, -1, dtype=np.int64)
    sizes = np.diff(ends, prepend=0)
    # At the very start there are columns of clusters that no row is in yet.
    there = owner < k
    start[owner[there]] = np.repeat(ends - sizes, sizes)[there]
    stop[owner[there]] = np.repeat(ends, sizes)[there]
    return RowChoices(start, stop, owner, natural, held)


def hash_of_draws(draws: Sequence[NDArray[np.integer]]) -> NDArray[np.uint64]:
    """One number for the labels that each row had; 64 bits that depend on all of them."""
    found = np.zeros(draws[0].shape[0], dtype=np.uint64)
    for draw in draws:
        found ^= draw.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        found *= np.uint64(0xBF58476D1CE4E5B9)
        found ^= found >> np.uint64(27)
        found *= np.uint64(0x94D049BB133111EB)
        found ^= found >> np.uint64(31)
    return found
