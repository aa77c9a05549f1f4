"""Tree-guided moves: whole subtrees of a frozen guide change their block.

- ``cluster_trees``: clusters that each carry a tree: the state of tree-guided MCMC as published.
- ``leaf_scan``: K1 at leaves in the whole tree, many in a row: collapsed Gibbs while the
  partition is pieces.
- ``subtree_gather``: K4, subtree gather: all atoms under a node in one block of their own, or
  scattered as urns draw.
- ``subtree_gibbs``: K1, windowed subtree Gibbs: the atoms of a block under a node move together.
- ``subtree_join``: K5, subtree join: blocks that lie under a node become one, or one is allocated
  afresh.
- ``subtree_repartition``: K3, subtree re-partition: a Gibbs draw from the tree posterior of
  hierarchical clustering.
- ``tgmcmc``: frozen-guide tree-guided MCMC: the exact form of Lee and Choi (2015).
- ``tgmcmc_published``: tree-guided MCMC as published, as a baseline; approximate.
- ``tree_split_merge``: K2, tree-blocked split-merge: Jain and Neal's proposal with subtrees in
  place of points.
"""
