"""The writer's state: the chain, what it keeps, and what happened to it.

- ``batch_outcome``: what happened while observations were applied to the model.
- ``compacted_atoms``: the observations behind atoms and bundles: from SQL, and from what is not
  committed yet.
- ``forgetting``: which observations leave the model, and how much those that stay still weigh.
- ``leaf_budget``: keeping a stream's atoms within a budget: how large it is by default, compaction,
  and the expansion of what looks torn.
- ``pace``: when a refinement has its turn, and whether it is made then.
- ``lease_rounds``: which round of leases is out, and doing rounds again at a replay.
- ``left_out``: whether columns that a stream leaves out have begun to say something.
- ``mixture_shard``: the writer's state where a stream is a mixture: observations are atoms, alone
  or compacted.
- ``model``: from settings and a first sample to a stream's model, and to the words that SQL keeps
  of it.
- ``network_shard``: the writer's state where a stream is a network: the shard, with edges for
  records.
- ``part_shard``: the writer's state of one shard of a stream: it refines in rounds with the others.
- ``rows``: rows on their way into the model.
- ``sample``: which observations a model holds that holds a sample of its stream, and where the
  others go.
- ``shard``: the writer's state: the chain, the published partition, and what is told of both.
"""
