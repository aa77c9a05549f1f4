"""``weald fit``: the command, its networks, and what it writes.

- ``columns``: which columns of a file a fit sees, and how: logarithms, what is left out, and
  components.
- ``command``: ``weald fit``: the engine's model and kernels on a file, offline.
- ``compiling``: compiling for one family in another process, while the fit's own compiles for the
  other.
- ``engines``: names of what runs shards.
- ``fitted_rows``: rows that a fit sees, and the others, which have their clusters afterwards.
- ``network``: ``weald fit --family irm``: the blocks of a network, predicted links, and a picture
  of both.
- ``outputs``: what ``weald fit`` tells of its result: a summary, a CSV of the rows, a trace.
- ``reading``: a file as a fit reads it: through a declared schema, through one that is proposed, or
  as numbers.
- ``sampling``: runs the chains of a fit, with a family and a number of chains where none was given.
- ``sharded``: fits of tables in shards.
"""
