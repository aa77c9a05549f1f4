"""The sub-cluster sampler on a likelihood without a conjugate prior: counts with log-normal rates.

Counts are Poisson(e^theta), theta normal a priori, each feature by itself. No parameter can be
integrated out, so every block keeps its own theta. A sweep moves the thetas by a Metropolis step,
redraws all labels given them as :mod:`weald.mcmc.sub_cluster.subc` does, and proposes splits and
merges by the same launch. A new block's theta is drawn from a Laplace fit to its posterior, 1.3
times as wide; the ratio has the density of that draw on one side, and on the other the density with
which the present thetas would have been drawn.

Exact and irreducible. For Python only: ``weald fit`` has no family of this kind.
Source: ``split-merge-samplers.md`` section 7, and section 2.10 for the rest.
"""

from math import log, pi
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import Labels, Matrix, block_sums, compact, draw_log_weights
from weald.mcmc.state.atom_state import MERGE, SPLIT, Info
from weald.treecore.errors import ObservationError, ParameterError
from weald.treecore.family.parameter_draws import Drawn, draw_parameters
from weald.treecore.partition.partition import Model
from weald.treecore.prior.base import PartitionPrior

from .launched_sides import LaunchPlan, propose
from .subc import relabelled

__all__ = ["Counts", "PoissonLogNormal", "begin", "model_of", "split_merge", "sweep"]

# How much wider than the Laplace fit thetas are proposed: its tails must cover the posterior's.
_WIDER = 1.3
_MOST_STEPS = 100


class PoissonLogNormal(NamedTuple):
    """Mean and standard deviation of theta, the log rate of every feature, a priori."""

    mean: float = 0.0
    deviation: float = 1.0


class Counts(NamedTuple):
    """Where the chain is: rows (n, 1 + d) of one and the counts, labels (n), thetas (k, d)."""

    rows: Matrix
    labels: Labels
    theta: Matrix


def model_of(family: PoissonLogNormal, prior: PartitionPrior, n: int) -> Model:
    """The model of n observations; raises ParameterError for a deviation that is not positive."""
    if not family.deviation > 0.0:
        raise ParameterError(f"deviation must be positive, got {family.deviation:g}")
    return Model(family, prior.seating(n, n), np.zeros((1, 1)))


def begin(rng: Generator, values: NDArray[np.float64], labels: Labels, model: Model) -> Counts:
    """A chain on counts (n, d) from any integer labels (n); raises ObservationError."""
    bad = ~((values >= 0.0) & (values == np.floor(values)) & np.isfinite(values))
    if bad.any():
        row, column = np.argwhere(bad)[0]
        value = values[row, column]
        raise ObservationError(f"observation {row}: feature {column} is {value:g}: no count")
    rows = np.concatenate([np.ones((values.shape[0], 1)), values], axis=1)
    labels = compact(labels)
    sums = block_sums(rows, labels, int(labels.max()) + 1)
    return Counts(rows, labels, _proposed(rng, model.family, sums))


def _fit(family: PoissonLogNormal, sums: Matrix) -> tuple[Matrix, Matrix]:
    """Mode and standard deviation (k, d) of the thetas of blocks with these statistics.

    Newton's method from the right of the mode, where a concave derivative lets it never overshoot.
    """
    weight, total = sums[:, :1], sums[:, 1:]
    precision = family.deviation**-2.0
    with np.errstate(divide="ignore"):
        mode = np.maximum(np.log(total / np.maximum(weight, 1.0)), family.mean)
    for _ in range(_MOST_STEPS):
        rate = weight * np.exp(mode)
        move = (total - rate - precision * (mode - family.mean)) / (rate + precision)
        mode = mode + move
        if np.abs(move).max(initial=0.0) < 1e-12:
            break
    return mode, _WIDER / np.sqrt(precision + weight * np.exp(mode))


def _proposed(rng: Generator, family: PoissonLogNormal, sums: Matrix) -> Matrix:
    mode, deviation = _fit(family, sums)
    return np.asarray(mode + deviation * rng.standard_normal(mode.shape))


def _log_normal(theta: Matrix, mean: Matrix | float, deviation: Matrix | float) -> Matrix:
    return -0.5 * ((theta - mean) / deviation) ** 2 - np.log(deviation) - 0.5 * log(2.0 * pi)


