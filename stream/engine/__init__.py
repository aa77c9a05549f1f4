"""The loop, and what it owns: who writes, what is committed, where it goes.

- ``batch_size``: how many records of a backlog one batch takes.
- ``commit_pipeline``: one batch from the model into SQL, and from there to whoever wants to know.
- ``concurrent``: refinements of all of many atoms, on a thread beside the loop.
- ``coordinator``: the writer's side of the refinement plane: rounds of leases, between batches.
- ``engine``: the loop: poll, decode, insert, refine, publish, commit; the only place that goes
  round.
- ``lease_plan``: whom the leases of a round are meant for: the roles of the workers that are alive.
- ``overdue``: whether observations have waited so long for a publication that one comes out of
  turn.
- ``ownership``: who writes the stream: acting, on the engine's thread, on what the group has
  decided.
- ``quiet``: whether a stream goes on refining while no record comes, and when that is enough.
- ``shard_rounds``: a shard's side of the rounds with the others of its stream, through SQL.
- ``side_by_side``: the engines of one process, a thread each: all run until one fails or all are
  stopped.
- ``sinks``: where results go besides SQL. None of it is needed for correctness.
- ``writer``: one tenure as the stream's writer: from claiming it in SQL to losing it.
- ``yielding``: records first: refinement takes the time that ingestion leaves.
"""
