"""Moving atoms where they are, on mixtures and on networks alike.

- ``assignment``: moving atoms where they are: what kernels share that work on mixtures and on
  networks alike.
- ``restricted_gibbs``: restricted Gibbs split-merge in place, for likelihoods that couple all
  blocks.
- ``scratch``: what a reconfiguration notes down on its walk: where atoms were, which move whole,
  who stays.
"""
