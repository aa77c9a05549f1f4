"""What all chains of a fit stand on: a family, the atoms, and the forest that they begin from.

Atoms and forest are a function of the data and the family alone: a forest that each chain grows for
itself would be the same work once a chain.
"""

from copy import deepcopy
from typing import NamedTuple

from weald.treecore.family.interface.base import Family
from weald.treecore.family.product import Product
from weald.treecore.forest.forest import Forest
from weald.treecore.guide.guide import Guide, freeze
from weald.treecore.partition.partition import Atoms, Model
from weald.treecore.prior import PartitionPrior
from weald.treecore.statistics.observations import Observations

from .offline_guide import offline_guide
from .resolution import as_finely_as_known
from .start import atoms_of, grow_forest

__all__ = ["Ground", "prepared"]


class Ground(NamedTuple):
    """What chains on the same observations share; each may be in a thread of its own.

    Attributes
    ----------
    family, prior, values:
        The model, and what it sees (n, d).
    learns:
        Whether chains learn the family's base measure.
    shared:
        Whether more than one chain stands here.
    atoms, forest:
        One atom for each observation, and a forest of all of them. Nobody may change either.
    """

    family: Family
    prior: PartitionPrior
    values: Observations
    learns: bool
    shared: bool
    atoms: Atoms
    forest: Forest

    def guide(self, model: Model) -> Guide:
        """A guide over the atoms, for one chain to measure anew as it learns."""
        return offline_guide(model, self._own_forest(), self.atoms)

    def guide_of_forest(self, model: Model) -> Guide:
        """The guide that the forest itself is."""
        return freeze(model, self._own_forest())

    def _own_forest(self) -> Forest:
        # A forest is one tree for the moment in which it is frozen, which no other chain may see.
        return deepcopy(self.forest) if self.shared else self.forest


def prepared(
    family: Family, prior: PartitionPrior, values: Observations, *, learns: bool, shared: bool
) -> Ground:
    """Make the atoms of observations (n, d), and grow their forest."""
    seen = values
    # A width that is learned may become any; a given one has said how fine values are.
    if learns or isinstance(family, Product):
        seen = as_finely_as_known(family, values)
    atoms = atoms_of(family, seen)
    forest = grow_forest(family, prior, atoms)
    return Ground(family, prior, values, learns, shared, atoms, forest)
