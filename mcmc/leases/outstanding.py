"""A chain whose partition is out on leases while observations come and go.

A round of leases counts as having happened at the moment at which it began. What came meanwhile has
a block from its arrival on, but only for the time being: when the leases come back, the arrivals
since then are taken out, the returned partitions of the older atoms put in place, hyperparameters
drawn, and the arrivals inserted again in their order, each by one draw from its conditional. All of
them, whichever blocks they were in: to choose among them by their blocks would tilt the law. So the
chain has the law that it would have if the round had taken no time. What was removed meanwhile is
left out of the returned labels: it was removed after the round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weald.treecore.prior.sequential import canonical_labels

from .leases import Lease

__all__ = ["Lent", "OutstandingLeases", "merged_labels"]

Ids = NDArray[np.int64]


class Lent(NamedTuple):
    """A lease, with the ids (u) of its atoms in the chain."""

    atoms: Ids
    lease: Lease


@dataclass
class OutstandingLeases:
    """Atoms that came, in their order, and older ones that went since the leases were given out."""

    arrived: dict[int, None] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)

    def insert(self, atoms: Ids) -> None:
        """Note arrivals."""
        self.arrived.update(dict.fromkeys(atoms.tolist()))

    def remove(self, atoms: Ids) -> None:
        """Note removals; ids may be given to later arrivals."""
        for atom in atoms.tolist():
            if atom in self.arrived:
                del self.arrived[atom]
            else:
                self.gone.add(atom)

    def stayed(self, atoms: Ids) -> NDArray[np.bool_]:
        """Which of these atoms, that were there when it began, are there still."""
        replaced = np.array([*self.gone, *self.arrived], dtype=np.int64)
        left = np.zeros(max(atoms.max(initial=-1), replaced.max(initial=-1)) + 1, dtype=np.bool_)
        left[replaced] = True
        stayed: NDArray[np.bool_] = ~left[atoms]
        return stayed

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Plain arrays for :meth:`restore`."""
        return {
            "lent_arrived": np.array(list(self.arrived), dtype=np.int64),
            "lent_gone": np.array(sorted(self.gone), dtype=np.int64),
        }

    @classmethod
    def restore(cls, saved: dict[str, NDArray[Any]]) -> "OutstandingLeases | None":
        """Undo :meth:`arrays`; None where nothing was out."""
        if "lent_arrived" not in saved:
            return None
        arrived = dict.fromkeys(saved["lent_arrived"].tolist())
        return cls(arrived, set(saved["lent_gone"].tolist()))


def merged_labels(
    lending: OutstandingLeases, labels: Ids, returns: Sequence[tuple[Ids, Ids]]
) -> Ids:
    """Labels by atom id once returned partitions are in place; -1 for arrivals and gaps.

    Parameters
    ----------
    labels:
        As they are, by id, -1 for an id that no atom has.
    returns:
        Atoms (u) of each returned lease and their labels (u).
    """
    merged = labels.copy()
    arrived = np.fromiter(lending.arrived, dtype=np.int64, count=len(lending.arrived))
    merged[arrived] = -1
    next_label = int(labels.max(initial=-1)) + 1
    for atoms, returned in returns:
        kept = lending.stayed(atoms)
        merged[atoms[kept]] = returned[kept] + next_label
        next_label += int(returned.max(initial=-1)) + 1
    placed = merged >= 0
    merged[placed] = canonical_labels(merged[placed])
    return merged
