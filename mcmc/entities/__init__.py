"""The entity/mention model, where blocks may be empty.

- ``entities``: split-merge on the entity/mention model: Wang and Russell (2015), sections 2 and 5.
- ``kernel``: kernels of the entity/mention model: Wang and Russell (2015), with K drawn beside the
  partition.
- ``number``: how many entities there are, those without a mention included.
"""
