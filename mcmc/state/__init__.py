"""The partition being sampled, in the forms that kernels work on.

- ``atom_state``: what kernels work on: atoms, the partition being sampled, and scratch space.
- ``pieces``: A partition as pieces of the guide: whole subtrees move in one step.
"""
