"""What samplers with drawn parameters share: weights, likelihoods of all atoms at once, labels.

Given every block's weight and parameters the labels of the atoms are independent, so all of them
are drawn together from one matrix product. Blocks are numbered 0 to k - 1 here.
"""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from math import log

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from weald.treecore.errors import ParameterError
from weald.treecore.family.parameter_draws import Drawn, divergence
from weald.treecore.prior.apart import keeps_apart
from weald.treecore.prior.base import Seating

__all__ = [
    "block_sums",
    "choose_each",
    "compact",
    "draw_labels",
    "draw_log_weights",
    "draw_sides",
    "log_blocks_ratio",
    "log_coin",
    "log_coins",
    "log_sizes",
    "log_split_ratio",
    "processor_seconds",
    "require_dense",
    "super_clusters",
    "within_reach",
]

Labels = NDArray[np.int64]
Matrix = NDArray[np.float64]

# Atoms whose likelihoods are held at a time: the matrix should stay in the processor's cache.
_CHUNK = 8192
# Entries up to which a dense matrix of members costs less than to make a sparse one.
_FEW = 4096
# Mean reach of super-clusters, in nats of both divergences: 100 are ten standard deviations.
_REACH = 100.0
# A uniform number may be 0, and has a logarithm all the same.
_LEAST = 1e-300
# What threads have worked for each thread that asked them to.
_helped = threading.local()


def processor_seconds() -> float:
    """Processor time of the calling thread, and of those that have drawn labels for it."""
    return time.thread_time() + float(getattr(_helped, "seconds", 0.0))


def require_dense(rows: object) -> Matrix:
    """The statistics rows as a matrix; raises ParameterError where they are held otherwise."""
    if not isinstance(rows, np.ndarray):
        raise ParameterError("samplers with drawn parameters need dense statistics")
    return rows


def compact(labels: Labels) -> Labels:
    """The same partition with labels 0 to k - 1, in the order of the old ones."""
    _, inverse = np.unique(labels, return_inverse=True)
    return inverse.astype(np.int64)


def block_sums(rows: Matrix, labels: Labels, k: int) -> Matrix:
    """Statistics (k, m) of k blocks, empty ones included."""
    n = labels.shape[0]
    if k * n <= _FEW:
        return np.asarray((labels == np.arange(k)[:, None]).astype(np.float64) @ rows)
    from scipy.sparse import coo_array

    member = coo_array((np.ones(n), (labels, np.arange(n))), shape=(k, n)).tocsr()
    return np.asarray(member @ rows)


def log_sizes(seating: Seating, sizes: NDArray[np.int64]) -> Matrix:
    """Log seating weight of blocks of these sizes; an empty block has none."""
    weights = seating.scale * (gammaln(np.maximum(sizes, 1) + seating.shift) - seating.log_norm)
    return np.where(sizes > 0, weights, 0.0)


def log_blocks_ratio(seating: Seating, before: int, after: int) -> float:
    """Log weight of having ``after`` blocks over that of having ``before``, sizes apart."""
    return float(seating.log_blocks[after] - seating.log_blocks[before])


def log_split_ratio(seating: Seating, worth: Matrix, sizes: NDArray[np.int64]) -> float:
    """Log posterior of two blocks over that of their union, the number of blocks apart.

    ``worth`` (3) are the log marginals of the two and of their union, ``sizes`` (3) their
    observations.
    """
    seats = log_sizes(seating, sizes)
    return float(worth[0] + worth[1] - worth[2] + seats[0] + seats[1] - seats[2])


def log_coin(rng: Generator) -> float:
    """Log of a uniform number: below a log probability with that probability."""
    return log(max(rng.random(), _LEAST))


def log_coins(rng: Generator, n: int) -> Matrix:
    """The same for n log probabilities."""
    return np.asarray(np.log(np.maximum(rng.random(n), _LEAST)))


def draw_sides(rng: Generator, odds: Matrix) -> Labels:
    """Side 0 or 1 for each atom (n) by its log odds of side 1."""
    uniform = rng.random(odds.shape[0])
    return (np.log1p(-uniform) - np.log(np.maximum(uniform, _LEAST)) < odds).astype(np.int64)


