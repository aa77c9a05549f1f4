"""Launched sides: a split by sweeps of weights, parameters and all sides at once.

Two anchors hold the two sides; the other atoms of their blocks start on fair sides and go through
some sweeps of [weights, parameters, all sides at once]. The last sides are the proposal, and their
probabilities given the last parameters enter the ratio; a merge is judged by the same launch, its
last sides forced to the present ones. Source: ``split-merge-samplers.md`` section 2.10 (SUBC-X).
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import (
    Labels,
    Matrix,
    block_sums,
    draw_sides,
    log_blocks_ratio,
    log_split_ratio,
)
from weald.treecore.family.parameter_draws import Drawn, draw_parameters
from weald.treecore.partition.partition import Model
from weald.treecore.prior.base import Seating

__all__ = [
    "LaunchPlan",
    "Proposal",
    "Sides",
    "drawn_sides",
    "launched",
    "log_launched_ratio",
    "propose",
]

# Of the sides' weights while the launch runs; any constant is exact.
_SIDE_SHAPE = 0.5


class LaunchPlan(NamedTuple):
    """``proposals`` split-merge steps a sweep, each with ``launch`` launching sweeps."""

    proposals: int = 5
    launch: int = 3


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
    side = draw_sides(rng, odds)
    side[:2] = 0, 1
    return side


def log_launched_ratio(
    seating: Seating,
    k: int,
    whole: tuple[Matrix, NDArray[np.int64]],
    log_q: float,
    *,
    is_split: bool,
) -> float:
    """Log acceptance ratio of parting a block into sides, or of joining two that are the sides.

    Parameters
    ----------
    k:
        Blocks now.
    whole:
        Log marginals and observations (3) of the sides, and of their union.
    log_q:
        Log probability with which the launch draws the sides.
    """
    n_joined = k if is_split else k - 1
    split_ratio = log_split_ratio(seating, *whole)
    split_ratio += log_blocks_ratio(seating, n_joined, n_joined + 1)
    return split_ratio - log_q if is_split else log_q - split_ratio


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
        sizes = np.append(counts, counts.sum())
        return log_launched_ratio(seating, k, (worth, sizes), self.log_q, is_split=self.is_split)


def propose(
    rng: Generator,
    atoms: tuple[Matrix, NDArray[np.int64]],
    labels: Labels,
    model: Model,
    plan: LaunchPlan,
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
