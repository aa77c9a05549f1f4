"""Merges judged by exchangeable sides, and the splits that lead back.

A split sends each atom of a uniform block to one side with the same unknown probability
u ~ Beta(1/2, 1/2); a merge joins a uniform pair of blocks. Sides of the same law have about the
probability that the prior has for them, so that blocks which one would do for are joined whatever
their sizes, where a launch would have to come to just these sides. A merge looks at two sums only:
most proposals are merges. Exact and irreducible alone.

Source: Chang and Fisher (2013), section 5.5, with the selection of blocks and pairs and the coin
in the ratio; ``split-merge-samplers.md`` section 2.9.
"""

from math import log

import numpy as np
from numpy.random import Generator

from weald.mcmc.conditional.labels import block_sums, log_coin
from weald.mcmc.split_merge.dm import log_urn
from weald.mcmc.state.atom_state import MERGE, NULL, SPLIT, Info
from weald.treecore.partition.partition import finite_log_marginals

from .summed_blocks import SummedBlocks

__all__ = ["exchange"]

# Probability of proposing a merge.
_MERGES = 0.9
_LOG_ODDS = log(_MERGES) - log(1.0 - _MERGES)
# Both parameters of the law of u.
_SHAPE = 0.5


def exchange(rng: Generator, blocks: SummedBlocks) -> Info:
    """Propose one merge or split, and make it if it is accepted."""
    return _merge(rng, blocks) if rng.random() < _MERGES else _split(rng, blocks)


def _merge(rng: Generator, blocks: SummedBlocks) -> Info:
    k = blocks.k
    if k < 2:
        return Info(NULL, 0.0, 0)
    one, other = int(rng.integers(k)), int(rng.integers(k - 1))
    other += int(other >= one)
    ratio = blocks.log_merge_ratio(one, other) + log(k) - _LOG_ODDS
    ratio += log_urn(_SHAPE, int(blocks.members[one]), int(blocks.members[other]))
    accepted = log_coin(rng) < ratio
    if accepted:
        blocks.join(one, other)
    return Info(MERGE, ratio, int(accepted))


def _split(rng: Generator, blocks: SummedBlocks) -> Info:
    k = blocks.k
    block = int(rng.integers(k))
    inside = np.flatnonzero(blocks.labels == block)
    side = (rng.random(inside.shape[0]) < rng.beta(_SHAPE, _SHAPE)).astype(np.int64)
    n_second = int(side.sum())
    if n_second in (0, inside.shape[0]):
        return Info(NULL, 0.0, 0)
    sums = block_sums(blocks.rows[inside], side, 2)
    sizes = np.bincount(side, weights=blocks.size[inside], minlength=2).astype(np.int64)
    worth = finite_log_marginals(blocks.model.family, sums)
    ratio = blocks.log_split_ratio(worth, sizes, float(blocks.worth[block]))
    ratio += blocks.log_one_more(k) + _LOG_ODDS - log(k + 1)
    ratio -= log_urn(_SHAPE, inside.shape[0] - n_second, n_second)
    accepted = log_coin(rng) < ratio
    if accepted:
        blocks.part(block, inside[side == 1], sums, worth)
    return Info(SPLIT, ratio, int(accepted))
