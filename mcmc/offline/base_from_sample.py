"""The base measure with which a stream of Gaussian clusters begins: what its first records say.

A short chain on the sample learns partition and base measure together, as an offline fit does; the
stream begins with the mean of what it has learned, and goes on learning under the hyperprior that
the sample sets. (A rule of thumb from the sample's covariance makes dozens of clusters of three
kinds.)
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

from weald.mcmc.chain.position import Position
from weald.mcmc.estimate.evidence import left_out_densities
from weald.mcmc.hyperparameters.learner import Hyperprior, learner_of, learns_by_default
from weald.mcmc.schedule.kernels import KERNELS
from weald.treecore.family.interface.base import Family
from weald.treecore.family.product import Product
from weald.treecore.family.totals import log_predictives, single_rows, totals_of_groups
from weald.treecore.guide.guide import Guide
from weald.treecore.partition.partition import Model
from weald.treecore.prior import PartitionPrior

from .chains import predicts_better, trusted_chains
from .resolution import Moves, resolution_of, resolution_under, within_resolution
from .start import atoms_of, k_means_labels, most_blocks

__all__ = ["Learned", "OtherClusters", "base_from_sample", "clusters_elsewhere"]

# Rows that are looked at, evenly chosen, and the fewest that say anything.
_MOST_ROWS = 1000
_FEWEST_ROWS = 20
# The chain begins with singletons, most of which Gibbs sampling alone does not bring together soon.
_KERNELS = "gibbs,sams,gibbs,sams"
# Half of the sweeps are not looked at, and in most of these the base measure stays as it is: one
# that learns from many small clusters takes them for what clusters are.
_SWEEPS = 120
_RESTS = 40
_SEED = 0


class Learned(NamedTuple):
    """The family with the base measure that a sample supports, and how it is learned on.

    Attributes
    ----------
    family : NamedTuple
    learner : NamedTuple or None
    moves : Moves or None
        How values are moved: a width that is learned may become any.
    """

    family: Any
    learner: Hyperprior | None = None
    moves: Moves | None = None


def base_from_sample(family: Family, prior: PartitionPrior, values: NDArray[np.float64]) -> Learned:
    """What a sample (n, d) says of the base measure.

    The family as it is where it has nothing to learn by default, or the sample is too small. Of
    the numbers beside other kinds it says how coarse they are.
    """
    if not (learns_by_default(family) or isinstance(family, Product)):
        return Learned(family)
    rows = np.linspace(0, len(values) - 1, min(len(values), _MOST_ROWS)).astype(np.int64)
    if np.unique(rows).size < _FEWEST_ROWS:
        return Learned(family)
    values = values[np.unique(rows)]
    if isinstance(family, Product):
        step = resolution_under(family, values)
        return Learned(family, moves=Moves(step) if step.any() else None)
    moves, values = Moves(resolution_of(values)), within_resolution(values)
    learner: Any = learner_of(family, values)

    learned, ended = _learned_from(family, prior, values, learner, np.arange(len(values)))
    if 2 * (np.bincount(ended) == 1).sum() > len(values):
        # It has not left its start: clusters as narrow as may be, around any place, are a mode.
        one = np.zeros(len(values), dtype=np.int64)
        others, elsewhere = _learned_from(family, prior, values, learner, one)
        if trusted_chains(values, [(learned[-1], ended), (others[-1], elsewhere)]) == [1]:
            learned = others
    return Learned(learner.middle(learned), learner, moves)


class OtherClusters(NamedTuple):
    """Clusters that are far from those of a stream's chain, and better.

    Attributes
    ----------
    family, learner : NamedTuple
        The base measure that goes with them, and how it is learned on.
    labels : ndarray of int64, shape (n,)
    reason : str
        What speaks for them.
    """

    family: Any
    learner: Hyperprior
    labels: NDArray[np.int64]
    reason: str


def clusters_elsewhere(
    family: Family,
    labels: NDArray[np.int64],
    fresh: Family,
    prior: PartitionPrior,
    values: NDArray[np.float64],
) -> OtherClusters | None:
    """Look for clusters of moved values (n, d) where those that a chain has come to say nothing.

    What was learned of the first observations can hold a chain for ever: of one cluster, that
    clusters lie close together; of many that are as narrow as may be, that clusters are narrow. So
    a short chain that knows nothing of it begins with k-means of a sample. Where it finds nothing,
    another begins with one cluster, and stays there, or nearly, where there are no others.

    Parameters
    ----------
    family, labels
        What the stream's chain has learned, and the block (n) that each is in.
    fresh
        The family as a stream of such values begins with it.

    Returns
    -------
    OtherClusters or None
        Those of the first chain if they predict the sample better than the stream's do, and than
        one of all; else those of the second if they are at most half as many, and the stream's do
        not predict better. Better is by a tenth of a nat a row, and by two standard errors.
    """
    rows = np.linspace(0, len(values) - 1, min(len(values), _MOST_ROWS)).astype(np.int64)
    sample, rng = values[rows], Generator(PCG64(_SEED))
    learner: Any = learner_of(fresh, sample)
    one, here = np.zeros(len(rows), dtype=np.int64), np.unique(labels[rows], return_inverse=True)[1]
    said, by_one = left_out_densities(family, sample, here), left_out_densities(fresh, sample, one)

    def chain_from(start: NDArray[np.int64]) -> tuple[Any, NDArray[np.int64], NDArray[np.float64]]:
        learned, ended = _learned_from(fresh, prior, sample, learner, start)
        found = learner.middle(learned)
        return found, ended, left_out_densities(found, sample, ended)

    def of_all(found: Any, ended: NDArray[np.int64], reason: str) -> OtherClusters:
        totals = totals_of_groups(found, sample, ended, int(ended.max()) + 1)
        densities = log_predictives(found, single_rows(found, values), totals)
        best = np.argmax(densities + np.log(np.bincount(ended)), axis=1)
        best[rows] = ended
        return OtherClusters(found, learner, best, reason)

    most = most_blocks(prior, len(sample))
    found, ended, there = chain_from(k_means_labels(sample, most, rng, scaled=False))
    if predicts_better(there, said) and predicts_better(there, by_one):
        return of_all(found, ended, "clusters said no more than one, and others predict better")
    if here.any():
        found, ended, there = chain_from(one)
        if 2 * ended.max() < here.max() and not predicts_better(said, there):
            return of_all(found, ended, "clusters said no more than one, and fewer predict as well")
    return None


def _learned_from(
    family: Family,
    prior: PartitionPrior,
    values: NDArray[np.float64],
    learner: Any,
    labels: NDArray[np.int64],
) -> tuple[list[Any], NDArray[np.int64]]:
    """Families of a chain that begins with this partition (n), and where it ends."""
    rng = Generator(PCG64(_SEED))
    position = Position(family, atoms_of(family, values), labels, prior, _no_guide, learner=learner)
    position.base_rests = _RESTS
    kernels = KERNELS.named(_KERNELS)
    found = []
    for sweep in range(_SWEEPS):
        position.resample(rng)
        for kernel in kernels:
            kernel.sweep(rng, position)
        if 2 * sweep >= _SWEEPS:
            found.append(position.family)
    return found, position.labels()


def _no_guide(_: Model) -> Guide:
    raise AssertionError("Gibbs sampling asks for no guide")
