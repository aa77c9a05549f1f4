"""The shown partition: stable ids, lineage, certainty, prediction.

- ``arrival_router``: which published cluster an observation joins between two publications.
- ``certainty``: how sure the chain is of what is shown: the published partition against the
  chain's recent draws.
- ``groups``: groups of the published clusters, which keep their names.
- ``judgement``: what speaks against a publication, found from its clusters' sizes and a few
  observations.
- ``publication``: the published partition: stable cluster ids, and the events that lead from one
  to the next.
"""
