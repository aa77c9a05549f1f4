"""Sums whose last bit does not depend on how rows were dealt out.

Rows are cut into chunks of a fixed number, counted from the first row of all. The chunks are the
leaves of a binary tree; a node's sum is that of its two children, left plus right. A shard sends
the sums of the highest nodes that lie within it, one or a few; whoever has them all goes on
upwards. Every addition has the same two terms, whoever makes it.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["CHUNK", "PartialSum", "add_up", "shares_of_rows", "total"]

# Rows of a chunk.
CHUNK = 4096
# Shards end where a node ends that is at most such a part of one: few nodes, nearly equal shards.
_FINENESS = 16

Matrix = NDArray[np.float64]


class PartialSum(NamedTuple):
    """Sum over the chunks from ``place << level`` to ``(place + 1) << level``."""

    level: int
    place: int
    value: Matrix


def add_up(parts: Iterable[Sequence[Any]]) -> list[PartialSum]:
    """The highest nodes of neighbouring parts, which come in order."""
    stack: list[PartialSum] = []
    for level, place, value in parts:
        node = PartialSum(level, place, value)
        while stack and _are_siblings(stack[-1], node):
            left = stack.pop()
            node = PartialSum(node.level + 1, node.place >> 1, left.value + node.value)
        stack.append(node)
    return stack


def _are_siblings(left: PartialSum, right: PartialSum) -> bool:
    return left.level == right.level and left.place + 1 == right.place and left.place % 2 == 0


def total(parts: Iterable[Sequence[Any]]) -> Matrix:
    """The sum over all chunks, whose parts come in order from the first chunk on."""
    highest = add_up(parts)
    found = highest[-1].value
    # Which nodes are left over depends on the number of chunks alone.
    for node in reversed(highest[:-1]):
        found = node.value + found
    return found


def shares_of_rows(n: int, n_shards: int, chunk: int = CHUNK) -> list[tuple[int, int]]:
    """First row and end of each shard: nearly equal, and at ends of high nodes.

    There are fewer shards where there are fewer chunks.
    """
    n_chunks = -(-n // chunk)
    unit = 1
    while 2 * unit * n_shards * _FINENESS <= n_chunks:
        unit *= 2
    n_units = -(-n_chunks // unit)
    n_shards = min(n_shards, n_units)
    ends = [(at * n_units // n_shards) * unit * chunk for at in range(n_shards + 1)]
    return [(start, min(end, n)) for start, end in pairwise(ends)]
