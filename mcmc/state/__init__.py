"""The partition being sampled, in the forms that kernels work on.

- ``atom_state``: what kernels work on: atoms, the partition being sampled, and scratch space.
- ``block_state``: what kernels that work on mixtures and on networks alike know of either's
  arrays.
- ``entity_state``: state (K, S) of the entity/mention model: K entities, some of them empty, and
  their mentions.
- ``pieces``: A partition as pieces of the guide: whole subtrees move in one step.
- ``vertex_state``: what kernels work on where the data are a network: its vertices, their
  partition, scratch.
"""
