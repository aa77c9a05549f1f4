"""Kernels and fits for the infinite relational model. Pure.

- ``arrival``: edges and vertices of a stream, in the order in which they came.
- ``chain``: one chain over a network that comes edge by edge: insert, forget, refine, save,
  restore.
- ``edge_ledger``: the records of edges that a stream's model holds, and what they say of each
  pair of vertices.
- ``edge_parameters``: learning the edge likelihood's two hyperparameters from the pairs of
  blocks.
- ``fit``: A network clustered offline: a population of chains, the reported blocks, link
  prediction.
- ``gibbs``: collapsed Gibbs for the infinite relational model, one vertex after another.
- ``growing``: A network's state for a stream: room to spare, enlarged as vertices and blocks
  come, saved.
- ``position``: where a chain on a network stands: its partition, under an edge likelihood and a
  prior.
- ``rgsm``: restricted Gibbs split-merge for the infinite relational model: Jain and Neal's
  algorithm 2.
- ``sdds``: Smart-dumb, dumb-smart split-merge for the infinite relational model.
- ``vertices``: what kernels work on where the data are a network: its vertices, their partition,
  scratch space.
"""
