"""A batch of observations clustered from start to end.

- ``base_from_sample``: the base measure with which a stream of Gaussian clusters begins: what its
  first records say.
- ``fit``: A batch of observations clustered offline: chains, their traces, and one reported
  partition.
- ``offline_guide``: the guide of an offline chain: a tree of nearest neighbours where
  observations have distances.
- ``preparation``: what a Gaussian fit sees of a table: which columns, and along which axes.
- ``resolution``: values as finely as they are known: what was rounded may have been anything that
  rounds to it.
- ``start``: starting partitions of a batch of observations, and the forest they come from.
"""
