"""Sub-cluster sampler, exact: restricted Gibbs on super-clusters, and launched split-merge.

All labels of a sweep are drawn at once from drawn weights and parameters, each atom within its
super-cluster. A super-cluster in which a block lost all of its atoms keeps its old labels (veto):
dropping the emptied block, as published, is not invariant.

The restricted sweep never makes a block. Split-merge does: two anchors, drawn without regard to
the partition, hold the two sides; the other atoms of their blocks start on fair sides and go
through ``Plan.launch`` sweeps of [weights, parameters, all sides at once]; the last sides are the
proposal, and their probabilities given the last parameters enter the ratio. A merge is judged by
the same launch, its last sides forced to the present ones. Each sweep is one map-reduce; the
labels of many atoms are drawn by all cores at once. In the refinement plane this is the sampler of
a whole shard: ``workers.leases = 1`` and workers of the role ``subc``.

Exact and irreducible. It proposes splits well; merges of large blocks are rarely accepted, because
forced sides under drawn parameters are improbable: run it beside ``sams``, ``sdds`` or ``dm``.
Sources: Chang and Fisher (2013), sections 4.1 and 5; ``split-merge-samplers.md`` section 2.10
(SUBC-X; errors E12 to E16).
"""

from math import log
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import (
    Labels,
    Matrix,
    block_sums,
    compact,
    draw_labels,
    draw_log_weights,
    log_blocks_ratio,
    log_marginals,
    log_sizes,
    require_dense,
    super_clusters,
)
from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.state.atom_state import MERGE, SPLIT, Info, make_tally, record
from weald.mcmc.sweeps import Sampler, Tally, sampler
from weald.treecore.family.parameter_draws import Drawn, draw_parameters
from weald.treecore.partition.partition import Atoms, Model
from weald.treecore.prior.base import Seating

__all__ = [
    "Proposal",
    "Sides",
    "SubcPlan",
    "drawn_sides",
    "kernel",
    "launched",
    "propose",
    "relabelled",
    "restricted_gibbs",
    "split_merge",
    "sweep",
]

# Of the sides' weights while the launch runs; any constant is exact.
_SIDE_SHAPE = 0.5


class SubcPlan(NamedTuple):
    """``proposals`` split-merge steps a sweep, each with ``launch`` launching sweeps."""

    proposals: int = 5
    launch: int = 3


def _veto(chosen: Labels, k: int) -> bool:
    """Whether one of k blocks has lost all of its atoms."""
    return not np.bincount(chosen, minlength=k).all()


def restricted_gibbs(rng: Generator, atoms: Atoms, labels: Labels, model: Model) -> Labels:
    """Redraw all labels (n, blocks 0 to k - 1) within super-clusters; no block appears or goes."""
    rows = require_dense(atoms.rows)
    k = int(labels.max()) + 1
    counts = np.bincount(labels, weights=atoms.size, minlength=k).astype(np.int64)
    log_weights = draw_log_weights(rng, model.seating, counts)
    drawn = draw_parameters(model.family, block_sums(rows, labels, k), rng)
    return relabelled(rng, (rows, atoms.size), labels, log_weights, drawn)


def relabelled(
    rng: Generator,
    atoms: tuple[Matrix, NDArray[np.int64]],
    labels: Labels,
    log_weights: Matrix,
    drawn: Drawn,
) -> Labels:
    """All labels (n) redrawn within super-clusters, given weights and parameters of k blocks.

    ``atoms`` are their rows and sizes.
    """
    rows, size = atoms
    group = super_clusters(rng, drawn)
    moved = labels.copy()
    for g in np.flatnonzero(np.bincount(group) > 1):
        blocks = np.flatnonzero(group == g)
        inside = np.flatnonzero(group[labels] == g)
        natural = drawn.natural[blocks]
        chosen = draw_labels(rng, rows[inside], size[inside], log_weights[blocks], natural)
        if not _veto(chosen, blocks.size):
            moved[inside] = blocks[chosen]
    return moved


class Sides(NamedTuple):
    """The two sides of a proposal: rows and sizes of the atoms, of which the first two anchor."""

    rows: Matrix
    size: NDArray[np.int64]
    side: Labels

    def sums(self) -> Matrix:
        """Statistics (2, m) of the sides."""
        return block_sums(self.rows, self.side, 2)

    def counts(self) -> NDArray[np.int64]:
        """Observations (2) on the sides."""
        return np.bincount(self.side, weights=self.size, minlength=2).astype(np.int64)


def _log_odds(rng: Generator, model: Model, sides: Sides) -> Matrix:
    """Log odds of side 1 for each atom, under weights and parameters drawn for the sides."""
    log_weights = np.log(rng.gamma(sides.counts() + _SIDE_SHAPE))
    drawn: Drawn = draw_parameters(model.family, sides.sums(), rng)
    odds = sides.rows @ (drawn.natural[1] - drawn.natural[0])
    return np.asarray(odds + sides.size * (log_weights[1] - log_weights[0]))


