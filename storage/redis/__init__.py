"""What lies in Redis: a copy of the statistics, and leases on their way.

- ``client``: one way to reach Redis, for whatever this room keeps there.
- ``lease_queue``: leases on their way to workers and back, through Redis Streams.
- ``statistics``: the statistics of a stream's clusters in Redis: a copy that anyone may read and
  nobody needs.
"""
