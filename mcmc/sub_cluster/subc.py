"""Sub-cluster sampler, exact: merges, a restricted sweep over all labels, then splits and merges.

The cycle of the refinement plane's role ``subc``. Whatever touches all atoms is a few products of
matrices, and the labels of many atoms are drawn by all cores at once.

1. *Merges judged by exchangeable sides* (:mod:`~weald.mcmc.sub_cluster.exchangeable`): of blocks
   that are alike few are left when labels begin to tell them apart.
2. *All labels* are drawn at once from drawn weights and parameters, each atom within its
   super-cluster: blocks within a reach that is drawn, too. One uniform atom of each block stays
   where it is, so that none is emptied, and a super-cluster takes the new labels with probability
   min(1, prod of old sizes / prod of new sizes): dropping emptied blocks, as published, is not
   invariant.
3. *A launched split* of a uniform block, or a merge of a uniform pair. Two anchors hold the sides,
   which are allocated by batches from a launch (:mod:`~weald.mcmc.sub_cluster.allocation`); the
   probability of the allocation enters the ratio. There is time for label sweeps between splits:
   a border through a cluster would have to be undone.
4. *Merges by sequential allocation*, judged by the same allocation without a launch. Their anchors
   are pairs near each other, drawn by the data alone. A hundredth of the proposals are the splits
   that lead back. Most merges are refused before the allocation, by their posterior ratio alone.

Exact and irreducible. Sources: Chang and Fisher (2013), sections 4.1 and 5; Dahl (2003);
``split-merge-samplers.md`` sections 2.3 (anchors), 2.4, 2.9 and 2.10 (errors E12 to E16).
"""

from collections.abc import Callable
from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from weald.mcmc.conditional.labels import (
    Labels,
    block_sums,
    compact,
    draw_labels,
    draw_log_weights,
    log_coin,
    require_dense,
    within_reach,
)
from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.state.atom_state import MERGE, NULL, SPLIT, Info, make_tally, record
from weald.mcmc.sweeps import Sampler, Tally, moves_of, sampler
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.partition.partition import Atoms, Model, finite_log_marginals

from .allocation import AllocationPlan, Forced, allocated
from .exchangeable import exchange
from .near_anchors import CANDIDATES, gains_together
from .summed_blocks import SummedBlocks

__all__ = [
    "SubcPlan",
    "join_near",
    "kernel",
    "near_pairs",
    "restricted_gibbs",
    "split_merge",
    "sweep",
]

# Of near pairs: the share of proposals to join them.
_MERGES = 0.99
_LOG_ODDS = log(_MERGES) - log(1.0 - _MERGES)
_NOTHING = Info(NULL, 0.0, 0)


class SubcPlan(NamedTuple):
    """What a sweep does beside the labels.

    Attributes
    ----------
    exchanges:
        Proposals judged by exchangeable sides.
    proposals, launched:
        Launched splits and merges, and their allocation.
    pairs, plain:
        Merges of near pairs, or now and then splits, and their allocation.
    """

    exchanges: int = 60
    proposals: int = 1
    pairs: int = 30
    launched: AllocationPlan = AllocationPlan(1000, 20, 8.0)
    plain: AllocationPlan = AllocationPlan(0, 0, 4.0)


def _held(rng: Generator, labels: Labels, k: int) -> Labels:
    """One atom (k) of each block, uniform among them, which a sweep leaves where it is."""
    held = np.empty(k, dtype=np.int64)
    order = rng.permutation(labels.shape[0])
    # Of several the last is kept.
    held[labels[order]] = order
    return held


def _hold(chosen: Labels, places: Labels) -> None:
    """Leave the atoms at these places (k) in blocks 0 to k - 1."""
    chosen[places] = np.arange(places.shape[0])


def _log_share_kept(old: Labels, new: Labels, k: int) -> float:
    """Log probability of holding the same atoms once labels are new, over that of before."""
    return float(np.log(np.bincount(old, minlength=k) / np.bincount(new, minlength=k)).sum())


