"""The writer's side: one batch, one transaction, behind a fence.

- ``fence``: who may write a stream, and whose turn it is.
- ``leases``: leases and adopted rounds in SQL: who holds what, checked where it counts.
- ``logs``: another log under a topic's name: the earlier one keeps its rows, under a name of its
  own.
- ``retention``: what may be forgotten, and forgetting it: oldest first, a bounded number of rows
  at a time.
- ``rewind``: back to a snapshot: everything later leaves the tables, and the offsets go back with
  it.
- ``shard_rounds``: rounds of the shards of one stream: what was asked, and what was answered.
- ``store``: the store over SQL: the questions, and the writer's side on top of them.
- ``stream_rows``: the row of a stream: as it begins, and as it is once the stream is seen anew.
- ``writer``: one batch, one transaction: the order of the writes, after the fence has let it
  pass.
"""
