"""Sub-cluster samplers: exact, for starts only, and as published.

- ``allocation``: sequential allocation by batches: the sides of a split, drawn many atoms at a
  time.
- ``exchangeable``: merges judged by exchangeable sides, and the splits that lead back.
- ``near_anchors``: the second anchor of a split or merge: of some random rows, the best with
  the first.
- ``subc``: sub-cluster sampler, exact: merges, a restricted sweep over all labels, then splits and
  merges.
- ``subc_burnin``: sub-cluster sampler, approximate: only for starts. Finds well separated blocks
  within seconds.
- ``subc_published``: sub-cluster sampler as published, as a baseline; approximate.
- ``summed_blocks``: blocks with their sums, for samplers that move many atoms at once.
"""
