"""Chains and fits for the infinite relational model. Pure.

- ``arrival``: edges and vertices of a stream, in the order in which they came.
- ``chain``: one chain over a network that comes edge by edge: insert, forget, refine, save,
  restore.
- ``edge_ledger``: the records of edges that a stream's model holds, and what they say of each
  pair of vertices.
- ``edge_parameters``: learning the edge likelihood's two hyperparameters from the pairs of
  blocks.
- ``fit``: A network clustered offline: a population of chains, the reported blocks, link
  prediction.
- ``growing``: A network's state for a stream: room to spare, enlarged as vertices and blocks
  come, saved.
- ``moves``: split-merge moves and Gibbs sampling of networks: the partition goes where it is
  tried.
- ``position``: where a chain on a network stands: its partition, under an edge likelihood and a
  prior.
- ``vertices``: the state of a network's partition: made, and what it weighs to put vertices
  somewhere.
"""
