"""Numbers of observations in a stream in shards: they go round the shards.

A shard numbers its observations 1, 2, and so on. Of S shards the i-th observation of shard s has
the number (i - 1) S + s + 1 in the whole: no two have the same, and none ever gets another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from weald.storage.commit.commit import ObservationBlock

from .answers import ObservationRow

__all__ = ["WholeNumbers", "merged"]

_Number = TypeVar("_Number", int, NDArray[np.int64])


@dataclass(frozen=True)
class WholeNumbers:
    """From numbers in a shard to those in the whole, and back.

    Parameters
    ----------
    n_shards : int
    """

    n_shards: int

    def of(self, shard: int, seq: _Number) -> _Number:
        """Return the number in the whole; of none (0) it is not positive."""
        return (seq - 1) * self.n_shards + shard + 1

    def within(self, number: _Number) -> _Number:
        """Return the number within the shard."""
        return (number - 1) // self.n_shards + 1

    def shard_of(self, number: _Number) -> _Number:
        """Return the shard that has the observation."""
        return (number - 1) % self.n_shards

    def below(self, shard: int, number: int) -> int:
        """Return the last number within a shard that is at most so large in the whole."""
        return max((number - 1 - shard) // self.n_shards + 1, 0)

    def by_shard(self, numbers: Iterable[int]) -> dict[int, list[int]]:
        """Return the numbers within each shard, in order."""
        found: dict[int, list[int]] = {}
        for each in numbers:
            found.setdefault(self.shard_of(each), []).append(self.within(each))
        return found

    def of_row(self, shard: int, row: ObservationRow) -> ObservationRow:
        """Return the observation with its numbers in the whole."""
        left = None if row.left_seq is None else self.of(shard, row.left_seq)
        return replace(row, seq=self.of(shard, row.seq), left_seq=left)

    def of_block(self, shard: int, block: ObservationBlock) -> ObservationBlock:
        """Return the observations with their numbers in the whole, to be looked at only."""
        return replace(block, seq=self.of(shard, block.seq), replaces=None, passed=None)


def merged(blocks: Sequence[ObservationBlock], limit: int) -> ObservationBlock | None:
    """Merge the next blocks of several shards by number; None where there are none.

    Parameters
    ----------
    blocks : sequence of ObservationBlock
        In each, the next observations of one shard.
    limit : int
        Most that are returned, at least one.
    """
    if not blocks:
        return None
    first = min(blocks, key=lambda block: block.seq[0])
    alike = [block for block in blocks if block.topic == first.topic]
    # What a shard has beyond its block may come before what others have in theirs.
    end = min(int(block.seq[-1]) for block in alike)
    for other in blocks:
        if other.topic != first.topic:
            end = min(end, int(other.seq[0]) - 1)
    seq = np.concatenate([block.seq for block in alike])
    order = np.argsort(seq)
    order = order[seq[order] <= end][:limit]
    places = order.tolist()
    keys = [key for block in alike for key in block.key]
    texts = [text for block in alike for text in block.text or [None] * len(block)]
    return ObservationBlock(
        seq=seq[order],
        topic=first.topic,
        partition=np.concatenate([block.partition for block in alike])[order],
        offset=np.concatenate([block.offset for block in alike])[order],
        key=[keys[at] for at in places],
        event_time=np.concatenate([block.event_time for block in alike])[order],
        values=np.concatenate([block.values for block in alike])[order],
        cluster=np.concatenate([block.cluster for block in alike])[order],
        received_at=max(block.received_at for block in alike),
        text=[texts[at] for at in places] if any(block.text for block in alike) else None,
    )