def draw_log_weights(rng: Generator, seating: Seating, sizes: NDArray[np.int64]) -> Matrix:
    """Logs of block weights (k) given the sizes, up to a constant.

    A block of n seated by Gamma(n + shift) has a Gamma(n + shift) weight; where seating does not
    look at sizes (the uniform assignment), neither do weights. Raises ParameterError where some
    atoms are kept apart: no weights make blocks of them independent.
    """
    if keeps_apart(seating):
        raise ParameterError("a kernel that draws weights of blocks cannot keep atoms apart")
    if seating.scale == 0.0:
        return np.zeros(sizes.shape[0])
    return np.asarray(np.log(rng.gamma(sizes + seating.shift)))


def draw_labels(
    rng: Generator,
    rows: Matrix,
    sizes: NDArray[np.int64],
    log_weights: Matrix,
    natural: Matrix,
) -> Labels:
    """A block for each atom, with probability proportional to weight ** size times likelihood.

    Chunks of atoms are worked on by all cores at once. Their draws are made beforehand, so the
    labels do not depend on how many cores there are.
    """
    n = rows.shape[0]
    uniform = rng.random((n,))
    labels = np.empty(n, dtype=np.int64)

    def label(start: int) -> float:
        began = time.thread_time()
        part = slice(start, start + _CHUNK)
        log_p = rows[part] @ natural.T
        log_p += sizes[part, None] * log_weights
        labels[part] = _chosen(uniform[part], log_p)
        return time.thread_time() - began

    starts = range(0, n, _CHUNK)
    n_threads = min(len(starts), os.cpu_count() or 1)
    if n_threads <= 1:
        for start in starts:
            label(start)
        return labels
    # Threads do: NumPy lets go of the interpreter's lock, and rows need not travel.
    with ThreadPoolExecutor(n_threads) as pool:
        _helped.seconds = getattr(_helped, "seconds", 0.0) + sum(pool.map(label, starts))
    return labels


def choose_each(rng: Generator, log_p: Matrix) -> Labels:
    """One column for each row, with log probabilities up to a constant; overwrites ``log_p``."""
    uniform = rng.random((log_p.shape[0],))
    return _chosen(uniform, log_p)


def _chosen(uniform: Matrix, log_p: Matrix) -> Labels:
    log_p -= log_p.max(axis=1, keepdims=True)
    np.exp(log_p, out=log_p)
    np.cumsum(log_p, axis=1, out=log_p)
    threshold = uniform * log_p[:, -1]
    # Strictly below the last sum, or rounding could choose a column beyond it.
    threshold = np.minimum(threshold, np.nextafter(log_p[:, -1], 0.0))
    return np.asarray((log_p <= threshold[:, None]).sum(axis=1), dtype=np.int64)


def super_clusters(rng: Generator, drawn: Drawn) -> Labels:
    """Group (k) of each block: each points to one that is near, or to itself.

    It looks at the drawn parameters alone, so conditioning on the groups changes nothing else.
    Source: Chang and Fisher (2013), algorithm 1.
    """
    k = drawn.natural.shape[0]
    target = choose_each(rng, -divergence(drawn))
    pointing = np.zeros((k, k), dtype=np.bool_)
    pointing[np.arange(k), target] = True
    return _linked(pointing)


def within_reach(rng: Generator, drawn: Drawn) -> Labels:
    """Super-cluster of each block (k), by drawn parameters alone, so that nothing else changes.

    Blocks are together that are linked by others within a reach which is drawn. Of blocks that far
    apart hardly an atom is unsure; by the published law (:func:`super_clusters`) hardly any are
    linked between which some hundredth of the atoms is.
    """
    near = divergence(drawn) <= _REACH * rng.exponential()
    return _linked(near)


def _linked(near: NDArray[np.bool_]) -> Labels:
    """Connected component of each of k, by who (k, k) is linked with whom, either way."""
    # Slow to load, and only kernels of this kind ask.
    from scipy.sparse.csgraph import connected_components

    return np.asarray(connected_components(near, directed=False)[1], dtype=np.int64)
