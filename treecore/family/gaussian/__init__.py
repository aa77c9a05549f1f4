"""Gaussian families, with full or diagonal covariance.

- ``default_scale``: how much of a sample's variance lies within clusters: the default scale of
  Gaussian families.
- ``moments``: first and second moments out of the statistics rows of Gaussian clusters with full
  covariance.
- ``nearer_mean``: which of two blocks has the nearer mean: the cheapest answer to where an
  observation belongs.
- ``normal_inverse_gamma``: Gaussian clusters with independent features: the normal-inverse-gamma
  family.
- ``normal_inverse_wishart``: Gaussian clusters with full covariance: the normal-inverse-Wishart
  family.
- ``packed_cholesky``: lower triangles packed by rows: the factors behind Gaussian clusters with
  full covariance.
- ``posterior_draws``: means and precisions drawn from the posterior of clusters with full
  covariance, compiled.
- ``predictive_bounds``: bounds of predictive densities with full covariance, for searches of the
  best of many clusters.
- ``robust_spread``: how wide the bulk of a sample is, whatever a few absurd rows say.
- ``wishart_counts``: the part of a normal-inverse-Wishart log marginal that depends on the weight
  of a block alone.
"""
