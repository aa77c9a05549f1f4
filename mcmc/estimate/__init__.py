"""From draws of partitions to the one that is shown.

- ``consensus``: one partition told from many draws, and how sure it is of each observation.
- ``relabelling``: a draw with every atom in the cluster that is most probable for it.
"""
