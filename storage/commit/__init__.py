"""What one SQL transaction carries, as plain data, and what must hold of it.

- ``changes``: what a commit changes about observations that are there already.
- ``commit``: what one SQL transaction carries: plain frozen data, filled by the engine, read by
  the store.
- ``invariants``: what every batch must satisfy by itself, before the database is asked. Pure.
- ``log_marks``: by what a partition's log is known again, and what was decided when it was another
  one.
- ``parts``: a stream in shards: what its parts are called, and what they are.
- ``refinement_rows``: what refinement adds to one transaction, inline or by workers: plain frozen
  data.
- ``shard_rows``: what rounds of the shards of one stream add to a transaction of one of them.
"""
