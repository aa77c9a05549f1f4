"""The guide: one frozen tree over all atoms, from the forest or from neighbours.

- ``guide``: the guide: one frozen binary tree over all atoms, numbered in preorder.
- ``ward_tree``: ward's trees over nearest neighbours: small subtrees are what lies close
  together.
"""
