"""What people ask of clusters, answered for Python, the command line and HTTP alike.

- ``cluster_relations``: how clusters relate: the tree above them, and who was with whom.
- ``errors``: why a question has no answer, and what to do about it.
- ``exploration``: what there is to explore of a partition: rows in a plane, groups of clusters,
  columns.
- ``group_births``: how old a group is: as its oldest cluster, whatever it was called.
- ``numbers``: Numbers, shares and moments as people read them.
- ``prediction``: where records that were not stored would go, by the published clusters.
- ``projection``: two dimensions in which clusters can be looked at.
- ``records``: clusters and lineage events as rows of plain values.
- ``report_data``: what a report tells: read from a stream's database, or from a fit's trace.
- ``stored_stream``: opens the stored state of one stream for questions; nothing here writes.
- ``subtree``: the part of the forest that a cluster's observations hang on, out of the newest
  snapshot.
- ``timeline``: clusters over publications as lines that fork and join.
"""
