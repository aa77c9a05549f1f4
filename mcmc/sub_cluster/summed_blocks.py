"""Blocks with their sums, for samplers that move many atoms at once."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.conditional.labels import (
    Labels,
    Matrix,
    block_sums,
    log_blocks_ratio,
    log_split_ratio,
    require_dense,
)
from weald.treecore.partition.partition import Atoms, Model, finite_log_marginals

__all__ = ["SummedBlocks"]


@dataclass
class SummedBlocks:
    """A partition, and what splits and merges of its k blocks ask of it.

    Attributes
    ----------
    rows, size:
        Statistics (n, m) and observations (n) of the atoms.
    labels:
        Block of each atom (n), 0 to k - 1.
    sums:
        Statistics (k, m) of the blocks.
    sizes, members:
        Observations and atoms of each block (k).
    worth:
        Log marginal likelihood of each block (k).
    """

    rows: Matrix
    size: Labels
    model: Model
    labels: Labels
    sums: Matrix
    sizes: Labels
    members: Labels
    worth: Matrix

    @classmethod
    def of(cls, atoms: Atoms, labels: Labels, model: Model) -> Self:
        """Sum up the blocks of the labels 0 to k - 1."""
        rows, k = require_dense(atoms.rows), int(labels.max()) + 1
        sums = block_sums(rows, labels, k)
        sizes = np.bincount(labels, weights=atoms.size, minlength=k).astype(np.int64)
        members = np.bincount(labels, minlength=k).astype(np.int64)
        worth = finite_log_marginals(model.family, sums)
        return cls(rows, atoms.size, model, labels.copy(), sums, sizes, members, worth)

    @property
    def k(self) -> int:
        """Number of blocks."""
        return int(self.sizes.shape[0])

    def log_split_ratio(self, parts: Matrix, sizes: NDArray[np.int64], whole: float) -> float:
        """Log posterior of two blocks over that of their union, k blocks with the union.

        ``parts`` are their log marginals (2) and ``whole`` is that of the union; ``sizes`` (2).
        """
        both = np.append(sizes, sizes.sum())
        return log_split_ratio(self.model.seating, np.append(parts, whole), both)

    def log_one_more(self, k: int) -> float:
        """Log prior weight of k + 1 blocks over that of k, sizes apart."""
        return log_blocks_ratio(self.model.seating, k, k + 1)

    def log_merge_ratio(self, one: int, other: int) -> float:
        """Log posterior with two blocks joined, over that of the present state."""
        pair = [one, other]
        whole = finite_log_marginals(self.model.family, self.sums[pair].sum(axis=0, keepdims=True))
        ratio = self.log_split_ratio(self.worth[pair], self.sizes[pair], float(whole[0]))
        return -ratio - self.log_one_more(self.k - 1)

    def join(self, one: int, other: int) -> None:
        """Put the atoms of two blocks into one; the last block takes the place that is free."""
        for column in (self.sums, self.sizes, self.members):
            column[one] += column[other]
        self.worth[one] = finite_log_marginals(self.model.family, self.sums[[one]])[0]
        self.labels[self.labels == other] = one
        last = self.k - 1
        if other != last:
            self.labels[self.labels == last] = other
            for column in (self.sums, self.sizes, self.members, self.worth):
                column[other] = column[last]
        self.sums, self.sizes = self.sums[:last], self.sizes[:last]
        self.members, self.worth = self.members[:last], self.worth[:last]

    def part(self, block: int, moved: Labels, sums: Matrix, worth: Matrix) -> None:
        """Let the atoms ``moved`` of a block be a new one.

        ``sums`` (2, m) and ``worth`` (2) are those of what stays and of what is moved.
        """
        sizes = np.array([self.sizes[block], self.size[moved].sum()])
        members = np.array([self.members[block], moved.shape[0]])
        sizes[0] -= sizes[1]
        members[0] -= members[1]
        self.labels[moved] = self.k
        self.sums = np.concatenate([self.sums, sums[1:]])
        self.sizes = np.append(self.sizes, sizes[1])
        self.members = np.append(self.members, members[1])
        self.worth = np.append(self.worth, worth[1])
        self.sums[block], self.worth[block] = sums[0], worth[0]
        self.sizes[block], self.members[block] = sizes[0], members[0]
