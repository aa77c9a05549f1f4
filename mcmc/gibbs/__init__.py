"""Collapsed Gibbs sampling, atom by atom.

- ``gibbs``: collapsed Gibbs: Neal (2000) algorithm 3, one atom after another.
- ``kernel``: collapsed Gibbs: Neal (2000) algorithm 3, for all atoms in turn, or for some.
"""
