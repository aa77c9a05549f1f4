"""Sub-cluster sampler as published, as a baseline; approximate.

Blocks that emptied are dropped, a block is split along its sub-clusters once their likelihood
"begins to oscillate" (here: has fallen once), merges of sub-clusters are rejected without a look,
and random-split merges of all pairs lack their selection ratio. It differs from ``subc-burnin`` in
when a block may be split and in the pairs that may merge.
Sources: Chang and Fisher (2013), sections 4 and 5; what is wrong: ``split-merge-samplers.md``
section 4, E12 to E16.
"""

from weald.mcmc.contract import Entry, MixtureState
from weald.mcmc.sweeps import Sampler

from .subc_burnin import SubcBurninPlan, keeping_sub_clusters

__all__ = ["PLAN", "kernel"]

# For :func:`weald.mcmc.sub_cluster.subc_burnin.sweep`.
PLAN = SubcBurninPlan(age=None, grouped=False)


def kernel(entry: Entry) -> Sampler[MixtureState]:
    """The kernel, as the registry names it."""
    return keeping_sub_clusters(entry, PLAN)