def restricted_gibbs(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> Labels:
    """Redraw all labels (n, blocks 0 to k - 1) within super-clusters; no block appears or goes."""
    rows = require_dense(atoms.rows)
    k = int(labels.max()) + 1
    counts = np.bincount(labels, weights=atoms.size, minlength=k).astype(np.int64)
    log_weights = draw_log_weights(rng, model.seating, counts)
    drawn = draw_parameters(model.family, block_sums(rows, labels, k), rng)
    group = within_reach(rng, drawn)
    held = _held(rng, labels, k)
    moved = labels.copy()
    for g in np.flatnonzero(np.bincount(group) > 1):
        blocks = np.flatnonzero(group == g)
        # The numbers of the group's blocks in it.
        place = np.cumsum(group == g) - 1
        inside = np.flatnonzero(group[labels] == g)
        natural = drawn.natural[blocks]
        chosen = draw_labels(rng, rows[inside], atoms.size[inside], log_weights[blocks], natural)
        _hold(chosen, np.searchsorted(inside, held[blocks]))
        ratio = _log_share_kept(place[labels[inside]], chosen, blocks.size)
        if log_coin(rng) < ratio:
            moved[inside] = blocks[chosen]
    return moved


def split_merge(rng: Generator, blocks: SummedBlocks, plan: AllocationPlan) -> Info:
    """Propose to part a uniform block or to join a uniform pair, with uniform anchors in them."""
    k = blocks.k
    if rng.random() < 0.5:
        inside = np.flatnonzero(blocks.labels == rng.integers(k))
        if inside.shape[0] < 2:
            return _NOTHING
        i, j = rng.choice(inside, size=2, replace=False)
        return _split(rng, blocks, (i, j), plan, lambda members: _log_choice(k, members))
    if k < 2:
        return _NOTHING
    pair = rng.choice(k, size=2, replace=False)
    i, j = (rng.choice(np.flatnonzero(blocks.labels == each)) for each in pair)
    return _merge(rng, blocks, (i, j), plan, -_log_choice(k - 1, blocks.members[pair]))


def _log_choice(k: int, members: Labels) -> float:
    """Log probability of choosing two blocks and anchors in them, over that of choosing theirs.

    ``members`` are the atoms of the two; with one in their place there are ``k`` blocks.
    """
    n = int(members.sum())
    return log(n) + log(n - 1) - log(k + 1) - float(np.log(members).sum())


def join_near(
    rng: Generator, blocks: SummedBlocks, anchors: tuple[int, int], plan: AllocationPlan
) -> Info:
    """Propose to join the blocks of two atoms, or now and then to part the one that has both.

    The anchors must differ, and their choice must not depend on the partition.
    """
    together = blocks.labels[anchors[0]] == blocks.labels[anchors[1]]
    if rng.random() < _MERGES:
        return _NOTHING if together else _merge(rng, blocks, anchors, plan, -_LOG_ODDS)
    return _split(rng, blocks, anchors, plan, lambda _: _LOG_ODDS) if together else _NOTHING


def near_pairs(rng: Generator, atoms: Atoms, model: Model, n_pairs: int) -> Labels:
    """Pairs (n_pairs, 2) of different atoms, by the data alone.

    The second is the one of 1, 4, 16 or 64 random atoms that goes best with the first.
    """
    rows, n = require_dense(atoms.rows), atoms.size.shape[0]
    pairs = np.empty((n_pairs, 2), dtype=np.int64)
    for at, n_candidates in enumerate(CANDIDATES):
        n_here = pairs[at :: len(CANDIDATES)].shape[0]
        first: Labels = np.asarray(rng.integers(n, size=n_here), dtype=np.int64)
        steps = 1 + rng.integers(n - 1, size=(n_here, n_candidates))
        others = (first[:, None] + steps) % n
        flat, firsts = others.reshape(-1), np.repeat(first, n_candidates)
        gain = gains_together(model.family, rows[firsts], rows[flat], atoms.log_marginal[flat])
        best = others[np.arange(n_here), gain.reshape(others.shape).argmax(axis=1)]
        pairs[at :: len(CANDIDATES)] = np.stack([first, best], axis=1)
    return pairs


def _members(blocks: SummedBlocks, anchors: tuple[int, int]) -> Labels:
    """Atoms of the anchors' blocks, these first and the others in the order of their numbers."""
    i, j = anchors
    labels = blocks.labels
    inside = np.flatnonzero((labels == labels[i]) | (labels == labels[j]))
    return np.concatenate([anchors, inside[(inside != i) & (inside != j)]])


def _split(
    rng: Generator,
    blocks: SummedBlocks,
    anchors: tuple[int, int],
    plan: AllocationPlan,
    log_choice: Callable[[Labels], float],
) -> Info:
    """Part the anchors' block; ``log_choice`` takes the atoms (2) of the sides."""
    block, members = int(blocks.labels[anchors[0]]), _members(blocks, anchors)
    rows, size = blocks.rows[members], blocks.size[members]
    side, log_q = allocated(rng, blocks.model, (rows, size), plan)
    sums = block_sums(rows, side, 2)
    sizes = np.bincount(side, weights=size, minlength=2).astype(np.int64)
    worth = finite_log_marginals(blocks.model.family, sums)
    ratio = blocks.log_split_ratio(worth, sizes, float(blocks.worth[block]))
    ratio += blocks.log_one_more(blocks.k) - log_q
    ratio += log_choice(np.bincount(side, minlength=2))
    accepted = log_coin(rng) < ratio
    if accepted:
        blocks.part(block, members[side == 1], sums, worth)
    return Info(SPLIT, ratio, int(accepted))


def _merge(
    rng: Generator,
    blocks: SummedBlocks,
    anchors: tuple[int, int],
    plan: AllocationPlan,
    log_choice: float,
) -> Info:
    """Join the anchors' two blocks."""
    one, other = (int(blocks.labels[each]) for each in anchors)
    coin = log_coin(rng)
    # The probability of these sides makes it only less.
    ratio = blocks.log_merge_ratio(one, other) + log_choice
    if coin >= ratio:
        return Info(MERGE, ratio, 0)
    members = _members(blocks, anchors)
    rows, size = blocks.rows[members], blocks.size[members]
    forced = Forced((blocks.labels[members] == other).astype(np.int64), coin - ratio)
    ratio += allocated(rng, blocks.model, (rows, size), plan, forced)[1]
    accepted = coin < ratio
    if accepted:
        blocks.join(one, other)
    return Info(MERGE, ratio, int(accepted))


def sweep(
    rng: Generator, atoms: Atoms, labels: Labels, model: Model, plan: SubcPlan
) -> tuple[Labels, list[Info]]:
    """Exchangeable splits and merges, all labels, then launched ones and those of near pairs."""
    labels = compact(labels)
    if labels.shape[0] < 2:
        return labels, []
    blocks = SummedBlocks.of(atoms, labels, model)
    infos = [exchange(rng, blocks) for _ in range(plan.exchanges)]
    blocks = SummedBlocks.of(atoms, restricted_gibbs(rng, atoms, blocks.labels, model), model)
    infos += [split_merge(rng, blocks, plan.launched) for _ in range(plan.proposals)]
    pairs = near_pairs(rng, atoms, model, plan.pairs).tolist()
    infos += [join_near(rng, blocks, (i, j), plan.plain) for i, j in pairs]
    return blocks.labels, infos


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""

    def run(rng: Generator, at: MixtureState) -> Tally:
        labels, infos = sweep(rng, at.atoms, at.labels(), at.model, SubcPlan())
        at.set_labels(labels)
        tally = make_tally()
        for info in infos:
            record(tally, info)
        return moves_of(tally)

    return sampler(entry, run)
