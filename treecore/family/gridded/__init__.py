"""Families without a conjugate prior, whose clusters have one number of a grid.

- ``gamma``: clusters of skewed numbers above 0 (durations, amounts): gammas of unknown shape and
  mean.
- ``grid``: families whose clusters have a parameter without a conjugate prior: one number of a
  grid.
- ``negative_binomial``: clusters of counts that vary more than Poisson counts: negative binomials
  of unknown dispersion.
"""
