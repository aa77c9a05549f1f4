"""The partition of the atoms, with the blocks' statistics.

- ``partition``: the partition being sampled: a block for each atom, with the blocks' statistics.
"""
