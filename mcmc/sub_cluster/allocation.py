"""Sequential allocation by batches: the sides of a split, drawn many atoms at a time.

The atoms of a block come in a random order, in batches each twice as long as the one before. All
of a batch choose their sides at once, given parameters that those before them have taught. So the
sides that two blocks have at present cost a merge little more than what is unsure about each atom,
however far a launch would be from coming to just these: some nats for every parameter and batch,
as in sequential allocation one by one (Dahl, 2003), and one pass over the atoms as products of
matrices.

What the first batches know is a *launch*: two anchors, one for each side, and a few hundred atoms,
which begin with the nearer anchor under the scale of the whole block and go through some sweeps of
[weights, parameters, all sides at once]. Their sides are forgotten; their statistics stand for a
few observations on either side. All this is a function of the anchors, of the block as a set, and
of what is drawn here by one law: it does not look at whether the atoms are in one block or in two.
"""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import Labels, Matrix, block_sums, draw_sides
from weald.treecore.family.parameter_draws import draw_parameters
from weald.treecore.partition.partition import Model

__all__ = ["AllocationPlan", "Forced", "allocated"]

Counts = NDArray[np.int64]

# Of the sides' weights; any constant is exact.
_SIDE_SHAPE = 0.5
# How far the sides begin from the block towards their anchors.
_TOWARDS_ANCHOR = 0.5
# Draws over which a batch's parameters are averaged: one alone costs twice as many nats.
_AVERAGED = 8
_FIRST_BATCH = 4
_GROWTH = 2


class AllocationPlan(NamedTuple):
    """Atoms and sweeps of a launch, and for how many observations on a side it stands."""

    launched: int = 300
    sweeps: int = 6
    weight: float = 3.0


class Forced(NamedTuple):
    """Sides (n), and the log probability below which nobody asks how much below it is."""

    sides: Labels
    least: float


def allocated(
    rng: Generator,
    model: Model,
    atoms: tuple[Matrix, Counts],
    plan: AllocationPlan,
    forced: Forced | None = None,
) -> tuple[Labels, float]:
    """A side for each atom of a block, of which the first two are anchors, and its log probability.

    Parameters
    ----------
    atoms:
        Rows (n, m) and sizes (n), in an order that does not tell blocks.
    forced:
        Sides that are not drawn but imagined to have been, or None.
    """
    rows, size = atoms
    n = rows.shape[0]
    taught = _launched(rng, model, atoms, plan)
    order = 2 + rng.permutation(n - 2)
    side = np.array([0, 1] + [0] * (n - 2), dtype=np.int64)
    sums, counts = rows[:2].copy(), size[:2].astype(np.float64)
    log_q, start, length = 0.0, 0, _FIRST_BATCH
    while start < n - 2:
        batch = order[start : start + length]
        natural = _natural(rng, model, sums + taught)
        log_weights = np.log(counts + _SIDE_SHAPE)
        odds = rows[batch] @ (natural[1] - natural[0])
        odds += size[batch] * (log_weights[1] - log_weights[0])
        side[batch] = draw_sides(rng, odds) if forced is None else forced.sides[batch]
        log_q -= float(np.logaddexp(0.0, np.where(side[batch] == 1, -odds, odds)).sum())
        if forced is not None and log_q <= forced.least:
            return forced.sides, log_q
        sums += block_sums(rows[batch], side[batch], 2)
        counts += np.bincount(side[batch], weights=size[batch], minlength=2)
        start, length = start + length, _GROWTH * length
    return side, log_q


def _natural(rng: Generator, model: Model, sums: Matrix) -> Matrix:
    """Natural parameters (2, m) of the sides, the mean of some draws."""
    drawn = draw_parameters(model.family, np.repeat(sums, _AVERAGED, axis=0), rng).natural
    return np.asarray(drawn.reshape(2, _AVERAGED, -1).mean(axis=1))


def _launched(
    rng: Generator, model: Model, atoms: tuple[Matrix, Counts], plan: AllocationPlan
) -> Matrix:
    """Statistics (2, m) of ``plan.weight`` observations on either side."""
    rows, size = atoms
    n = rows.shape[0]
    if plan.sweeps == 0:
        return np.tile(rows.sum(axis=0) * (plan.weight / size.sum()), (2, 1))
    few = np.arange(n)
    if n > plan.launched:
        few = np.append([0, 1], 2 + rng.choice(n - 2, size=plan.launched - 2, replace=False))
    own, own_size = rows[few], size[few]
    total = own_size.sum()
    # Between each anchor and the block: any convex combination is that of possible observations.
    towards = own[:2] * (total / own_size[:2, None])
    sums = _TOWARDS_ANCHOR * towards + (1.0 - _TOWARDS_ANCHOR) * own.sum(axis=0)
    counts = np.full(2, float(total))
    for _ in range(plan.sweeps):
        natural = draw_parameters(model.family, sums, rng).natural
        log_weights = np.log(rng.gamma(counts + _SIDE_SHAPE))
        odds = own @ (natural[1] - natural[0]) + own_size * (log_weights[1] - log_weights[0])
        side = draw_sides(rng, odds)
        side[:2] = 0, 1
        sums = block_sums(own, side, 2)
        counts = np.bincount(side, weights=own_size, minlength=2)
    return np.asarray(sums * (plan.weight / counts[:, None]))
