"""The entity/mention model, where blocks may be empty.

- ``entities``: split-merge on the entity/mention model: Wang and Russell (2015), sections 2 and 5.
"""
