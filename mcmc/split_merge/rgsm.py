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

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.gibbs import gibbs
from weald.mcmc.state.atom_state import MERGE, Info, State, record
from weald.mcmc.sweeps import Sampler, proposals
from weald.treecore.compiled.compile import compiled, inner
from weald.treecore.compiled.draw import coin, shuffle
from weald.treecore.compiled.reference import by_reference
from weald.treecore.partition.partition import Model, log_join

from .proposal import (
    conclude_merge,
    draw_anchors,
    gather_anchored,
    log_merge_ratio,
    log_split_ratio,
    refuse_early,
    settle_split,
)
from .trial_split import block_of, join_side, open_sides, rescan, side_slot

__all__ = ["ANCHORED", "FAIR", "RgsmPlan", "divide", "kernel", "step", "sweep"]

FAIR = 0
ANCHORED = 1


class RgsmPlan(NamedTuple):
    """``scans`` (t), ``proposals`` (m) and ``gibbs`` (g); ``launch`` is FAIR or ANCHORED."""

    scans: int = 5
    proposals: int = 1
    gibbs: int = 1
    launch: int = FAIR


@inner
def _launch(rng: Generator, state: State, model: Model, n: int, launch: int) -> None:
    """Put ``members[:n]`` on the sides, which hold the anchors only."""
    atoms, partition = state.atoms, state.partition
    for at in range(n):
        i = state.members[at]
        if launch == ANCHORED:
            first = log_join(model, atoms, partition, i, side_slot(partition, 0))
            second = log_join(model, atoms, partition, i, side_slot(partition, 1))
            state.side[i] = 0 if first >= second else 1
        else:
            state.side[i] = 0 if coin(rng, 0.5) else 1
    for at in range(n):
        i = state.members[at]
        join_side(state, i, state.side[i])


@inner
def divide(
    rng: Generator,
    state: State,
    model: Model,
    plan: RgsmPlan,
    anchors: tuple[int, int],
    gain: float,
) -> tuple[int, float]:
    """Divide the block of the anchors over the sides, or imagine that it leads to their two blocks.

    Returns the number of atoms (in ``members``) and the log probability of the last scan, as
    :func:`~weald.mcmc.split_merge.trial_split.allocate` does with ``gain``.
    """
    partition = state.partition
    i, j = anchors
    first, second = block_of(partition, i), block_of(partition, j)
    n = gather_anchored(state, i, j)
    shuffle(rng, state.members, n)
    open_sides(partition)
    join_side(state, i, 0)
    join_side(state, j, 1)
    _launch(rng, state, model, n, plan.launch)
    for _ in range(plan.scans):
        rescan(rng, state, model, n, -1, inf)
    return n + 2, rescan(rng, state, model, n, -1 if first == second else second, gain)


@inner
def step(
    rng: Generator, state: State, model: Model, plan: RgsmPlan, anchors: tuple[int, int]
) -> Info:
    """Propose to separate or to join the blocks of two different atoms.

    How the anchors are chosen must not depend on the partition; near neighbours, say, are allowed.
    """
    partition = state.partition
    first, second = block_of(partition, anchors[0]), block_of(partition, anchors[1])
    gain = inf
    if first != second:
        gain = log_merge_ratio(model, partition, first, second)
        if refuse_early(rng, gain):
            return Info(MERGE, gain, 0)
    n, log_q = divide(rng, state, model, plan, anchors, gain)
    if first == second:
        ratio = log_split_ratio(model, partition, first) - log_q
        return settle_split(rng, state, first, n, ratio)
    return conclude_merge(state, first, second, gain, log_q)


@compiled
def sweep(
    rng: Generator,
    state: State,
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


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return proposals(entry, sweep, RgsmPlan(), RgsmPlan(scans=0, gibbs=0))
