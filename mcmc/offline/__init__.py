"""A batch of observations clustered from start to end.

- ``fit``: A batch of observations clustered offline: chains, their traces, and one reported
  partition.
- ``offline_guide``: the guide of an offline chain: a tree of nearest neighbours where
  observations have distances.
- ``start``: starting partitions of a batch of observations, and the forest they come from.
"""
