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

from weald.mcmc.contract import Entry, SweptState
from weald.mcmc.state.atom_state import Info, record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import coin
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .dm import draw_urn_sides, log_urn
from .proposal import (
    draw_block,
    gather_blocks,
    log_merge_ratio,
    null_move,
    settle_exchange,
    settle_merge,
    settle_split,
)
from .trial_split import (
    drop_sides,
    join_side,
    log_apart,
    log_split_ratio,
    n_blocks,
    open_sides,
    side_block,
)

__all__ = ["HALF", "UNIFORM", "RmPlan", "kernel", "step", "sweep"]

UNIFORM = 0
HALF = 1

# A sweep costs a few passes over the atoms whichever kernel makes it, so that names compare.
_PROPOSALS = 5


class RmPlan(NamedTuple):
    """``proposals``: steps a sweep; ``share``: p is UNIFORM or HALF."""

    proposals: int = 1
    share: int = UNIFORM


@inner
def _draw_sides(rng: Generator, state: BlockState, model: Model, n: int, share: int) -> int:
    """Put ``members[:n]`` on the empty sides; returns how many are on side 0."""
    if share == UNIFORM:
        return draw_urn_sides(rng, state, model, n, 1.0)
    n_first = 0
    for at in range(n):
        side = 0 if coin(rng, 0.5) else 1
        n_first += 1 - side
        join_side(state, model, state.members[at], side)
    return n_first


@inner
def _log_assignment(share: int, first: int, second: int) -> float:
    """Log probability of one way to put so many atoms on either side."""
    if share == UNIFORM:
        return log_urn(1.0, first, second)
    return -(first + second) * log(2.0)


@inner
def _split(rng: Generator, state: BlockState, model: Model, share: int, k: int) -> Info:
    n_before = n_blocks(state)
    n = gather_blocks(state, k, k)
    open_sides(state, model, (k, k), n)
    n_first = _draw_sides(rng, state, model, n, share)
    if n_first in (0, n):
        drop_sides(state, model, n)
        return null_move()
    ratio = log_split_ratio(state, model, k) + log(2.0)
    ratio += 2.0 * log(n_before / (n_before + 1.0))
    ratio += _log_assignment(share, n, 0) - _log_assignment(share, n_first, n - n_first)
    return settle_split(rng, state, model, k, n, ratio)


@inner
def _mix(
    rng: Generator, state: BlockState, model: Model, share: int, pair: tuple[int, int]
) -> Info:
    sizes = state.partition.n_members
    log_ways = _log_assignment(share, sizes[pair[0]], sizes[pair[1]])
    present = log_apart(state, model, pair[0], pair[1])
    n = gather_blocks(state, pair[0], pair[1])
    open_sides(state, model, pair, n)
    n_first = _draw_sides(rng, state, model, n, share)
    log_ways -= _log_assignment(share, n_first, n - n_first)
    if n_first not in (0, n):
        ratio = log_apart(state, model, side_block(state, 0), side_block(state, 1)) - present
        return settle_exchange(rng, state, model, pair, n, ratio + log_ways)
    drop_sides(state, model, n)
    ratio = log_merge_ratio(state, model, pair[0], pair[1]) + log_ways - log(2.0)
    ratio += 2.0 * log(n_blocks(state) / (n_blocks(state) - 1.0))
    return settle_merge(rng, state, model, pair, ratio)


@inner
def step(rng: Generator, state: BlockState, model: Model, plan: RmPlan) -> Info:
    """Propose to mix a pair of blocks; there must be a block."""
    first, second = draw_block(rng, state), draw_block(rng, state)
    # The reverse of a move that leaves or meets an empty block would have to put it back.
    sizes = state.partition.n_members
    if sizes[first] == 0 or sizes[second] == 0:
        return null_move()
    if first == second:
        return _split(rng, state, model, plan.share, first)
    return _mix(rng, state, model, plan.share, (first, second))


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
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


def kernel(entry: Entry) -> Sampler[SweptState[BlockState]]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, RmPlan(_PROPOSALS), RmPlan())