def launched(
    rng: Generator, model: Model, rows: Matrix, size: NDArray[np.int64], sweeps: int
) -> Matrix:
    """Log odds of side 1 under which the last sides are drawn; the anchors' are ignored."""
    side: Labels = np.asarray(rng.integers(0, 2, rows.shape[0]), dtype=np.int64)
    side[:2] = 0, 1
    for _ in range(sweeps):
        odds = _log_odds(rng, model, Sides(rows, size, side))
        side = drawn_sides(rng, odds)
    return _log_odds(rng, model, Sides(rows, size, side))


def drawn_sides(rng: Generator, odds: Matrix) -> Labels:
    """A side for each atom by its log odds of side 1; the first two anchor."""
    uniform = rng.random(odds.shape[0])
    side = (np.log1p(-uniform) - np.log(np.maximum(uniform, 1e-300)) < odds).astype(np.int64)
    side[:2] = 0, 1
    return side


class Proposal(NamedTuple):
    """To separate the one block of two anchors, or to join their two.

    ``members`` are the atoms of both anchors' blocks, anchors first; ``sides`` what separates them,
    or does so now; ``log_q`` the log probability with which the launch draws these sides.
    """

    is_split: bool
    members: NDArray[np.int64]
    sides: Sides
    log_q: float

    def log_ratio(self, seating: Seating, k: int, worth: Matrix) -> float:
        """Log acceptance ratio, given k blocks now and log marginals (3): sides, then whole."""
        counts = self.sides.counts()
        seats = log_sizes(seating, np.append(counts, counts.sum()))
        n_joined = k if self.is_split else k - 1
        split_ratio = worth[0] + worth[1] - worth[2] + seats[0] + seats[1] - seats[2]
        split_ratio += log_blocks_ratio(seating, n_joined, n_joined + 1)
        return float(split_ratio - self.log_q if self.is_split else self.log_q - split_ratio)


def propose(
    rng: Generator,
    atoms: tuple[Matrix, NDArray[np.int64]],
    labels: Labels,
    model: Model,
    plan: SubcPlan,
    anchors: tuple[int, int],
) -> Proposal:
    """Launch for the blocks of two different anchors. ``atoms`` are their rows and sizes."""
    (rows, size), (i, j) = atoms, anchors
    is_split = bool(labels[i] == labels[j])
    members = np.flatnonzero((labels == labels[i]) | (labels == labels[j]))
    members = np.concatenate([[i, j], members[(members != i) & (members != j)]])
    own, own_size = rows[members], size[members]
    odds = launched(rng, model, own, own_size, plan.launch)
    side = drawn_sides(rng, odds) if is_split else (labels[members] == labels[j]).astype(np.int64)
    signed = np.where(side[2:] == 1, odds[2:], -odds[2:])
    log_q = -float(np.logaddexp(0.0, -signed).sum())
    return Proposal(is_split, members, Sides(own, own_size, side), log_q)


def split_merge(
    rng: Generator,
    atoms: Atoms,
    labels: Labels,
    model: Model,
    plan: SubcPlan,
    anchors: tuple[int, int],
) -> tuple[Labels, Info]:
    """Propose to separate or to join the blocks of the two anchors, which must differ.

    ``labels`` are 0 to k - 1. How the anchors are chosen must not depend on the partition.
    """
    rows = require_dense(atoms.rows)
    proposal = propose(rng, (rows, atoms.size), labels, model, plan, anchors)
    sums = proposal.sides.sums()
    both = log_marginals(model, np.concatenate([sums, sums.sum(axis=0, keepdims=True)]))
    k = int(labels.max()) + 1
    ratio = proposal.log_ratio(model.seating, k, both)
    accepted = ratio >= 0.0 or log(max(rng.random(), 1e-300)) < ratio
    info = Info(SPLIT if proposal.is_split else MERGE, ratio, int(accepted))
    if not accepted:
        return labels, info
    changed = labels.copy()
    if proposal.is_split:
        changed[proposal.members[proposal.sides.side == 1]] = k
        return changed, info
    changed[proposal.members] = labels[anchors[0]]
    return compact(changed), info


def sweep(
    rng: Generator, atoms: Atoms, labels: Labels, model: Model, plan: SubcPlan
) -> tuple[Labels, list[Info]]:
    """One restricted sweep, then ``plan.proposals`` split-merge steps with uniform anchors."""
    labels = restricted_gibbs(rng, atoms, compact(labels), model)
    infos = []
    n = labels.shape[0]
    for _ in range(plan.proposals if n > 1 else 0):
        i, j = rng.choice(n, size=2, replace=False)
        labels, info = split_merge(rng, atoms, labels, model, plan, (int(i), int(j)))
        infos.append(info)
    return labels, infos


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""

    def run(rng: Generator, at: MixtureState) -> Tally:
        labels, infos = sweep(rng, at.atoms, at.labels(), at.model, SubcPlan())
        at.set_labels(labels)
        tally = make_tally()
        for info in infos:
            record(tally, info)
        return tally.sum(axis=0, keepdims=True)

    return sampler(entry, run)
