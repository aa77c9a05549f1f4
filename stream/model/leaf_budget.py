"""Keeping a stream's atoms within a budget: how large, compaction, and what looks torn again.

Where `[memory]` says nothing the budget is what there is memory for. Its figures are of
``python -m benchmarks.memory --by-family``: the most that a stream's model took while it grew.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from weald.mcmc.chain.chain import MixtureChain
from weald.storage.commit.commit import Bundled, Unbundled
from weald.stream.tables.atom_table import AtomTable
from weald.treecore.errors import ParameterError
from weald.treecore.family.interface.base import Family, statistics_width

from .compacted_atoms import Archive

__all__ = ["Bounding", "leaf_bytes", "leaves_within"]

Ids = NDArray[np.int64]
Seen = Callable[[NDArray[np.float64], Ids], NDArray[np.float64]]

# A compaction leaves this share of the budget, so that it happens once in so many arrivals.
_LEFT = 0.75
# Of the budget, what expansions at one publication may take.
_EXPANDED = 0.125
_LEAST_REFINEMENTS = 4
# Python, libraries, kernels and SQLite's pages.
_LOADED_BYTES = 256 * 2**20
# Of a leaf: places, names, draws, the tree's; and how often its statistics are there, as a leaf and
# a node, their predictive tables among them, and copies while all atoms are refined.
_LEAF_BYTES, _COPIES = 2_048, 7.5
_NUMBER_BYTES = 8
_FEWEST_LEAVES = 5_000


def leaf_bytes(family: Family) -> float:
    """Memory that an observation takes in a stream's model at its peak, bytes."""
    width: int = statistics_width(family)
    return _LEAF_BYTES + _COPIES * _NUMBER_BYTES * width


def leaves_within(n_bytes: int, family: Family, every_records: int) -> int:
    """How many observations of this family a process of so many bytes holds; two digits of it.

    Two, so that a machine whose memory differs by little has the same budget.
    """
    leaves = max(int((n_bytes - _LOADED_BYTES) / leaf_bytes(family)), 0)
    unit: int = 10 ** max(len(str(leaves)) - 2, 0)
    return max(leaves // unit * unit, _FEWEST_LEAVES, _LEAST_REFINEMENTS * every_records)


class Bounding:
    """Numbers bundles, and decides when atoms are compacted and which are expanded.

    Attributes
    ----------
    next_bundle : int
        The number that the next new bundle gets; they count from 1 and are never used again.
    n_early : int
        Atoms saved so far that the rule of compaction would have had wait.
    """

    def __init__(self) -> None:
        self.next_bundle = 1
        self.n_early = 0

    @staticmethod
    def check(budget: int | None, every_records: int) -> None:
        """Raise ParameterError for a budget that refinements come too rarely for."""
        least = _LEAST_REFINEMENTS * every_records
        if budget is not None and budget < least:
            raise ParameterError(
                f"memory.leaf_budget is {budget}: it must be at least {least}, "
                f"{_LEAST_REFINEMENTS} times refinement.every_records"
            )

    def compact(
        self, chain: MixtureChain, atom_table: AtomTable, publication: int, budget: int, room: int
    ) -> tuple[list[Bundled], Ids]:
        """Make fewer atoms, so that there is room for so many more within the budget.

        Returns the bundles, and the ids that no atom has any more.
        """
        done = chain.compact(
            int(_LEFT * budget), atom_table.cluster[: atom_table.end], budget - room
        )
        self.n_early += done.n_early
        made = []
        for each in done.compacted:
            numbers = atom_table.seq[each.members]
            old = -numbers[numbers < 0]
            # The largest comes first, so it is a bundle if any is.
            if numbers[0] < 0:
                bundle = -int(numbers[0])
            else:
                bundle = self.next_bundle
                self.next_bundle += 1
            atom_table.bundle(each.members, bundle)
            made.append(
                Bundled(
                    bundle=bundle,
                    cluster=int(atom_table.cluster[each.atom]),
                    publication=publication,
                    seq=np.sort(numbers[numbers > 0]),
                    absorbed=tuple(sorted(set(old.tolist()) - {bundle})),
                    n_observations=int(atom_table.size[each.atom]),
                    doubt=each.doubt,
                )
            )
        gone = [each.members[1:] for each in done.compacted]
        return made, np.concatenate([np.empty(0, dtype=np.int64), *gone])

    def expand(
        self, chain: MixtureChain, atom_table: AtomTable, archive: Archive, budget: int, seen: Seen
    ) -> tuple[list[Unbundled], Ids]:
        """Put back the observations of torn atoms, the smallest first, as far as there is room.

        ``seen`` are they (n, d), by their numbers (n), as the family sees them (n, q).
        Returns the bundles that ended, and the ids of the atoms that they and theirs have.
        """
        torn = chain.torn()
        torn = torn[np.lexsort((torn, atom_table.size[torn]))]
        room = min(int(_EXPANDED * budget), budget - chain.n_atoms)
        ended: list[Unbundled] = []
        touched = [np.empty(0, dtype=np.int64)]
        for atom in torn.tolist():
            size, bundle = int(atom_table.size[atom]), -int(atom_table.seq[atom])
            if size > room:
                break
            found = archive.observations(bundle)
            if found is None or len(found[0]) != size:
                continue
            room -= size
            seqs, values, times = found
            cluster = int(atom_table.cluster[atom])
            ids = chain.expand(atom, seen(values, seqs))
            atom_table.leave(np.array([atom]))
            atom_table.enter(ids, seqs, times, np.full(size, cluster))
            ended.append(Unbundled(bundle))
            touched += [np.array([atom]), ids]
        return ended, np.unique(np.concatenate(touched))
