"""The sub-cluster sampler over rows that lie in shards: parameters go out, statistics come back.

- ``counter``: random numbers by counter: each row has its own, whoever draws it.
- ``fixed_order``: sums whose last bit does not depend on how rows were dealt out.
- ``passes``: what is done to the rows of one chunk, compiled.
- ``shard``: some rows with their labels, and the commands that they take.
- ``launches``: splits and merges of several clusters at once, by the same passes.
- ``sharded_chain``: one sweep, decided on statistics alone.
- ``shown``: the partition to show, from what no draw divides.
"""