def _log_proposal(family: PoissonLogNormal, sums: Matrix, theta: Matrix) -> Matrix:
    """Log density (k) with which :func:`_proposed` draws these thetas."""
    return np.asarray(_log_normal(theta, *_fit(family, sums)).sum(axis=1))


def _log_posterior(family: PoissonLogNormal, sums: Matrix, theta: Matrix) -> Matrix:
    """Log prior times likelihood (k) of blocks, without the factorials of their counts."""
    likelihood = (theta * sums[:, 1:] - sums[:, :1] * np.exp(theta)).sum(axis=1)
    prior = _log_normal(theta, family.mean, family.deviation).sum(axis=1)
    return np.asarray(likelihood + prior)


def _log_worth(family: PoissonLogNormal, sums: Matrix, theta: Matrix) -> Matrix:
    """What stands for the log marginals (k) that nobody can compute."""
    return _log_posterior(family, sums, theta) - _log_proposal(family, sums, theta)


def _drawn(theta: Matrix) -> Drawn:
    ones = np.ones((theta.shape[0], 1))
    rate = np.exp(theta)
    natural = np.concatenate([-rate.sum(axis=1, keepdims=True), theta], axis=1)
    return Drawn(natural, np.concatenate([ones, rate], axis=1))


@draw_parameters.register
def _launching(family: PoissonLogNormal, rows: Matrix, rng: Generator) -> Drawn:
    """For launches only, which any law serves that knows the data and the sides."""
    return _drawn(_proposed(rng, family, rows))


def _moved_thetas(rng: Generator, family: PoissonLogNormal, sums: Matrix, theta: Matrix) -> Matrix:
    """One independent Metropolis step for every block at once."""
    proposed = _proposed(rng, family, sums)
    ratio = _log_worth(family, sums, proposed) - _log_worth(family, sums, theta)
    accepted = np.log1p(-rng.random(ratio.shape[0])) < ratio
    return np.where(accepted[:, None], proposed, theta)


def split_merge(
    rng: Generator, state: Counts, model: Model, plan: LaunchPlan, anchors: tuple[int, int]
) -> tuple[Counts, Info]:
    """Propose to separate or to join the blocks of the two anchors, which must differ.

    How the anchors are chosen must not depend on the partition.
    """
    labels, (i, j) = state.labels, anchors
    one, other = int(labels[i]), int(labels[j])
    size = np.ones(labels.shape[0], dtype=np.int64)
    proposal = propose(rng, (state.rows, size), labels, model, plan, anchors)
    is_split, k = proposal.is_split, state.theta.shape[0]
    parts = proposal.sides.sums()
    whole = parts.sum(axis=0, keepdims=True)
    fresh = _proposed(rng, model.family, parts if is_split else whole)
    thetas = [fresh, state.theta[[one]]] if is_split else [state.theta[[one, other]], fresh]
    worth = _log_worth(model.family, np.concatenate([parts, whole]), np.concatenate(thetas))
    ratio = proposal.log_ratio(model.seating, k, worth)
    accepted = bool(np.log1p(-rng.random()) < ratio)
    info = Info(SPLIT if is_split else MERGE, ratio, int(accepted))
    if not accepted:
        return state, info
    labels, theta = labels.copy(), state.theta.copy()
    theta[one] = fresh[0]
    if is_split:
        labels[proposal.members[proposal.sides.side == 1]] = k
        return Counts(state.rows, labels, np.concatenate([theta, fresh[1:]])), info
    labels[proposal.members] = one
    kept = np.delete(theta, other, axis=0)
    return Counts(state.rows, compact(labels), kept), info


def sweep(
    rng: Generator, state: Counts, model: Model, plan: LaunchPlan
) -> tuple[Counts, list[Info]]:
    """Thetas, then all labels, then ``plan.proposals`` splits or merges with uniform anchors."""
    rows, labels, theta = state
    n, k = labels.shape[0], theta.shape[0]
    theta = _moved_thetas(rng, model.family, block_sums(rows, labels, k), theta)
    log_weights = draw_log_weights(rng, model.seating, np.bincount(labels, minlength=k))
    size = np.ones(n, dtype=np.int64)
    labels = relabelled(rng, (rows, size), labels, log_weights, _drawn(theta))
    state, infos = Counts(rows, labels, theta), []
    for _ in range(plan.proposals if n > 1 else 0):
        i, j = rng.choice(n, size=2, replace=False)
        state, info = split_merge(rng, state, model, plan, (int(i), int(j)))
        infos.append(info)
    return state, infos
