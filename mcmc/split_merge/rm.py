"""Random mixing: the baseline of Wang and Russell (2015), section 5.1.

An ordered pair of blocks is drawn with replacement, their atoms are pooled, and each goes to the
first of two sides with probability p. A block drawn twice is split, a pair exchanges atoms or,
when one side stays empty, is merged. The paper's "randomly chosen split point" can be read in
several ways: here p is uniform and redrawn for each move (integrated out, a Polya urn over atoms),
or 1/2.

A block drawn twice with an empty side is a null move. Exact and irreducible alone. Cost: one
addition of rows an atom of the block or the two blocks. (``split-merge-samplers.md`` section 2.7.)
"""

from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.state.atom_state import Info, State, record
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import below, coin
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, Partition

from .dm import draw_urn_sides, log_urn
from .proposal import (
    gather_blocks,
    log_block_weight,
    log_merge_ratio,
    log_split_ratio,
    null_move,
    settle_exchange,
    settle_merge,
    settle_split,
)
from .trial_split import drop_sides, join_side, open_sides, side_slot, slot_at

__all__ = [
    "HALF",
    "UNIFORM",
    "RmPlan",
    "draw_sides",
    "kernel",
    "log_assignment",
    "log_exchange_ratio",
    "step",
    "sweep",
]

UNIFORM = 0
HALF = 1

# A sweep costs a few passes over the atoms whichever kernel makes it, so that names compare.
_PROPOSALS = 5


class RmPlan(NamedTuple):
    """``proposals``: steps a sweep; ``share``: p is UNIFORM or HALF."""

    proposals: int = 1
    share: int = UNIFORM


@inner
def draw_sides(rng: Generator, state: State, n: int, share: int) -> int:
    """Put ``members[:n]`` on the empty sides; returns how many are on side 0."""
    if share == UNIFORM:
        return draw_urn_sides(rng, state, n, 1.0)
    n_first = 0
    for at in range(n):
        side = 0 if coin(rng, 0.5) else 1
        n_first += 1 - side
        join_side(state, state.members[at], side)
    return n_first


@inner
def log_assignment(share: int, first: int, second: int) -> float:
    """Log probability of one way to put so many atoms on either side."""
    if share == UNIFORM:
        return log_urn(1.0, first, second)
    return -(first + second) * log(2.0)


@inner
def log_exchange_ratio(model: Model, partition: Partition, first: int, second: int) -> float:
    """Log posterior with the sides in place of two blocks, over that of the present state."""
    value = 0.0
    for side in range(2):
        value += log_block_weight(model, partition, side_slot(partition, side))
    value -= log_block_weight(model, partition, first)
    return value - log_block_weight(model, partition, second)


@inner
def _split(rng: Generator, state: State, model: Model, share: int, k: int) -> Info:
    partition = state.partition
    n = gather_blocks(state, k, k)
    open_sides(partition)
    n_first = draw_sides(rng, state, n, share)
    if n_first in (0, n):
        drop_sides(partition)
        return null_move()
    n_blocks = partition.n_blocks[0]
    ratio = log_split_ratio(model, partition, k) + log(2.0)
    ratio += 2.0 * log(n_blocks / (n_blocks + 1.0))
    ratio += log_assignment(share, n, 0) - log_assignment(share, n_first, n - n_first)
    return settle_split(rng, state, k, n, ratio)


@inner
def step(rng: Generator, state: State, model: Model, plan: RmPlan) -> Info:
    """Propose to mix a pair of blocks; there must be a block."""
    partition = state.partition
    n_blocks = partition.n_blocks[0]
    first = slot_at(partition, below(rng, n_blocks))
    second = slot_at(partition, below(rng, n_blocks))
    if first == second:
        return _split(rng, state, model, plan.share, first)
    n = gather_blocks(state, first, second)
    open_sides(partition)
    n_first = draw_sides(rng, state, n, plan.share)
    present = log_assignment(plan.share, partition.n_members[first], partition.n_members[second])
    if n_first in (0, n):
        drop_sides(partition)
        ratio = log_merge_ratio(model, partition, first, second) - log(2.0)
        ratio += 2.0 * log(n_blocks / (n_blocks - 1.0))
        ratio += present - log_assignment(plan.share, n, 0)
        return settle_merge(rng, state, first, second, ratio)
    ratio = log_exchange_ratio(model, partition, first, second)
    ratio += present - log_assignment(plan.share, n_first, n - n_first)
    return settle_exchange(rng, state, first, second, n, ratio)


@compiled
def sweep(
    rng: Generator,
    state: State,
    model: Model,
    plan: RmPlan,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """``plan.proposals`` steps; ``live`` are the atoms that are in blocks."""
    state, model = by_reference(state), by_reference(model)
    if live.shape[0] < 2:
        return
    for _ in range(plan.proposals):
        record(tally, step(rng, state, model, plan))


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, RmPlan(_PROPOSALS), RmPlan())
