"""Random-split merge with a Dirichlet-multinomial split: Chang and Fisher (2013), section 5.5.

A fair coin chooses between a split (of a uniform block, each atom going to one side with the same
unknown probability u ~ Beta(a, a)) and a merge (of a uniform pair). u is integrated out, so sides
are drawn from a Polya urn over atoms. The paper's ratio, like its authors' code, leaves out the
probabilities of choosing the block and the pair: log(K + 1), which this kernel includes.

A split with an empty side and a merge of a single block are null moves. Exact and irreducible
alone. Cost: a split one addition of rows an atom, a merge O(1) and, accepted, the smaller block.
(``split-merge-samplers.md`` section 2.9.)
"""

from math import lgamma, log
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

from .proposal import (
    draw_block,
    draw_blocks,
    gather_blocks,
    log_merge_ratio,
    null_move,
    settle_merge,
    settle_split,
)
from .trial_split import drop_sides, join_side, log_split_ratio, n_blocks, open_sides

__all__ = ["DmPlan", "draw_urn_sides", "kernel", "log_urn", "step", "sweep"]

# A sweep costs a few passes over the atoms whichever kernel makes it, so that names compare.
_PROPOSALS = 5


class DmPlan(NamedTuple):
    """``proposals``: steps a sweep; ``a``: both parameters of u's Beta law (paper: alpha / 2)."""

    proposals: int = 1
    a: float = 0.5


@inner
def log_urn(a: float, first: int, second: int) -> float:
    """Log probability of one way to put so many atoms on either side, u ~ Beta(a, a) unknown."""
    value = lgamma(2.0 * a) - lgamma(2.0 * a + first + second)
    return value + lgamma(a + first) + lgamma(a + second) - 2.0 * lgamma(a)


@inner
def draw_urn_sides(rng: Generator, state: BlockState, model: Model, n: int, a: float) -> int:
    """Put ``members[:n]`` on the empty sides by that law; returns how many are on side 0."""
    n_first = 0
    for at in range(n):
        share = (a + n_first) / (2.0 * a + at)
        side = 0 if coin(rng, share) else 1
        n_first += 1 - side
        join_side(state, model, state.members[at], side)
    return n_first


@inner
def _split(rng: Generator, state: BlockState, model: Model, a: float) -> Info:
    n_before = n_blocks(state)
    k = draw_block(rng, state)
    n = gather_blocks(state, k, k)
    open_sides(state, model, (k, k), n)
    n_first = draw_urn_sides(rng, state, model, n, a)
    if n_first in (0, n):
        drop_sides(state, model, n)
        return null_move()
    ratio = log_split_ratio(state, model, k) - log_urn(a, n_first, n - n_first)
    ratio -= log(n_before + 1)
    return settle_split(rng, state, model, k, n, ratio)


@inner
def _merge(rng: Generator, state: BlockState, model: Model, a: float) -> Info:
    partition = state.partition
    if n_blocks(state) < 2:
        return null_move()
    pair = draw_blocks(rng, state)
    ratio = log_merge_ratio(state, model, pair[0], pair[1]) + log(n_blocks(state))
    ratio += log_urn(a, partition.n_members[pair[0]], partition.n_members[pair[1]])
    return settle_merge(rng, state, model, pair, ratio)


@inner
def step(rng: Generator, state: BlockState, model: Model, plan: DmPlan) -> Info:
    """Propose a split or a merge; there must be a block."""
    if coin(rng, 0.5):
        return _split(rng, state, model, plan.a)
    return _merge(rng, state, model, plan.a)


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: DmPlan,
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
    return proposals(entry, sweep, DmPlan(_PROPOSALS), DmPlan())
