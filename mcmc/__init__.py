"""Markov chain Monte Carlo kernels over partitions, and their schedule. Pure.

- ``contract``: the contract of kernels: what one is, what it moves, what it counts, and what a
  chain is.
- ``settings``: what people may choose about the model, its refinement, and an offline fit.
- ``sweeps``: how a sampler becomes a kernel: its sweep over arrays, and what became of its moves.
"""
