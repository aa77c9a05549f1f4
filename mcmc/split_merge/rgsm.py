"""Restricted Gibbs split-merge: Jain and Neal (2004), algorithm 2, with its (t, m, g).

Two anchors as in simple random split-merge. A launch state divides the other atoms over two sides
and ``scans`` (t) restricted Gibbs scans improve it; one more scan proposes the split, and its
probability enters the ratio (equation 18). A merge builds the launch in the same way and imagines
the last scan to end at the present division. An iteration is ``proposals`` (m) such steps followed
by ``gibbs`` (g) full Gibbs scans.

The law of the launch depends on the anchors, the other atoms and the data only, never on whether
they are one block or two: fair sides (the paper), or each atom with the anchor that predicts it
better (``ANCHORED``). Scans visit the atoms in a random order drawn anew for every proposal.

Exact and irreducible, alone too. Cost: 2 (t + 1) predictive densities an atom of the block or the
two blocks; one marginal of a union for a merge that its posterior ratio alone refuses, as most are.
(``split-merge-samplers.md`` section 2.3.)
"""

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.contract import Entry, SweptState
from weald.mcmc.gibbs import gibbs
from weald.mcmc.state.atom_state import MERGE, Info, record
from weald.mcmc.state.block_state import BlockState
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import coin, shuffle
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model

from .proposal import (
    conclude_merge,
    draw_anchors,
    gather_anchored,
    log_merge_ratio,
    refuse_early,
    settle_split,
)
from .trial_split import block_of, join_side, likelier_side, log_split_ratio, open_sides, rescan

__all__ = ["ANCHORED", "FAIR", "RgsmPlan", "divide_or_join", "kernel", "step", "sweep"]

Labels = NDArray[np.int64]

FAIR = 0
ANCHORED = 1


class RgsmPlan(NamedTuple):
    """``scans`` (t), ``proposals`` (m) and ``gibbs`` (g); ``launch`` is FAIR or ANCHORED."""

    scans: int = 5
    proposals: int = 1
    gibbs: int = 1
    launch: int = FAIR


@inner
def _launch(
    rng: Generator,
    state: BlockState,
    model: Model,
    n: int,
    launch: int,
    common: Labels,
    anchors: tuple[int, int],
) -> None:
    """Put ``members[:n]`` on the sides, which hold the anchors only."""
    guided = common.shape[0] > 0
    for at in range(n):
        i = state.members[at]
        if guided and common[i] == common[anchors[0]]:
            state.side[i] = 0
        elif guided and common[i] == common[anchors[1]]:
            state.side[i] = 1
        elif launch == ANCHORED:
            state.side[i] = likelier_side(state, model, i)
        else:
            state.side[i] = 0 if coin(rng, 0.5) else 1
    for at in range(n):
        i = state.members[at]
        join_side(state, model, i, state.side[i])


@inner
def divide_or_join(
    rng: Generator,
    state: BlockState,
    model: Model,
    scans: int,
    launch: int,
    common: Labels,
    anchors: tuple[int, int],
) -> Info:
    """Propose to separate or to join the blocks of two different atoms.

    How the anchors are chosen must not depend on the partition; near neighbours, say, are allowed.
    ``common``, if not of length 0, labels pieces of atoms, as little dependent on the partition:
    those of the anchors are launched with them.
    """
    partition = state.partition
    i, j = anchors
    pair = (block_of(partition, i), block_of(partition, j))
    gain = inf
    if pair[0] != pair[1]:
        gain = log_merge_ratio(state, model, pair[0], pair[1])
        if refuse_early(rng, gain):
            return Info(MERGE, gain, 0)
    n = gather_anchored(state, i, j)
    shuffle(rng, state.members, n)
    # From here both directions do the same until the last scan: the launch state forgets how the
    # atoms were divided, so that its own probability cancels (section 2.3).
    open_sides(state, model, pair, n + 2)
    join_side(state, model, i, 0)
    join_side(state, model, j, 1)
    _launch(rng, state, model, n, launch, common, anchors)
    for _ in range(scans):
        rescan(rng, state, model, n, -1, inf)
    # The last scan alone is the proposal; those before it only make the launch state a good one.
    log_q = rescan(rng, state, model, n, -1 if pair[0] == pair[1] else pair[1], gain)
    if pair[0] == pair[1]:
        ratio = log_split_ratio(state, model, pair[0]) - log_q
        return settle_split(rng, state, model, pair[0], n + 2, ratio)
    return conclude_merge(state, model, pair, n + 2, gain, log_q)


@inner
def step(
    rng: Generator, state: BlockState, model: Model, plan: RgsmPlan, anchors: tuple[int, int]
) -> Info:
    """:func:`divide_or_join` without pieces."""
    return divide_or_join(rng, state, model, plan.scans, plan.launch, state.members[:0], anchors)


@compiled
def sweep(
    rng: Generator,
    state: BlockState,
    model: Model,
    plan: RgsmPlan,
    live: NDArray[np.int64],
    tally: NDArray[np.float64],
) -> None:
    """One iteration, with uniform anchors from ``live``, the atoms that are in blocks."""
    state, model = by_reference(state), by_reference(model)
    if live.shape[0] >= 2:
        for _ in range(plan.proposals):
            record(tally, step(rng, state, model, plan, draw_anchors(rng, live)))
    for _ in range(plan.gibbs):
        gibbs.visit(rng, state, model, live)


def kernel(entry: Entry) -> Sampler[SweptState[BlockState]]:
    """The kernel, as the registry names it."""
    # A network's edges make a full scan cost more than a move: it has the kernel `gibbs` for that.
    plan = RgsmPlan(gibbs=1 if entry.data == "mixture" else 0)
    return proposals(entry, sweep, plan, RgsmPlan(scans=0, gibbs=0))
