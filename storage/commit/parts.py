"""A stream in shards: what its parts are called, and what they are.

The *whole* has the name that people gave, and no observations. Shard s is a stream of its own with
the name ``NAME/s``, which nobody can give: owner, generation and epoch, offsets, observations,
journal and snapshots are by stream, and so by shard.
"""

from __future__ import annotations

from dataclasses import replace

from numpy.random import SeedSequence

from .commit import StreamSpec

__all__ = ["part_name", "part_of", "whole_written_by"]


def part_name(stream: str, shard: int | None) -> str:
    """Return the name of a shard of the stream; of None, which is no shard, the stream's own."""
    return stream if shard is None else f"{stream}/{shard}"


def whole_written_by(stream: str) -> str | None:
    """Return the stream whose rows the owner of this one writes beside its own: shard 0 does."""
    whole, _, shard = stream.rpartition("/")
    return whole if whole and shard == "0" else None


def part_of(whole: StreamSpec, shard: int) -> StreamSpec:
    """Say what a shard is: what the whole is, but for its name, and for draws of its own."""
    # A seed is a signed number of eight bytes in SQL.
    seed = int(SeedSequence([whole.seed, shard]).generate_state(1, "uint64")[0]) >> 1
    name = part_name(whole.name, shard)
    return replace(whole, name=name, seed=seed, shards=1, shard=shard)
