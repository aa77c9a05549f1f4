"""Sums whose last bit does not depend on how rows were dealt out.

Rows are cut into chunks of a fixed number, counted from the first row of all. A binary tree halves
all chunks, then each half, down to single ones; a node's sum is that of its two halves, left plus
right. A shard sends the sums of the highest nodes that lie within it, one or a few; whoever has
them all goes on upwards. Every addition has the same two terms, whoever makes it.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHUNK", "PartialSum", "partial_sums", "shares_of_rows", "total"]

# Rows of a chunk.
CHUNK = 4096
# A number of shards that is no power of two ends them at nodes that are at most such a part of one:
# few nodes, nearly equal shards.
_FINENESS = 16

Matrix = NDArray[np.float64]


class PartialSum(NamedTuple):
    """Sum over the chunks from ``start`` to ``end``, which are a node of the tree."""

    start: int
    end: int
    value: Matrix


def partial_sums(
    n_chunks: int, share: tuple[int, int], of_chunk: Callable[[int], Matrix]
) -> list[PartialSum]:
    """The highest nodes within a share of the chunks; chunks are asked for in order.

    As many sums are held at a time as the tree has levels.
    """

    def summed(start: int, end: int) -> Matrix:
        if end - start == 1:
            return of_chunk(start)
        middle = (start + end) // 2
        return summed(start, middle) + summed(middle, end)

    first, stop = share
    found: list[PartialSum] = []

    def descend(start: int, end: int) -> None:
        if first <= start and end <= stop:
            found.append(PartialSum(start, end, summed(start, end)))
        elif start < stop and first < end:
            middle = (start + end) // 2
            descend(start, middle)
            descend(middle, end)

    descend(0, n_chunks)
    return found


def total(parts: Iterable[tuple[int, int, Matrix]]) -> Matrix:
    """The sum over all chunks, of which every one is in one of the parts."""
    known = {(start, end): value for start, end, value in parts}

    def summed(start: int, end: int) -> Matrix:
        value: Matrix | None = known.get((start, end))
        if value is not None:
            return value
        middle = (start + end) // 2
        return summed(start, middle) + summed(middle, end)

    return summed(0, max(end for _, end in known))


def shares_of_rows(n: int, n_shards: int, chunk: int = CHUNK) -> list[tuple[int, int]]:
    """First row and end of each shard: nearly equal, and at ends of high nodes.

    Of a power of two each is one node. There are fewer shards where there are fewer chunks.
    """
    n_chunks = -(-n // chunk)
    n_shards = min(n_shards, n_chunks)
    ends = [0, n_chunks]
    power_of_two = n_shards & (n_shards - 1) == 0
    wanted = n_shards if power_of_two else min(_FINENESS * n_shards, n_chunks)
    while len(ends) - 1 < wanted:
        # Halves of what is one chunk are it and nothing.
        ends = sorted({*ends, *((start + end) // 2 for start, end in pairwise(ends))})
    n_nodes = len(ends) - 1
    cuts = [ends[at * n_nodes // n_shards] * chunk for at in range(n_shards + 1)]
    return [(start, min(end, n)) for start, end in pairwise(cuts)]
