"""Leases: disjoint parts of one partition that workers refine at the same time, and exactly.

Given its auxiliary variables a prior of product form weighs a partition by a product over blocks.
Assign every block to a lease by a law whose probability is a product over blocks too, or by one
that does not look at the partition: given the leases' unions of atoms, the parts are independent,
and any interleaving of kernels that leave each part's conditional law invariant leaves the
posterior invariant (``split-merge-samplers.md`` section 6.2).

*Law A, coins*: each block goes to one of W leases with probability 1 / W. The chance that two
blocks fall together depends on how many there are, and a worker makes up for it by weighing a block
1 / W as much: a Dirichlet process with alpha runs with alpha / W.

*Law B, pairs*: anchors are drawn without looking at the partition, and a lease is the block or the
two blocks that hold a pair of them. A pair whose blocks an earlier pair has claimed is dropped,
whatever becomes of the earlier one. Moves that split or merge the anchors' blocks keep the union,
so nothing is corrected; but only such moves are allowed.

A prior that is no product (``mfm``, ``emm``) couples all leases through the number of blocks, and
so does a likelihood that couples blocks, such as that of the infinite relational model. For these
there is one lease of everything at a time: exact, off the writer's thread, and not concurrent.

While leases are out hyperparameters stand still, and a lease lasts a number of moves, never of
seconds: a time would end more often where moves are cheap.
"""

import json
from dataclasses import dataclass, field
from math import log
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from weald.mcmc.schedule.registry import ALL
from weald.treecore.compiled.draw import below
from weald.treecore.family import FAMILIES, spec_of
from weald.treecore.family.interface.base import Family
from weald.treecore.family.same_kind import n_features_of
from weald.treecore.guide.guide import Guide
from weald.treecore.prior import PartitionPrior, build_prior
from weald.treecore.prior.apart import apart_seating
from weald.treecore.prior.base import Seating
from weald.treecore.prior.sequential import canonical_labels

from .restricted_guide import restrict

__all__ = ["Budget", "Lease", "Pair", "coin_groups", "concurrency", "make_lease", "pair_groups"]

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[Any]]


class Budget(NamedTuple):
    """How much a lease does: sweeps of each of the comma-joined kernels, from a seed of its own.

    ``role`` is that of the workers whom it is meant for. Whoever works on it comes to the same.
    """

    kernels: str
    sweeps: int
    seed: int
    role: str = ALL


class Pair(NamedTuple):
    """A lease of law B: two anchor atoms, and all atoms of the blocks that hold them."""

    anchors: tuple[int, int]
    atoms: Ids


def coin_groups(rng: Generator, labels: Ids, n_leases: int) -> list[Ids]:
    """Law A: the atoms (ascending) of each of ``n_leases`` leases, some of which may be empty."""
    blocks = canonical_labels(labels)
    n_blocks = int(blocks.max()) + 1 if blocks.shape[0] else 0
    lease = np.array([below(rng, n_leases) for _ in range(n_blocks)], dtype=np.int64)
    return [np.flatnonzero(lease[blocks] == w) for w in range(n_leases)]


def pair_groups(rng: Generator, labels: Ids, n_pairs: int) -> list[Pair]:
    """Law B: uniform anchors, blocks claimed in the order of the pairs; there are two atoms."""
    n = labels.shape[0]
    claimed: set[int] = set()
    pairs = []
    for _ in range(n_pairs):
        i = int(below(rng, n))
        j = int(below(rng, n - 1))
        j += int(j >= i)
        blocks = {int(labels[i]), int(labels[j])}
        if claimed.isdisjoint(blocks):
            claimed |= blocks
            pairs.append(Pair((i, j), np.flatnonzero(np.isin(labels, list(blocks)))))
    return pairs


def concurrency(prior: PartitionPrior, n: int, wanted: int) -> int:
    """How many leases by coins the prior allows at a time: ``wanted``, or one if it is no product.

    ``n`` is the number of observations.
    """
    return wanted if prior.seating(n, 2).is_product else 1


