"""The shown partition: stable ids, lineage, certainty, prediction.

- ``arrival_router``: which published cluster an observation joins between two publications.
- ``certainty``: how sure the chain is of what is shown: the published partition against the
  chain's recent draws.
- ``groups``: groups of the published clusters, which keep their names.
- ``judgement``: what speaks against a publication, found from its clusters' sizes and a few
  observations.
- ``named_draws``: what a shard has drawn in its last rounds, by the names of blocks.
- ``publication``: the published partition: stable cluster ids, and the events that lead from one
  to the next.
- ``whole``: the publication of all shards of a stream, from what no draw divides.
- ``whole_groups``: groups of the clusters that all shards show, and what speaks against their
  publication.
- ``whole_rows``: the same as rows of the stream that the shards are parts of.
"""
