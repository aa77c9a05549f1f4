"""Samplers that draw the clusters' weights and parameters, and all labels at once.

- ``fsd``: finite symmetric Dirichlet: the conditional sampler of a truncated model, as a
  baseline.
- ``gibbs_supc``: collapsed Gibbs within super-clusters that are drawn by coins, as a baseline.
- ``labels``: what samplers with drawn parameters share: weights, likelihoods of all atoms at
  once, labels.
- ``slice``: slice sampler for mixtures over normalised random measures: Griffin and Walker
  (2011).
"""
