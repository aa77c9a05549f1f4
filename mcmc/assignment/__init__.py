"""Moving atoms where they are, on mixtures and on networks alike.

- ``assignment``: moving atoms where they are: what kernels share that work on mixtures and on
  networks alike.
- ``in_place``: how a sampler that moves atoms in place becomes a kernel, of mixtures or of
  networks.
- ``scratch``: what a reconfiguration notes down on its walk: where atoms were, which move whole,
  who stays.
"""
