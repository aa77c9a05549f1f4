"""Disjoint parts of one partition that several workers refine at the same time.

- ``elsewhere``: leases of blocks that have members elsewhere: shards that refine one partition.
- ``lease_work``: what a worker does with a lease: a fixed number of moves, and the way back.
- ``leases``: leases: disjoint parts of one partition that workers refine at the same time, and
  exactly.
- ``outstanding``: A chain whose partition is out on leases while observations come and go.
- ``restricted_guide``: the guide restricted to some of its atoms: what a worker needs of it, and
  how it grows back.
"""
