"""Fits of tables that are larger than one process: rows stay where they are, numbers travel.

- ``engine``: asks all shards at the same time, and brings back one that was lost.
- ``wire``: commands and answers as bytes.
- ``row_files``: Parquet files and arrays as one table of rows, a range of which a shard reads.
- ``label_files``: a shard's labels after each sweep, which outlive its process.
- ``worker``: a shard behind bytes: what runs where the rows are.
- ``local``: a shard as a process of this machine.
- ``ray_actors``: a shard as an actor of Ray.
- ``links``: how the shards of an engine are started.
- ``standing``: where a fit stands after a sweep, all but the labels.
- ``fit_snapshots``: that as a file, from which another process goes on.
- ``sharded_fit``: the chain from start to shown partition; makes again what a lost shard broke.
"""
