"""Incremental Bayesian hierarchical clustering: the forest, and what changes it.

- ``balance``: balanced trees: rotations on the path of an insertion, and division of a set from
  the top down.
- ``compaction``: which subtrees of the forest may become one leaf, and making them so.
- ``consolidation``: joining trees of the forest that are one cluster after all.
- ``deferral``: deferral: inside clusters that are whole by far, insertion measures little.
- ``forest``: the forest of IBHC: binary trees over atoms as flat arrays.
- ``hierarchical_clustering``: Bayesian hierarchical clustering in batch: Heller and Ghahramani
  (2005), the twin of insertion.
- ``insertion``: incremental Bayesian hierarchical clustering: insertion into the forest, and
  removal.
- ``joining``: leaves that are no neighbours in the forest, but in one block, made one.
- ``node_layout``: how a forest's nodes, and what is compared of its roots, lie in memory.
- ``routing``: routing: the tree that an arrival belongs to, without weighing it against each.
"""
