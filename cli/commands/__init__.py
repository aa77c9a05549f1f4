"""The commands, one a file; each answers one question or runs one thing.

- ``assign``: ``weald assign``: the cluster of a record, now or at a moment in the past.
- ``cluster``: ``weald cluster``: one cluster, what makes it different, who is in it and where it
  came from.
- ``clusters``: ``weald clusters``: what the stream is made of.
- ``config``: ``weald config``: which settings are in force, and where each was set.
- ``db``: ``weald db``: the database's tables and their revision.
- ``dlq``: ``weald dlq``: the records that could not become observations.
- ``doctor``: ``weald doctor``: whether everything that a run needs is there.
- ``export``: ``weald export``: everything of one kind, for other programs.
- ``init``: ``weald init``: a ``weald.toml`` to start from.
- ``lineage``: ``weald lineage``: what became of the clusters.
- ``predict``: ``weald predict``: where new records would go. Query only: nothing is stored or
  learned.
- ``run``: ``weald run``: the service itself.
- ``snapshot``: ``weald snapshot``: the images from which a stream goes on, and the way back to
  one.
- ``status``: ``weald status``: a stream at a glance, with its account.
- ``tree``: ``weald tree``: the tree that a cluster's observations hang on.
- ``warmup``: ``weald warmup``: compile the kernels before the first record asks for them.
- ``watch``: ``weald watch``: a stream as it goes, until interrupted.
- ``worker``: ``weald worker``: refine a stream's clusters beside the process that writes them.
"""