@dataclass(frozen=True, eq=False)
class Lease:
    """What a worker is given: a part of the partition, complete in itself.

    Attributes
    ----------
    family, prior:
        The model; the prior with its auxiliary variables as they stand during the round.
    log_share:
        Log of how much a block weighs in this lease, compared with the whole: minus log W.
    labels:
        Canonical labels of the lease's atoms (u).
    size, rows:
        Observations of each atom (u) and their statistics rows (u, m).
    form:
        The guide over these atoms; see :func:`~weald.mcmc.leases.restricted_guide.restrict`.
    anchors:
        Places of the two anchors of law B among the atoms, or empty.
    budget:
        What to do.
    apart:
        Places (o) among the atoms of those that never share a block: see
        :mod:`weald.mcmc.leases.elsewhere`.
    """

    family: Any
    prior: PartitionPrior
    log_share: float
    labels: Ids
    size: Ids
    rows: NDArray[np.float64]
    form: tuple[Ids, Ids]
    anchors: Ids
    budget: Budget
    apart: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def seating(self) -> Seating:
        """The prior as the lease's kernels must see it."""
        n = int(self.size.sum())
        whole = self.prior.seating(n, self.size.shape[0])
        if self.apart.shape[0]:
            whole = apart_seating(whole, n)
        if self.log_share == 0.0:
            return whole
        more = self.log_share * np.arange(whole.log_blocks.shape[0], dtype=np.float64)
        return whole._replace(
            log_blocks=whole.log_blocks + more, slope=whole.slope + self.log_share
        )

    def arrays(self) -> Arrays:
        """Everything as plain arrays, for :meth:`from_arrays`."""
        spec = spec_of(self.family)
        about = {
            "family": [spec.name, spec.parameters(self.family)],
            "prior": [self.prior.name, self.prior.parameters()],
            "log_share": self.log_share,
            "budget": list(self.budget[:3]),
            "role": self.budget.role,
            "n_features": n_features_of(self.family),
        }
        return {
            "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
            "labels": self.labels,
            "size": self.size,
            "rows": self.rows,
            "n_leaves": self.form[0],
            "order": self.form[1],
            "anchors": self.anchors,
            "apart": self.apart,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Undo :meth:`arrays`."""
        about = json.loads(arrays["about"].tobytes())
        name, parameters = about["family"]
        return cls(
            family=FAMILIES[name].build(parameters, np.empty((0, about["n_features"]))),
            prior=build_prior(*about["prior"]),
            log_share=float(about["log_share"]),
            labels=arrays["labels"],
            size=arrays["size"],
            rows=arrays["rows"],
            form=(arrays["n_leaves"], arrays["order"]),
            anchors=arrays["anchors"],
            budget=Budget(*about["budget"])._replace(role=about.get("role", ALL)),
            # Leases of a writer that was there before have none.
            apart=arrays.get("apart", np.empty(0, dtype=np.int64)),
        )


def make_lease(
    model: tuple[Family, PartitionPrior],
    guide: Guide,
    labels: Ids,
    group: tuple[Ids, int] | Pair,
    budget: Budget,
) -> Lease:
    """Lease of some atoms of a partition.

    Parameters
    ----------
    model:
        Family and prior.
    guide, labels:
        Over all atoms; any integer labels (n).
    group:
        Atoms of law A (u, ascending) with the number W of leases in the round, or a pair of law B.
    """
    anchors: Ids = np.empty(0, dtype=np.int64)
    if isinstance(group, Pair):
        atoms, log_share = group.atoms, 0.0
        anchors = np.searchsorted(atoms, group.anchors).astype(np.int64)
    else:
        atoms, log_share = group[0], -log(group[1])
    leaves = guide.node[guide.position[atoms]]
    return Lease(
        family=model[0],
        prior=model[1],
        log_share=log_share,
        labels=canonical_labels(labels[atoms]),
        size=guide.size[leaves],
        rows=guide.rows[leaves],
        form=restrict(guide, atoms),
        anchors=anchors,
        budget=budget,
    )
