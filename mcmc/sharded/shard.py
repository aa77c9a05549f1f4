"""Some rows with their labels, and the commands that they take.

Labels never leave a shard, but where people are to see them. What comes back from a command are
statistics, sums over chunks as :mod:`~weald.mcmc.sharded.fixed_order` has them, and what single
rows are.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from weald.treecore.family.interface.base import Family, spec_of, statistics_width
from weald.treecore.family.totals import add_observations

from .counter import RowKey
from .fixed_order import PartialSum, add_up
from .passes import (
    Contest,
    Counts,
    Matrix,
    Places,
    RowChoices,
    draw_labels_of_rows,
    draw_sides_of_rows,
    held_rows,
)

__all__ = ["COMMANDS", "SHOWN", "LabelKeeper", "RowShard", "Shards", "hash_of_draws"]

# What is kept under this number in place of a sweep's is the item of each row.
SHOWN = -1
COMMANDS = frozenset(
    {
        *("begin", "draw_labels", "draw_sides", "fault", "finish", "gather", "held", "items"),
        *("mark", "marked", "settle", "sum_labels"),
    }
)

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


class RowShard:
    """The rows from ``first`` on, of which ``values`` (n, d) may be a memory map.

    ``chunk`` is the number of rows that are summed as one, and divides ``first``.
    """

    def __init__(
        self, family: Family, values: Matrix, first: int, chunk: int, keeper: LabelKeeper
    ) -> None:
        self._family = family
        self._values = values
        self._first = first
        self._chunk = chunk
        self._keeper = keeper
        self._width = int(statistics_width(family))
        n = values.shape[0]
        self._labels = np.zeros(n, dtype=np.int32)
        self._drawn = np.zeros(n, dtype=np.int32)
        self._side = np.zeros(n, dtype=np.int8)

    def _parts(self) -> Iterator[tuple[slice, int, int, Matrix]]:
        """Rows of a chunk, its place among all chunks, its first row and its values."""
        for start in range(0, self._values.shape[0], self._chunk):
            part = slice(start, start + self._chunk)
            first = self._first + start
            # Labels of a memory map are read through a plain array, which compiles once.
            yield part, first // self._chunk, first, np.asarray(self._values[part], np.float64)

    def fault(self) -> tuple[int, str] | None:
        """The first row that the family cannot take, and why."""
        validate = spec_of(self._family).validate
        for _, _, first, values in self._parts():
            found = validate(self._family, values)
            if found is not None:
                return first + found[0], found[1]
        return None

    def gather(self, rows: Counts) -> tuple[Counts, Matrix, Places]:
        """Those of the rows that are here: where they stand in ``rows``, values, labels."""
        inside = np.flatnonzero(
            (rows >= self._first) & (rows < self._first + self._values.shape[0])
        )
        at = rows[inside] - self._first
        return inside, np.asarray(self._values[at], np.float64), self._labels[at]

    def begin(self, sweep: int) -> None:
        """Go to the labels after a sweep; after sweep 0, where all rows are in one cluster."""
        if sweep == 0:
            self._labels[:] = 0
        else:
            self._labels[:] = self._keeper.load(sweep)

    def held(self, k: int, key: RowKey) -> tuple[Matrix, Counts]:
        """For each of k clusters the smallest number of a row here, and that row or -1."""
        least, found = np.ones(k), np.full(k, -1, dtype=np.int64)
        held_rows(self._first, self._labels, key, least, found)
        return least, found

    def draw_labels(self, choices: Sequence[Any], key: RowKey) -> list[PartialSum]:
        """Draw a label for each row, beside the present ones; sums (c, m) by column."""
        among = RowChoices(*choices)
        shape = (among.owner.shape[0], self._width)

        def summed() -> Iterator[PartialSum]:
            for part, place, first, values in self._parts():
                sums = np.zeros(shape)
                rows = values, first, self._labels[part]
                draw_labels_of_rows(self._family, *rows, among, key, self._drawn[part], sums)
                yield PartialSum(0, place, sums)

        return add_up(summed())

    def settle(self, accepted: NDArray[np.bool_]) -> None:
        """Let the rows of these clusters (k) go where they were drawn to."""
        np.copyto(self._labels, self._drawn, where=accepted[self._labels])

    def draw_sides(self, contest: Sequence[Any], key: RowKey) -> list[PartialSum]:
        """Draw sides; sums (2p, m + 1) of :func:`~weald.mcmc.sharded.passes.draw_sides_of_rows`."""
        between = Contest(*contest)
        shape = (2 * between.odds.shape[0], self._width + 1)

        def summed() -> Iterator[PartialSum]:
            for part, place, first, values in self._parts():
                sums = np.zeros(shape)
                rows = values, first, self._labels[part]
                draw_sides_of_rows(self._family, *rows, between, key, self._side[part], sums)
                yield PartialSum(0, place, sums)

        return add_up(summed())

    def finish(self, sweep: int, target: Counts, dropped: Sequence[int]) -> None:
        """Give rows of cluster k on side s the label ``target[k, s]``, and keep these labels.

        ``dropped`` are sweeps whose labels nobody will ask for again.
        """
        self._labels[:] = np.where(
            self._side == 1, target[self._labels, 1], target[self._labels, 0]
        )
        self._keeper.save(sweep, self._labels)
        for each in dropped:
            self._keeper.drop(each)

    def sum_labels(self, sweep: int, number: Counts, k: int) -> list[PartialSum]:
        """Statistics (k, m) of what ``number`` makes of the labels after a sweep."""
        labels = number[self._keeper.load(sweep)]

        def summed() -> Iterator[PartialSum]:
            for part, place, _, values in self._parts():
                sums = np.zeros((k, self._width))
                add_observations(self._family, values, labels[part], sums)
                yield PartialSum(0, place, sums)

        return add_up(summed())

    def items(self, sweeps: Sequence[int], most: int) -> tuple[Draws, Counts, Counts] | None:
        """What no draw divides: labels (t) after the sweeps, rows, and the first row, of each.

        None where there are more than ``most``, or the hash of two is the same.
        """
        draws = [self._keeper.load(sweep) for sweep in sweeps]
        _, first, item = np.unique(hash_of_draws(draws), return_index=True, return_inverse=True)
        alike = all((draw[first][item] == draw).all() for draw in draws)
        if first.size > most or not alike:
            return None
        counts = np.bincount(item)
        labels = np.array([draw[first] for draw in draws], dtype=np.int32).T
        return labels, counts.astype(np.int64), first + self._first

    def mark(self, sweeps: Sequence[int], items: Draws) -> None:
        """Keep for each row its place among ``items`` (i, t)."""
        known = hash_of_draws(list(items.T))
        order = np.argsort(known)
        hashed = hash_of_draws([self._keeper.load(sweep) for sweep in sweeps])
        found = order[np.searchsorted(known, hashed, sorter=order)]
        self._keeper.save(SHOWN, found.astype(np.int32))

    def marked(self, start: int, stop: int) -> Places:
        """The places of those rows from ``start`` to ``stop`` that are here."""
        first, end = max(start - self._first, 0), max(stop - self._first, 0)
        return self._keeper.load(SHOWN)[first:end]


def hash_of_draws(draws: Sequence[Places]) -> NDArray[np.uint64]:
    """One number for the labels that each row had; 64 bits that depend on all of them."""
    found = np.zeros(draws[0].shape[0], dtype=np.uint64)
    for draw in draws:
        found ^= draw.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        found *= np.uint64(0xBF58476D1CE4E5B9)
        found ^= found >> np.uint64(27)
        found *= np.uint64(0x94D049BB133111EB)
        found ^= found >> np.uint64(31)
    return found
