"""Observations that lie in shards: parameters and sums of others go out, statistics come back.

Of a table, which stands still:

- ``counter``: random numbers by counter: each row has its own, whoever draws it.
- ``fixed_order``: sums whose last bit does not depend on how rows were dealt out.
- ``passes``: what is done to the rows of one chunk, compiled.
- ``shard``: some rows with their labels, and the commands that they take.
- ``launches``: splits and merges of several clusters at once, by the same passes.
- ``sharded_chain``: one sweep, decided on statistics alone.
- ``shown``: the partition to show, from what no draw divides.

Of a stream, each shard of which has a chain of its own:

- ``global_round``: a round of all shards, decided on statistics alone.
- ``relay``: sequential allocation that goes from shard to shard.
- ``round_messages``: what shards tell in a round, and are told.
- ``message_arrays``: the same as named arrays, for a database or a wire.
- ``round_steps``: a round as numbered steps of questions and answers.
- ``shard_chain``: a chain that takes part in such rounds with the atoms of one shard.
"""
