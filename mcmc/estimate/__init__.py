"""From draws of partitions to the one that is shown, and what to think of it.

- ``agreement``: how far two partitions of the same observations agree.
- ``consensus``: one partition told from many draws, and how sure it is of each observation.
- ``evidence``: how well a partition's clusters predict each observation that they hold, without
  it.
- ``groups``: groups of clusters: those between which density has no valley.
- ``predictive``: the posterior predictive of a partition's clusters, for observations that are not
  in it.
- ``relabelling``: a draw with every atom in the cluster that is most probable for it.
- ``valleys``: how deep the valley of density between two clusters is: 1 where there is one hump,
  0 at a gap.
- ``verdict``: whether a partition is fit to be believed: ok, or a warning with its reasons and what
  to try.
"""
