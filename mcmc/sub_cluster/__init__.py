"""Sub-cluster samplers: exact, for starts only, and as published.

- ``subc``: sub-cluster sampler, exact: restricted Gibbs on super-clusters, and launched split-
  merge.
- ``subc_burnin``: sub-cluster sampler, approximate: only for starts. Finds well separated blocks
  within seconds.
- ``subc_lognormal``: the sub-cluster sampler on a likelihood without a conjugate prior: counts
  with log-normal rates.
- ``subc_published``: sub-cluster sampler as published, as a baseline; approximate.
"""
