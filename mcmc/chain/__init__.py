"""One chain over observations that come and go.

- ``arrival``: arrival and departure of observations, and questions about them, compiled.
- ``atom_ids``: ids of a chain's atoms: places in its arrays, given again when an atom has left.
- ``chain``: A chain on a growing set of observations: atoms, the forest over them, their
  partition.
- ``co_occurrence``: which atoms have been together through the newest sweeps of a chain.
- ``compacting``: the choice of what a chain makes one atom of, by the rule of ``tgmcmc-ibhc.md``
  section 7.
- ``concurrent_refinement``: a refinement of all atoms that goes on while the chain takes arrivals.
- ``growing``: state for a stream: arrays with room to spare, enlarged between batches, saved as
  plain ones.
- ``position``: where a chain stands: one partition, in the form that the next kernel needs.
- ``refinement_run``: a refinement under way: its rounds, and the account of what its kernels did.
- ``tree_placement``: an arrival's block by its place in the forest: what arrived with it moves
  together.
- ``window``: rounds on a window of the atoms, at a cost that does not grow with the chain.
"""
