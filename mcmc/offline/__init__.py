"""A batch of observations clustered from start to end.

- ``base_from_sample``: the base measure with which a stream of Gaussian clusters begins: what its
  first records say.
- ``chains``: how many chains a fit runs, and which of them its answer rests on.
- ``copies``: rows of a table that are exact copies of others.
- ``family_choice``: which family suits rows of numbers: the one that predicts other rows better.
- ``fit``: A batch of observations clustered offline: chains, their traces, and one reported
  partition.
- ``fit_groups``: groups of the clusters that a fit shows: those that its draws agree on.
- ``ground``: what all chains of a fit stand on: a family, the atoms, and the forest that they begin
  from.
- ``held_out``: how probable rows are to a fit that has not seen them.
- ``offline_guide``: the guide of an offline chain: a tree of nearest neighbours where
  observations have distances.
- ``partly_known``: rows that a family cannot take, as numbers of them are missing, put where they
  fit best.
- ``preparation``: what the columns of a table say: nothing, what others say, or more by their
  logarithms.
- ``resolution``: values as finely as they are known: what was rounded may have been anything that
  rounds to it.
- ``start``: starting partitions of a batch of observations, and the forest they come from.
- ``transformation``: how a family sees observations: logarithms, unit length, standardised columns,
  components.
"""
