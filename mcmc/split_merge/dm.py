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

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.state.atom_state import Info, State, record
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import below, coin
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .proposal import (
    draw_blocks,
    gather_blocks,
    log_merge_ratio,
    log_split_ratio,
    null_move,
    settle_merge,
    settle_split,
)
from .trial_split import drop_sides, join_side, open_sides, slot_at

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
def draw_urn_sides(rng: Generator, state: State, n: int, a: float) -> int:
    """Put ``members[:n]`` on the empty sides by that law; returns how many are on side 0."""
    n_first = 0
    for at in range(n):
        share = (a + n_first) / (2.0 * a + at)
        side = 0 if coin(rng, share) else 1
        n_first += 1 - side
        join_side(state, state.members[at], side)
    return n_first


@inner
def _split(rng: Generator, state: State, model: Model, a: float) -> Info:
    partition = state.partition
    k = slot_at(partition, below(rng, partition.n_blocks[0]))
    n = gather_blocks(state, k, k)
    open_sides(partition)
    n_first = draw_urn_sides(rng, state, n, a)
    if n_first in (0, n):
        drop_sides(partition)
        return null_move()
    ratio = log_split_ratio(model, partition, k) - log_urn(a, n_first, n - n_first)
    ratio -= log(partition.n_blocks[0] + 1)
    return settle_split(rng, state, k, n, ratio)


@inner
def _merge(rng: Generator, state: State, model: Model, a: float) -> Info:
    partition = state.partition
    if partition.n_blocks[0] < 2:
        return null_move()
    first, second = draw_blocks(rng, partition)
    ratio = log_merge_ratio(model, partition, first, second) + log(partition.n_blocks[0])
    ratio += log_urn(a, partition.n_members[first], partition.n_members[second])
    return settle_merge(rng, state, first, second, ratio)


@inner
def step(rng: Generator, state: State, model: Model, plan: DmPlan) -> Info:
    """Propose a split or a merge; there must be a block."""
    if coin(rng, 0.5):
        return _split(rng, state, model, plan.a)
    return _merge(rng, state, model, plan.a)


@compiled
def sweep(
    rng: Generator,
    state: State,
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


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, DmPlan(_PROPOSALS), DmPlan())
