"""Tables over atoms and clusters that grow and change row by row.

- ``atom_table``: what the stream knows of each of the chain's atoms, by atom id: it grows as the
  chain does.
- ``cluster_table``: the published clusters' sufficient statistics, kept row by row as
  observations come and move.
- ``columns``: arrays that grow at their end at constant cost per row.
- ``contingency``: counting who is where: dense numbering of ids, and overlaps of two partitions,
  in linear time.
"""
