"""From draws of partitions to the one that is shown.

- ``consensus``: one partition told from many draws, and how sure it is of each observation.
- ``groups``: groups of clusters: those between which density has no valley.
- ``relabelling``: a draw with every atom in the cluster that is most probable for it.
- ``valleys``: how deep the valley of density between two clusters is: 1 where there is one hump,
  0 at a gap.
"""
